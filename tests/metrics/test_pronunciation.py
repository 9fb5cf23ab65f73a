"""Errors of pronunciations with several right ones."""

import random

import pytest

from sonorant.metrics import (
    confusions,
    error_rate,
    nearest_pronunciations,
    pronunciation_error_rate,
    pronunciation_error_rate_by_length,
)

READ = [["R", "EH", "D"], ["R", "IY", "D"]]
CAT = [["K", "AE", "T"]]


def edits(reference: list[str], hypothesis: list[str]) -> int:
    row = list(range(len(hypothesis) + 1))
    for i, wanted in enumerate(reference, 1):
        last, row[0] = row[0], i
        for j, given in enumerate(hypothesis, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (wanted != given))
    return row[-1]


def test_a_word_is_right_if_it_is_any_of_its_references() -> None:
    rate = pronunciation_error_rate([READ, READ, CAT], [["R", "EH", "D"], ["R", "IY", "D"], ["K", "AE", "T"]])
    assert (rate.words.errors, rate.words.words, rate.phones.errors, rate.phones.words) == (0, 3, 0, 9)


def test_phones_are_counted_against_the_nearest_and_divided_by_its_own() -> None:
    choices = [["A", "B", "C", "D", "E"], ["X", "Y"]]
    rate = pronunciation_error_rate([choices, CAT], [["X", "Z"], ["K", "AE"]], replications=0)
    assert (rate.phones.substitutions, rate.phones.deletions, rate.phones.words) == (1, 1, 5)
    assert (rate.words.substitutions, rate.words.rate) == (2, 1.0)
    assert rate.words.interval is None


def test_of_references_as_near_the_first_counts() -> None:
    long, short = ["A", "B", "C"], ["A", "B"]
    assert nearest_pronunciations([[long, short], [short, long]], [["A", "B", "X"]] * 2) == [long, short]


def test_a_missing_pronunciation_is_a_missing_word_and_all_its_phones() -> None:
    rate = pronunciation_error_rate([[["A", "B", "C"], ["A"]], CAT], [None, []], replications=0)
    assert (rate.words.deletions, rate.words.substitutions, rate.words.words) == (1, 1, 2)
    assert (rate.phones.deletions, rate.phones.words) == (4, 4)


def test_equals_a_count_by_hand_over_random_words() -> None:
    rng = random.Random(0)
    words = ["x" * rng.randint(1, 4) for _ in range(300)]
    references = [[rng.choices("ABC", k=rng.randint(0, 5)) for _ in range(rng.randint(1, 3))] for _ in words]
    hypotheses = [rng.choices("ABC", k=rng.randint(0, 5)) for _ in words]
    nearest = [min(choices, key=lambda r: edits(r, y)) for choices, y in zip(references, hypotheses, strict=True)]
    rate = pronunciation_error_rate(references, hypotheses)
    assert rate.words.errors == sum(y not in choices for choices, y in zip(references, hypotheses, strict=True))
    assert rate.phones.errors == sum(edits(r, y) for r, y in zip(nearest, hypotheses, strict=True))
    assert rate.phones.words == sum(map(len, nearest))
    for part in rate:
        low, high = part.interval
        assert low < part.rate < high
    by_length = pronunciation_error_rate_by_length(words, references, hypotheses, replications=0)
    assert list(by_length) == [1, 2, 3, 4]
    assert sum(part.words.errors for part in by_length.values()) == rate.words.errors
    assert sum(part.phones.errors for part in by_length.values()) == rate.phones.errors
    for length, part in by_length.items():
        assert part.words.words == sum(len(word) == length for word in words)


def test_the_interval_of_words_is_that_of_a_proportion() -> None:
    hypotheses = [["K", "AE", "T"]] * 300 + [["K"]] * 100
    low, high = pronunciation_error_rate([CAT] * 400, hypotheses).words.interval
    deviation = 1.96 * (0.25 * 0.75 / 400) ** 0.5
    assert (low, high) == pytest.approx((0.25 - deviation, 0.25 + deviation), abs=0.005)


def test_confusions_sum_to_the_errors_and_the_worst_comes_first() -> None:
    references = [["AE", "T"], ["AE"], ["S"], ["B"]]
    hypotheses = [["EH", "T"], ["EH"], ["S", "T"], None]
    worst, *others = confusions(references, hypotheses)
    assert worst == ("AE", "EH", 2)
    assert others == [(None, "T", 1), ("B", None, 1)]
    assert sum(one.errors for one in (worst, *others)) == error_rate(references, hypotheses).errors
    assert confusions([["a", 1]], [["a", 2]]) == [(1, 2, 1)]
    assert confusions([["a"]], [["a"]]) == []


@pytest.mark.parametrize(
    ("references", "hypotheses", "message"),
    [
        ([CAT], [], "1 references and 0 hypotheses"),
        ([], [], "0 references and 0 hypotheses"),
        ([CAT, []], [["K"], ["K"]], r"references\[1\] has no pronunciation"),
        ([["K AE T"]], [["K"]], "word 0: the pronunciation 'K AE T' must be a sequence of phones"),
        ([CAT, CAT], [["K"], "K AE"], "word 1: the pronunciation 'K AE' must be a sequence"),
    ],
)
def test_bad_arguments(references: list, hypotheses: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pronunciation_error_rate(references, hypotheses)


def test_as_many_words() -> None:
    with pytest.raises(ValueError, match="2 words, 1 references and 1 hypotheses"):
        pronunciation_error_rate_by_length(["a", "b"], [CAT], [["K"]])
    with pytest.raises(ValueError, match="0 words"):
        pronunciation_error_rate_by_length([], [], [])
    with pytest.raises(ValueError, match="1 references and 0 hypotheses"):
        confusions([["a"]], [])
