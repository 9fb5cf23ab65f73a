"""The library's operations, called with the inputs of benchmarks/inputs.py where these are not their arguments."""

from typing import Any

import torch
from torch import Tensor

from benchmarks.inputs import RESOLUTIONS
from sonorant import functional
from sonorant.nn import LocationAttention, Tdnn


def attend_sequence(attention: LocationAttention, memory: Tensor, memory_lengths: Tensor, queries: Tensor) -> Tensor:
    projected = attention.precompute(memory, memory_lengths)
    return attention.attend_sequence(queries, projected, attention.initial_state(projected, "first")).contexts


def attend_steps(attention: LocationAttention, memory: Tensor, memory_lengths: Tensor, queries: Tensor) -> Tensor:
    projected = attention.precompute(memory, memory_lengths)
    state, contexts = attention.initial_state(projected, "first"), []
    for query in queries.unbind(1):
        context, weights = attention(query, projected, state)
        state = attention.next_state(state, weights)
        contexts.append(context)
    return torch.stack(contexts, 1)


def linear_loss(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    return functional.linear_label_smoothing_loss(hidden, weight, targets, bias=bias)


def ctc(logits: Tensor, **others: Tensor) -> Tensor:
    return functional.ctc_loss(logits.log_softmax(2), **others)


def stft(norm: str = "utterance", **others: Tensor) -> Tensor:
    losses = functional.multi_resolution_stft_loss(**others, resolutions=RESOLUTIONS, norm=norm)
    return losses.spectral_convergence + losses.log_magnitude


def batch_norm(x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.masked_batch_norm(x, lengths, None, None, weight, bias, training=True)


def tdnn(model: Tdnn, x: Tensor, x_lengths: Tensor) -> Tensor:
    return model(x, x_lengths).values


def flow(**others: Any) -> Tensor:
    return functional.flow_nll(**others).nll
