"""How good a result is."""

from sonorant.metrics.alignment import (
    BoundaryErrors,
    attention_coverage,
    attention_diagonality,
    attention_focus_rate,
    boundary_errors,
)
from sonorant.metrics.error_rate import Confusion, ErrorRate, confusions, error_rate
from sonorant.metrics.pitch import F0Errors, f0_errors
from sonorant.metrics.pronunciation import (
    PronunciationErrorRate,
    nearest_pronunciations,
    pronunciation_error_rate,
    pronunciation_error_rate_by_length,
)
from sonorant.metrics.spectral import (
    MelCepstralDistance,
    dynamic_time_warping,
    mean_pairwise_distance,
    mel_cepstral_distance,
    mel_cepstrum,
)

__all__ = [
    "BoundaryErrors",
    "Confusion",
    "ErrorRate",
    "F0Errors",
    "MelCepstralDistance",
    "PronunciationErrorRate",
    "attention_coverage",
    "attention_diagonality",
    "attention_focus_rate",
    "boundary_errors",
    "confusions",
    "dynamic_time_warping",
    "error_rate",
    "f0_errors",
    "mean_pairwise_distance",
    "mel_cepstral_distance",
    "mel_cepstrum",
    "nearest_pronunciations",
    "pronunciation_error_rate",
    "pronunciation_error_rate_by_length",
]
