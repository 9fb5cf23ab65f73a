"""lhotse's manifests."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sonorant.data.formats.lhotse import scan_lhotse
from sonorant.data.manifest import Corpus

Record = dict[str, Any]


def recording(name: str = "r", **changes: Any) -> Record:
    source = {"type": "file", "channels": [0], "source": f"{name}.wav"}
    return {"id": name, "sources": [source], "sampling_rate": 8000, "num_samples": 16000, "duration": 2.0} | changes


def supervision(name: str = "s", **changes: Any) -> Record:
    return {"id": name, "recording_id": "r", "start": 0.0, "duration": 2.0, "channel": 0, "text": "YES NO"} | changes


def cut(*supervisions: Record, **changes: Any) -> Record:
    own: Record = {"id": "c", "start": 0.5, "duration": 1.0, "channel": 0, "type": "MonoCut"}
    return own | {"supervisions": list(supervisions), "recording": recording()} | changes


def write(path: Path, *records: object) -> Path:
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def faults(corpus: Corpus) -> list[str]:
    return [str(fault).rpartition("/")[2] for fault in corpus.faults]


@pytest.mark.parametrize(
    ("name", "recordings"),
    [
        ("supervisions.jsonl", "recordings.jsonl"),
        ("yesno_supervisions_train.jsonl.gz", "yesno_recordings_train.jsonl.gz"),
        ("yesno_supervisions_train.jsonl.gz", "yesno_recordings_train.jsonl"),
        ("texts.jsonl", "my_recordings.jsonl.gz"),
    ],
)
def test_supervisions_find_their_recordings(tmp_path: Path, name: str, recordings: str) -> None:
    write(tmp_path / recordings, recording("q"), recording())
    path = write(
        tmp_path / name,
        supervision(speaker="ann", custom={"accent": "french"}, alignment={"word": []}),
        supervision("t", start=0.5, duration=1.25, text="cafe\u0301 "),
    )
    corpus = scan_lhotse(path)
    assert corpus.faults == []
    whole, part = corpus.utterances
    assert (whole.id, whole.path, whole.words) == ("s", tmp_path / "r.wav", ["YES", "NO"])
    assert (whole.speaker, whole.accent, whole.source) == ("ann", "french", f"{path}:1")
    assert (whole.start, whole.duration, whole.channel) == (0, None, None)
    assert (part.start, part.duration, part.text, part.speaker) == (0.5, 1.25, "caf\u00e9", None)


def test_supervisions_of_a_cut_start_with_the_cut(tmp_path: Path) -> None:
    two = cut(supervision(duration=0.5), supervision("t", start=0.5, duration=0.5))
    corpus = scan_lhotse(write(tmp_path / "cuts.jsonl.gz", two))
    assert corpus.faults == []
    assert [(u.id, u.start, u.duration) for u in corpus.utterances] == [("s", 0.5, 0.5), ("t", 1.0, 0.5)]


def test_channels_are_found_in_their_file(tmp_path: Path) -> None:
    parts = [
        {"type": "file", "channels": [0], "source": "near.wav"},
        {"type": "file", "channels": [1, 2], "source": "far.wav"},
    ]
    write(tmp_path / "recordings.jsonl", recording(sources=parts))
    path = write(
        tmp_path / "supervisions.jsonl",
        supervision(),
        supervision("t", channel=2),
        supervision("u", channel=[1, 2]),
        supervision("v", channel=[0, 1]),
        supervision("w", channel=7),
    )
    corpus = scan_lhotse(path)
    found = [(u.id, u.path.name, u.channel) for u in corpus.utterances]
    assert found == [("s", "near.wav", None), ("t", "far.wav", 1), ("u", "far.wav", None)]
    assert faults(corpus) == [
        "supervisions.jsonl:4: v: channels [0, 1] are not one or all of a file of the recording",
        "supervisions.jsonl:5: w: channels [7] are not one or all of a file of the recording",
    ]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (supervision(recording_id="q"), "s: there is no recording q in the recordings manifest"),
        (supervision(text=["YES"]), "s: the text is ['YES']"),
        (supervision(duration=0), "s: starts at 0 s and lasts 0 s"),
        (supervision(start=-1.0), "s: starts at -1 s and lasts 2 s"),
        (supervision(start=float("nan")), "s: starts at nan s"),
        (supervision(start="soon"), "s: could not convert string to float: 'soon'"),
        ({"id": "s", "recording_id": "r"}, "s: not a supervision or cut as lhotse writes it (KeyError('start'))"),
        (supervision(start=None), "s: not a supervision or cut as lhotse writes it (TypeError("),
        (cut(), "c: a cut without a supervision has no transcript"),
        (cut(supervision(duration=1.5)), "c: the supervision s reaches beyond its cut"),
        (cut(supervision(start=-0.5, duration=1.0)), "c: the supervision s reaches beyond its cut"),
        (cut(supervision(), type="MixedCut"), "c: a MixedCut, which mixes or pads recordings"),
        ({"id": "c", "supervisions": [], "features": {}}, "c: a cut without its recording"),
        (
            cut(supervision(duration=1.0), recording=recording(transforms=[{"name": "Speed"}])),
            "c: its recording is transformed",
        ),
        (
            cut(
                supervision(duration=1.0),
                recording=recording(sources=[{"type": "command", "channels": [0], "source": "sox"}]),
            ),
            "c: its recording is of type 'command'; only files are read",
        ),
        ([1, 2], "expected a JSON object; got '[1, 2]'"),
    ],
)
def test_what_gives_no_utterance_is_named(tmp_path: Path, record: object, message: str) -> None:
    write(tmp_path / "recordings.jsonl", recording())
    (fault,) = faults(scan_lhotse(write(tmp_path / "x.jsonl", record)))
    assert fault.startswith(f"x.jsonl:1: {message}")


def test_what_is_no_json_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "cuts.jsonl", cut(supervision(duration=1.0)))
    path.write_text(path.read_text() + "{'id': 3}\n")
    corpus = scan_lhotse(path)
    assert len(corpus.utterances) == 1
    assert faults(corpus)[0].startswith("cuts.jsonl:2: not JSON (")


def test_faults_of_the_recordings_are_named_too(tmp_path: Path) -> None:
    write(tmp_path / "recordings.jsonl", recording(), recording(), {"id": "q"}, {"id": [], "sources": []})
    corpus = scan_lhotse(write(tmp_path / "supervisions.jsonl", supervision()))
    assert len(corpus.utterances) == 1
    assert faults(corpus) == [
        "recordings.jsonl:2: r: is in the manifest twice",
        "recordings.jsonl:3: q: not a recording as lhotse writes it: id and sources are needed",
        "recordings.jsonl:4: []: not a recording as lhotse writes it: id and sources are needed",
    ]


def test_recordings_alone_have_no_transcripts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"recordings\.jsonl: a manifest of recordings; give the supervisions"):
        scan_lhotse(write(tmp_path / "recordings.jsonl", recording()))


@pytest.mark.parametrize("others", [[], ["a_recordings.jsonl", "b_recordings.jsonl"]])
def test_recordings_that_cannot_be_found_are_named(tmp_path: Path, others: list[str]) -> None:
    for other in others:
        write(tmp_path / other, recording())
    path = write(tmp_path / "x_supervisions.jsonl", supervision())
    message = rf"x_recordings\.jsonl: no such file, and {len(others)} others are named"
    with pytest.raises(FileNotFoundError, match=message):
        scan_lhotse(path)
