"""Values of the CTC loss that are known, and what happens to utterances that do not fit."""

import itertools
import math
import threading

import pytest
import torch
from torch import Tensor

from sonorant.functional import ctc, ctc_loss, kernels
from tests.cases.case import Rng

UNIFORM = torch.full((1, 2, 3), 1 / 3, dtype=torch.float64).log()


def lengths(*values: int) -> torch.Tensor:
    return torch.tensor(values)


@pytest.fixture(params=["kernel", "torch"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both forms of the operator, on the CPU."""
    if request.param == "kernel" and not kernels.available():
        pytest.skip("numba is not installed")
    if request.param == "torch":
        monkeypatch.setattr(kernels, "available", lambda: False)
    return request.param


@pytest.fixture
def left_to_torch(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many utterances torch's operator got, a call."""
    counts: list[int] = []
    by_torch = ctc._by_torch
    monkeypatch.setattr(ctc, "_by_torch", lambda *a: counts.append(len(a[0])) or by_torch(*a))
    return counts


def value_and_gradient(log_probs: Tensor, *others: Tensor, **options) -> tuple[Tensor, Tensor]:
    log_probs = log_probs.detach().clone().requires_grad_()
    losses = ctc_loss(log_probs, *others, reduction="none", **options)
    losses.sum().backward()
    return losses.detach(), log_probs.grad


def by_torch(log_probs: Tensor, targets: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
    """In float64, on log probabilities: slow and safe."""
    nll, gradient = ctc._by_torch(log_probs.double(), targets, *others, 0, True)
    return torch.where(nll == torch.inf, 0.0, nll), gradient


def batch(frames: int, labels: int, classes: int, batch_size: int = 4, scale: float = 1.0) -> tuple[Tensor, ...]:
    rng = Rng(frames)
    log_probs = (rng.randn(batch_size, frames, classes) * scale).log_softmax(2)
    targets = rng.randint(1, classes, batch_size, labels)
    return log_probs, targets, rng.randint(0, frames + 1, batch_size), rng.randint(0, labels + 1, batch_size)


def close(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    scale = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(actual.double(), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("target", [[], [1], [2, 1], [1, 1], [1, 2, 1], [2, 2, 2], [1, 1, 2]])
@pytest.mark.parametrize("frames", [1, 2, 3, 5])
def test_all_paths_are_counted(target: list[int], frames: int) -> None:
    log_probs = Rng(frames).randn(1, frames, 3)  # need not be normalised
    total, visits = 0.0, torch.zeros(frames, 3, dtype=torch.float64)
    for path in itertools.product(range(3), repeat=frames):
        if [c for c, _ in itertools.groupby(path) if c != 0] == target:
            probability = float(log_probs[0, torch.arange(frames), torch.tensor(path)].sum().exp())
            total += probability
            visits[torch.arange(frames), torch.tensor(path)] += probability
    losses, gradient = value_and_gradient(
        log_probs, torch.tensor([target], dtype=torch.long), lengths(frames), lengths(len(target))
    )
    if total > 0.0:
        assert losses.item() == pytest.approx(-math.log(total), abs=1e-12)
        close(gradient[0], -visits / total, 1e-12)
    else:
        assert losses.item() == 0.0
        assert not gradient.any()


def test_empty_target_is_the_loss_of_blanks() -> None:
    value = ctc_loss(UNIFORM, torch.zeros(1, 0, dtype=torch.long), lengths(2), lengths(0), reduction="sum")
    assert float(value) == pytest.approx(2.1972, abs=1e-4)


def test_matches_torch_where_torch_is_right() -> None:
    torch.manual_seed(0)
    log_probs = torch.randn(3, 20, 6, dtype=torch.float64).log_softmax(-1)
    targets, frames, labels = torch.randint(1, 6, (3, 5)), lengths(20, 15, 12), lengths(5, 3, 4)
    expected = torch.nn.functional.ctc_loss(log_probs.transpose(0, 1), targets, frames, labels)
    torch.testing.assert_close(ctc_loss(log_probs, targets, frames, labels), expected)


def test_an_infeasible_utterance_changes_nothing_for_the_others() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 2, 3], [2, 2, 2]])  # three times the same label needs five frames
    for reduction in ("mean", "batchmean", "sum"):
        loss = ctc_loss(logits.log_softmax(-1), targets, lengths(9, 4), lengths(3, 3), reduction=reduction)
        (gradient,) = torch.autograd.grad(loss, logits)
        alone = ctc_loss(logits[:1].log_softmax(-1), targets[:1], lengths(9), lengths(3), reduction=reduction)
        (expected,) = torch.autograd.grad(alone, logits)
        assert torch.equal(loss, alone)
        assert torch.equal(gradient[0], expected[0])
        assert not gradient[1].any()


def test_a_batch_of_infeasible_utterances_has_loss_and_gradient_zero() -> None:
    log_probs = UNIFORM.clone().requires_grad_()
    loss = ctc_loss(log_probs, torch.tensor([[1, 1]]), lengths(2), lengths(2))
    loss.backward()
    assert float(loss) == 0.0
    assert not log_probs.grad.any()


def test_gradient_of_logits_sums_to_zero_in_every_frame() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 9, 4, requires_grad=True)
    loss = ctc_loss(logits.log_softmax(-1), torch.tensor([[1, 2], [3, 3]]), lengths(9, 6), lengths(2, 2))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.sum(-1).abs().max() < 1e-6
    assert not gradient[1, 6:].any()


def test_minus_infinity_in_log_probs_leaves_finite_gradients() -> None:
    log_probs = UNIFORM.clone()
    log_probs[..., 2] = -torch.inf
    log_probs.requires_grad_()
    ctc_loss(log_probs, torch.tensor([[1]]), lengths(2), lengths(1)).backward()
    assert log_probs.grad.isfinite().all()


SIZES = [(1, 1, 2), (3, 0, 2), (7, 3, 3), (40, 9, 4), (33, 17, 30), (64, 33, 5), (150, 20, 3)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_the_kernel_takes_any_size(left_to_torch: list[int], form: str, sizes: tuple[int, ...], scale: float) -> None:
    log_probs, *others = batch(*sizes, scale=scale)
    for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 1e-6)):
        given = log_probs.to(dtype)
        losses, gradient = value_and_gradient(given, *others)
        assert losses.dtype == gradient.dtype == dtype
        if form == "kernel":
            assert not left_to_torch
            expected, slow = by_torch(given, *others)
            close(losses, expected, tolerance)
            close(gradient, slow, tolerance)
            left_to_torch.clear()


def test_a_float32_gradient_is_good_over_long_inputs() -> None:
    rng = Rng(0)
    log_probs = (rng.randn(2, 650, 30) * 2).log_softmax(2).float()
    others = rng.randint(1, 30, 2, 100), lengths(650, 600), lengths(100, 80)
    losses, gradient = value_and_gradient(log_probs, *others)
    expected, slow = by_torch(log_probs, *others)
    if kernels.available():  # torch's own is off by some 1e-3
        close(losses, expected, 1e-6)
        close(gradient, slow, 1e-6)


def sure(frames: int, labels: int, confidence: float, emitted: Tensor) -> Tensor:
    """Log probabilities of a model that is sure of the class of every frame."""
    logits = torch.zeros(1, frames, labels + 1, dtype=torch.float64)
    logits[0, torch.arange(frames), emitted] = confidence
    return logits.log_softmax(2)


@pytest.mark.parametrize("confidence", [20.0, 60.0, 300.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_model_that_is_sure_and_wrong(
    left_to_torch: list[int], form: str, dtype: torch.dtype, confidence: float
) -> None:
    """Every path is so improbable that products of probabilities underflow."""
    frames, labels = 90, 30
    log_probs = sure(frames, labels, confidence, torch.arange(frames) * 17 % (labels + 1)).to(dtype)
    others = torch.arange(1, labels + 1).unsqueeze(0), lengths(frames), lengths(labels)
    losses, gradient = value_and_gradient(log_probs, *others)
    assert left_to_torch == [1] * (form == "torch" or confidence >= 300)
    if form == "kernel" or dtype == torch.float64:
        expected, slow = by_torch(log_probs, *others)
        close(losses, expected, 1e-6)
        close(gradient, slow, 1e-6)


@pytest.mark.parametrize("confidence", [10.0, 30.0, 200.0])
def test_a_model_that_is_sure_and_right_is_not_slow(left_to_torch: list[int], form: str, confidence: float) -> None:
    """Almost all states underflow, but nothing is lost with them."""
    frames, labels = 200, 40
    log_probs = sure(frames, labels, confidence, (torch.arange(frames) % 5 == 0) * (1 + torch.arange(frames) // 5))
    others = torch.arange(1, labels + 1).unsqueeze(0), lengths(frames), lengths(labels)
    losses, gradient = value_and_gradient(log_probs, *others)
    if form == "kernel":
        assert not left_to_torch
        expected, slow = by_torch(log_probs, *others)
        close(losses, expected, 1e-11)
        close(gradient, slow, 1e-11)


def test_a_long_utterance_of_an_untrained_model_is_not_slow(left_to_torch: list[int], form: str) -> None:
    """States underflow that could matter for all that the forward pass knows; the backward pass knows better."""
    log_probs, targets, *_ = batch(1200, 150, 30, batch_size=1, scale=0.1)
    log_probs[0, ::7, 3] = -torch.inf
    others = targets, lengths(1200), lengths(150)
    losses, gradient = value_and_gradient(log_probs, *others)
    alone = ctc_loss(log_probs, *others, reduction="none")
    if form == "kernel":
        assert not left_to_torch
        expected, slow = by_torch(log_probs, *others)
        close(losses, expected, 1e-11)
        close(gradient, slow, 1e-11)
    assert torch.equal(alone, losses)
    assert not gradient[0, ::7, 3].any()


def test_what_underflowed_may_be_what_counts_in_the_end(left_to_torch: list[int], form: str) -> None:
    """The best path is 1e-340 times less probable than others half way, and those die later."""
    frames, labels = 20, 8
    log_probs = torch.zeros(1, frames, labels + 1, dtype=torch.float64)
    others = torch.arange(1, labels + 1).unsqueeze(0), lengths(frames), lengths(labels)
    log_probs[0, :4, 1:] = -200.0  # four labels at once cost 800: it is better to wait
    log_probs[0, 4:, :5] = -500.0  # yet all but the late labels are improbable from then on
    losses, gradient = value_and_gradient(log_probs, *others)
    expected, slow = by_torch(log_probs, *others)
    assert left_to_torch
    close(losses, expected, 1e-12)
    close(gradient, slow, 1e-12)


def test_log_probs_of_minus_infinity() -> None:
    log_probs, targets, *_ = batch(12, 3, 5)
    log_probs[0, 2:5, 0] = -torch.inf
    log_probs[1, :, targets[1, 1]] = -torch.inf  # no path at all
    log_probs[2, 3, :] = -torch.inf  # none either
    log_probs[3, 11] = -torch.inf  # beyond its length
    log_probs[0, :, 4] = torch.where(log_probs[0, :, 4] < -2, -torch.inf, log_probs[0, :, 4])
    others = targets, lengths(12, 12, 12, 11), lengths(3, 3, 3, 3)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 2e-6)):
        losses, gradient = value_and_gradient(log_probs.to(dtype), *others)
        expected, slow = by_torch(log_probs.to(dtype), *others)
        close(losses, expected, tolerance)
        close(gradient, slow, tolerance)
        assert (losses > 0).tolist() == [True, False, False, True]
        assert not gradient[log_probs == -torch.inf].any()
        assert not gradient[1:3].any()


def test_a_nan_is_not_hidden() -> None:
    log_probs, targets, *_ = batch(12, 3, 5)
    log_probs[1, 3, 0] = torch.nan
    losses = ctc_loss(log_probs, targets, lengths(12, 12, 12, 3), lengths(3, 3, 2, 1), reduction="none")
    assert losses.isfinite().tolist() == [True, False, True, True]


def test_value_alone_equals_value_with_gradient() -> None:
    log_probs, *others = batch(40, 9, 5)
    assert torch.equal(ctc_loss(log_probs, *others, reduction="none"), value_and_gradient(log_probs, *others)[0])


def test_the_blank_may_be_any_class() -> None:
    log_probs, targets, *others = batch(40, 9, 5)
    losses, gradient = value_and_gradient(log_probs, targets, *others)
    moved, gradient_moved = value_and_gradient(log_probs.roll(-1, 2), targets - 1, *others, blank=4)
    close(moved, losses, 1e-12)
    close(gradient_moved, gradient.roll(-1, 2), 1e-12)


def test_any_layout_and_integer_type() -> None:
    log_probs, targets, *others = batch(40, 9, 5)
    expected = value_and_gradient(log_probs, targets, *others)
    view = torch.stack([log_probs.permute(2, 1, 0)] * 2, -1)[..., 0].permute(2, 1, 0)
    assert not view.is_contiguous()
    strided = torch.stack([targets.int()] * 2, -1)[..., 0]
    actual = value_and_gradient(view, strided, *(n.int() for n in others))
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))
    time_first = log_probs.transpose(0, 1).contiguous().transpose(0, 1)
    assert torch.equal(ctc_loss(time_first, targets, *others), ctc_loss(log_probs, targets, *others))


def test_a_graph_can_be_used_twice() -> None:
    log_probs, *others = batch(40, 9, 5)
    log_probs.requires_grad_()
    loss = ctc_loss(log_probs, *others)
    first = torch.autograd.grad(loss * 2, log_probs, retain_graph=True)[0].clone()
    second = torch.autograd.grad(loss * 3, log_probs)[0]
    torch.testing.assert_close(second, first * 1.5, rtol=0, atol=1e-12)


def test_concurrent_calls() -> None:
    log_probs, *others = batch(64, 9, 5)
    expected = value_and_gradient(log_probs, *others)[1]
    results: list[Tensor] = []

    def work() -> None:
        for _ in range(10):
            results.append(value_and_gradient(log_probs, *others)[1])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 30
    assert all(torch.equal(result, expected) for result in results)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_lengths": torch.tensor([4000])}, r"input_lengths\[0\] is 4000"),
        ({"target_lengths": torch.tensor([4000])}, r"target_lengths\[0\] is 4000"),
        ({"targets": torch.tensor([[700000000]])}, r"targets\[0, 0\] is 700000000"),
        ({"targets": torch.tensor([[-3]])}, r"targets\[0, 0\] is -3"),
        ({"targets": torch.tensor([[0]])}, r"targets\[0, 0\] is 0: the blank"),
    ],
)
def test_arguments_are_checked_behind_a_compiled_graph(form: str, changes: dict[str, Tensor], message: str) -> None:
    compiled = torch.compile(ctc_loss, backend="eager", fullgraph=True)
    arguments = {"targets": torch.tensor([[1]]), "input_lengths": lengths(2), "target_lengths": lengths(1)}
    with pytest.raises(ValueError, match=message):
        compiled(UNIFORM, **(arguments | changes))


def test_torch_does_it_when_numba_is_missing(left_to_torch: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "available", lambda: False)
    ctc_loss(UNIFORM, torch.tensor([[1]]), lengths(2), lengths(1))
    assert left_to_torch == [1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": torch.tensor([[5]])}, r"targets\[0, 0\] is 5: outside the 3 classes"),
        ({"targets": torch.tensor([[0]])}, r"targets\[0, 0\] is 0: the blank"),
        ({"blank": 3}, "blank is 3"),
        ({"reduction": "average"}, "reduction"),
        ({"targets": torch.tensor([[1], [1]])}, "targets has 2 rows"),
    ],
)
def test_bad_arguments_are_named(changes: dict[str, object], message: str) -> None:
    arguments = {
        "log_probs": UNIFORM,
        "targets": torch.tensor([[1]]),
        "input_lengths": lengths(2),
        "target_lengths": lengths(1),
    }
    with pytest.raises(ValueError, match=message):
        ctc_loss(**{**arguments, **changes})
