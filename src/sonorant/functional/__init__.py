"""Pure functions: all the mathematics of the package, with the full documentation."""

from sonorant.functional.adversarial import (
    feature_matching_loss,
    lsgan_discriminator_loss,
    lsgan_generator_loss,
)
from sonorant.functional.ctc import ctc_loss, ctc_required_frames
from sonorant.functional.normalization import masked_batch_norm, utterance_cmvn
from sonorant.functional.spectral import StftLosses, a_weighting_curve, multi_resolution_stft_loss

__all__ = [
    "StftLosses",
    "a_weighting_curve",
    "ctc_loss",
    "ctc_required_frames",
    "feature_matching_loss",
    "lsgan_discriminator_loss",
    "lsgan_generator_loss",
    "masked_batch_norm",
    "multi_resolution_stft_loss",
    "utterance_cmvn",
]
