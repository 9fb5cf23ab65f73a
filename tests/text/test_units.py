"""Words, characters and lexicons as units."""

import pytest

from sonorant.text import Lexicon, make_units
from sonorant.text.units import WORD_BOUNDARY


def test_words() -> None:
    symbols, lexicon, separator = make_units("words", ["two", "one", "two"])
    assert symbols.symbols == ("<blk>", "SIL", "one", "two")
    assert lexicon.spell(["two"], separator) == ["SIL", "two", "SIL"]


def test_characters() -> None:
    units = make_units("characters", ["né", "en"])
    assert units.symbols.symbols == ("<blk>", WORD_BOUNDARY, "e", "n", "é")
    assert units.lexicon.entries == {"en": [["e", "n"]], "né": [["n", "é"]]}
    assert make_units("characters", ["ab"], separator=None).symbols.symbols == ("<blk>", "a", "b")


def test_lexicon() -> None:
    lexicon = Lexicon({"a": [["A"], ["SIL", "B"]]})
    units = make_units("lexicon", ["zzz"], lexicon=lexicon)
    assert units.symbols.symbols == ("<blk>", "SIL", "A", "B")
    assert units.lexicon is lexicon


def test_words_that_cannot_be_recognised_are_left_out() -> None:
    assert make_units("words", ["a", "b\u00a0c", "<s>", "<blk>", ""]).lexicon.words == ["a"]
    with pytest.raises(ValueError, match="there is no word"):
        make_units("words", ["b\u00a0c"])


def test_clashes_are_refused() -> None:
    with pytest.raises(ValueError, match="the separator 'SIL' is also in the word 'SIL'"):
        make_units("words", ["SIL"])
    with pytest.raises(ValueError, match="the separator 'b' is also in the word 'abc'"):
        make_units("characters", ["abc"], separator="b")
    with pytest.raises(ValueError, match="a lexicon is needed"):
        make_units("lexicon", ["a"])
    with pytest.raises(ValueError, match="a lexicon is not used"):
        make_units("words", ["a"], lexicon=Lexicon({"a": [["A"]]}))
