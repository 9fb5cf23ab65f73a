"""Losses as Modules: they hold the hyperparameters and call :mod:`sonorant.functional`."""

from sonorant.losses.adversarial import FeatureMatchingLoss, LsganDiscriminatorLoss, LsganGeneratorLoss
from sonorant.losses.alignment import AlignmentLoss, AlignmentLosses, AlignmentLossWeights, AttentionBinarizationLoss
from sonorant.losses.classification import LabelSmoothingLoss
from sonorant.losses.ctc import CtcLoss
from sonorant.losses.flow import FlowNllLoss
from sonorant.losses.forward_sum import ForwardSumLoss
from sonorant.losses.regression import MaskedBceWithLogitsLoss, MaskedL1Loss, MaskedMseLoss
from sonorant.losses.regularization import CovarianceLoss, CrossCovarianceLoss, InvarianceLoss, VarianceLoss
from sonorant.losses.spectral import MultiResolutionStftLoss, StftLossWeights

__all__ = [
    "AlignmentLoss",
    "AlignmentLossWeights",
    "AlignmentLosses",
    "AttentionBinarizationLoss",
    "CovarianceLoss",
    "CrossCovarianceLoss",
    "CtcLoss",
    "FeatureMatchingLoss",
    "FlowNllLoss",
    "ForwardSumLoss",
    "InvarianceLoss",
    "LabelSmoothingLoss",
    "LsganDiscriminatorLoss",
    "LsganGeneratorLoss",
    "MaskedBceWithLogitsLoss",
    "MaskedL1Loss",
    "MaskedMseLoss",
    "MultiResolutionStftLoss",
    "StftLossWeights",
    "VarianceLoss",
]
