"""Language models: their vocabulary against the lexicon's."""

import logging

import pytest

from sonorant.decoding.arpa import arpa_words, check_vocabulary, uniform_unigram
from sonorant.decoding.wfst import WfstDecoder
from sonorant.text import Lexicon, SymbolTable

SYMBOLS = SymbolTable(["n", "y"])
LEXICON = Lexicon({"NO": [["n"]], "YES": [["y"]], "YEN": [["y", "n"]]})


def unigrams(*words: str) -> str:
    lines = "".join(f"-0.5\t{word}\n" for word in ("<s>", "</s>", "<unk>", *words))
    return f"\\data\\\nngram 1={len(words) + 3}\n\n\\1-grams:\n{lines}\n\\end\\\n"


def test_reads_the_words_of_any_order_and_separator() -> None:
    arpa = "\\data\\\nngram 1=2\nngram 2=1\n\n\\1-grams:\n-1 a -0.1\r\n-1\tdé\n\n\\2-grams:\n-1 a b\n\n\\end\\\n"
    assert arpa_words(arpa) == ["a", "dé"]
    assert arpa_words(unigrams("NO")) == ["NO"]


def test_words_of_one_side_only_are_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_vocabulary(unigrams("NO", "MAYBE", *(f"W{i}" for i in range(20))), LEXICON)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("not recognised, since the lexicon lacks them: MAYBE, W0, W1")
    assert first.endswith("W8 and 11 more")
    assert second == "not recognised, since the language model lacks them: YEN, YES"


def test_equal_vocabularies_give_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    check_vocabulary(uniform_unigram(LEXICON), LEXICON)
    assert not caplog.records


def test_words_in_common_are_still_recognised(frames) -> None:
    decoder = WfstDecoder(SYMBOLS, LEXICON, unigrams("NO", "MAYBE"))
    assert decoder.decode(frames([0, 1, 0, 2, 2, 0, 1, 0], 3)) == ["NO", "NO"]


def test_nothing_in_common_is_an_error_with_examples() -> None:
    with pytest.raises(
        ValueError, match="no word in common: the lexicon has NO, YEN, YES; the language model has no, yes"
    ):
        WfstDecoder(SYMBOLS, LEXICON, unigrams("no", "yes"))
