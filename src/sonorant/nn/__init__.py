"""Layers."""

from sonorant.nn.attention import AttentionMemory, AttentionOutput, LocationAttention, SequenceAttentionOutput
from sonorant.nn.coupling import AffineCoupling
from sonorant.nn.flows import InvertibleLinear, Whitening
from sonorant.nn.normalization import MaskedBatchNorm1d, UtteranceCmvn
from sonorant.nn.tdnn import Tdnn
from sonorant.nn.wavenet import WaveNet

__all__ = [
    "AffineCoupling",
    "AttentionMemory",
    "AttentionOutput",
    "InvertibleLinear",
    "LocationAttention",
    "MaskedBatchNorm1d",
    "SequenceAttentionOutput",
    "Tdnn",
    "UtteranceCmvn",
    "WaveNet",
    "Whitening",
]
