"""Kaldi data directories: ``wav.scp`` and ``text``, with ``segments`` and ``utt2spk`` where there are any."""

import math
import re
from pathlib import Path
from typing import NamedTuple

from sonorant.data.manifest import Corpus, Utterance, read_lines, split_id, tidy

__all__ = ["scan_kaldi"]

_ARCHIVE = re.compile(r"\.ark:\d+$")


class _Line(NamedTuple):
    """What a line says of its id."""

    source: str
    value: str


class _Segment(NamedTuple):
    """A stretch of a recording."""

    source: str
    recording: str
    start: float = 0.0
    duration: float | None = None
    channel: int | None = None


def scan_kaldi(folder: Path) -> Corpus:
    """Read a data directory. Relative paths start at the directory itself.

    A recording that is the output of a command (``sox ... |``) is refused: a table must not run programs.
    """
    corpus = Corpus()
    recordings = _read_map(folder / "wav.scp", corpus)
    paths = {name: _path(name, line, corpus) for name, line in recordings.items()}
    texts = _read_map(folder / "text", corpus)
    speakers = _read_map(folder / "utt2spk", corpus) if (folder / "utt2spk").exists() else {}
    segments = _segments(folder, recordings, corpus)
    for name, segment in segments.items():
        if segment is None:
            continue
        source, recording, start, duration, channel = segment
        if name not in texts:
            corpus.refuse(source, f"{name} has no transcript in {folder / 'text'}", name)
        elif recording not in paths:
            corpus.refuse(source, f"{name}: there is no recording {recording} in {folder / 'wav.scp'}", name)
        elif (path := paths[recording]) is not None:
            speaker = speakers[name].value if name in speakers else None
            line = texts[name]
            corpus.add(Utterance(name, path, tidy(line.value), speaker, None, start, duration, channel, line.source))
    for name, (source, _) in texts.items():
        if name not in segments:
            corpus.refuse(source, f"{name} has a transcript, but no recording", name)
    return corpus


def _read_map(path: Path, corpus: Corpus) -> dict[str, _Line]:
    """Lines of an id and a value."""
    lines: dict[str, _Line] = {}
    for source, line in read_lines(path, corpus):
        name, value = split_id(line)
        name = tidy(name)
        if name in lines:
            corpus.refuse(source, f"{name} is in the table twice (first at {lines[name].source})", name)
        else:
            lines[name] = _Line(source, value)
    return lines


def _path(name: str, line: _Line, corpus: Corpus) -> Path | None:
    source, value = line
    if value.endswith("|"):
        corpus.refuse(source, f"{name} is the output of a command ({value}), which is not run: give a file", name)
    elif value in ("", "-") or _ARCHIVE.search(value):
        corpus.refuse(source, f"{name}: expected the path of a recording; got {value!r}", name)
    else:
        return Path(source.rpartition(":")[0]).parent / value
    return None


def _segments(folder: Path, recordings: dict[str, _Line], corpus: Corpus) -> dict[str, _Segment | None]:
    """The stretch of each utterance, None for a refused one. Without ``segments`` every recording is an utterance."""
    if not (folder / "segments").exists():
        return {name: _Segment(line.source, name) for name, line in recordings.items()}
    lines = _read_map(folder / "segments", corpus)
    return {name: _segment(name, line, corpus) for name, line in lines.items()}


def _segment(name: str, line: _Line, corpus: Corpus) -> _Segment | None:
    """Parse ``recording start end [channel]``; an end of -1 is the end of the recording."""
    recording, numbers = split_id(line.value)
    try:
        start, end, *rest = map(float, numbers.split())
        if not (0 <= start < end < math.inf or (0 <= start < math.inf and end == -1)) or len(rest) > 1:
            raise ValueError
    except ValueError:
        message = f"{name}: expected a recording, start and end in seconds; got {line.value!r}"
        corpus.refuse(line.source, message, name)
        return None
    channel = int(rest[0]) if rest else None
    return _Segment(line.source, tidy(recording), start, None if end == -1 else end - start, channel)
