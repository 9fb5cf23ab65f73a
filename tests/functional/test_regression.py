"""Masked regression: what the contracts do not cover."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional import masked_bce_with_logits_loss, masked_l1_loss, masked_mse_loss

LOSSES = {
    masked_l1_loss: F.l1_loss,
    masked_mse_loss: F.mse_loss,
    masked_bce_with_logits_loss: F.binary_cross_entropy_with_logits,
}
over_losses = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)


def test_the_mean_is_over_valid_elements() -> None:
    prediction = torch.tensor([[1.0, 1.0, 1.0, 9.0], [1.0, 9.0, 9.0, 9.0]]).unsqueeze(2)
    lengths = torch.tensor([3, 1])
    for loss in (masked_l1_loss, masked_mse_loss):
        assert loss(prediction, torch.zeros(2, 4, 1), lengths=lengths).item() == 1.0
        wide = prediction.expand(2, 4, 3)
        assert loss(wide, torch.zeros(2, 4, 3), lengths=lengths).item() == 1.0
        assert loss(wide, torch.zeros(2, 4, 3), lengths=lengths, reduction="sum").item() == 12.0
        assert loss(wide, torch.zeros(2, 4, 3), lengths=lengths, reduction="batchmean").item() == 6.0


@over_losses
def test_everything_valid_equals_torch(loss: Callable[..., Tensor]) -> None:
    prediction, target = torch.randn(2, 5, 3), torch.rand(2, 5, 3)
    for reduction in ("none", "sum", "mean"):
        expected = LOSSES[loss](prediction, target, reduction=reduction)
        found = loss(prediction, target, mask=torch.ones(2, 5, dtype=torch.bool), reduction=reduction)
        torch.testing.assert_close(found, expected)


@over_losses
@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
def test_nothing_valid_gives_zero(loss: Callable[..., Tensor], reduction: str) -> None:
    prediction = torch.full((2, 4, 3), torch.nan, requires_grad=True)
    for shape in ((2, 4), (2, 4, 3)):
        value = loss(prediction, prediction.detach(), mask=torch.zeros(shape, dtype=torch.bool), reduction=reduction)
        assert not value.any()
        (gradient,) = torch.autograd.grad(value.sum(), prediction)
        assert not gradient.any()


@over_losses
def test_holes_may_hold_anything(loss: Callable[..., Tensor]) -> None:
    clean, target = torch.randn(2, 4, 3), torch.rand(2, 4, 3)
    mask = torch.rand(2, 4, 3) < 0.5
    for fill in (torch.nan, torch.inf, -torch.inf):
        dirty = torch.where(mask, clean, fill).requires_grad_()
        value = loss(dirty, torch.where(mask, target, fill), mask=mask)
        torch.testing.assert_close(value, LOSSES[loss](clean[mask], target[mask]))
        (gradient,) = torch.autograd.grad(value, dirty)
        assert gradient.isfinite().all()
        assert not gradient[~mask].any()


@over_losses
def test_a_frame_mask_is_the_same_as_lengths(loss: Callable[..., Tensor]) -> None:
    prediction, target, lengths = torch.randn(2, 4, 3), torch.rand(2, 4, 3), torch.tensor([4, 2])
    mask = torch.arange(4) < lengths.unsqueeze(1)
    expected = loss(prediction, target, lengths=lengths)
    assert torch.equal(loss(prediction, target, mask=mask), expected)
    torch.testing.assert_close(loss(prediction, target, mask=mask.unsqueeze(2).expand(2, 4, 3)), expected)


@over_losses
def test_gradients_of_gradients(loss: Callable[..., Tensor]) -> None:
    prediction, target = torch.randn(2, 3, 2, dtype=torch.float64), torch.rand(2, 3, 2, dtype=torch.float64)
    prediction[1, 1:] = target[1, 1:] = torch.nan
    lengths = torch.tensor([3, 1])

    def penalised(x: Tensor, y: Tensor) -> Tensor:
        value = loss(x, y, lengths=lengths)
        gradients = torch.autograd.grad(value, (x, y), create_graph=True)
        return value + sum(gradient.square().sum() for gradient in gradients)

    leaves = prediction.clone().requires_grad_(), target.clone().requires_grad_()
    found = torch.autograd.grad(penalised(*leaves), leaves)
    for position in ((0, 0, 0), (0, 2, 1), (1, 0, 1)):
        for mine, index in zip(found, (0, 1), strict=True):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [prediction.clone(), target.clone()]
                moved[index][position] += step
                sides.append(penalised(*(t.requires_grad_() for t in moved)))
            assert mine[position].item() == pytest.approx((sides[0] - sides[1]).item() / 2e-6, abs=1e-6)
    for gradient in found:
        assert not gradient[1, 1:].any()


def test_confident_logits_stay_finite() -> None:
    prediction = torch.tensor([[[200.0], [-200.0]]], requires_grad=True)
    value = masked_bce_with_logits_loss(prediction, torch.tensor([[[0.0], [0.0]]]), lengths=torch.tensor([2]))
    assert value.item() == 100.0
    assert torch.autograd.grad(value, prediction)[0].flatten().tolist() == [0.5, 0.0]


@over_losses
def test_bad_arguments_are_named(loss: Callable[..., Tensor]) -> None:
    prediction, target, lengths = torch.zeros(2, 4, 3), torch.zeros(2, 4, 3), torch.tensor([4, 2])
    mask = torch.ones(2, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match="exactly one of lengths and mask"):
        loss(prediction, target)
    with pytest.raises(ValueError, match="exactly one of lengths and mask"):
        loss(prediction, target, lengths=lengths, mask=mask)
    with pytest.raises(ValueError, match="prediction and target"):
        loss(prediction, target[:, :, :1], lengths=lengths)
    with pytest.raises(ValueError, match="prediction and target"):
        loss(prediction[0], target[0], lengths=lengths)
    with pytest.raises(ValueError, match="mask must be bool"):
        loss(prediction, target, mask=mask.float())
    for shape in ((2, 3), (4, 2), (2, 4, 1), (2,)):
        with pytest.raises(ValueError, match="mask must be"):
            loss(prediction, target, mask=torch.ones(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"lengths\[1\] is 0"):
        loss(prediction, target, lengths=torch.tensor([4, 0]))
    with pytest.raises(ValueError, match="reduction"):
        loss(prediction, target, lengths=lengths, reduction="average")
