"""Utterances, and the rules by which all tables are read."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from sonorant.data.manifest import Corpus, Fault, Utterance, list_faults, read_lines, split_id, tidy


def lines_of(path: Path, content: bytes) -> tuple[list[str], list[str]]:
    path.write_bytes(content)
    corpus = Corpus()
    lines = [line for _, line in read_lines(path, corpus)]
    return lines, [str(fault) for fault in corpus.faults]


def test_words_are_split_at_spaces_alone() -> None:
    assert Utterance("a", Path("a"), "YES  caf\u00e9\u00a0noir NO").words == ["YES", "caf\u00e9\u00a0noir", "NO"]


def test_text_is_composed_and_stripped() -> None:
    assert tidy(" \tcafe\u0301\u00a0 ") == "caf\u00e9\u00a0"


@pytest.mark.parametrize("line", ["id a  b\u00a0c", "id\ta  b\u00a0c ", " id \t a  b\u00a0c"])
def test_the_id_ends_at_the_first_spaces_or_tabs(line: str) -> None:
    assert split_id(line) == ("id", "a  b\u00a0c")


def test_an_id_can_stand_alone() -> None:
    assert split_id("a\u00a0b") == ("a\u00a0b", "")


def test_byte_order_mark_crlf_and_empty_lines(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "t", b"\xef\xbb\xbfa\r\n\r\n \t\nb\xc2\x85c\xe2\x80\xa8d") == (
        ["a", "b\x85c\u2028d"],
        [],
    )


def test_lines_that_are_not_utf8_are_all_named(tmp_path: Path) -> None:
    lines, faults = lines_of(tmp_path / "t", b"a\n\xff\nb\nc\xfc\n")
    assert lines == ["a", "b"]
    assert faults == [
        f"{tmp_path}/t:2: not UTF-8 (byte 1 of the line is 0xff)",
        f"{tmp_path}/t:4: not UTF-8 (byte 2 of the line is 0xfc)",
    ]


@pytest.mark.parametrize(
    "damage", [lambda packed: packed[:-12], lambda packed: packed[:20] + b"\0" * 20, lambda _: b"x"]
)
def test_a_damaged_archive_is_a_fault(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    packed = gzip.compress(b"".join(b"line %d\n" % number for number in range(1000)))
    lines, faults = lines_of(tmp_path / "t.gz", packed)
    assert (len(lines), faults) == (1000, [])
    _, faults = lines_of(tmp_path / "t.gz", damage(packed))
    assert len(faults) == 1
    assert "the archive is damaged" in faults[0]


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.tsv: no such table"):
        list(read_lines(tmp_path / "none.tsv", Corpus()))


def test_an_id_is_taken_once() -> None:
    corpus = Corpus()
    for line in (1, 2):
        corpus.add(Utterance("a", Path("a"), "YES", source=f"t:{line}"))
    assert len(corpus.utterances) == 1
    assert [str(fault) for fault in corpus.faults] == ["t:2: a is in the table twice (first at t:1)"]


def test_a_list_of_faults_has_an_end() -> None:
    faults = [Fault("t:1", "a", "missing", f"fault {number}") for number in range(9)]
    assert list_faults(faults, limit=2) == "\n  t:1: fault 0\n  t:1: fault 1\n  and 7 more"
    assert list_faults(faults[:2], limit=2) == "\n  t:1: fault 0\n  t:1: fault 1"


def test_a_stretch_of_a_recording_is_read(write_wav: Callable[..., Path]) -> None:
    path = write_wav("a.wav", seconds=2, channels=2)
    utterance = Utterance("a", path, "YES", start=0.5, duration=0.25, channel=1)
    assert len(utterance.load_audio(8000).samples) == 2000
