"""Layers."""

from sonorant.nn.normalization import MaskedBatchNorm1d, UtteranceCmvn
from sonorant.nn.tdnn import Tdnn

__all__ = ["MaskedBatchNorm1d", "Tdnn", "UtteranceCmvn"]
