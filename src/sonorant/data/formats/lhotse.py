"""lhotse's manifests: supervisions with the recordings beside them, or cuts, as JSON lines, packed or not.

Every supervision is an utterance. Word alignments and stored features are passed over.

References:
    Żelasko, Povey, Trmal and Khudanpur 2021, "Lhotse: a speech data representation library for the modern deep
    learning ecosystem", arXiv 2110.12561.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sonorant.data.manifest import Corpus, Utterance, read_lines, tidy

__all__ = ["scan_lhotse"]

Record = dict[str, Any]
_TOLERANCE = 0.001  # seconds; what rounding does to times


def scan_lhotse(path: Path) -> Corpus:
    """Read supervisions or cuts. Relative paths start at the manifest's own folder.

    The recordings of ``NAME_supervisions_PART.jsonl.gz`` are looked for in ``NAME_recordings_PART.jsonl.gz``, packed
    or not, and else in the only file of that folder with "recordings" in its name.

    Raises:
        FileNotFoundError: no such manifest, or no recordings beside it.
        ValueError: a recordings manifest, which has no transcripts.
    """
    corpus = Corpus()
    recordings: dict[str, Record] | None = None
    for source, record in _records(path, corpus):
        if "sources" in record:
            raise ValueError(f"{path}: a manifest of recordings; give the supervisions, or cuts")
        try:
            if "recording_id" in record:
                if recordings is None:
                    recordings = _read_recordings(path, corpus)
                recording = recordings.get(record["recording_id"])
                if recording is None:
                    raise ValueError(f"there is no recording {record['recording_id']} in the recordings manifest")
                corpus.add(_utterance(record, recording, path.parent, source))
            else:
                for utterance in _utterances_of_cut(record, path.parent, source):
                    corpus.add(utterance)
        except ValueError as error:
            _refuse(corpus, source, record, str(error))
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            _refuse(corpus, source, record, f"not a supervision or cut as lhotse writes it ({error!r})")
    return corpus


def _records(path: Path, corpus: Corpus) -> Iterator[tuple[str, Record]]:
    for source, line in read_lines(path, corpus):
        try:
            record = json.loads(line)
        except ValueError as error:
            corpus.refuse(source, f"not JSON ({error})")
            continue
        if isinstance(record, dict):
            yield source, record
        else:
            corpus.refuse(source, f"expected a JSON object; got {line[:50]!r}")


def _refuse(corpus: Corpus, source: str, record: Record, message: str) -> None:
    name = str(record.get("id", ""))
    corpus.refuse(source, f"{name}: {message}" if name else message, name)


def _read_recordings(supervisions: Path, corpus: Corpus) -> dict[str, Record]:
    path = _find_recordings(supervisions)
    recordings: dict[str, Record] = {}
    for source, record in _records(path, corpus):
        if not isinstance(record.get("id"), str) or "sources" not in record:
            _refuse(corpus, source, record, "not a recording as lhotse writes it: id and sources are needed")
        elif recordings.setdefault(record["id"], record) is not record:
            _refuse(corpus, source, record, "is in the manifest twice")
    return recordings


def _find_recordings(supervisions: Path) -> Path:
    folder, name = supervisions.parent, supervisions.name.removesuffix(".gz").replace("supervision", "recording")
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file() and path != supervisions:
            return path
    found = [path for path in folder.glob("*recordings*") if path.name.endswith((".jsonl", ".jsonl.gz"))]
    if len(found) != 1:
        raise FileNotFoundError(f"{folder / name}: no such file, and {len(found)} others are named *recordings*.jsonl")
    return found[0]


def _utterances_of_cut(cut: Record, folder: Path, source: str) -> Iterator[Utterance]:
    kind = cut.get("type", "MonoCut")
    if kind not in ("MonoCut", "MultiCut", "Cut"):
        raise ValueError(f"a {kind}, which mixes or pads recordings; only cuts of one recording are read")
    if "recording" not in cut:
        raise ValueError("a cut without its recording")
    if not cut.get("supervisions"):
        raise ValueError("a cut without a supervision has no transcript")
    for supervision in cut["supervisions"]:
        start, end = supervision["start"], supervision["start"] + supervision["duration"]
        if start < -_TOLERANCE or end > cut["duration"] + _TOLERANCE:
            raise ValueError(f"the supervision {supervision['id']} reaches beyond its cut")
        placed = {"channel": cut.get("channel"), **supervision, "start": cut["start"] + start}
        yield _utterance(placed, cut["recording"], folder, source)


def _utterance(supervision: Record, recording: Record, folder: Path, source: str) -> Utterance:
    text = supervision.get("text") or ""
    speaker, accent = supervision.get("speaker"), (supervision.get("custom") or {}).get("accent")
    if not isinstance(text, str):
        raise ValueError(f"the text is {text!r}")
    start, duration = float(supervision["start"]), float(supervision["duration"])
    if not (-_TOLERANCE <= start < math.inf and 0 < duration < math.inf):
        raise ValueError(f"starts at {start:g} s and lasts {duration:g} s")
    start = max(start, 0.0)
    if recording.get("transforms"):
        raise ValueError("its recording is transformed while it is read, which is not done here")
    path, channel = _file(supervision.get("channel"), recording)
    is_whole = start == 0 and abs(duration - recording["duration"]) <= _TOLERANCE
    return Utterance(
        str(supervision["id"]),
        folder / path,
        tidy(text),
        None if speaker is None else str(speaker),
        None if accent is None else str(accent),
        start,
        None if is_whole else duration,
        channel,
        source,
    )


def _file(wanted: int | list[int] | None, recording: Record) -> tuple[str, int | None]:
    """The file that holds the channels, and which of its channels it is; None if it is all of them."""
    known = [channel for part in recording["sources"] for channel in part["channels"]]
    channels = known if wanted is None else [wanted] if isinstance(wanted, int) else wanted
    for part in recording["sources"]:
        if set(channels) <= set(part["channels"]):
            if part["type"] != "file":
                raise ValueError(f"its recording is of type {part['type']!r}; only files are read")
            if set(channels) == set(part["channels"]):
                return part["source"], None
            if len(channels) == 1:
                return part["source"], part["channels"].index(channels[0])
    raise ValueError(f"channels {channels} are not one or all of a file of the recording")
