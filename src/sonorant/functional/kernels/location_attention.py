"""Location-aware attention, one utterance after the other.

Time is the last axis of everything, so that the convolutions, tanh and the energies run along it in whole vectors.
Features are handled in pairs, which share each load of the state. Buffers are padded to whole vectors with zeros;
nothing needs a test at an edge.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional.kernels import kernel, run_over_batch

__all__ = ["attend", "attend_backward"]

_VECTOR = 16  # floats, and the padding of time
_TAPS = 8  # that are added in one pass over a row
_FASTMATH = ("contract", "reassoc", "nsz")


def attend(
    queries: Tensor,
    keys: Tensor,
    filters: Tensor,
    energy_weight: Tensor,
    state: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float,
) -> Tensor:
    """The weights, ``(batch, query, key)``."""
    weights = keys.new_zeros(queries.shape[0], queries.shape[1], keys.shape[1])
    layout = _Layout(queries, keys, filters, energy_weight)
    run_over_batch(
        _forward,
        len(keys),
        layout.queries,
        layout.keys,
        layout.filters,
        layout.energy_weight,
        _array(state),
        _array(query_lengths),
        _array(key_lengths),
        filters.shape[2] // 2,
        weights.numpy().dtype.type(scaling),
        weights.numpy(),
    )
    return weights


def attend_backward(
    grad_weights: Tensor,
    weights: Tensor,
    queries: Tensor,
    keys: Tensor,
    filters: Tensor,
    energy_weight: Tensor,
    state: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of queries, keys, filters, energy weight and state."""
    layout = _Layout(queries, keys, filters, energy_weight)
    grad_queries, grad_keys = np.zeros_like(layout.queries), np.zeros_like(layout.keys)
    # one sum an utterance, so that the result does not depend on the number of threads
    grad_filters = np.zeros((len(keys), *layout.filters.shape), layout.filters.dtype)
    grad_energy = np.zeros((len(keys), *layout.energy_weight.shape), layout.filters.dtype)
    grad_state = torch.zeros_like(state, memory_format=torch.contiguous_format)
    run_over_batch(
        _backward,
        len(keys),
        _array(grad_weights),
        _array(weights),
        layout.queries,
        layout.keys,
        layout.filters,
        layout.flipped_filters,
        layout.energy_weight,
        _array(state),
        _array(query_lengths),
        _array(key_lengths),
        filters.shape[2] // 2,
        weights.numpy().dtype.type(scaling),
        grad_queries,
        grad_keys,
        grad_filters,
        grad_energy,
        grad_state.numpy(),
    )
    dim, _, taps = filters.shape
    return (
        torch.from_numpy(grad_queries)[:, :, :dim].contiguous(),
        torch.from_numpy(grad_keys)[:, :dim, : keys.shape[1]].transpose(1, 2).contiguous(),
        torch.from_numpy(grad_filters)[:, :dim, :, :taps].sum(0),
        torch.from_numpy(grad_energy)[:, :dim].sum(0),
        grad_state,
    )


class _Layout:
    """The arguments as arrays: an even number of features, whole vectors of time and of taps."""

    def __init__(self, queries: Tensor, keys: Tensor, filters: Tensor, energy_weight: Tensor) -> None:
        dim, channels, taps = filters.shape
        odd, more_keys = dim % 2, -keys.shape[1] % _VECTOR
        more_taps = -taps % _TAPS
        self.queries = _array(F.pad(queries, (0, odd)))
        self.keys = _array(F.pad(keys, (0, odd, 0, more_keys)).transpose(1, 2))
        self.filters = _array(F.pad(filters, (0, more_taps, 0, 0, 0, odd)))
        # what leads from a pair of features back to the channels: (pair, channel, feature of the pair, tap)
        flipped = F.pad(filters.flip(2), (0, more_taps, 0, 2 - channels, 0, odd))
        self.flipped_filters = _array(flipped.view(-1, 2, *flipped.shape[1:]).transpose(1, 2))
        self.energy_weight = _array(F.pad(energy_weight, (0, odd)))


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _add_convolution(row_a: Any, row_b: Any, sources: Any, filter_a: Any, filter_b: Any) -> None:
    """Add the sliding products of the sources with one filter to ``row_a``, with the other to ``row_b``."""
    for block in range(filter_a.size // 8):
        source, tap = divmod(8 * block, filter_a.shape[1])
        x, a, b = sources[source, tap:], filter_a[source, tap:], filter_b[source, tap:]
        a0, a1, a2, a3, a4, a5, a6, a7 = a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
        b0, b1, b2, b3, b4, b5, b6, b7 = b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]
        for i in range(len(row_a)):
            x0, x1, x2, x3, x4, x5, x6, x7 = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7]
            row_a[i] += (a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3) + (a4 * x4 + a5 * x5 + a6 * x6 + a7 * x7)
            row_b[i] += (b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3) + (b4 * x4 + b5 * x5 + b6 * x6 + b7 * x7)


def _add_correlation(grad_a: Any, grad_b: Any, row_a: Any, row_b: Any, sources: Any) -> None:
    """The gradient of :func:`_add_convolution` with respect to its filters."""
    for block in range(grad_a.size // 4):
        source, tap = divmod(4 * block, grad_a.shape[1])
        x = sources[source, tap:]
        zero = x.dtype.type(0)  # a bare 0.0 would make the sums float64
        a0, a1, a2, a3, b0, b1, b2, b3 = zero, zero, zero, zero, zero, zero, zero, zero
        for i in range(len(row_a)):
            a, b, x0, x1, x2, x3 = row_a[i], row_b[i], x[i], x[i + 1], x[i + 2], x[i + 3]
            a0 += a * x0
            a1 += a * x1
            a2 += a * x2
            a3 += a * x3
            b0 += b * x0
            b1 += b * x1
            b2 += b * x2
            b3 += b * x3
        sum_a, sum_b = grad_a[source, tap:], grad_b[source, tap:]
        sum_a[0] += a0
        sum_a[1] += a1
        sum_a[2] += a2
        sum_a[3] += a3
        sum_b[0] += b0
        sum_b[1] += b1
        sum_b[2] += b2
        sum_b[3] += b3


def _apply_tanh(row: Any) -> None:
    """Hyperbolic tangent in place.

    In float32 it is 2 t / (1 + t^2), where t = tanh(x / 2) = p / q by seven terms of Lambert's continued fraction:
    plain arithmetic, which vectorises, with an error of 2e-7.
    """
    if row.itemsize == 8:
        for i in range(len(row)):
            row[i] = math.tanh(row[i])
        return
    number = row.dtype.type  # a bare literal would turn everything into float64
    limit, half, two = number(9), number(0.5), number(2)
    p0, p1, p2, q1, q2, q3 = number(135135), number(17325), number(378), number(62370), number(3150), number(28)
    for i in range(len(row)):
        x = row[i]
        x = limit if x > limit else x  # this way round a NaN stays one
        x = -limit if x < -limit else x
        x = half * x
        square = x * x
        p = x * (p0 + square * (p1 + square * (p2 + square)))
        q = p0 + square * (q1 + square * (q2 + square * q3))
        row[i] = two * p * q / (p * p + q * q)


def _fill_hidden(rows: Any, pair: int, query: Any, keys: Any, states: Any, filters: Any) -> None:
    """Tanh of query + key + location for one step and a pair of features, one row after the other."""
    width, first, second = len(rows) // 2, 2 * pair, 2 * pair + 1
    row_a, row_b, keys_a, keys_b = rows[:width], rows[width:], keys[first], keys[second]
    query_a, query_b = query[first], query[second]
    for i in range(width):
        row_a[i] = keys_a[i] + query_a
        row_b[i] = keys_b[i] + query_b
    _add_convolution(row_a, row_b, states, filters[first], filters[second])
    _apply_tanh(rows)


def _round_up(length: int) -> int:
    return (length + 15) // 16 * 16


@kernel(helpers=(_add_convolution, _apply_tanh, _fill_hidden, _round_up), fastmath=_FASTMATH)
def _forward(
    start: int,
    stop: int,
    queries: Any,
    keys: Any,
    filters: Any,
    energy_weight: Any,
    state: Any,
    query_lengths: Any,
    key_lengths: Any,
    half: int,
    scaling: Any,
    weights: Any,
) -> None:
    num_channels, dtype = state.shape[1], keys.dtype
    for index in range(start, stop):
        length = key_lengths[index]
        width = _round_up(length)
        states = np.zeros((num_channels, width + filters.shape[2]), dtype)
        states[:, half : half + length] = state[index, :, :length]
        rows, scores = np.zeros(2 * width, dtype), np.zeros(width, dtype)
        row_a, row_b = rows[:width], rows[width:]
        for step in range(query_lengths[index] if length > 0 else 0):
            query = queries[index, step]
            scores[:] = 0
            for pair in range(len(energy_weight) // 2):
                _fill_hidden(rows, pair, query, keys[index], states, filters)
                weight_a, weight_b = energy_weight[2 * pair], energy_weight[2 * pair + 1]
                for i in range(width):
                    scores[i] += weight_a * row_a[i] + weight_b * row_b[i]
            largest = -np.inf
            for i in range(length):
                scores[i] *= scaling
                largest = max(largest, scores[i])
            total = 0.0
            for i in range(length):
                scores[i] = math.exp(scores[i] - largest)
                total += scores[i]
            for i in range(length):
                weight = scores[i] / total
                weights[index, step, i] = weight
                states[0, half + i] = weight
                if num_channels == 2:
                    states[1, half + i] += weight


@kernel(helpers=(_add_convolution, _add_correlation, _apply_tanh, _fill_hidden, _round_up), fastmath=_FASTMATH)
def _backward(
    start: int,
    stop: int,
    grad_weights: Any,
    weights: Any,
    queries: Any,
    keys: Any,
    filters: Any,
    flipped_filters: Any,
    energy_weight: Any,
    state: Any,
    query_lengths: Any,
    key_lengths: Any,
    half: int,
    scaling: Any,
    grad_queries: Any,
    grad_keys: Any,
    grad_filters: Any,
    grad_energy: Any,
    grad_state: Any,
) -> None:
    num_channels, dtype = state.shape[1], keys.dtype
    for index in range(start, stop):
        length, num_steps = key_lengths[index], query_lengths[index]
        width = _round_up(length)
        states = np.zeros((num_channels, width + filters.shape[2]), dtype)
        rows, grad_scores = np.zeros(2 * width, dtype), np.zeros(width, dtype)
        row_a, row_b = rows[:width], rows[width:]
        # gradients of the rows, with the zeros that a convolution wants around them
        padded = np.zeros((2, states.shape[1]), dtype)
        grad_a, grad_b = padded[0, half : half + width], padded[1, half : half + width]
        # gradients of the previous weights and of their sum, as the step after saw them
        grad_previous, grad_sum = np.zeros(width, dtype), np.zeros(width, dtype)
        sums = np.zeros((num_steps + 1, length), dtype)
        sums[0] = state[index, num_channels - 1, :length]
        for step in range(num_steps):
            for i in range(length):
                sums[step + 1, i] = sums[step, i] + weights[index, step, i]
        for back in range(num_steps if length > 0 else 0):
            step = num_steps - 1 - back
            query = queries[index, step]
            mean = 0.0
            for i in range(length):
                grad_scores[i] = grad_weights[index, step, i] + grad_previous[i] + grad_sum[i]
                mean += grad_scores[i] * weights[index, step, i]
            for i in range(length):
                grad_scores[i] = scaling * weights[index, step, i] * (grad_scores[i] - mean)
            for i in range(length):
                states[0, half + i] = weights[index, step - 1, i] if step > 0 else state[index, 0, i]
                if num_channels == 2:
                    states[1, half + i] = sums[step, i]
            grad_previous[:] = 0
            for pair in range(len(energy_weight) // 2):
                a, b = 2 * pair, 2 * pair + 1
                _fill_hidden(rows, pair, query, keys[index], states, filters)
                weight_a, weight_b = energy_weight[a], energy_weight[b]
                zero = dtype.type(0)
                energy_a, energy_b, query_a, query_b = zero, zero, zero, zero
                keys_a, keys_b = grad_keys[index, a], grad_keys[index, b]
                for i in range(width):
                    score, hidden_a, hidden_b = grad_scores[i], row_a[i], row_b[i]
                    energy_a += score * hidden_a
                    energy_b += score * hidden_b
                    inner_a = score * (weight_a - weight_a * hidden_a * hidden_a)
                    inner_b = score * (weight_b - weight_b * hidden_b * hidden_b)
                    query_a += inner_a
                    query_b += inner_b
                    grad_a[i] = inner_a
                    grad_b[i] = inner_b
                    keys_a[i] += inner_a
                    keys_b[i] += inner_b
                grad_energy[index, a] += energy_a
                grad_energy[index, b] += energy_b
                grad_queries[index, step, a] = query_a
                grad_queries[index, step, b] = query_b
                _add_correlation(grad_filters[index, a], grad_filters[index, b], grad_a, grad_b, states)
                _add_convolution(grad_previous, grad_sum, padded, flipped_filters[pair, 0], flipped_filters[pair, 1])
        for i in range(length):
            grad_state[index, 0, i] = grad_previous[i]
            if num_channels == 2:
                grad_state[index, 1, i] = grad_sum[i]
