"""Losses as Modules: they hold the hyperparameters and call :mod:`sonorant.functional`."""

from sonorant.losses.adversarial import FeatureMatchingLoss, LsganDiscriminatorLoss, LsganGeneratorLoss
from sonorant.losses.ctc import CtcLoss

__all__ = ["CtcLoss", "FeatureMatchingLoss", "LsganDiscriminatorLoss", "LsganGeneratorLoss"]
