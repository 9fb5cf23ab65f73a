"""Losses as Modules: they hold the hyperparameters and call :mod:`sonorant.functional`."""

from sonorant.losses.adversarial import FeatureMatchingLoss, LsganDiscriminatorLoss, LsganGeneratorLoss
from sonorant.losses.adversarial_tts import (
    AdversarialTtsLoss,
    CroppedWaveforms,
    DiscriminatorLosses,
    DiscriminatorLossWeights,
    GeneratorLosses,
    GeneratorLossWeights,
)
from sonorant.losses.alignment import AlignmentLoss, AlignmentLosses, AlignmentLossWeights, AttentionBinarizationLoss
from sonorant.losses.attention import GuidedAttentionLoss
from sonorant.losses.classification import LabelSmoothingLoss
from sonorant.losses.composites import (
    DeterministicTtsLoss,
    DeterministicTtsLosses,
    DeterministicTtsLossWeights,
    DiffusionTtsLoss,
    DiffusionTtsLosses,
    DiffusionTtsLossWeights,
    FlowTtsLoss,
    FlowTtsLosses,
    FlowTtsLossWeights,
)
from sonorant.losses.ctc import CtcLoss
from sonorant.losses.flow import FlowNllLoss
from sonorant.losses.forward_sum import ForwardSumLoss
from sonorant.losses.regression import MaskedBceWithLogitsLoss, MaskedL1Loss, MaskedMseLoss
from sonorant.losses.regularization import CovarianceLoss, CrossCovarianceLoss, InvarianceLoss, VarianceLoss
from sonorant.losses.spectral import MultiResolutionStftLoss, StftLossWeights
from sonorant.losses.weights import BinarizationSchedule, weighted_total

__all__ = [
    "AdversarialTtsLoss",
    "AlignmentLoss",
    "AlignmentLossWeights",
    "AlignmentLosses",
    "AttentionBinarizationLoss",
    "BinarizationSchedule",
    "CovarianceLoss",
    "CroppedWaveforms",
    "CrossCovarianceLoss",
    "CtcLoss",
    "DeterministicTtsLoss",
    "DeterministicTtsLossWeights",
    "DeterministicTtsLosses",
    "DiffusionTtsLoss",
    "DiffusionTtsLossWeights",
    "DiffusionTtsLosses",
    "DiscriminatorLossWeights",
    "DiscriminatorLosses",
    "FeatureMatchingLoss",
    "FlowNllLoss",
    "FlowTtsLoss",
    "FlowTtsLossWeights",
    "FlowTtsLosses",
    "ForwardSumLoss",
    "GeneratorLossWeights",
    "GeneratorLosses",
    "GuidedAttentionLoss",
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
    "weighted_total",
]
