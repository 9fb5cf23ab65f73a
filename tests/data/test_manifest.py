"""Tables of recordings."""

from pathlib import Path

import pytest

from sonorant.data.manifest import read_table


def table(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "table.tsv"
    path.write_bytes(content)
    return path


def test_reads_bom_crlf_and_unicode(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfa.wav\tYES NO\r\n\r\nsub/b.wav\tcafe\xcc\x81\xc2\xa0noir  NO\r\n"
    first, second = read_table(table(tmp_path, content))
    assert (first.id, first.path, first.words) == ("a.wav", tmp_path / "a.wav", ["YES", "NO"])
    assert second.path == tmp_path / "sub" / "b.wav"
    assert second.words == ["caf\u00e9\u00a0noir", "NO"]  # composed, and not split at the no-break space


def test_absolute_paths_stay(tmp_path: Path) -> None:
    (utterance,) = read_table(table(tmp_path, b"/data/a.wav\tYES\n"))
    assert utterance.path == Path("/data/a.wav")


def test_an_empty_transcript_is_kept(tmp_path: Path) -> None:
    (utterance,) = read_table(table(tmp_path, b"a.wav\t\n"))
    assert utterance.words == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a.wav\tYES\nb.wav YES\n", r"table\.tsv:2: expected path<TAB>text; got 'b\.wav YES'"),
        (b"\tYES\n", r"table\.tsv:1"),
        (b"a.wav\tYES\na.wav\tNO\n", r"table\.tsv:2: a\.wav is in the table twice"),
        (b"\n \n", "holds no utterance"),
        (b"", "holds no utterance"),
        (b"a.wav\t\xff\n", r"not UTF-8 \(byte 6\)"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(table(tmp_path, content))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.tsv: no such table"):
        read_table(tmp_path / "none.tsv")
