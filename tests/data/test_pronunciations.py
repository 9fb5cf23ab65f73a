"""Pronunciation dictionaries in both formats, and what is wrong with some."""

import gzip
from pathlib import Path

import pytest

from sonorant.data.cmudict import DICTIONARY, NOTICE, load_cmudict
from sonorant.data.pronunciations import RarePhone, rare_phones, read_pronunciations
from sonorant.data.splitting import hold_out_words
from sonorant.text import Lexicon


def read(tmp_path: Path, content: str | bytes) -> dict[str, list[list[str]]]:
    path = tmp_path / "words.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_pronunciations(path).entries


@pytest.mark.parametrize(
    ("line", "word", "phones"),
    [
        ("aad\taː t", "aad", ["aː", "t"]),
        ("AARDEMA  AA R D EH M AH", "AARDEMA", ["AA", "R", "D", "EH", "M", "AH"]),
        ("a b\tx y", "a b", ["x", "y"]),
        ("a\u00a0b x", "a b", ["x"]),
        ("a\tx\u00a0y", "a", ["x", "y"]),
        ("a\tx\ty", "a", ["x", "y"]),
        ("  WORD  W", "WORD", ["W"]),
        ("WORD(2)  W ER D", "WORD", ["W", "ER", "D"]),
        ("word(10)\tw", "word", ["w"]),
        ("(2)  T UW", "(2)", ["T", "UW"]),
        ("cafe\u0301\te\u0301", "café", ["é"]),
        ("artagnan AA R # foreign french", "artagnan", ["AA", "R"]),
        ("hash\th # a", "hash", ["h", "#", "a"]),
    ],
)
def test_a_line(line: str, word: str, phones: list[str], tmp_path: Path) -> None:
    assert read(tmp_path, line + "\n") == {word: [phones]}


def test_mark_line_ends_comments_and_several_pronunciations(tmp_path: Path) -> None:
    text = "\ufeff;;; CMUdict\r\nREAD  R EH D\r\n\r\nA  AH\r\nREAD(2)  R IY D\r\nREAD(3)  R EH D\r\n"
    assert read(tmp_path, text) == {"A": [["AH"]], "READ": [["R", "EH", "D"], ["R", "IY", "D"]]}


def test_packed(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tx\n"))
    assert read_pronunciations(path).entries == {"a": [["x"]]}


def test_all_lines_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 lines cannot be used") as caught:
        read(tmp_path, "fine\tf\nsilent\n\tx\nempty\t \n")
    message = str(caught.value)
    assert f"{tmp_path / 'words.tsv'}:2: 'silent' has no pronunciation" in message
    assert "words.tsv:3: there is no word before the tab" in message
    assert "words.tsv:4: 'empty' has no pronunciation" in message
    with pytest.raises(ValueError, match=r"words.tsv:2: not UTF-8 \(byte 4 of the line is 0xff\)"):
        read(tmp_path, b"fine\tf\nbad\xff\tx\n")


@pytest.mark.parametrize("content", ["", "\n\r\n", "\ufeff", ";;; nothing\n"])
def test_an_empty_dictionary_is_refused(content: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"words.tsv: the dictionary is empty"):
        read(tmp_path, content)


def test_a_missing_dictionary_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere.tsv: no such dictionary"):
        read_pronunciations(tmp_path / "nowhere.tsv")


def test_rare_phones_are_listed_with_a_word() -> None:
    lexicon = Lexicon({"a": [["x", "x"]], "b": [["y"], ["z", "x"]]})
    assert rare_phones(lexicon) == [RarePhone("y", 1, "b"), RarePhone("z", 1, "b")]
    assert rare_phones(lexicon, at_most=0) == []


def test_words_are_held_out_by_their_spelling() -> None:
    lexicon = Lexicon({f"w{i}": [["x"], ["y"]] for i in range(200)})
    rest, held = hold_out_words(lexicon, 0.1)
    assert (len(rest), len(held)) == (180, 20)
    assert rest.entries | held.entries == lexicon.entries
    again, _ = hold_out_words(Lexicon({**lexicon.entries, "new": [["x"]]}), 0.1)
    assert len(set(again.words) ^ set(rest.words) - {"new"}) <= 2
    assert len(hold_out_words(lexicon, 0.5, at_most=3)[1]) == 3
    with pytest.raises(ValueError, match="1 word: two are needed"):
        hold_out_words(Lexicon({"a": [["x"]]}), 0.5)
    with pytest.raises(ValueError, match="share must lie in"):
        hold_out_words(lexicon, 0.0)


def test_the_embedded_dictionary() -> None:
    corpus = load_cmudict()
    assert [len(part) for part in corpus] == [107775, 5672, 12605]
    words = [set(part.words) for part in corpus]
    assert sum(map(len, words)) == len(set.union(*words))
    phones = {phone for part in corpus for prons in part.entries.values() for pron in prons for phone in pron}
    assert len(phones) == 39
    assert not any(phone[-1].isdigit() for phone in phones)
    everything = {**corpus.train.entries, **corpus.dev.entries, **corpus.test.entries}
    assert everything["tomato"] == [["T", "AH", "M", "EY", "T", "OW"], ["T", "AH", "M", "AA", "T", "OW"]]
    assert DICTIONARY.stat().st_size < 1_000_000
    assert "Carnegie Mellon University" in NOTICE.read_text()
