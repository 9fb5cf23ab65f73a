"""Pure functions: all the mathematics of the package, with the full documentation."""

from sonorant.functional.attention import guided_attention_loss, guided_attention_weights, masked_softmax
from sonorant.functional.ctc import ctc_loss, ctc_required_frames
from sonorant.functional.location_attention import location_attention_weights
from sonorant.functional.normalization import masked_batch_norm, utterance_cmvn

__all__ = [
    "ctc_loss",
    "ctc_required_frames",
    "guided_attention_loss",
    "guided_attention_weights",
    "location_attention_weights",
    "masked_batch_norm",
    "masked_softmax",
    "utterance_cmvn",
]
