"""Letters of words in any script."""

import pytest

from sonorant.text import SymbolTable, encode_word, is_punctuation, split_graphemes


@pytest.mark.parametrize(
    ("word", "graphemes"),
    [
        ("abc", ["a", "b", "c"]),
        ("Cafe\u0301", ["C", "a", "f", "é"]),
        ("new york", ["n", "e", "w", "▁", "y", "o", "r", "k"]),
        ("new\u00a0york", ["n", "e", "w", "▁", "y", "o", "r", "k"]),
        ("가각", ["\u1100", "\u1161", "\u1100", "\u1161", "\u11a8"]),
        ("ㄱ", ["ㄱ"]),
        ("हिन्दी", list("हिन्दी")),
        ("", []),
    ],
)
def test_graphemes_of_a_word(word: str, graphemes: list[str]) -> None:
    assert split_graphemes(word) == graphemes


def test_a_letter_is_taken_in_the_case_that_is_known() -> None:
    table = SymbolTable(["a", "B", "c", "C"])
    assert table.decode(encode_word("AbcC", table)) == ["a", "B", "c", "C"]


@pytest.mark.parametrize(("word", "heard"), [("부엌", "부억"), ("밖", "박"), ("꽃", "꼳"), ("숲", "숩"), ("끝", "끋")])
def test_a_final_consonant_that_is_not_known_is_taken_as_it_sounds(word: str, heard: str) -> None:
    table = SymbolTable(sorted(set(split_graphemes(heard))))
    assert table.decode(encode_word(word, table)) == split_graphemes(heard)
    known = SymbolTable(sorted({*split_graphemes(word), *split_graphemes(heard)}))
    assert known.decode(encode_word(word, known)) == split_graphemes(word)


def test_unknown_graphemes_are_named_with_their_positions() -> None:
    with pytest.raises(ValueError, match=r"'aжbz' has graphemes .*: 'ж' at position 2, 'z' at position 4"):
        encode_word("aжbz", SymbolTable("ab"))
    with pytest.raises(ValueError, match=r"'가각' .* 'ᄀ\u1161ᆨ' at position 2"):
        encode_word("가각", SymbolTable(["\u1100", "\u1161"]))


@pytest.mark.parametrize("word", ["", " ", "\u00a0\t"])
def test_an_empty_word_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="the word is empty"):
        encode_word(word, SymbolTable("ab"))


@pytest.mark.parametrize("word", ["...", "'", " -!- ", "。"])
def test_nothing_but_punctuation(word: str) -> None:
    assert is_punctuation(word)


@pytest.mark.parametrize("word", ["", " ", "a.", "3", "+", "\u1161"])
def test_something_else_than_punctuation(word: str) -> None:
    assert not is_punctuation(word)


def test_punctuation_inside_a_word_belongs_to_it() -> None:
    assert encode_word("a'b", SymbolTable("ab'")) == [1, 3, 2]
