"""Forced alignment by pocketsphinx with its American English model: another opinion on where words are.

    pip install pocketsphinx  # holds the model

The first pass finds the words and which pronunciation each has, the second the phones, and silence at the edges. The
second fails where phones are shorter than the three frames that its models take: then the first one's words count.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sonorant.data.audio import Samples
from sonorant.inference import AlignedToken, AlignedWord, Alignment
from sonorant.text import Lexicon

__all__ = ["SAMPLE_RATE", "Entry", "Pocketsphinx", "UnalignedError", "dictionary_text", "to_alignment"]

SAMPLE_RATE = 16000
FRAME_SHIFT, WINDOW = 0.01, 0.025625  # seconds
_VARIANT = re.compile(r"\(\d+\)$")
_FILLERS = ("<", "[")  # what their names begin with


class UnalignedError(Exception):
    """Pocketsphinx found no alignment."""


class Entry(NamedTuple):
    """A word or phone of pocketsphinx's result, in frames, and the phones of a word."""

    name: str
    start: int
    duration: int
    parts: Sequence["Entry"] = ()


class Pocketsphinx:
    """The aligner; it has the pronunciations of a lexicon, in phones of CMUdict without stress.

    Args:
        lexicon: of all words that are to be aligned.
        folder: where the dictionary can be put.

    Raises:
        ModuleNotFoundError: it is not installed.
    """

    def __init__(self, lexicon: Lexicon, folder: Path) -> None:
        self._dictionary = folder / "pocketsphinx.dict"
        self._dictionary.write_text(dictionary_text(lexicon), encoding="utf-8")
        self._decoder = self._new_decoder()

    def align(self, samples: Samples, words: Sequence[str]) -> Alignment:
        """Align samples ``(samples,)`` in [-1, 1] at 16 kHz. Words have no tokens where the second pass failed.

        Raises:
            UnalignedError: with the reason.
        """
        pcm = (samples * 32768).round().clip(-32768, 32767).astype("<i2").tobytes()
        try:
            self._decoder.set_align_text(" ".join(words))
            self._decode(pcm)
            entries = [
                Entry(part.word, part.start_frame, part.end_frame + 1 - part.start_frame)
                for part in self._decoder.seg() or ()
            ]
        except RuntimeError as error:
            self._decoder = self._new_decoder()
            raise UnalignedError(str(error)) from error
        try:
            self._decoder.set_alignment()
            self._decode(pcm)
            entries = [
                Entry(
                    word.name, word.start, word.duration, [Entry(item.name, item.start, item.duration) for item in word]
                )
                for word in self._decoder.get_alignment()
            ]
        except RuntimeError:
            self._decoder = self._new_decoder()  # one that failed goes on failing
        return to_alignment(entries, words, len(samples) / SAMPLE_RATE)

    def _new_decoder(self) -> Any:
        from pocketsphinx import Decoder

        return Decoder(lm=None, dict=str(self._dictionary), loglevel="FATAL")

    def _decode(self, pcm: bytes) -> None:
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()


def dictionary_text(lexicon: Lexicon) -> str:
    """A dictionary as pocketsphinx reads it: further pronunciations of a word are marked ``word(2)`` and so on."""
    lines = [
        f"{word}{f'({number})' if number > 1 else ''} {' '.join(pron)}\n"
        for word, prons in lexicon.entries.items()
        for number, pron in enumerate(prons, start=1)
    ]
    return "".join(lines)


def to_alignment(entries: Iterable[Entry], words: Sequence[str], duration: float) -> Alignment:
    """What pocketsphinx found, without its silences and noises; scores are NaN.

    A frame is where the middle of its window is: with windows of 25.6 ms from 0 on, frame 0 stands for 7.8 to 17.8 ms.
    Pocketsphinx's own tools print such a time as 0. What starts with the first frame starts at 0, and what ends with
    the last one at the end of the recording.

    Args:
        entries: the words, with their phones, from the first frame to the last.
        words: those of the text.
        duration: of the recording, in seconds.

    Raises:
        UnalignedError: these are not the words of the text.
    """
    entries = list(entries)
    spoken = [entry for entry in entries if not entry.name.startswith(_FILLERS)]
    found = [_VARIANT.sub("", entry.name) for entry in spoken]
    if found != list(words):
        raise UnalignedError(f"it found {' '.join(found)!r}" if found else "it found nothing")
    last = entries[-1].start + entries[-1].duration

    def seconds(frame: int) -> float:
        if frame in (0, last):
            return duration if frame else 0.0
        return min(frame * FRAME_SHIFT + (WINDOW - FRAME_SHIFT) / 2, duration)

    def timed(entry: Entry) -> tuple[float, float]:
        return seconds(entry.start), seconds(entry.start + entry.duration)

    nan = float("nan")
    aligned = [
        AlignedWord(word, *timed(entry), [AlignedToken(part.name, *timed(part), nan) for part in entry.parts])
        for word, entry in zip(words, spoken, strict=True)
    ]
    return Alignment(aligned, [token for word in aligned for token in word.tokens], duration, nan)
