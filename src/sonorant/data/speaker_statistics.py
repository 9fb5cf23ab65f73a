"""How high and how loud each speaker speaks, so that f0 and energy can be normalised by speaker."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sonorant.data.acoustic import AcousticFeatures

__all__ = ["AcousticStatistics", "SpeakerStatistics", "collect_statistics"]

_MIN_STD = 0.01  # nats: of a single tone, nothing is divided by 0


class SpeakerStatistics(NamedTuple):
    """Of log f0 (of Hz) and of energy (log of the root mean square), over voiced frames.

    Unvoiced frames have no f0, and how quiet they are tells how much silence a recording holds, and not how someone
    speaks. ``num_frames`` are the speaker's voiced frames; if they are too few, the other numbers are the corpus's.
    """

    num_frames: int
    log_f0_mean: float
    log_f0_std: float
    energy_mean: float
    energy_std: float

    def normalize_f0(self, f0: Tensor) -> Tensor:
        """Log f0 with mean 0 and standard deviation 1.

        Args:
            f0: in Hz, 0 where unvoiced; any shape.

        Returns:
            The same shape, 0 (the mean) where unvoiced.
        """
        voiced = f0 > 0
        logs = torch.where(voiced, f0, 1.0).log()
        return torch.where(voiced, (logs - self.log_f0_mean) / self.log_f0_std, 0.0)

    def denormalize_f0(self, normalized: Tensor, voiced: Tensor) -> Tensor:
        """Hz from what :meth:`normalize_f0` gives, for this speaker: 0 where unvoiced.

        Args:
            normalized: any shape; what it holds in unvoiced frames does not matter.
            voiced: bool, the same shape.
        """
        logs = torch.where(voiced, normalized, 0.0) * self.log_f0_std + self.log_f0_mean
        return torch.where(voiced, logs.exp(), 0.0)

    def normalize_energy(self, energy: Tensor) -> Tensor:
        """Energy with mean 0 and standard deviation 1 over voiced frames; any shape."""
        return (energy - self.energy_mean) / self.energy_std

    def denormalize_energy(self, normalized: Tensor) -> Tensor:
        """What :meth:`normalize_energy` undoes."""
        return normalized * self.energy_std + self.energy_mean


@dataclass(frozen=True)
class AcousticStatistics:
    """The statistics of a corpus, and of each of its speakers.

    Args:
        corpus: of all voiced frames.
        speakers: by name; utterances without a speaker belong to the one whose name is empty.
    """

    corpus: SpeakerStatistics
    speakers: Mapping[str, SpeakerStatistics]

    def of(self, speaker: str | None) -> SpeakerStatistics:
        """The statistics of a speaker.

        Raises:
            ValueError: no such speaker (naming those there are).
        """
        found = self.speakers.get(speaker or "")
        if found is None:
            raise ValueError(f"no speaker {speaker or ''!r}; known are {', '.join(map(repr, sorted(self.speakers)))}")
        return found

    def to_json(self) -> dict[str, Any]:
        """What JSON takes, for a model folder."""
        speakers = {name: statistics._asdict() for name, statistics in self.speakers.items()}
        return {"corpus": self.corpus._asdict(), "speakers": speakers}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AcousticStatistics":
        """What :meth:`to_json` gave."""
        speakers = {name: SpeakerStatistics(**statistics) for name, statistics in data["speakers"].items()}
        return cls(SpeakerStatistics(**data["corpus"]), speakers)


def collect_statistics(
    features: Iterable[tuple[str | None, AcousticFeatures]], *, min_frames: int = 50
) -> AcousticStatistics:
    """Go once through a corpus; nothing is kept of a recording but its speaker's sums.

    A speaker who has hardly any voiced frames (who whispers, say, or has one recording of a hiss) gets the
    statistics of the corpus, with his or her own number of frames.

    Args:
        features: for each recording its speaker and its features.
        min_frames: the voiced frames from which on a speaker's own statistics are taken.

    Raises:
        ValueError: no recording has a voiced frame.
    """
    corpus, speakers, number = _Sums(), dict[str, _Sums](), 0
    for speaker, recording in features:
        number += 1
        values = torch.stack([recording.f0.log(), recording.energy])[:, recording.voiced].double()
        corpus.add(values)
        speakers.setdefault(speaker or "", _Sums()).add(values)
    if corpus.count == 0:
        raise ValueError(
            f"none of the {number} recordings has a voiced frame, so that there is no f0 to normalise by; are they "
            "speech, and do f0_floor and f0_ceiling fit the speakers?"
        )
    overall = corpus.statistics()
    return AcousticStatistics(
        overall,
        {
            name: sums.statistics() if sums.count >= min_frames else overall._replace(num_frames=sums.count)
            for name, sums in speakers.items()
        },
    )


class _Sums:
    """Number, means and squared deviations, which are put together as Chan, Golub and LeVeque (1979) do it."""

    def __init__(self) -> None:
        self.count = 0
        self._means = torch.zeros(2, dtype=torch.float64)
        self._squares = torch.zeros(2, dtype=torch.float64)

    def add(self, values: Tensor) -> None:
        """Take in float64 ``(2, frames)``."""
        count = values.shape[1]
        if count == 0:
            return
        means = values.mean(1)
        difference, total = means - self._means, self.count + count
        self._squares += (values - means.unsqueeze(1)).square().sum(1)
        self._squares += difference.square() * (self.count * count / total)
        self._means += difference * (count / total)
        self.count = total

    def statistics(self) -> SpeakerStatistics:
        log_f0, energy = self._means.tolist()
        deviations = [max(math.sqrt(square / self.count), _MIN_STD) for square in self._squares.tolist()]
        return SpeakerStatistics(self.count, log_f0, deviations[0], energy, deviations[1])
