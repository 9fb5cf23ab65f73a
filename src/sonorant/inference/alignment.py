"""What is where in a recording."""

from typing import Any, NamedTuple

from sonorant.data.textgrid import Interval, TextGrid, filled_tier

__all__ = ["AlignedToken", "AlignedWord", "Alignment"]


class AlignedToken(NamedTuple):
    """A token, where it starts and ends in its recording, in seconds, and how well it fits.

    ``score`` is the mean over its frames of the logarithm of how probable it is there, relative to the most probable
    token of the text: 0 where it is that itself, below 0 elsewhere.
    """

    token: str
    start: float
    end: float
    score: float


class AlignedWord(NamedTuple):
    """A word as it stands in the text, where it starts and ends, in seconds, and its tokens."""

    word: str
    start: float
    end: float
    tokens: list[AlignedToken]

    @property
    def score(self) -> float:
        """That of its worst token."""
        return min(token.score for token in self.tokens)


class Alignment(NamedTuple):
    """The result of :meth:`~sonorant.inference.aligner.Aligner.align`.

    ``words`` are those that something is spoken of; ``tokens`` all tokens from 0 to the end without gaps, the
    boundaries between words too; ``duration`` that of the recording in seconds; ``score`` the mean over all frames of
    the logarithm of how probable their token is, relative to the most probable one.
    """

    words: list[AlignedWord]
    tokens: list[AlignedToken]
    duration: float
    score: float

    @property
    def worst(self) -> AlignedWord:
        """The word that fits least."""
        return min(self.words, key=lambda word: word.score)

    def to_json(self) -> dict[str, Any]:
        """Plain data; times in milliseconds' and scores in four digits' precision."""
        return {
            "duration": round(self.duration, 3),
            "score": round(self.score, 4),
            "words": [
                {**_timed("word", word), "tokens": [_timed("token", token) for token in word.tokens]}
                for word in self.words
            ],
        }

    def to_textgrid(self) -> TextGrid:
        """A tier ``words`` and a tier ``tokens``; boundaries are left empty."""
        words = [Interval(word.start, word.end, word.word) for word in self.words]
        tokens = [Interval(token.start, token.end, token.token) for word in self.words for token in word.tokens]
        tiers = [filled_tier("words", words, self.duration), filled_tier("tokens", tokens, self.duration)]
        return TextGrid(self.duration, tiers)


def _timed(name: str, item: AlignedWord | AlignedToken) -> dict[str, Any]:
    return {name: item[0], "start": round(item.start, 3), "end": round(item.end, 3), "score": round(item.score, 4)}
