"""Location-aware attention over the valid keys of the whole batch, packed one utterance after the other.

Of the three parts of a step, the products with the filters are left to BLAS; gathering what they multiply, and
everything from the tanh to the weights, are kernels. Packed keys are the last axis of every array, so that tanh and
energies run along it in whole vectors. A step is too short to be worth spreading over threads.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sonorant.functional.kernels import kernel, kernel_part

__all__ = ["attend", "attend_backward"]


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
    packed = _Packed(keys, filters, key_lengths)
    weights = keys.new_zeros(queries.shape[0], queries.shape[1], keys.shape[1])
    state = state.detach().clone(memory_format=torch.contiguous_format).unsqueeze(1)  # as (batch, step, channel, key)
    arguments = (
        packed.hidden.numpy(),
        packed.keys.numpy(),
        _array(queries),
        _array(energy_weight),
        packed.offsets,
        _array(query_lengths),
        weights.numpy().dtype.type(scaling),
        np.empty(packed.hidden.shape[1], weights.numpy().dtype),
        weights.numpy(),
        state.numpy(),
    )
    seen = state.numpy()
    for step in range(int(query_lengths.max())):
        packed.fill_hidden(seen, 0)
        _attend(step, *arguments)
    return weights


def attend_backward(
    grad_weights: Tensor,
    weights: Tensor,
    states: Tensor,
    queries: Tensor,
    keys: Tensor,
    filters: Tensor,
    energy_weight: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of queries, keys, filters, energy weight and state; ``states`` are what the steps saw."""
    packed = _Packed(keys, filters, key_lengths)
    grad_queries = torch.zeros_like(queries, memory_format=torch.contiguous_format)
    grad_keys, grad_filters = torch.zeros_like(packed.keys), torch.zeros_like(packed.filters)
    grad_energy = torch.zeros_like(energy_weight)
    grad_state = states.new_zeros(len(states), *states.shape[2:])
    grad_windows = torch.empty_like(packed.windows)
    scattered = grad_windows.numpy(), packed.offsets, packed.half, grad_state.numpy()
    seen = _array(states)
    arguments = (
        packed.hidden.numpy(),
        packed.keys.numpy(),
        _array(queries),
        _array(energy_weight),
        packed.offsets,
        weights.numpy().dtype.type(scaling),
        np.empty(packed.hidden.shape[1], weights.numpy().dtype),
        _array(grad_weights),
        _array(weights),
        grad_state.numpy(),
        grad_queries.numpy(),
        grad_keys.numpy(),
        grad_energy.numpy(),
    )
    for step in reversed(range(int(query_lengths.max()))):
        packed.fill_hidden(seen, step)
        _attend_backward(step, *arguments)  # leaves the gradient of the hidden layer before its tanh
        grad_filters.addmm_(packed.hidden, packed.windows.t())
        torch.mm(packed.filters.t(), packed.hidden, out=grad_windows)
        _scatter_windows(*scattered)
    unpacked = torch.zeros_like(keys, memory_format=torch.contiguous_format)
    unpacked[packed.mask] = grad_keys.t()
    return grad_queries, unpacked, grad_filters.view(filters.shape), grad_energy, grad_state


class _Packed:
    """The valid keys of the batch side by side, and the buffers of a step."""

    def __init__(self, keys: Tensor, filters: Tensor, key_lengths: Tensor) -> None:
        self.mask = torch.arange(keys.shape[1]) < key_lengths.unsqueeze(1)
        self.offsets = np.concatenate([[0], _array(key_lengths).cumsum()])
        self.keys = keys.detach()[self.mask].t().contiguous()
        self.filters = filters.detach().flatten(1)
        self.half = filters.shape[2] // 2
        self.windows = keys.new_empty(self.filters.shape[1], self.keys.shape[1])
        self.hidden = torch.empty_like(self.keys)
        self._windows = self.windows.numpy()

    def fill_hidden(self, states: Any, step: int) -> None:
        """Convolve the state that a step sees with the filters."""
        _gather_windows(states, step, self.offsets, self.half, self._windows)
        torch.mm(self.filters, self.windows, out=self.hidden)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


@kernel
def _gather_windows(states: Any, step: int, offsets: Any, half: int, windows: Any) -> None:
    """Put what lies ``tap - half`` keys on from each key into the row of (channel, tap), 0 beyond the utterance."""
    num_taps = 2 * half + 1
    for index in range(len(offsets) - 1):
        length = offsets[index + 1] - offsets[index]
        for row in range(len(windows)):
            channel, tap = divmod(row, num_taps)
            target = windows[row, offsets[index] : offsets[index + 1]]
            first, last = min(max(half - tap, 0), length), max(min(length + half - tap, length), 0)
            target[:first] = 0
            target[max(first, last) :] = 0
            source = states[index, step, channel, first + tap - half :]
            inside = target[first:]
            for i in range(last - first):
                inside[i] = source[i]


@kernel
def _scatter_windows(grad_windows: Any, offsets: Any, half: int, grad_state: Any) -> None:
    """Add each row of (channel, tap) to the keys that it was gathered from."""
    num_taps = 2 * half + 1
    for index in range(len(offsets) - 1):
        length = offsets[index + 1] - offsets[index]
        for row in range(len(grad_windows)):
            channel, tap = divmod(row, num_taps)
            first, last = min(max(half - tap, 0), length), max(min(length + half - tap, length), 0)
            source = grad_windows[row, offsets[index] + first :]
            target = grad_state[index, channel, first + tap - half :]
            for i in range(last - first):
                target[i] += source[i]


@kernel_part(fast_math=True)
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


@kernel_part(fast_math=True)
def _finish_hidden(hidden: Any, keys: Any, queries: Any, step: int, feature: int, offsets: Any) -> Any:
    """Add key and query to one feature of the convolved state, and take the tanh."""
    row = hidden[feature]
    for index in range(len(offsets) - 1):
        query = queries[index, step, feature]
        part = row[offsets[index] : offsets[index + 1]]
        key = keys[feature, offsets[index] : offsets[index + 1]]
        for i in range(len(part)):
            part[i] += key[i] + query
    _apply_tanh(row)
    return row


@kernel(fast_math=True)
def _attend(
    step: int,
    hidden: Any,
    keys: Any,
    queries: Any,
    energy_weight: Any,
    offsets: Any,
    query_lengths: Any,
    scaling: Any,
    scores: Any,
    weights: Any,
    state: Any,
) -> None:
    """Weights of one step from the convolved state; the state becomes that of the next step."""
    scores[:] = 0
    for feature in range(len(hidden)):
        row = _finish_hidden(hidden, keys, queries, step, feature, offsets)
        weight = scaling * energy_weight[feature]
        for i in range(len(row)):
            scores[i] += weight * row[i]
    for index in range(len(offsets) - 1):
        if step >= query_lengths[index]:
            continue
        own = scores[offsets[index] : offsets[index + 1]]
        largest = -np.inf
        for score in own:
            largest = max(largest, score)
        total = 0.0
        for i in range(len(own)):
            own[i] = math.exp(own[i] - largest)
            total += own[i]
        for i in range(len(own)):
            weight = own[i] / total
            weights[index, step, i] = weight
            state[index, 0, 0, i] = weight
            if state.shape[2] == 2:
                state[index, 0, 1, i] += weight


@kernel(fast_math=True)
def _attend_backward(
    step: int,
    hidden: Any,
    keys: Any,
    queries: Any,
    energy_weight: Any,
    offsets: Any,
    scaling: Any,
    grad_scores: Any,
    grad_weights: Any,
    weights: Any,
    grad_state: Any,
    grad_queries: Any,
    grad_keys: Any,
    grad_energy: Any,
) -> None:
    """Gradients of one step from the convolved state, which is overwritten with its own.

    ``grad_state`` comes as the gradient of what the next step saw; what is left of it is the part that passes by
    this step: that of the sum.
    """
    for index in range(len(offsets) - 1):
        own = grad_scores[offsets[index] : offsets[index + 1]]
        mean = 0.0
        for i in range(len(own)):
            own[i] = grad_weights[index, step, i] + grad_state[index, :, i].sum()
            mean += own[i] * weights[index, step, i]
        for i in range(len(own)):
            own[i] = scaling * weights[index, step, i] * (own[i] - mean)
        grad_state[index, 0] = 0
    zero = hidden.dtype.type(0)  # a bare 0.0 would make the sums float64
    for feature in range(len(hidden)):
        row = _finish_hidden(hidden, keys, queries, step, feature, offsets)
        weight, grad_key, energy = energy_weight[feature], grad_keys[feature], zero
        for i in range(len(row)):
            value = row[i]
            energy += grad_scores[i] * value
            gradient = grad_scores[i] * (weight - weight * value * value)
            row[i] = gradient
            grad_key[i] += gradient
        grad_energy[feature] += energy
        for index in range(len(offsets) - 1):
            total = zero
            for gradient in row[offsets[index] : offsets[index + 1]]:
                total += gradient
            grad_queries[index, step, feature] = total
