"""Stacks of convolutions over padded batches."""

import pytest
import torch

from sonorant.nn.convolutions import MaskedConvolutions


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    layer = MaskedConvolutions(4, kernel_size=5, num_layers=3).double()
    values, lengths = torch.randn(2, 9, 4).double(), torch.tensor([9, 4])
    values[1, 4:] = torch.nan
    together = layer(values, lengths)
    assert not together[1, 4:].any()
    torch.testing.assert_close(together[1:, :4], layer(values[1:, :4], lengths[1:]))


def test_a_layer_sees_its_kernel_and_no_more() -> None:
    torch.manual_seed(0)
    layer = MaskedConvolutions(2, kernel_size=3, num_layers=2).double()
    values, lengths = torch.randn(1, 9, 2).double().requires_grad_(), torch.tensor([9])
    layer(values, lengths)[0, 4].square().sum().backward()
    assert values.grad is not None
    assert values.grad[0].abs().sum(1).nonzero().flatten().tolist() == [2, 3, 4, 5, 6]


def test_masks_take_channels_away() -> None:
    torch.manual_seed(0)
    layer = MaskedConvolutions(3, kernel_size=1, num_layers=1)
    mask = torch.tensor([[[0.0, 2.0, 1.0]]])
    values, lengths = torch.randn(1, 5, 3), torch.tensor([5])
    torch.testing.assert_close(layer(values, lengths, [mask]), layer(values, lengths) * mask)


@pytest.mark.parametrize(("kernel_size", "num_layers"), [(4, 1), (0, 1), (3, 0)])
def test_settings_that_cannot_be(kernel_size: int, num_layers: int) -> None:
    with pytest.raises(ValueError, match=r"kernel_size must be an odd number|num_layers must be at least 1"):
        MaskedConvolutions(4, kernel_size=kernel_size, num_layers=num_layers)
