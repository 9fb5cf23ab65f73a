"""Losses as Modules: they hold the hyperparameters and call :mod:`sonorant.functional`."""

from sonorant.losses.adversarial import FeatureMatchingLoss, LsganDiscriminatorLoss, LsganGeneratorLoss
from sonorant.losses.ctc import CtcLoss
from sonorant.losses.spectral import MultiResolutionStftLoss, StftLossWeights

__all__ = [
    "CtcLoss",
    "FeatureMatchingLoss",
    "LsganDiscriminatorLoss",
    "LsganGeneratorLoss",
    "MultiResolutionStftLoss",
    "StftLossWeights",
]
