"""How far two aligners are apart that marked the same words of the same recordings."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sonorant.inference.alignment import AlignedWord

__all__ = ["Agreement", "Differences", "agreement", "differences", "joined"]

FAR = 0.1  # seconds


class Differences(NamedTuple):
    """Seconds by which one's marks are later than the other's.

    ``inner`` are those between the words of an utterance: where its first word starts and its last one ends depends on
    what is taken for silence more than on where words are.
    """

    starts: list[float]
    ends: list[float]
    inner: list[float]


class Agreement(NamedTuple):
    """The number of marks, median and 90th percentile of the absolute difference, the share beyond 100 ms, and the
    median of the signed difference, all but the share in seconds; NaN where there are no marks.
    """

    count: int
    median: float
    percentile_90: float
    beyond: float
    shift: float


def differences(ours: Sequence[AlignedWord], theirs: Sequence[AlignedWord]) -> Differences:
    """Of one utterance.

    Raises:
        ValueError: the words are not the same.
    """
    words = [word.word for word in ours], [word.word for word in theirs]
    if words[0] != words[1]:
        raise ValueError(f"the words differ: {' '.join(words[0])!r} and {' '.join(words[1])!r}")
    starts = [one.start - other.start for one, other in zip(ours, theirs, strict=True)]
    ends = [one.end - other.end for one, other in zip(ours, theirs, strict=True)]
    return Differences(starts, ends, ends[:-1] + starts[1:])


def joined(utterances: Iterable[Differences]) -> Differences:
    """Those of several utterances."""
    parts = list(utterances)
    return Differences(*([value for part in parts for value in part[index]] for index in range(3)))


def agreement(values: Sequence[float]) -> Agreement:
    """What differences are like, see :class:`Agreement`."""
    if not values:
        return Agreement(0, *[float("nan")] * 4)
    apart = np.abs(values)
    median, percentile_90 = np.percentile(apart, [50, 90])
    # no step of 10 ms is a float: 100 ms are not beyond 100 ms
    return Agreement(
        len(values), float(median), float(percentile_90), float((apart > FAR + 1e-6).mean()), float(np.median(values))
    )
