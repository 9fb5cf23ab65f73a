"""Pure functions: all the mathematics of the package, with the full documentation."""

from sonorant.functional.ctc import ctc_loss, ctc_required_frames
from sonorant.functional.normalization import limit_dynamic_range, masked_batch_norm, utterance_cmvn

__all__ = ["ctc_loss", "ctc_required_frames", "limit_dynamic_range", "masked_batch_norm", "utterance_cmvn"]
