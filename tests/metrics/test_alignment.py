"""Attention metrics and boundary errors."""

import math

import pytest
import torch

from sonorant.functional import monotonic_alignment_search
from sonorant.metrics import attention_coverage, attention_diagonality, attention_focus_rate, boundary_errors

LENGTHS = torch.tensor([6, 4]), torch.tensor([3, 2])
METRICS = [attention_focus_rate, attention_coverage, attention_diagonality]


def attention() -> torch.Tensor:
    weights = torch.zeros(2, 6, 3)
    weights[0] = torch.tensor([[0.8, 0.2, 0.0], [0.6, 0.4, 0.0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1], [0, 0, 1]])
    weights[1, :4, :2] = torch.tensor([[1.0, 0], [0.9, 0.1], [1, 0], [1, 0]])  # the second token is skipped
    return weights


def test_values() -> None:
    assert attention_focus_rate(attention(), *LENGTHS).tolist() == pytest.approx([4.9 / 6, 3.9 / 4])
    assert attention_coverage(attention(), *LENGTHS).tolist() == pytest.approx([1.0, 1.1 / 2])
    # |k/3 - q/6| <= 0.17: k within half a token of q/2
    near = 0.8 + 0.6 + 0.4 + 1 + 1 + 1 + 1
    assert attention_diagonality(attention()[:1], LENGTHS[0][:1], LENGTHS[1][:1], width=0.17).tolist() == pytest.approx(
        [near / 6]
    )


@pytest.mark.parametrize("metric", METRICS)
def test_a_diagonal_is_perfect_and_padding_changes_nothing(metric) -> None:
    diagonal = torch.eye(5).unsqueeze(0)
    lengths = torch.tensor([5]), torch.tensor([5])
    assert metric(diagonal, *lengths).tolist() == [1.0]
    padded = torch.full((1, 8, 7), torch.nan)
    padded[:, :5, :5] = diagonal
    assert metric(padded, *lengths).tolist() == [1.0]
    assert metric(padded.half(), *lengths).dtype == torch.float32


@pytest.mark.parametrize("metric", METRICS)
def test_heads(metric) -> None:
    both = torch.stack([attention(), attention() * 0 + 1 / 3], 1)
    values = metric(both, *LENGTHS)
    assert values.shape == (2, 2)
    assert torch.equal(values[:, 0], metric(attention(), *LENGTHS))


@pytest.mark.parametrize("metric", METRICS)
def test_bad_lengths_are_named(metric) -> None:
    with pytest.raises(ValueError, match=r"query_lengths\[1\] is 9"):
        metric(attention(), torch.tensor([6, 9]), LENGTHS[1])
    with pytest.raises(ValueError, match=r"key_lengths\[0\] is 0"):
        metric(attention(), LENGTHS[0], torch.tensor([0, 2]))


def test_diagonality_of_nothing_and_of_no_width() -> None:
    assert attention_diagonality(torch.zeros(1, 2, 2), torch.tensor([2]), torch.tensor([2])).tolist() == [0.0]
    with pytest.raises(ValueError, match="width is 0"):
        attention_diagonality(attention(), *LENGTHS, width=0)


def test_boundary_errors() -> None:
    predicted = torch.tensor([[2, 3, 5, 99], [1, 4, 1, 4], [7, 0, 0, 0]])
    reference = torch.tensor([[3, 3, 4, -7], [4, 1, 4, 1], [9, 5, 5, 5]])
    errors = boundary_errors(
        predicted, reference, torch.tensor([3, 4, 1]), frame_shift=0.01, percentiles=(50, 100), tolerances=(0.0, 0.02)
    )
    assert errors.num_boundaries == 5  # 1, 1, then 3, 0, 3
    assert errors.mean == pytest.approx(0.016)
    assert errors.median == pytest.approx(0.01)
    assert errors.percentiles == pytest.approx({50: 0.01, 100: 0.03})
    assert errors.within == pytest.approx({0.0: 0.2, 0.02: 0.6})


def test_boundary_errors_of_alignments() -> None:
    lengths = torch.tensor([8, 6]), torch.tensor([4, 2])
    paths = [monotonic_alignment_search(torch.randn(2, 8, 4), *lengths) for _ in range(2)]
    durations = [path.sum(1).long() for path in paths]
    assert boundary_errors(*paths, lengths[1]) == boundary_errors(*durations, lengths[1])
    assert boundary_errors(paths[0], durations[0], lengths[1]).mean == 0
    nothing = boundary_errors(*durations, torch.tensor([1, 1]), tolerances=(1.0,))
    assert math.isnan(nothing.mean)
    assert nothing.num_boundaries == 0


def test_boundary_errors_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="predicted has shape"):
        boundary_errors(torch.ones(3, 2), torch.ones(2, 2), torch.tensor([2, 2]))
    with pytest.raises(ValueError, match=r"key_lengths\[0\] is 4"):
        boundary_errors(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([4]))
