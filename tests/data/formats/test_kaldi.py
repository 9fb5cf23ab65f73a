"""Kaldi data directories."""

from pathlib import Path

import pytest

from sonorant.data.formats.kaldi import scan_kaldi
from sonorant.data.manifest import Corpus


def scan(folder: Path, **files: str) -> Corpus:
    for name, content in files.items():
        (folder / name.replace("wav_scp", "wav.scp")).write_text(content, encoding="utf-8")
    return scan_kaldi(folder)


def faults(corpus: Corpus, folder: Path) -> list[str]:
    return [str(fault).replace(f"{folder}/", "") for fault in corpus.faults]


def test_recordings_with_texts_and_speakers(tmp_path: Path) -> None:
    corpus = scan(
        tmp_path,
        wav_scp="a  sub/a b.wav\nb\t/b.flac\n",
        text="b\tNO\u00a0NO YES\na YES\n",
        utt2spk="a ann\n",
    )
    assert corpus.faults == []
    first, second = corpus.utterances
    assert (first.id, first.path, first.text, first.speaker) == ("a", tmp_path / "sub" / "a b.wav", "YES", "ann")
    assert (second.path, second.words, second.speaker) == (Path("/b.flac"), ["NO\u00a0NO", "YES"], None)
    assert (first.start, first.duration, first.source) == (0, None, f"{tmp_path}/text:2")


def test_segments_are_stretches(tmp_path: Path) -> None:
    corpus = scan(
        tmp_path,
        wav_scp="r r.wav\n",
        segments="a r 0.5 1.75\nb\tr  2 -1\nc r 3 4 1\n",
        text="a YES\nb NO\nc\n",
    )
    assert corpus.faults == []
    found = [(u.id, u.path.name, u.start, u.duration, u.channel) for u in corpus.utterances]
    assert found == [("a", "r.wav", 0.5, 1.25, None), ("b", "r.wav", 2, None, None), ("c", "r.wav", 3, 1, 1)]


def test_a_command_is_refused_and_not_run(tmp_path: Path) -> None:
    command = f"touch {tmp_path}/ran |"
    corpus = scan(tmp_path, wav_scp=f"a {command}\nb b.wav\n", text="a YES\nb NO\n")
    assert [utterance.id for utterance in corpus.utterances] == ["b"]
    assert [str(fault) for fault in corpus.faults] == [
        f"{tmp_path}/wav.scp:1: a is the output of a command ({command}), which is not run: give a file"
    ]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("value", ["", "-", "raw.ark:1234"])
def test_a_recording_must_be_a_file(tmp_path: Path, value: str) -> None:
    corpus = scan(tmp_path, wav_scp=f"a {value}\n", text="a YES\n")
    assert faults(corpus, tmp_path) == [f"wav.scp:1: a: expected the path of a recording; got {value!r}"]


@pytest.mark.parametrize("stretch", ["", "1", "1 2 3 4", "one 2", "2 1", "1 1", "-1 1", "nan 1", "0 inf", "1 2 x"])
def test_stretches_that_cannot_be_are_named(tmp_path: Path, stretch: str) -> None:
    corpus = scan(tmp_path, wav_scp="r r.wav\n", segments=f"a r {stretch}\n", text="a YES\n")
    value = f"r {stretch}".strip()
    assert faults(corpus, tmp_path) == [f"segments:1: a: expected a recording, start and end in seconds; got {value!r}"]


def test_what_does_not_fit_together_is_named(tmp_path: Path) -> None:
    corpus = scan(
        tmp_path,
        wav_scp="r r.wav\nr r2.wav\n",
        segments="a r 0 1\nb q 0 1\nc r 1 2\n",
        text="a YES\nb NO\nd NO\n",
    )
    assert [utterance.id for utterance in corpus.utterances] == ["a"]
    assert faults(corpus, tmp_path) == [
        "wav.scp:2: r is in the table twice (first at wav.scp:1)",
        "segments:2: b: there is no recording q in wav.scp",
        "segments:3: c has no transcript in text",
        "text:3: d has a transcript, but no recording",
    ]


def test_a_folder_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="text: no such table"):
        scan(tmp_path, wav_scp="a a.wav\n")
