"""Strings of spoken digits whose word boundaries are known exactly: a truth for aligners, and as much data as wanted.

Recordings of the Free Spoken Digit Dataset by one speaker are joined with gaps of random length. So that the truth is
clean, each recording is cut where its level first and last comes within 30 dB of its loudest 10 ms, and recordings
with a pause inside are left out. The gaps, and the edges, hold noise of the level and the spectrum of the speaker's
own background, which fades into the recording just outside the word.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch.utils.data import Dataset

from sonorant.data.audio import Samples, cut_frames, load_audio, write_audio
from sonorant.data.formats.table import table_line
from sonorant.data.fsdd import SAMPLE_RATE, FsddCorpus, load_fsdd, of_speakers
from sonorant.data.manifest import Utterance

__all__ = [
    "DigitString",
    "DigitStrings",
    "WordSpan",
    "WrittenStrings",
    "read_boundaries",
    "speech_range",
    "write_digit_strings",
]

FRAME = SAMPLE_RATE // 100  # 10 ms
TRIM_DB = 30.0
LONGEST_PAUSE = 0.12  # seconds below the trimming level inside a word: "six" has a closure of up to about 0.1
FADE = SAMPLE_RATE // 200  # 5 ms
QUIET = 0.25  # the share of a speaker's recordings that tells the background; the others hold no frame without speech
HEADROOM_DB = 35.0  # the background stays this far below the loudest frame of every word of a string
FULL_SCALE = 32768  # of 16-bit samples


class WordSpan(NamedTuple):
    """A word and where it starts and ends, in seconds."""

    word: str
    start: float
    end: float


class DigitString(NamedTuple):
    """A string: float32 samples ``(samples,)`` at 8 kHz, which fit 16 bits exactly, and the truth about it."""

    id: str
    samples: Samples
    words: list[WordSpan]
    speaker: str | None
    accent: str | None

    @property
    def text(self) -> str:
        """The words, separated by spaces."""
        return " ".join(word.word for word in self.words)


class WrittenStrings(NamedTuple):
    """What was written: the files, the seconds of audio, and the recordings left out with their pause in seconds."""

    table: Path
    boundaries: Path
    seconds: float
    left_out: dict[str, float]


class _Recording(NamedTuple):
    utterance: Utterance
    samples: Samples
    start: int
    stop: int
    loudest: float  # power of its loudest frame


class _Voice(NamedTuple):
    """One speaker's recordings by word, and the background: its power, and amplitude by frequency relative to that."""

    recordings: dict[str, list[_Recording]]
    level: float
    spectrum: npt.NDArray[np.float64]


class DigitStrings(Dataset[DigitString]):
    """Strings made when they are asked for. A string depends on the seed and its index alone.

    Other utterances give other strings for the same seed, so that the train and the test part of a corpus do not have
    the same sequences of words. Speakers take turns. All recordings are held in memory, about 35 MB for the train part.

    Args:
        utterances: recordings of one word each, with speakers: a part of :class:`~sonorant.data.fsdd.FsddCorpus`.
        number: of strings.
        seed: of everything that is random.
        digits: the fewest and the most words of a string.
        gap: the shortest and the longest gap between words, in seconds.
        edge: the same for the noise before the first word and after the last.

    Attributes:
        left_out: id and longest pause, in seconds, of the recordings that are not used.

    Raises:
        ValueError: nothing to make strings of, or impossible ranges.
        AudioError: a recording that cannot be read, or is silent.
    """

    def __init__(
        self,
        utterances: Sequence[Utterance],
        number: int,
        seed: int = 0,
        *,
        digits: tuple[int, int] = (3, 7),
        gap: tuple[float, float] = (0.05, 0.4),
        edge: tuple[float, float] = (0.05, 0.2),
    ) -> None:
        for name, (low, high), least in (("digits", digits, 1), ("gap", gap, 0.01), ("edge", edge, 0.01)):
            if not least <= low <= high:
                raise ValueError(f"{name} must be a range from at least {least}; got {low} to {high}")
        if number < 1 or seed < 0:
            raise ValueError(f"number must be positive and seed not negative; got {number} and {seed}")
        self._number = number
        self._seed = [seed, zlib.crc32("\n".join(utterance.id for utterance in utterances).encode())]
        self._digits = digits
        self._gap = gap
        self._edge = edge
        self.left_out: dict[str, float] = {}
        self._voices = self._load(utterances)

    def __len__(self) -> int:
        """The number of strings."""
        return self._number

    def __iter__(self) -> Iterator[DigitString]:
        """All strings in order."""
        return (self[index] for index in range(self._number))

    def __getitem__(self, index: int) -> DigitString:
        """One string."""
        if not 0 <= index < self._number:
            raise IndexError(f"string {index} of {self._number}")
        random = np.random.default_rng([*self._seed, index])
        voice = self._voices[index % len(self._voices)]
        count = random.integers(self._digits[0], self._digits[1], endpoint=True)
        vocabulary = list(voice.recordings)
        chosen = []
        for word in random.integers(len(vocabulary), size=count):
            takes = voice.recordings[vocabulary[word]]
            chosen.append(takes[random.integers(len(takes))])
        before = [self._edge] + [self._gap] * (count - 1) + [self._edge]
        gaps = [round(random.uniform(*limits) * SAMPLE_RATE) for limits in before]
        level = min(voice.level, *(take.loudest * 10 ** (-HEADROOM_DB / 10) for take in chosen))
        samples, starts = _join(chosen, gaps, np.sqrt(level) * voice.spectrum, random)
        words = [
            WordSpan(take.utterance.text, start / SAMPLE_RATE, (start + take.stop - take.start) / SAMPLE_RATE)
            for take, start in zip(chosen, starts, strict=True)
        ]
        speaker = chosen[0].utterance
        return DigitString(f"{index:06d}", samples, words, speaker.speaker, speaker.accent)

    def _load(self, utterances: Sequence[Utterance]) -> list[_Voice]:
        speakers: dict[str | None, list[_Recording]] = {}
        for utterance in utterances:
            samples = load_audio(utterance.path, SAMPLE_RATE).samples
            start, stop, pause = speech_range(samples, str(utterance.path))
            if pause > LONGEST_PAUSE:
                self.left_out[utterance.id] = pause
            else:
                speakers.setdefault(utterance.speaker, []).append(
                    _Recording(utterance, samples, start, stop, float(_frame_power(samples).max()))
                )
        if not speakers:
            raise ValueError("utterances: no recording to make strings of")
        return [_voice(speakers[speaker]) for speaker in sorted(speakers, key=str)]


def speech_range(samples: Samples, name: str = "samples") -> tuple[int, int, float]:
    """Where speech starts and stops, in samples, and the longest pause between, in seconds.

    Of frames of 10 ms, the first and the last that come within 30 dB of the loudest. The range is a multiple of
    10 ms, and what is left of a recording's end after its last whole frame is not part of it.

    Args:
        samples: float32 ``(samples,)`` at 8 kHz.
        name: for the message.

    Raises:
        ValueError: silence, or less than 10 ms.
    """
    power = _frame_power(samples)
    if not len(power) or power.max() == 0:
        raise ValueError(f"{name}: no sound in {len(samples)} samples")
    loud = np.flatnonzero(power > power.max() * 10 ** (-TRIM_DB / 10))
    pause = int((np.diff(loud) - 1).max(initial=0))
    return int(loud[0]) * FRAME, (int(loud[-1]) + 1) * FRAME, pause * FRAME / SAMPLE_RATE


def write_digit_strings(
    folder: str | Path,
    number: int,
    seed: int = 0,
    *,
    split: str = "train",
    speakers: Sequence[str] | None = None,
    corpus: FsddCorpus | None = None,
    **options: Any,
) -> WrittenStrings:
    """Write strings as WAV files, a table and a file of word boundaries. Memory does not grow with their number.

    ``table.tsv`` has a line ``path<TAB>text<TAB>speaker<TAB>accent`` for each string, ``boundaries.jsonl`` an object
    ``{"id": path, "words": [{"word": "six", "start": 0.1, "end": 0.5}, ...]}``. The two appear when all is written.

    Args:
        folder: where to; made if need be.
        number: of strings.
        seed: as of :class:`DigitStrings`.
        split: ``"train"`` or ``"test"``: which recordings of the corpus are used.
        speakers: whose; all by default.
        corpus: the recordings; found or downloaded by default.
        **options: ``digits``, ``gap`` and ``edge`` of :class:`DigitStrings`.

    Raises:
        ValueError: no such split or speaker.
        FileExistsError: the folder holds a table already.
    """
    if split not in FsddCorpus._fields:
        raise ValueError(f"no split {split!r}; known are {', '.join(FsddCorpus._fields)}")
    table, boundaries = Path(folder) / "table.tsv", Path(folder) / "boundaries.jsonl"
    if table.exists():
        raise FileExistsError(f"{table}: there already; give another folder, or remove this one")
    utterances: list[Utterance] = getattr(corpus or load_fsdd(), split)
    strings = DigitStrings(of_speakers(utterances, speakers) if speakers else utterances, number, seed, **options)
    seconds = _write(strings, table, boundaries)
    return WrittenStrings(table, boundaries, seconds, strings.left_out)


def read_boundaries(path: str | Path) -> dict[str, list[WordSpan]]:
    """The words of each utterance, by its id in the table, from a file that :func:`write_digit_strings` wrote."""
    with Path(path).open(encoding="utf-8") as file:
        return {
            entry["id"]: [WordSpan(word["word"], word["start"], word["end"]) for word in entry["words"]]
            for entry in map(json.loads, file)
        }


def _write(strings: DigitStrings, table: Path, boundaries: Path) -> float:
    (table.parent / "wav").mkdir(parents=True, exist_ok=True)
    rows, marks = table.with_suffix(".part"), boundaries.with_suffix(".part")
    length = 0
    with rows.open("w", encoding="utf-8") as row_file, marks.open("w", encoding="utf-8") as mark_file:
        for string in strings:
            name = f"wav/{string.id}.wav"
            write_audio(table.parent / name, string.samples, SAMPLE_RATE)
            row_file.write(table_line(name, string.text, string.speaker, string.accent))
            mark_file.write(json.dumps({"id": name, "words": [word._asdict() for word in string.words]}) + "\n")
            length += len(string.samples)
    marks.replace(boundaries)
    rows.replace(table)
    return length / SAMPLE_RATE


def _join(
    takes: Sequence[_Recording], gaps: Sequence[int], background: npt.NDArray[np.float64], random: np.random.Generator
) -> tuple[Samples, list[int]]:
    """The samples, and where each word starts in them."""
    lengths = [take.stop - take.start for take in takes]
    starts = [sum(gaps[: i + 1]) + sum(lengths[:i]) for i in range(len(takes))]
    joined = _noise(sum(gaps) + sum(lengths), background, random)
    for take, start in zip(takes, starts, strict=True):
        # fading takes place outside the word as far as its recording reaches, else inside
        before, after = min(FADE, take.start), min(FADE, len(take.samples) - take.stop)
        piece = take.samples[take.start - before : take.stop + after]
        weight = np.ones(len(piece))
        weight[:FADE] = np.sin(np.pi / 2 * (np.arange(FADE) + 0.5) / FADE) ** 2
        weight[-FADE:] = weight[:FADE][::-1]
        place = slice(start - before, start - before + len(piece))
        joined[place] = weight * piece + (1 - weight) * joined[place]
    whole = np.clip(np.round(joined * FULL_SCALE), -FULL_SCALE, FULL_SCALE - 1) / FULL_SCALE
    return whole.astype(np.float32), starts


def _voice(recordings: Sequence[_Recording]) -> _Voice:
    by_word: dict[str, list[_Recording]] = {}
    for recording in recordings:
        by_word.setdefault(recording.utterance.text, []).append(recording)
    return _Voice(dict(sorted(by_word.items())), *_background([recording.samples for recording in recordings]))


def _background(recordings: Sequence[Samples]) -> tuple[float, npt.NDArray[np.float64]]:
    """Power and relative amplitude by frequency of the quietest 10 ms of the quietest recordings."""
    powers = [_frame_power(samples) for samples in recordings]
    floors = np.array([power.min() for power in powers])
    quiet = np.flatnonzero(floors <= np.quantile(floors, QUIET))
    frames = np.stack([cut_frames(recordings[i], FRAME)[powers[i].argmin()] for i in quiet.tolist()])
    power = (np.abs(np.fft.rfft(frames * np.hanning(FRAME))) ** 2).mean(0)
    level = max(float(np.median(floors[quiet])), FULL_SCALE**-2.0)  # never digital silence
    return level, np.sqrt(power / power.mean() if power.any() else np.ones_like(power))


def _noise(length: int, amplitude: npt.NDArray[np.float64], random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Gaussian noise with a given amplitude by frequency."""
    size = 1 << (length - 1).bit_length()
    white = np.fft.rfft(random.standard_normal(size))
    gain = np.interp(np.linspace(0, 1, len(white)), np.linspace(0, 1, len(amplitude)), amplitude)
    return np.fft.irfft(white * gain, size)[:length]


def _frame_power(samples: Samples) -> npt.NDArray[np.float64]:
    return np.asarray((cut_frames(samples, FRAME) ** 2).mean(1))
