"""Errors over a corpus."""

import math

import pytest

from sonorant.metrics import error_rate


def test_counts_each_kind() -> None:
    result = error_rate([list("abcd"), list("xy")], [list("abxde"), list("y")])
    assert (result.insertions, result.deletions, result.substitutions, result.words) == (1, 1, 1, 6)
    assert result.errors == 3
    assert result.rate == 0.5
    low, high = result.interval
    assert 0 <= low <= 0.5 <= high


def test_is_total_errors_over_total_words() -> None:
    result = error_rate([["a"], ["b"] * 20], [["x"], ["b"] * 20])
    assert result.rate == pytest.approx(0.0476, abs=1e-4)


def test_empty_reference_and_missing_hypothesis() -> None:
    assert error_rate([[], ["a"]], [["x", "y"], ["a"]]).insertions == 2
    assert error_rate([["a", "b"], ["c"]], [None, ["c"]]).deletions == 2


def test_without_reference_words() -> None:
    assert error_rate([[]], [[]]).rate == 0.0
    assert error_rate([[]], [["a"]]).rate == math.inf
    assert error_rate([[]], [["a"]]).interval is None


def test_interval_is_reproducible_and_optional() -> None:
    references, hypotheses = [["a", "b"]] * 20, [["a", "b"]] * 15 + [["a"]] * 5
    assert error_rate(references, hypotheses) == error_rate(references, hypotheses)
    assert error_rate(references, hypotheses, replications=0).interval is None


@pytest.mark.parametrize(("references", "hypotheses"), [([["a"]], []), ([], [])])
def test_as_many_hypotheses_as_references(references: list[list[str]], hypotheses: list[list[str]]) -> None:
    with pytest.raises(ValueError, match=f"{len(references)} references and {len(hypotheses)} hypotheses"):
        error_rate(references, hypotheses)
