"""Words to the tokens of an aligner."""

import pytest

from sonorant.text import Lexicon, Speller, SymbolTable
from sonorant.text.speller import bare_word

LEXICON = Lexicon({"read": [["R", "IY", "D"], ["R", "EH", "D"]], "Polish": [["P", "OW"]], "polish": [["P", "AA"]]})


def decoded(speller: Speller, text: str) -> list[str]:
    return speller.symbols.decode(speller.tokens(speller.spell(text.split(" "))))


def test_letters_without_case_and_punctuation() -> None:
    speller = Speller.of_letters(["Don't", "«stop»", "-", "É"])
    assert speller.symbols.symbols == ("<blk>", "SIL", *"dnopsté")
    assert decoded(speller, "don't, - É") == ["SIL", *"dont", "SIL", "é", "SIL"]
    assert decoded(speller, "e\u0301") == ["SIL", "é", "SIL"]
    assert decoded(Speller.of_letters(["가"]), "가") == ["SIL", "ᄀ", "ᅡ", "SIL"]


def test_all_pronunciations_of_a_lexicon() -> None:
    speller = Speller.of_lexicon(LEXICON)
    words = speller.spell(["read", "--", "READ!"])
    assert [len(word.pronunciations) for word in words] == [2, 0, 2]
    tokens = speller.tokens(words, {2: 1})
    assert speller.symbols.decode(tokens) == ["SIL", "R", "IY", "D", "SIL", "R", "EH", "D", "SIL"]
    assert decoded(speller, "Polish polish") == ["SIL", "P", "OW", "SIL", "P", "AA", "SIL"]


def test_words_that_cannot_be_spelled_are_all_named() -> None:
    speller = Speller.of_lexicon(LEXICON)
    with pytest.raises(ValueError, match=r"the lexicon lacks 'red'; the lexicon lacks 'blue'$"):
        speller.spell(["red", "read", "blue", "red"])
    assert speller.missing(["red", "read", "blue", "red"]) == ["red", "blue", "red"]
    with pytest.raises(ValueError, match="graphemes that the model does not know: 'я' at position 1"):
        Speller.of_letters(["a"]).spell(["я"])
    with pytest.raises(ValueError, match="nothing in it that is spoken"):
        speller.spell(["...", "!"])
    with pytest.raises(ValueError, match="there is no letter in any word"):
        Speller.of_letters(["...", "!"])


def test_further_words() -> None:
    speller = Speller.of_lexicon(LEXICON)
    more = speller.with_words(Lexicon({"deer": [["D", "IY", "R"]], "read": [["D"]]}))
    assert decoded(more, "deer read") == ["SIL", "D", "IY", "R", "SIL", "D", "SIL"]
    assert speller.missing(["deer"]) == ["deer"]
    with pytest.raises(ValueError, match="'zoo' has symbols that the model does not know: Z UW"):
        speller.with_words(Lexicon({"zoo": [["Z", "UW"]]}))
    with pytest.raises(ValueError, match="it takes no lexicon"):
        Speller.of_letters(["a"]).with_words(LEXICON)


def test_a_lexicon_may_hold_the_boundary() -> None:
    speller = Speller.of_lexicon(Lexicon({"a": [["A", "SIL"]]}))
    assert decoded(speller, "a") == ["SIL", "A", "SIL", "SIL"]
    with pytest.raises(ValueError, match="unknown symbol 'SIL'"):
        Speller(SymbolTable("a"))


@pytest.mark.parametrize(("word", "bare"), [("«a'b»,", "a'b"), ("...", ""), ("a", "a"), ("", "")])
def test_punctuation_around_words(word: str, bare: str) -> None:
    assert bare_word(word) == bare
