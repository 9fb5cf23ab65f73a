"""How good a system's output is."""

from sonorant.metrics.alignment import (
    BoundaryErrors,
    attention_coverage,
    attention_diagonality,
    attention_focus_rate,
    boundary_errors,
)

__all__ = [
    "BoundaryErrors",
    "attention_coverage",
    "attention_diagonality",
    "attention_focus_rate",
    "boundary_errors",
]
