"""One way into every format."""

import json
from pathlib import Path

import pytest

from sonorant.data.corpus import read_corpus, scan_corpus


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


def test_the_format_is_seen(tmp_path: Path) -> None:
    table = write(tmp_path / "table.txt", "a.wav\tYES\n")
    metadata = write(tmp_path / "lj" / "metadata.csv", "a|YES\n")
    kaldi = write(tmp_path / "kaldi" / "wav.scp", "a a.wav\n").parent
    write(kaldi / "text", "a YES\n")
    recording = {"id": "r", "duration": 1.0, "sources": [{"type": "file", "channels": [0], "source": "a.wav"}]}
    supervision = {"id": "a", "start": 0, "duration": 1.0, "text": "YES"}
    cut = {"id": "c", "start": 0, "duration": 1.0, "channel": 0, "supervisions": [supervision], "recording": recording}
    cuts = write(tmp_path / "cuts.jsonl", json.dumps(cut))
    for path in (table, str(table), metadata, metadata.parent, kaldi, cuts):
        (utterance,) = read_corpus(path)
        assert (utterance.path.name, utterance.text) == ("a.wav", "YES")


def test_reading_refuses_with_all_faults(tmp_path: Path) -> None:
    table = write(tmp_path / "table.tsv", "one\na.wav\tYES\n" + "three\n" * 30)
    with pytest.raises(ValueError, match=r"table\.tsv: 31 lines cannot be used:\n") as caught:
        read_corpus(table)
    lines = str(caught.value).splitlines()
    assert "table.tsv:1: expected path<TAB>text" in lines[1]
    assert "table.tsv:3: expected path<TAB>text" in lines[2]
    assert lines[-1] == "  and 11 more"
    assert len(scan_corpus(table).faults) == 31


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_corpus_without_utterances_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ValueError, match=r"table\.tsv: holds no utterance"):
        read_corpus(write(tmp_path / "table.tsv", content))


def test_folders_of_other_kinds_and_missing_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"neither wav\.scp"):
        read_corpus(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none\.tsv: no such table"):
        read_corpus(tmp_path / "none.tsv")
