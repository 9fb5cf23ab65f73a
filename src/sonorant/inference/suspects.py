"""Which transcripts are probably wrong: those that fit badly, or only with tokens of a length that they never have."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from sonorant.inference.alignment import AlignedToken, AlignedWord, Alignment

__all__ = ["Suspect", "Typical", "find_suspects", "typical"]

FEW = 20  # alignments that tell what is typical; of fewer the model's own experience is asked
_FAR = 4.0  # deviations
_VERY_FAR = 6.0  # for durations, since there are many tokens in an utterance
_LEAST = {"score": 0.1, "worst": 0.3, "duration": 0.3}  # the smallest deviation that is believed
_RARE = 10  # tokens: what is rarer has no length of its own
_DEVIATION = 1.4826  # of a normal distribution, in median absolute deviations


class Typical(NamedTuple):
    """Centre and deviation of the score of utterances, of their worst token, and of the logarithm of durations.

    ``durations`` is by token; the entry ``""`` is over all tokens but boundaries.
    """

    score: tuple[float, float]
    worst: tuple[float, float]
    durations: dict[str, tuple[float, float]]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Typical":
        """From what was ``_asdict()``, after a way through JSON."""
        durations = {token: (float(a), float(b)) for token, (a, b) in data["durations"].items()}
        score, worst = ((float(data[name][0]), float(data[name][1])) for name in ("score", "worst"))
        return cls(score, worst, durations)


class Suspect(NamedTuple):
    """An alignment's place in the list that was looked through, from 0 on, how far off it is in deviations, and why."""

    number: int
    distance: float
    reasons: list[str]


def typical(alignments: Sequence[Alignment]) -> Typical:
    """What alignments of a corpus are like; a few wrong ones do not matter.

    Args:
        alignments: at least one.
    """
    lengths: dict[str, list[float]] = {"": []}
    for alignment in alignments:
        for token in _spoken(alignment):
            lengths.setdefault(token.token, []).append(_log_duration(token))
            lengths[""].append(_log_duration(token))
    return Typical(
        _center([alignment.score for alignment in alignments], "score"),
        _center([alignment.worst.score for alignment in alignments], "worst"),
        {token: _center(of, "duration") for token, of in lengths.items() if not token or len(of) >= _RARE},
    )


def find_suspects(alignments: Sequence[Alignment], usual: Typical | None = None) -> list[Suspect]:
    """Alignments that people should look at, the worst first.

    An utterance is suspicious if its score, or that of its worst word, is more than 4 deviations below the median, or
    the logarithm of a token's duration more than 6 from that token's median. Medians and deviations (median absolute
    ones) are those of the alignments themselves if there are at least 20, else ``usual``.

    Args:
        alignments: of a corpus.
        usual: those of the corpus that the model was trained on.
    """
    if len(alignments) >= FEW or usual is None:
        usual = typical(alignments) if len(alignments) >= FEW else None
    if usual is None:
        return []
    found = []
    for number, alignment in enumerate(alignments):
        reasons = _reasons(alignment, usual)
        if reasons:
            found.append(Suspect(number, max(distance for distance, _ in reasons), [text for _, text in reasons]))
    return sorted(found, key=lambda suspect: -suspect.distance)


def _reasons(alignment: Alignment, usual: Typical) -> list[tuple[float, str]]:
    reasons = []
    distance = (usual.score[0] - alignment.score) / usual.score[1]
    if distance > _FAR:
        reasons.append((distance, f"score {alignment.score:.2f}, usually {usual.score[0]:.2f}"))
    worst = alignment.worst
    distance = (usual.worst[0] - worst.score) / usual.worst[1]
    if distance > _FAR:
        usually = f"the worst word usually {usual.worst[0]:.2f}"
        reasons.append((distance, f"{_named(worst)} has score {worst.score:.2f}, {usually}"))
    strangest = max(
        ((_strangeness(token, usual), word, token) for word in alignment.words for token in word.tokens),
        key=lambda candidate: candidate[0],
    )
    distance, word, token = strangest
    if distance > _VERY_FAR:
        center = usual.durations.get(token.token, usual.durations[""])[0]
        lasts = f"lasts {token.end - token.start:.2f} s, usually {math.exp(center):.2f} s"
        reasons.append((distance, f"{token.token} of {_named(word)} {lasts}"))
    return reasons


def _strangeness(token: AlignedToken, usual: Typical) -> float:
    center, deviation = usual.durations.get(token.token, usual.durations[""])
    return abs(_log_duration(token) - center) / deviation


def _named(word: AlignedWord) -> str:
    return f"{word.word!r} at {word.start:.2f} s"


def _spoken(alignment: Alignment) -> list[AlignedToken]:
    return [token for word in alignment.words for token in word.tokens]


def _log_duration(token: AlignedToken) -> float:
    return math.log(max(token.end - token.start, 1e-3))


def _center(values: Sequence[float], name: str) -> tuple[float, float]:
    middle = median(values)
    deviation = _DEVIATION * median(abs(value - middle) for value in values)
    return middle, max(deviation, _LEAST[name])
