"""Losses as Modules: they hold the hyperparameters and call :mod:`sonorant.functional`."""

from sonorant.losses.alignment import (
    AlignmentLoss,
    AlignmentLosses,
    AlignmentLossWeights,
    AttentionBinarizationLoss,
)
from sonorant.losses.ctc import CtcLoss
from sonorant.losses.forward_sum import ForwardSumLoss

__all__ = [
    "AlignmentLoss",
    "AlignmentLossWeights",
    "AlignmentLosses",
    "AttentionBinarizationLoss",
    "CtcLoss",
    "ForwardSumLoss",
]
