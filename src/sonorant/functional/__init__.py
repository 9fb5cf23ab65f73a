"""Pure functions: all the mathematics of the package, with the full documentation."""

from sonorant.functional.adversarial import feature_matching_loss, lsgan_discriminator_loss, lsgan_generator_loss
from sonorant.functional.alignment import alignment_durations, attention_binarization_loss, beta_binomial_prior
from sonorant.functional.attention import guided_attention_loss, guided_attention_weights, masked_softmax
from sonorant.functional.classification import label_smoothing_loss, linear_label_smoothing_loss
from sonorant.functional.ctc import ctc_loss, ctc_required_frames
from sonorant.functional.flow import FlowNll, flow_nll
from sonorant.functional.forward_sum import forward_sum_loss
from sonorant.functional.location_attention import location_attention_weights
from sonorant.functional.mel import mel_filterbank
from sonorant.functional.monotonic_alignment import monotonic_alignment_durations, monotonic_alignment_search
from sonorant.functional.normalization import masked_batch_norm, subtract_floor, utterance_cmvn
from sonorant.functional.regression import masked_bce_with_logits_loss, masked_l1_loss, masked_mse_loss
from sonorant.functional.regularization import covariance_loss, cross_covariance_loss, invariance_loss, variance_loss
from sonorant.functional.spectral import StftLosses, a_weighting_curve, multi_resolution_stft_loss

__all__ = [
    "FlowNll",
    "StftLosses",
    "a_weighting_curve",
    "alignment_durations",
    "attention_binarization_loss",
    "beta_binomial_prior",
    "covariance_loss",
    "cross_covariance_loss",
    "ctc_loss",
    "ctc_required_frames",
    "feature_matching_loss",
    "flow_nll",
    "forward_sum_loss",
    "guided_attention_loss",
    "guided_attention_weights",
    "invariance_loss",
    "label_smoothing_loss",
    "linear_label_smoothing_loss",
    "location_attention_weights",
    "lsgan_discriminator_loss",
    "lsgan_generator_loss",
    "masked_batch_norm",
    "masked_bce_with_logits_loss",
    "masked_l1_loss",
    "masked_mse_loss",
    "masked_softmax",
    "mel_filterbank",
    "monotonic_alignment_durations",
    "monotonic_alignment_search",
    "multi_resolution_stft_loss",
    "subtract_floor",
    "utterance_cmvn",
    "variance_loss",
]
