"""Words and the symbols that they stand in."""

import numpy as np
import pytest

from sonorant.decoding.ctc import TokenSpan, merge_frames
from sonorant.decoding.spelling import join_words, place_words, read_words, symbol_confidence

SPANS = merge_frames([0, 1, 2, 2, 0, 3, 1, 2, 0, 2], 0)  # 1 2 3 1 2 2


def tokens(places: list[list[TokenSpan]]) -> list[list[int]]:
    return [[span.token for span in place] for place in places]


def test_places_words_between_silences() -> None:
    places = place_words(SPANS, [[(2,)], [(3,), (9,)], [(2, 2), (2,)]], [2, 5, 7], silence=1)
    assert tokens(places) == [[2], [3], [2, 2]]
    assert (places[0][0].start, places[0][-1].end) == (2, 4)
    assert (places[2][0].start, places[2][-1].end) == (7, 10)


def test_the_frames_decide_between_two_readings() -> None:
    spans = merge_frames([1, 2, 1], 0)
    spellings = [[(1,), (1, 2)], [(1,), (2, 1)]]
    assert tokens(place_words(spans, spellings, [1, 2], None)) == [[1, 2], [1]]
    assert tokens(place_words(spans, spellings, [0, 1], None)) == [[1], [2, 1]]


def test_what_does_not_spell_the_words_is_an_error() -> None:
    with pytest.raises(ValueError, match="do not spell"):
        place_words(SPANS, [[(2,)]], [2], silence=1)


def test_reads_the_longest_words_and_passes_over_the_rest() -> None:
    read = read_words(SPANS, {(2,): "b", (2, 2): "bb", (1, 2): "never: it holds a silence"}, silence=1)
    assert [(word, symbols[0].start, symbols[-1].end) for word, symbols in read] == [("b", 2, 4), ("bb", 7, 10)]
    assert read_words([], {(2,): "b"}, None) == []


def test_the_least_probable_symbol_decides() -> None:
    probs = np.array([[0.1, 0.9], [0.5, 0.5], [0.6, 0.4], [0.2, 0.8]], dtype=np.float32)
    symbols = [TokenSpan(1, 0, 2), TokenSpan(0, 2, 3)]
    assert symbol_confidence(np.log(probs), symbols) == pytest.approx(0.6)
    assert symbol_confidence(np.log(probs), symbols[:1]) == pytest.approx(0.7)


def test_joins_whatever_stands_between_separators() -> None:
    symbols = ["<blk>", "_", "a", "b"]
    words = join_words(SPANS, symbols, 1)
    assert [word for word, _ in words] == ["ab", "aa"]
    assert tokens([spans for _, spans in words]) == [[2, 3], [2, 2]]
    assert [word for word, _ in join_words(SPANS, symbols, None)] == ["_ab_aa"]
    assert join_words([], symbols, 1) == []
