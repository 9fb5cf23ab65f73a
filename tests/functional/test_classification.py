"""Label smoothing: what the contracts do not cover."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional import classification_operators, label_smoothing_loss, linear_label_smoothing_loss
from sonorant.losses import LabelSmoothingLoss
from tests.reference.classification import label_smoothing_by_distribution, linear_label_smoothing_by_logits


def batch(classes: int = 6, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 40, classes, generator=generator, dtype=torch.float64) * 3
    targets = torch.randint(classes, (3, 40), generator=generator)
    # gaps short and long, whole utterances, the very first and the very last position
    for row, columns in ((0, slice(0, 3)), (0, slice(9, 11)), (1, slice(5, 40)), (2, slice(0, 20)), (2, slice(39, 40))):
        targets[row, columns] = -100
    return logits.to(dtype), targets


def with_gradients(function: Callable[..., Tensor], *leaves: Tensor) -> list[Tensor]:
    leaves = tuple(t.detach().clone().requires_grad_() for t in leaves)
    loss = function(*leaves)
    return [
        loss.detach(),
        *torch.autograd.grad((loss * torch.cos(torch.arange(loss.numel())).view(loss.shape)).sum(), leaves),
    ]


@pytest.fixture(params=["rows skipped", "all rows"])
def device_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms: the one for CPUs and the one that never waits for a device."""
    if request.param == "all rows":
        monkeypatch.setattr(classification_operators, "_skips_ignored", lambda device: False)


@pytest.mark.usefixtures("device_form")
class TestBothForms:
    @pytest.mark.parametrize("fill", [0.0, torch.nan, torch.inf])
    @pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
    def test_ignored_positions_may_hold_anything(self, fill: float, reduction: str) -> None:
        logits, targets = batch()
        filled = torch.where((targets == -100).unsqueeze(2), fill, logits)
        ours = with_gradients(lambda x: label_smoothing_loss(x, targets, reduction=reduction), filled)
        slow = with_gradients(lambda x: label_smoothing_by_distribution(x, targets, reduction=reduction), logits)
        for mine, theirs in zip(ours, slow, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("fill", [0.0, torch.nan])
    @pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
    @pytest.mark.parametrize("chunk_size", [1, 7, 1000, None])
    def test_the_linear_form_equals_the_plain_one(self, fill: float, reduction: str, chunk_size: int | None) -> None:
        hidden, targets = batch()
        filled = torch.where((targets == -100).unsqueeze(2), fill, hidden)
        generator = torch.Generator().manual_seed(1)
        weight, bias = torch.randn(6, 6, generator=generator).double(), torch.randn(6, generator=generator).double()

        def ours(h: Tensor, w: Tensor, b: Tensor) -> Tensor:
            return linear_label_smoothing_loss(h, w, targets, bias=b, reduction=reduction, chunk_size=chunk_size)

        def plain(h: Tensor, w: Tensor, b: Tensor) -> Tensor:
            return label_smoothing_by_distribution(F.linear(h, w, b), targets, reduction=reduction)

        for mine, theirs in zip(
            with_gradients(ours, filled, weight, bias), with_gradients(plain, hidden, weight, bias), strict=True
        ):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)

    @pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
    def test_nothing_but_ignored_tokens_gives_zero(self, reduction: str) -> None:
        targets = torch.full((2, 3), -100)
        logits, weight = torch.full((2, 3, 4), torch.nan), torch.randn(5, 4)
        for loss, gradient in (
            with_gradients(lambda x: label_smoothing_loss(x, targets, reduction=reduction), logits),
            with_gradients(lambda h: linear_label_smoothing_loss(h, weight, targets, reduction=reduction), logits),
            with_gradients(
                lambda w: linear_label_smoothing_loss(torch.ones(2, 3, 4), w, targets, reduction=reduction), weight
            ),
        ):
            assert not loss.any()
            assert not gradient.any()

    def test_chunks_of_half_precision(self) -> None:
        logits, targets = batch(20_000, torch.bfloat16)  # several chunks
        loss, gradient = with_gradients(lambda x: label_smoothing_loss(x, targets), logits)
        expected, exact = with_gradients(lambda x: label_smoothing_by_distribution(x, targets), logits.double())
        assert loss.dtype == torch.float32
        assert gradient.dtype == torch.bfloat16
        torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
        torch.testing.assert_close(gradient.double(), exact, rtol=5e-3, atol=1e-9)

    def test_large_offsets_cost_no_precision(self) -> None:
        logits, targets = batch(50, torch.float32)
        logits = logits.mul(64).round().div(64)  # so that the offset itself is exact
        near = with_gradients(lambda x: label_smoothing_loss(x, targets), logits)
        far = with_gradients(lambda x: label_smoothing_loss(x, targets), logits + 2.0**14)
        for mine, theirs in zip(far, near, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def test_known_value() -> None:
    logits = torch.tensor([[[2.0, 1.0, 0.0, -1.0, 0.5]]], dtype=torch.float64)
    assert label_smoothing_loss(logits, torch.tensor([[0]]), 0.1).item() == pytest.approx(0.298225, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 0.8])
@pytest.mark.parametrize(("ours", "theirs"), [("mean", "mean"), ("sum", "sum"), ("none", "none")])
def test_equals_torch_cross_entropy(smoothing: float, ours: str, theirs: str) -> None:
    logits, targets = batch()
    torch_smoothing = smoothing * 6 / 5

    def torch_loss(x: Tensor) -> Tensor:
        return F.cross_entropy(x.transpose(1, 2), targets, label_smoothing=torch_smoothing, reduction=theirs)

    ours_found = with_gradients(lambda x: label_smoothing_loss(x, targets, smoothing, reduction=ours, kl=False), logits)
    for mine, expected in zip(ours_found, with_gradients(torch_loss, logits), strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.3, 1.0])
def test_kl_adds_the_negative_entropy_a_token(smoothing: float) -> None:
    logits, targets = batch()
    masses = [1 - smoothing] + [smoothing / 5] * 5
    constant = sum(m * math.log(m) for m in masses if m > 0)
    with_kl, without = (
        label_smoothing_loss(logits, targets, smoothing, reduction="none", kl=kl) for kl in (True, False)
    )
    torch.testing.assert_close(with_kl - without, constant * (targets != -100).double(), rtol=0, atol=1e-12)


def test_a_perfect_prediction_has_divergence_zero() -> None:
    logits = torch.tensor([[[0.7, 0.1, 0.1, 0.1]]], dtype=torch.float64).log()
    loss, gradient = with_gradients(lambda x: label_smoothing_loss(x, torch.tensor([[0]]), 0.3), logits)
    assert abs(loss.item()) < 1e-15
    assert gradient.abs().max() < 1e-15


def test_impossible_classes_without_smoothing() -> None:
    logits = torch.tensor([[[0.0, -torch.inf, 0.0]]])
    loss, gradient = with_gradients(lambda x: label_smoothing_loss(x, torch.tensor([[0]]), 0.0), logits)
    assert loss.item() == pytest.approx(math.log(2))
    assert gradient.flatten().tolist() == pytest.approx([-0.5, 0.0, 0.5])
    assert label_smoothing_loss(logits, torch.tensor([[0]]), 0.1).item() == math.inf


def test_the_backward_pass_can_be_repeated() -> None:
    hidden, targets = batch()
    weight = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    loss = linear_label_smoothing_loss(hidden, weight, targets)
    (first,) = torch.autograd.grad(loss, weight, retain_graph=True)
    (second,) = torch.autograd.grad(loss * 2, weight)
    torch.testing.assert_close(second, first * 2, rtol=0, atol=1e-15)


def test_a_frozen_output_layer_and_mixed_precision() -> None:
    hidden, targets = batch()
    weight = torch.randn(9, 6)
    expected = with_gradients(lambda h: linear_label_smoothing_by_logits(h, weight.double(), targets), hidden)
    loss, gradient = with_gradients(lambda h: linear_label_smoothing_loss(h, weight, targets), hidden)
    torch.testing.assert_close([loss, gradient], expected, rtol=0, atol=1e-12)
    loss, gradient = with_gradients(lambda h: linear_label_smoothing_loss(h, weight, targets), hidden.bfloat16())
    assert loss.dtype == torch.float32
    assert gradient.dtype == torch.bfloat16
    torch.testing.assert_close(gradient.double(), expected[1], rtol=0.02, atol=1e-3)


def test_the_logits_are_never_all_held() -> None:
    hidden, weight = torch.randn(1, 512, 8, requires_grad=True), torch.randn(4096, 8, requires_grad=True)
    targets = torch.randint(4096, (1, 512))
    shapes: list[int] = []

    class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            output = function(*args, **(kwargs or {}))
            shapes.extend(t.numel() for t in torch.utils._pytree.tree_leaves(output) if isinstance(t, Tensor))
            return output

    for reduction in ("mean", "none"):
        with Sizes():
            linear_label_smoothing_loss(hidden, weight, targets, reduction=reduction, chunk_size=32).sum().backward()
    assert shapes
    assert max(shapes) <= 32 * 4096


def test_bad_arguments_are_named() -> None:
    logits, targets = torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.long)
    hidden, weight = torch.zeros(2, 3, 4), torch.zeros(5, 4)
    wrong = targets.clone()
    for value in (5, -1):
        wrong[1, 2] = value
        for call in (
            lambda: label_smoothing_loss(logits, wrong),
            lambda: linear_label_smoothing_loss(hidden, weight, wrong),
        ):
            with pytest.raises(ValueError, match=rf"targets\[1, 2\] is {value}: outside the 5 classes"):
                call()
    assert label_smoothing_loss(logits, wrong, ignore_index=-1).isfinite()
    with pytest.raises(ValueError, match="at least 2 classes; got 1"):
        label_smoothing_loss(torch.zeros(2, 3, 1), targets)
    with pytest.raises(ValueError, match="at least 2 classes; got 1"):
        linear_label_smoothing_loss(hidden, torch.zeros(1, 4), targets)
    for smoothing in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="smoothing must be in"):
            label_smoothing_loss(logits, targets, smoothing)
        with pytest.raises(ValueError, match="smoothing must be in"):
            linear_label_smoothing_loss(hidden, weight, targets, smoothing)
        with pytest.raises(ValueError, match="smoothing must be in"):
            LabelSmoothingLoss(smoothing)
    with pytest.raises(ValueError, match="targets"):
        label_smoothing_loss(logits, targets[:, :2])
    with pytest.raises(ValueError, match="targets"):
        label_smoothing_loss(logits.flatten(0, 1), targets.flatten())
    with pytest.raises(ValueError, match="integers"):
        label_smoothing_loss(logits, targets.float())
    with pytest.raises(ValueError, match="reduction"):
        label_smoothing_loss(logits, targets, reduction="average")
    with pytest.raises(ValueError, match="do not fit together"):
        linear_label_smoothing_loss(hidden, torch.zeros(5, 3), targets)
    with pytest.raises(ValueError, match="do not fit together"):
        linear_label_smoothing_loss(hidden, weight, targets, bias=torch.zeros(4))
    with pytest.raises(ValueError, match="chunk_size"):
        linear_label_smoothing_loss(hidden, weight, targets, chunk_size=0)
