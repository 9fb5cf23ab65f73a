"""Pure functions: all the mathematics of the package, with the full documentation."""

from sonorant.functional.alignment import (
    alignment_durations,
    attention_binarization_loss,
    beta_binomial_prior,
)
from sonorant.functional.ctc import ctc_loss, ctc_required_frames
from sonorant.functional.forward_sum import forward_sum_loss
from sonorant.functional.monotonic_alignment import monotonic_alignment_durations, monotonic_alignment_search
from sonorant.functional.normalization import masked_batch_norm, utterance_cmvn

__all__ = [
    "alignment_durations",
    "attention_binarization_loss",
    "beta_binomial_prior",
    "ctc_loss",
    "ctc_required_frames",
    "forward_sum_loss",
    "masked_batch_norm",
    "monotonic_alignment_durations",
    "monotonic_alignment_search",
    "utterance_cmvn",
]
