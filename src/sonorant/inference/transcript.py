"""What was said, and when."""

from pathlib import Path
from typing import Any, NamedTuple

from sonorant.data.textgrid import Interval, TextGrid, filled_tier

__all__ = ["RecognizedWord", "TextGridNames", "Transcript"]


class RecognizedWord(NamedTuple):
    """A word, where it stands in its recording (seconds), and how sure the decoder is of it.

    ``start`` is the first frame of the word's first symbol on the best path, ``end`` the end of its last symbol's last
    frame. CTC models are free to emit a symbol in one frame only, anywhere in its sound: these are places of words and
    not their exact boundaries. ``confidence`` lies in [0, 1]; what it means depends on the decoder, see
    :meth:`~sonorant.inference.recognizer.Recognizer.recognize`.
    """

    word: str
    start: float
    end: float
    confidence: float


class Transcript(NamedTuple):
    """The result of :meth:`~sonorant.inference.recognizer.Recognizer.recognize`.

    ``text`` is the words joined with spaces, ``duration`` that of the recording in seconds.
    """

    text: str
    words: list[RecognizedWord]
    duration: float

    def to_json(self) -> dict[str, Any]:
        """Plain data; times in milliseconds' and confidences in four digits' precision."""
        words = [
            {
                "word": word.word,
                "start": round(word.start, 3),
                "end": round(word.end, 3),
                "confidence": round(word.confidence, 4),
            }
            for word in self.words
        ]
        return {"text": self.text, "duration": round(self.duration, 3), "words": words}

    def to_textgrid(self) -> TextGrid:
        """A tier ``words`` with the words, and one ``confidence`` with what the decoder thinks of each."""
        words = [Interval(word.start, word.end, word.word) for word in self.words]
        confidences = [Interval(word.start, word.end, f"{word.confidence:.4f}") for word in self.words]
        tiers = [
            filled_tier("words", words, self.duration),
            filled_tier("confidence", confidences, self.duration),
        ]
        return TextGrid(self.duration, tiers)


class TextGridNames:
    """Gives every recording a TextGrid, or another file, of its own in one folder.

    The name is the recording's with another ending. A further recording of the same name (from another folder, of
    another format, or differing in case only) gets a number: ``a.TextGrid``, ``a-2.TextGrid``, in the order in which
    they are asked for.

    Args:
        folder: where the files go.
        ending: of their names.
    """

    def __init__(self, folder: Path, ending: str = "TextGrid") -> None:
        self._folder = folder
        self._ending = ending
        self._taken: set[str] = set()

    def path(self, recording: str | Path) -> Path:
        """The file of one more recording."""
        stem = Path(recording).stem or "recording"
        name, number = stem, 1
        while name.casefold() in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name.casefold())
        return self._folder / f"{name}.{self._ending}"
