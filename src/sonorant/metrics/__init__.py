"""How good a result is."""

from sonorant.metrics.alignment import (
    BoundaryErrors,
    attention_coverage,
    attention_diagonality,
    attention_focus_rate,
    boundary_errors,
)
from sonorant.metrics.error_rate import Confusion, ErrorRate, confusions, error_rate
from sonorant.metrics.pronunciation import (
    PronunciationErrorRate,
    nearest_pronunciations,
    pronunciation_error_rate,
    pronunciation_error_rate_by_length,
)

__all__ = [
    "BoundaryErrors",
    "Confusion",
    "ErrorRate",
    "PronunciationErrorRate",
    "attention_coverage",
    "attention_diagonality",
    "attention_focus_rate",
    "boundary_errors",
    "confusions",
    "error_rate",
    "nearest_pronunciations",
    "pronunciation_error_rate",
    "pronunciation_error_rate_by_length",
]
