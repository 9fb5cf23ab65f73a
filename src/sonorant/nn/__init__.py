"""Layers."""

from sonorant.nn.attention import AttentionMemory, AttentionOutput, LocationAttention, SequenceAttentionOutput
from sonorant.nn.normalization import MaskedBatchNorm1d, UtteranceCmvn
from sonorant.nn.tdnn import Tdnn

__all__ = [
    "AttentionMemory",
    "AttentionOutput",
    "LocationAttention",
    "MaskedBatchNorm1d",
    "SequenceAttentionOutput",
    "Tdnn",
    "UtteranceCmvn",
]
