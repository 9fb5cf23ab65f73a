"""What the contracts do not say about monotonic alignment search."""

import pytest
import torch

from sonorant.functional import (
    alignment_durations,
    kernels,
    monotonic_alignment_durations,
    monotonic_alignment_search,
)
from tests.cases.case import Rng
from tests.reference.alignment import monotonic_paths, search_by_enumeration


@pytest.fixture(params=["kernel", "by frame"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both forms of the operators, on the CPU."""
    if request.param == "kernel" and not kernels.available():
        pytest.skip("numba is not installed")
    if request.param == "by frame":
        monkeypatch.setattr(kernels, "available", lambda: False)
    return request.param


@pytest.mark.parametrize("ties", [False, True])
def test_the_best_of_all_paths(form: str, ties: bool) -> None:
    rng = Rng(0)
    for frames in range(1, 9):
        for tokens in range(1, frames + 1):
            scores = rng.randn(2, 9, 9)
            if ties:
                scores = scores.round()
            lengths = torch.tensor([frames, 9]), torch.tensor([tokens, 4])
            path = monotonic_alignment_search(scores, *lengths)
            assert torch.equal(path, search_by_enumeration(scores, *lengths)), (frames, tokens)
            assert torch.equal(monotonic_alignment_durations(scores, *lengths), alignment_durations(path))


def test_both_forms_give_the_same_path(monkeypatch: pytest.MonkeyPatch) -> None:
    if not kernels.available():
        pytest.skip("numba is not installed")
    scores = Rng(1).randn(5, 90, 33).float()
    scores[1] = -torch.inf
    scores[2, ::3] = 0.0
    lengths = torch.tensor([90, 61, 47, 33, 80]), torch.tensor([33, 20, 33, 33, 1])
    path, durations = monotonic_alignment_search(scores, *lengths), monotonic_alignment_durations(scores, *lengths)
    monkeypatch.setattr(kernels, "available", lambda: False)
    assert torch.equal(monotonic_alignment_search(scores, *lengths), path)
    assert torch.equal(monotonic_alignment_durations(scores, *lengths), durations)


def test_ties_advance(form: str) -> None:
    durations = monotonic_alignment_durations(torch.zeros(1, 5, 3), torch.tensor([5]), torch.tensor([3]))
    assert durations.tolist() == [[3, 1, 1]]  # looking back from the end, each step is taken as late as it can be


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_scores_of_minus_infinity_still_give_a_path(form: str, dtype: torch.dtype) -> None:
    frames, tokens = torch.tensor([7, 7, 5]), torch.tensor([4, 7, 1])
    scores = torch.full((3, 7, 7), -torch.inf, dtype=dtype)
    scores[0, 0, 0] = 1.0
    path = monotonic_alignment_search(scores, frames, tokens)
    assert path.dtype == dtype
    for row, num_frames, num_tokens in zip(path, frames.tolist(), tokens.tolist(), strict=True):
        assert row[:num_frames, :num_tokens].argmax(1).tolist() in monotonic_paths(num_frames, num_tokens)
        assert row.sum() == num_frames


def test_an_allowed_path_is_found_among_forbidden_cells(form: str) -> None:
    allowed = search_by_enumeration(Rng(2).randn(1, 8, 4), torch.tensor([8]), torch.tensor([4]))
    scores = torch.where(allowed == 1, 0.0, -torch.inf)
    assert torch.equal(monotonic_alignment_search(scores, torch.tensor([8]), torch.tensor([4])), allowed)


def test_durations(form: str) -> None:
    scores = Rng(4).randn(6, 50, 20)
    frames, tokens = torch.tensor([50, 20, 33, 21, 50, 1]), torch.tensor([20, 20, 20, 20, 1, 1])
    durations = monotonic_alignment_durations(scores, frames, tokens)
    assert durations.dtype == torch.int64
    assert torch.equal(durations.sum(1), frames)
    assert torch.equal((durations > 0).sum(1), tokens)


def test_heads_and_gradients(form: str) -> None:
    scores = Rng(5).randn(2, 3, 7, 4).requires_grad_()
    lengths = torch.tensor([7, 6]), torch.tensor([4, 2])
    path = monotonic_alignment_search(scores, *lengths)
    durations = monotonic_alignment_durations(scores, *lengths)
    assert not path.requires_grad
    assert torch.equal(path[:, 1], monotonic_alignment_search(scores[:, 1], *lengths))
    assert torch.equal(durations, alignment_durations(path))
    assert durations.shape == (2, 3, 4)


@pytest.mark.parametrize("search", [monotonic_alignment_search, monotonic_alignment_durations])
def test_too_few_frames(form: str, search) -> None:
    scores, frames, tokens = torch.zeros(2, 6, 4), torch.tensor([6, 3]), torch.tensor([4, 4])
    with pytest.raises(ValueError, match=r"query_lengths\[1\] is 3, fewer than key_lengths\[1\] = 4"):
        search(scores, frames, tokens)
    # where values cannot be checked, the utterance gets nothing
    result = torch.compile(search, backend="eager", fullgraph=True)(scores, frames, tokens)
    assert result[0].any()
    assert not result[1].any()


def test_lengths_are_checked_behind_a_compiled_graph() -> None:
    compiled = torch.compile(monotonic_alignment_durations, backend="eager", fullgraph=True)
    with pytest.raises(ValueError, match=r"query_lengths\[0\] is 4000"):
        compiled(torch.zeros(1, 3, 2), torch.tensor([4000]), torch.tensor([2]))
