"""Recurrent layers over padded batches."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sonorant.nn.recurrent import BiLstm, reverse_sequences


@pytest.fixture
def layer() -> BiLstm:
    torch.manual_seed(0)
    return BiLstm(4, 6, num_layers=2).double()


def packed(layer: BiLstm) -> nn.LSTM:
    """The same weights in torch's own LSTM."""
    lstm = nn.LSTM(4, 6, num_layers=2, batch_first=True, bidirectional=True).double()
    for index in range(2):
        for source, suffix in ((layer.forwards[index], ""), (layer.backwards[index], "_reverse")):
            for name, weight in source.named_parameters():
                getattr(lstm, f"{name[:-1]}{index}{suffix}").data.copy_(weight)
    return lstm


def test_equals_torch_with_packed_sequences(layer: BiLstm) -> None:
    values, lengths = torch.randn(3, 7, 4).double(), torch.tensor([7, 1, 4])
    output, _ = packed(layer)(pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False))
    expected = pad_packed_sequence(output, batch_first=True)[0]
    valid = torch.arange(7) < lengths.unsqueeze(1)
    torch.testing.assert_close(layer(values, lengths)[valid], expected[valid])


def test_padding_changes_nothing(layer: BiLstm) -> None:
    values, lengths = torch.randn(2, 5, 4).double(), torch.tensor([5, 3])
    more = torch.cat([values, torch.full((2, 2, 4), 1e6).double()], 1)
    more[1, 3:] = -1e6
    for index, length in enumerate(lengths.tolist()):
        alone = layer(values[index : index + 1, :length], lengths[index : index + 1])
        torch.testing.assert_close(layer(more, lengths)[index : index + 1, :length], alone)


def test_lengths_that_do_not_fit_are_refused(layer: BiLstm) -> None:
    with pytest.raises(ValueError, match=r"lengths\[0\] is 6"):
        layer(torch.randn(1, 5, 4).double(), torch.tensor([6]))
    with pytest.raises(ValueError, match="num_layers must be at least 1"):
        BiLstm(4, 6, num_layers=0)


def test_reversing_twice_gives_the_sequences_back() -> None:
    values, lengths = torch.randn(3, 6, 2), torch.tensor([6, 2, 0])
    once = reverse_sequences(values, lengths)
    assert torch.equal(once[0], values[0].flip(0))
    assert torch.equal(once[1], torch.cat([values[1, :2].flip(0), values[1, 2:]]))
    assert torch.equal(reverse_sequences(once, lengths), values)


def test_masks_multiply_the_output_of_each_layer(layer: BiLstm) -> None:
    values, lengths = torch.randn(2, 5, 4).double(), torch.tensor([5, 3])
    masks = [torch.rand(2, 1, 12).double() for _ in range(2)]
    first, second = BiLstm(4, 6).double(), BiLstm(12, 6).double()
    for index, single in enumerate((first, second)):
        single.forwards[0].load_state_dict(layer.forwards[index].state_dict())
        single.backwards[0].load_state_dict(layer.backwards[index].state_dict())
    expected = second(first(values, lengths) * masks[0], lengths) * masks[1]
    torch.testing.assert_close(layer(values, lengths, masks), expected)
