"""Losses as Modules: they hold the hyperparameters and call :mod:`sonorant.functional`."""

from sonorant.losses.attention import GuidedAttentionLoss
from sonorant.losses.ctc import CtcLoss

__all__ = ["CtcLoss", "GuidedAttentionLoss"]
