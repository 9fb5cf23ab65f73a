"""How good a result is."""

from sonorant.metrics.alignment import (
    BoundaryErrors,
    attention_coverage,
    attention_diagonality,
    attention_focus_rate,
    boundary_errors,
)
from sonorant.metrics.error_rate import ErrorRate, error_rate

__all__ = [
    "BoundaryErrors",
    "ErrorRate",
    "attention_coverage",
    "attention_diagonality",
    "attention_focus_rate",
    "boundary_errors",
    "error_rate",
]
