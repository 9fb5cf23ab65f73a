"""How good a result is."""

from sonorant.metrics.error_rate import ErrorRate, error_rate

__all__ = ["ErrorRate", "error_rate"]
