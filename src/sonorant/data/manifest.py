"""Utterances, the faults that are found in them, and the rules by which all kinds of tables are read."""

import gzip
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from sonorant.data.audio import Audio, load_audio

__all__ = ["Corpus", "Fault", "Utterance", "list_faults", "read_lines", "split_id", "tidy"]

WARNINGS = frozenset({"clipping", "odd text", "repeated audio"})


@dataclass(frozen=True)
class Utterance:
    """A recording, or a stretch of one, and what is said in it.

    Args:
        id: unique in its corpus.
        path: the recording.
        text: the transcript, words separated by spaces.
        speaker: who speaks, where that is known.
        accent: with which accent, where that is known.
        start: where in the recording the utterance begins, in seconds.
        duration: its length in seconds; None reaches to the end of the recording.
        channel: which channel of the recording, counted from 0; None is the only one there is.
        source: the file and line that it was read from, for messages.
    """

    id: str
    path: Path
    text: str
    speaker: str | None = None
    accent: str | None = None
    start: float = 0.0
    duration: float | None = None
    channel: int | None = None
    source: str = ""

    @property
    def words(self) -> list[str]:
        """The transcript's words. Only ASCII spaces separate: a no-break space belongs to its word."""
        return [word for word in self.text.split(" ") if word]

    def load_audio(
        self,
        sample_rate: int | None = None,
        *,
        allow_resampling: bool = False,
        mix_channels: bool = False,
        max_duration: float | None = None,
    ) -> Audio:
        """The utterance's samples; arguments and refusals are those of :func:`sonorant.data.audio.load_audio`."""
        return load_audio(
            self.path,
            sample_rate,
            start=self.start,
            duration=self.duration,
            channel=self.channel,
            allow_resampling=allow_resampling,
            mix_channels=mix_channels,
            max_duration=max_duration,
        )


@dataclass(frozen=True)
class Fault:
    """Something wrong with an utterance, or with a line that should have been one.

    Args:
        source: file and line.
        id: the utterance; empty where the line does not tell.
        kind: what faults are counted by, such as "missing" or "sample rate".
        message: what is wrong, beginning with the utterance or the recording.
    """

    source: str
    id: str
    kind: str
    message: str

    @property
    def is_error(self) -> bool:
        """Whether it keeps the utterance from being used; a warning does not."""
        return self.kind not in WARNINGS

    def __str__(self) -> str:
        return f"{self.source}: {self.message}" if self.source else self.message


def list_faults(faults: Sequence[Fault], limit: int = 20) -> str:
    """Indented lines, one a fault; beyond the limit only their number."""
    lines = [f"\n  {fault}" for fault in faults[:limit]]
    return "".join(lines) + (f"\n  and {len(faults) - limit} more" if len(faults) > limit else "")


@dataclass
class Corpus:
    """What was read: the utterances, and the faults of all lines that gave none."""

    utterances: list[Utterance] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _sources: dict[str, str] = field(default_factory=dict, repr=False)

    def add(self, utterance: Utterance) -> None:
        """Take an utterance in, unless its id is taken."""
        first = self._sources.get(utterance.id)
        if first is not None:
            self.refuse(utterance.source, f"{utterance.id} is in the table twice (first at {first})", utterance.id)
            return
        self._sources[utterance.id] = utterance.source
        self.utterances.append(utterance)

    def refuse(self, source: str, message: str, id: str = "") -> None:
        """Note that a line gives no utterance, and why."""
        self.faults.append(Fault(source, id, "table", message))


def read_lines(path: Path, corpus: Corpus) -> Iterator[tuple[str, str]]:
    """The lines of a table that hold anything, each with its ``file:line``.

    UTF-8 with or without byte order mark; LF or CRLF; packed if the name ends in ``.gz``. A line that is not UTF-8, or
    an archive that breaks off, becomes a fault of the corpus.

    Raises:
        FileNotFoundError: no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such table")
    number = 0
    with cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as file:
        try:
            for number, raw in enumerate(file, start=1):
                source = f"{path}:{number}"
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    corpus.refuse(source, f"not UTF-8 (byte {error.start + 1} of the line is 0x{raw[error.start]:02x})")
                    continue
                if line.strip():
                    yield source, line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            corpus.refuse(f"{path}:{number + 1}", f"the archive is damaged ({error})")


def tidy(text: str) -> str:
    """Text in Unicode's composed form NFC, without spaces and tabs around it."""
    return unicodedata.normalize("NFC", text).strip(" \t")


def split_id(line: str) -> tuple[str, str]:
    """The first field of a line and the rest, parted by spaces or tabs and by nothing else."""
    line = line.strip(" \t")
    end = min((place for place in (line.find(" "), line.find("\t")) if place >= 0), default=len(line))
    return line[:end], line[end:].strip(" \t")
