"""Losses as Modules: they hold the hyperparameters and call :mod:`sonorant.functional`."""

from sonorant.losses.classification import LabelSmoothingLoss
from sonorant.losses.ctc import CtcLoss
from sonorant.losses.flow import FlowNllLoss
from sonorant.losses.regression import MaskedBceWithLogitsLoss, MaskedL1Loss, MaskedMseLoss
from sonorant.losses.regularization import CovarianceLoss, CrossCovarianceLoss, InvarianceLoss, VarianceLoss

__all__ = [
    "CovarianceLoss",
    "CrossCovarianceLoss",
    "CtcLoss",
    "FlowNllLoss",
    "InvarianceLoss",
    "LabelSmoothingLoss",
    "MaskedBceWithLogitsLoss",
    "MaskedL1Loss",
    "MaskedMseLoss",
    "VarianceLoss",
]
