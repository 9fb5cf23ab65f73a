"""What the contracts do not say about the forward-sum loss."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from sonorant.functional import forward_sum, forward_sum_loss, kernels
from tests.cases.case import Rng
from tests.reference.alignment import forward_sum_by_enumeration, forward_sum_by_item


@pytest.fixture(params=["kernel", "by frame"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both forms of the operator, on the CPU."""
    if request.param == "kernel" and not kernels.available():
        pytest.skip("numba is not installed")
    if request.param == "by frame":
        monkeypatch.setattr(kernels, "available", lambda: False)
    return request.param


def value_and_gradient(scores: Tensor, *lengths: Tensor, **options) -> tuple[Tensor, Tensor]:
    scores = scores.detach().clone().requires_grad_()
    loss = forward_sum_loss(scores, *lengths, **options)
    loss.backward()
    return loss.detach(), scores.grad


def batch(dtype: torch.dtype = torch.float64, frames: int = 40, tokens: int = 9) -> tuple[Tensor, Tensor, Tensor]:
    scores = Rng(1).randn(4, frames, tokens).to(dtype) * 3
    return scores, torch.tensor([frames, frames - 7, tokens, 5]), torch.tensor([tokens, 1, tokens, 5])


def test_the_value_in_the_specification(form: str) -> None:
    for padding in (0, 1, 4):
        loss = forward_sum_loss(torch.zeros(1, 3, 2 + padding), torch.tensor([3]), torch.tensor([2]))
        assert loss.item() == pytest.approx(0.72670, abs=5e-6)


@pytest.mark.parametrize(("frames", "tokens"), [(1, 1), (2, 1), (5, 1), (2, 2), (4, 2), (5, 3), (4, 4), (6, 3)])
def test_all_paths_are_counted(form: str, frames: int, tokens: int) -> None:
    scores = Rng(frames).randn(1, frames, tokens) * 2
    expected = forward_sum_by_enumeration(scores[0], 0.3)
    loss = forward_sum_loss(scores, torch.tensor([frames]), torch.tensor([tokens]), blank_logprob=0.3, reduction="sum")
    assert loss.item() == pytest.approx(expected.item(), abs=1e-10)


def test_both_forms_agree_with_ctc(form: str) -> None:
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 2e-6)):
        scores, *lengths = batch(dtype)
        for options in ({}, {"band": 2}, {"reduction": "sum"}, {"reduction": "batchmean", "blank_logprob": 2.0}):
            loss, gradient = value_and_gradient(scores, *lengths, **options)
            exact = scores.double().requires_grad_()
            expected = forward_sum_by_item(exact, *lengths, **options)
            assert loss.dtype == gradient.dtype == dtype
            assert loss.item() == pytest.approx(expected.item(), rel=tolerance)
            (slow,) = torch.autograd.grad(expected, exact)
            torch.testing.assert_close(gradient.double(), slow, rtol=0, atol=tolerance * float(slow.abs().max()))


def test_a_float32_gradient_is_good_over_long_inputs() -> None:
    scores, *lengths = batch(torch.float32, frames=600, tokens=80)
    _, gradient = value_and_gradient(scores, *lengths)
    _, exact = value_and_gradient(scores.double(), *lengths)
    assert (gradient - exact).abs().max() < 1e-6 * exact.abs().max()


def test_infeasible_utterances_are_left_out(form: str) -> None:
    scores = Rng(0).randn(3, 6, 4)
    query_lengths, key_lengths = torch.tensor([6, 3, 5]), torch.tensor([3, 4, 2])
    loss, gradient = value_and_gradient(scores, query_lengths, key_lengths)
    rest = [0, 2]
    loss_rest, gradient_rest = value_and_gradient(scores[rest], query_lengths[rest], key_lengths[rest])
    assert loss.item() == pytest.approx(loss_rest.item(), abs=1e-12)
    torch.testing.assert_close(gradient[rest], gradient_rest, rtol=0, atol=1e-12)
    assert not gradient[1].any()
    alone, gradient = value_and_gradient(scores[1:2], query_lengths[1:2], key_lengths[1:2])
    assert alone.item() == 0
    assert not gradient.any()


def test_scores_of_minus_infinity(form: str) -> None:
    scores = Rng(3).randn(2, 6, 3)
    blocked = scores.clone()
    blocked[0, 2:4, 1] = -torch.inf
    blocked[0, 5] = -torch.inf  # a frame with nothing but the blank
    blocked[1, :, 1] = -torch.inf  # no path at all
    lengths = torch.tensor([6, 6]), torch.tensor([3, 3])
    for dtype in (torch.float64, torch.float32):
        loss, gradient = value_and_gradient(blocked.to(dtype), *lengths)
        expected = forward_sum_by_enumeration(blocked[0], -1.0) / 3
        assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
        assert gradient.isfinite().all()
        assert not gradient[1].any()
        assert not gradient[0][blocked[0] == -torch.inf].any()
        assert gradient[0].any()


def test_a_nan_is_not_hidden(form: str) -> None:
    scores = Rng(3).randn(2, 6, 3).float()
    scores[1, 3, 2] = torch.nan
    losses = forward_sum_loss(scores, torch.tensor([6, 6]), torch.tensor([3, 3]), reduction="none")
    assert losses.isfinite().tolist() == [True, False]


@pytest.mark.parametrize("spread", [60.0, 200.0, 2000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_attention_that_is_sure_and_wrong(form: str, dtype: torch.dtype, spread: float) -> None:
    """Every path is so improbable that products of probabilities underflow."""
    frames, tokens = 60, 20
    scores = torch.zeros(1, frames, tokens, dtype=dtype)
    scores[0, torch.arange(frames), torch.arange(frames) * 13 % tokens] = spread
    lengths = torch.tensor([frames]), torch.tensor([tokens])
    loss, gradient = value_and_gradient(scores, *lengths)
    exact = scores.double().requires_grad_()
    expected = forward_sum_by_item(exact, *lengths)
    (slow,) = torch.autograd.grad(expected, exact)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(gradient.double(), slow, rtol=0, atol=1e-6 * float(slow.abs().max()))


def test_one_improbable_cell_that_all_good_paths_need() -> None:
    """exp(-90) is 0 in float32, yet the way around it is less probable still."""
    scores = torch.zeros(1, 12, 3)
    scores[0, :, 1] = -90.0
    scores[0, :, 0], scores[0, :, 2] = 5.0, 5.0
    lengths = torch.tensor([12]), torch.tensor([3])
    expected = forward_sum_by_item(scores.double(), *lengths).item()
    assert forward_sum_loss(scores, *lengths).item() == pytest.approx(expected, rel=1e-6)


def test_value_alone_equals_value_with_gradient(form: str) -> None:
    scores, *lengths = batch()
    assert forward_sum_loss(scores, *lengths).item() == value_and_gradient(scores, *lengths)[0].item()


def test_a_band_is_a_mask(form: str) -> None:
    scores, *lengths = batch()
    frames, tokens = 40, 9
    masked = scores.clone()
    for b, (num_queries, num_keys) in enumerate(zip(*(n.tolist() for n in lengths), strict=True)):
        for q in range(frames):
            for k in range(tokens):
                if abs(k * num_queries - q * num_keys) > 2 * num_queries:
                    masked[b, q, k] = -torch.inf
    loss, gradient = value_and_gradient(scores, *lengths, band=2)
    loss_masked, gradient_masked = value_and_gradient(masked, *lengths)
    assert loss.item() == pytest.approx(loss_masked.item(), abs=1e-12)
    torch.testing.assert_close(gradient, gradient_masked, rtol=0, atol=1e-12)


def test_a_band_that_covers_everything_changes_nothing(form: str) -> None:
    scores, *lengths = batch()
    full = value_and_gradient(scores, *lengths)
    for band in (9, 1000):
        banded = value_and_gradient(scores, *lengths, band=band)
        assert all(torch.equal(a, b) for a, b in zip(full, banded, strict=True))


def test_the_narrowest_band_lets_a_path_through(form: str) -> None:
    for frames in range(1, 12):
        for tokens in range(1, frames + 1):
            loss, gradient = value_and_gradient(
                torch.zeros(1, frames, tokens), torch.tensor([frames]), torch.tensor([tokens]), band=1
            )
            assert loss > 0, (frames, tokens)
            assert gradient.isfinite().all()


def test_heads(form: str) -> None:
    scores = Rng(5).randn(2, 3, 7, 4)
    lengths = torch.tensor([7, 6]), torch.tensor([4, 2])
    losses = forward_sum_loss(scores, *lengths, reduction="none")
    each = torch.stack([forward_sum_loss(scores[:, h], *lengths, reduction="none") for h in range(3)])
    torch.testing.assert_close(losses, each.mean(0), rtol=0, atol=1e-12)
    torch.testing.assert_close(forward_sum_loss(scores, *lengths), (losses / lengths[1]).mean(), rtol=0, atol=1e-12)


def test_a_graph_can_be_used_twice(form: str) -> None:
    scores, *lengths = batch()
    scores.requires_grad_()
    loss = forward_sum_loss(scores, *lengths)
    first = torch.autograd.grad(loss * 2, scores, retain_graph=True)[0].clone()
    second = torch.autograd.grad(loss * 3, scores)[0]
    torch.testing.assert_close(second, first * 1.5, rtol=0, atol=1e-12)


def test_the_scores_may_be_a_part_of_a_larger_tensor(form: str) -> None:
    scores, *lengths = batch()
    whole = torch.full((9, 4, 40), torch.nan, dtype=torch.float64)
    whole[:] = scores.permute(2, 0, 1)
    view = whole.permute(1, 2, 0)
    assert not view.is_contiguous()
    assert forward_sum_loss(view, *lengths).item() == pytest.approx(forward_sum_loss(scores, *lengths).item())


def test_bad_arguments_are_named() -> None:
    scores, lengths = torch.zeros(1, 3, 2), (torch.tensor([3]), torch.tensor([2]))
    with pytest.raises(ValueError, match="band is 0"):
        forward_sum_loss(scores, *lengths, band=0)
    with pytest.raises(ValueError, match="blank_logprob is -inf"):
        forward_sum_loss(scores, *lengths, blank_logprob=-torch.inf)
    with pytest.raises(ValueError, match="reduction"):
        forward_sum_loss(scores, *lengths, reduction="average")
    with pytest.raises(ValueError, match=r"key_lengths\[0\] is 0"):
        forward_sum_loss(scores, torch.tensor([3]), torch.tensor([0]))


def test_lengths_are_checked_behind_a_compiled_graph() -> None:
    compiled = torch.compile(forward_sum_loss, backend="eager", fullgraph=True)
    with pytest.raises(ValueError, match=r"query_lengths\[0\] is 4000"):
        compiled(torch.zeros(1, 3, 2), torch.tensor([4000]), torch.tensor([2]))


def test_the_kernel_is_left_when_numba_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    by_frame = forward_sum._by_frame
    monkeypatch.setattr(forward_sum, "_by_frame", lambda *a: called.append(1) or by_frame(*a))
    monkeypatch.setattr(kernels, "available", lambda: False)
    forward_sum_loss(torch.zeros(1, 3, 2), torch.tensor([3]), torch.tensor([2]))
    assert called


_MEMORY = """
import resource, torch
from sonorant.functional import forward_sum_loss

def run(frames, tokens):
    scores = torch.randn(1, frames, tokens, requires_grad=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    forward_sum_loss(scores, torch.tensor([frames]), torch.tensor([tokens]), band=20).backward()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

run(50, 10)
print(run(6000, 1500))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not kernels.available(), reason="measured on Linux, with the kernel")
def test_a_band_takes_little_more_memory_than_the_gradient() -> None:
    output = subprocess.run([sys.executable, "-c", _MEMORY], capture_output=True, text=True, check=True).stdout
    gradient = 6000 * 1500 * 4 / 1024
    assert int(output) < 1.3 * gradient  # without a band it is 4 times the gradient
