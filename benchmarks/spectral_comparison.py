"""How far clips are from real recordings of the same words by the same speakers, and from each other."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.audio import Samples
from sonorant.metrics import f0_errors, mean_pairwise_distance, mel_cepstral_distance

__all__ = ["Cell", "Comparison", "Mean", "compare"]

Cell = tuple[str, str]  # a speaker and a word
_REPLICATIONS = 1000


class Mean(NamedTuple):
    """A mean over cells, and its 95 % bootstrap interval (cells drawn with replacement)."""

    value: float
    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "Mean":
        """Cells whose value is NaN do not count."""
        known = np.array([value for value in values if not math.isnan(value)])
        if not len(known):
            return cls(math.nan, math.nan, math.nan)
        drawn = np.random.default_rng(0).integers(len(known), size=(_REPLICATIONS, len(known)))
        low, high = np.quantile(known[drawn].mean(1), [0.025, 0.975])
        return cls(float(known.mean()), float(low), float(high))

    def show(self, unit: str, scale: float = 1.0) -> str:
        value, low, high = (f"{scale * number:.1f}" for number in self)
        return f"{value}{unit} ({low} to {high})"


class Comparison(NamedTuple):
    """The values of each cell: distances in dB, pitch in semitones, voicing as a share of the aligned frames."""

    nearest: dict[Cell, float]
    average: dict[Cell, float]
    pitch: dict[Cell, float]
    voicing: dict[Cell, float]
    variety: dict[Cell, float]

    HEADINGS = (
        "distance to the nearest",
        "average distance",
        "f0, RMSE",
        "voicing errors",
        "distance from each other",
    )

    def row(self) -> list[str]:
        """The means over all cells."""
        units = ((" dB", 1), (" dB", 1), (" semitones", 1), (" %", 100), (" dB", 1))
        return [Mean.over(list(values.values())).show(*unit) for values, unit in zip(self, units, strict=True)]

    def to_json(self) -> dict[str, Any]:
        """By measure the mean over all cells, and over those of each speaker."""
        return {
            name: {
                "all": list(Mean.over(list(values.values()))),
                "speakers": {
                    speaker: list(Mean.over([value for cell, value in values.items() if cell[0] == speaker]))
                    for speaker in dict.fromkeys(speaker for speaker, _ in values)
                },
            }
            for name, values in self._asdict().items()
        }


def compare(
    clips: Mapping[Cell, Sequence[Samples]], references: Mapping[Cell, Sequence[Samples]], config: AcousticConfig
) -> Comparison:
    """Compare each clip of a cell with every reference of that cell, and with the other clips of the cell.

    Args:
        clips: samples ``(samples,)`` at the rate of the features.
        references: likewise.
        config: of the features; f0 and spectra of both are estimated from the samples.
    """
    extractor = config.extractor()
    result = Comparison({}, {}, {}, {}, {})
    for cell, renditions in clips.items():
        found, wanted = (
            [AcousticFeatures.from_columns(extractor(samples)) for samples in some]
            for some in (renditions, references[cell])
        )
        distances, contours = [], []
        for one in found:
            aligned = [mel_cepstral_distance(one.log_mel, other.log_mel) for other in wanted]
            distances.append([distance for distance, _ in aligned])
            contours += [
                (one.f0[path[:, 0]], other.f0[path[:, 1]]) for (_, path), other in zip(aligned, wanted, strict=True)
            ]
        errors = f0_errors(*zip(*contours, strict=True))
        result.nearest[cell] = float(np.min(distances, axis=1).mean())
        result.average[cell] = float(np.mean(distances))
        result.pitch[cell] = errors.rmse
        result.voicing[cell] = errors.voicing_error
        result.variety[cell] = mean_pairwise_distance([one.log_mel for one in found])
    return result
