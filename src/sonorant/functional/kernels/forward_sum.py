"""Forward-sum: likelihood and gradient by the forward-backward recursion on probabilities, scaled in every frame.

The states of a frame are the keys and the blanks between them: blank ``k`` stands before key ``k``, blank ``K`` after
the last. Only the cells of a band are visited: keys that a path can have reached by then and from which it can still
reach the last one, and that the caller's own band allows. Both edges of it move by at most one key a frame. Rows of
scratch memory begin at the first key of their band, so that a narrow band takes little memory.

Probabilities leave the range of a float where paths are very improbable. What is lost had a forward probability below
1e-290 of its frame's; times the largest backward probability that bounds its share of the likelihood. An utterance is
accepted when its backward probabilities stay small, and else left ``pending`` for the caller, who has slower forms.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import math

import numpy as np
from numba.extending import overload

from sonorant.functional.kernels import kernel, kernel_part
from sonorant.functional.kernels.exponential import exp_float32

__all__ = ["forward_sum", "scale_valid"]

_LARGEST_SINGLE = np.float32(75.0)
_LARGEST_SINGLE_BITS, _MAGNITUDE_BITS = _LARGEST_SINGLE.view(np.int32), np.int32(0x7FFFFFFF)
_SMALLEST_DOUBLE = -690.0
_NEGLIGIBLE = 1e-290  # made 0: arithmetic on denormal numbers is many times slower
_LARGEST_BACKWARD = 1e265
_ROW_MULTIPLE = 32  # elements that a vectorised loop takes at a time; rows are filled up, since its rest is slow


def _weigh_single(scores, size, blank, weights):
    """exp(score - blank) of one frame: the sum over keys and blank, the blank's weight, and whether all is in range."""
    largest = np.int32(0)  # the largest magnitude, as an integer: so it vectorises, and NaN and infinity are larger yet
    for i in range(size):
        difference = scores[i] - blank
        weights[i] = difference
        largest = max(largest, np.int32(np.float32(difference).view(np.int32) & _MAGNITUDE_BITS))
    num_filled = -size % _ROW_MULTIPLE
    for i in range(num_filled):
        weights[size + i] = -_LARGEST_SINGLE
    total = np.float32(0.0)
    for i in range(size + num_filled):
        weight = exp_float32(weights[i])
        weights[i] = weight
        total += weight
    if largest <= _LARGEST_SINGLE_BITS:
        return float(total) + 1.0, 1.0, True
    total = np.float32(0.0)
    for i in range(size):
        if scores[i] == -np.inf:
            weights[i] = 0.0
        elif not abs(scores[i] - blank) <= _LARGEST_SINGLE:
            return 0.0, 0.0, False
        total += weights[i]
    return float(total) + 1.0, 1.0, True


def _weigh_double(scores, size, blank, weights):
    """The same in float64, relative to the largest score."""
    largest = float(blank)
    for i in range(size):
        largest = max(largest, float(scores[i]))
    blank_weight = math.exp(float(blank) - largest)
    total = blank_weight
    in_range = blank_weight > 0.0
    for i in range(size):
        difference = float(scores[i]) - largest
        weights[i] = math.exp(difference)
        total += weights[i]
        if difference < _SMALLEST_DOUBLE and scores[i] != -np.inf:
            in_range = False
    return total, blank_weight, in_range


def _weigh(scores, size, blank, weights):
    """One of the two, by the type of the weights."""


@overload(_weigh, inline="always")
def _(scores, size, blank, weights):
    return _weigh_single if weights.dtype.bitwidth == 32 else _weigh_double


@kernel_part(inline=True)
def _forward_row(before, now, blanks, weights, size, scale, blank_weight):
    """One frame's forward probabilities, from the frame before; ``before`` and ``now`` start one key earlier."""
    total = 0.0
    blank_scale = blank_weight * scale
    for i in range(size):
        entering = blanks[i] + before[i]
        key = (before[i + 1] + entering) * (weights[i] * scale)
        key = key if key > _NEGLIGIBLE else 0.0
        blank = entering * blank_scale
        blank = blank if blank > _NEGLIGIBLE else 0.0
        now[i + 1] = key
        blanks[i] = blank
        total += key + blank
    blanks[size] = (blanks[size] + before[size]) * blank_scale
    return total + blanks[size]


@kernel_part(inline=True)
def _backward_row(
    forward, weights, keys, blanks, keys_before, blanks_before, gradient, size, scale, blank_weight, normaliser
):
    """One frame's gradient, and the backward probabilities of the frame before it.

    It reads only what the frame after stored and writes other rows: reading what was stored just now would stall.
    ``forward`` and ``keys_before`` start one key earlier than the others.
    """
    convert = gradient.dtype.type
    blank_scale = blank_weight * scale
    total = blanks[0]
    leaving = blanks[0] * blank_scale + keys[0] * (weights[0] * scale)
    keys_before[0] = leaving
    blanks_before[0] = leaving
    last = size - 1
    for i in range(last):
        weight = weights[i]
        key = keys[i]
        total += key
        gradient[i] = convert(weight * normaliser) - convert(forward[i + 1] * key)
        leaving = blanks[i + 1] * blank_scale + keys[i + 1] * (weights[i + 1] * scale)
        leaving = leaving if leaving > _NEGLIGIBLE else 0.0
        staying = key * (weight * scale) + leaving
        blanks_before[i + 1] = leaving
        keys_before[i + 1] = staying if staying > _NEGLIGIBLE else 0.0
    gradient[last] = convert(weights[last] * normaliser) - convert(forward[size] * keys[last])
    leaving = blanks[size] * blank_scale
    blanks_before[size] = leaving
    keys_before[size] = keys[last] * (weights[last] * scale) + leaving
    return total + keys[last]


@kernel_part(inline=True)
def _softmax_row(weights, gradient, size, normaliser):
    """The gradient where no path passes."""
    for i in range(size):
        gradient[i] = weights[i] * normaliser


@kernel_part(inline=True)
def _band(frame, num_queries, num_keys, half_width):
    """The keys [first, stop) that the caller's band allows in a frame."""
    if half_width >= num_keys:  # saves two slow divisions
        return 0, num_keys
    first = max(0, (frame * num_keys + num_queries - 1) // num_queries - half_width)
    return first, min(num_keys, frame * num_keys // num_queries + half_width + 1)


@kernel_part(fast_math=True)
def _forward(scores, num_queries, num_keys, blank, half_width, weights, forward, frames, windows):
    """The NLL, and the last frame's probability in scaled units; 0 where the range of the numbers does not do."""
    blanks = np.zeros(num_keys + 1)
    nll = 0.0
    product = 1.0
    last_total = 1.0
    low, high, low_before = 0, 0, 0
    for t in range(num_queries):
        first, stop = _band(t, num_queries, num_keys, half_width)
        total, blank_weight, in_range = _weigh(scores[t, first:stop], stop - first, blank, weights[t])
        if not in_range:
            return np.nan, 0.0
        low = max(low, first, num_keys - num_queries + t)
        high = min(high + 1, stop)
        size = high - low
        now = forward[t]
        now[0] = 0.0
        now[size + 1] = 0.0
        scale = 1.0 / last_total
        if t == 0:
            now[1] = weights[0, low - first]
            blanks[0] = blank_weight
            last_total = now[1] + blank_weight
        else:
            before = forward[t - 1, low - low_before :]
            last_total = _forward_row(before, now, blanks[low:], weights[t, low - first :], size, scale, blank_weight)
        frames[t, 0], frames[t, 1], frames[t, 2] = scale, total, blank_weight
        windows[t, 0], windows[t, 1] = low, high
        product *= total * scale
        if not 1e-150 < product < 1e150:
            nll += math.log(product)
            product = 1.0
        low_before = low
        if size > 1 and now[1] == 0.0 and blanks[low] == 0.0:
            low += 1
        if now[size] == 0.0:
            high -= 1
    final = forward[num_queries - 1, num_keys - low_before] + blanks[num_keys] if high == num_keys else 0.0
    return nll + math.log(product) - math.log(final), final


@kernel_part(fast_math=True)
def _backward(num_queries, num_keys, half_width, weights, forward, frames, windows, final, gradient, row_step):
    """Writes the gradient; returns the largest backward probability."""
    # two rows each, used in turns; their first element stands for the key before key 0
    keys = np.zeros((2, num_keys + 2))
    blanks = np.zeros((2, num_keys + 2))
    turn = num_queries & 1
    keys[turn, num_keys] = 1.0 / final
    blanks[turn, num_keys + 1] = 1.0 / final
    largest = 0.0
    for t in range(num_queries - 1, -1, -1):
        first, stop = _band(t, num_queries, num_keys, half_width)
        low, high = windows[t, 0], windows[t, 1]
        row = gradient[t * row_step]
        normaliser = weights.dtype.type(1.0 / frames[t, 1])
        row[:first] = 0.0
        _softmax_row(weights[t], row[first:], low - first, normaliser)
        total = _backward_row(
            forward[t],
            weights[t, low - first :],
            keys[turn, low + 1 :],
            blanks[turn, low + 1 :],
            keys[1 - turn, low:],
            blanks[1 - turn, low + 1 :],
            row[low:],
            high - low,
            frames[t, 0],
            frames[t, 2],
            normaliser,
        )
        _softmax_row(weights[t, high - first :], row[high:], stop - high, normaliser)
        row[stop:] = 0.0
        if not total <= largest:  # also when it is NaN
            largest = total
        turn = 1 - turn
    return largest


@kernel
def forward_sum(start, stop, scores, query_lengths, key_lengths, blank, half_width, no_weights, pending, nll, gradient):
    """NLL and gradient of the utterances that are ``pending``; what stays so has left the numbers' range.

    ``no_weights`` is an empty array of the type that probabilities are stored in before they are multiplied: float32
    does for float32 scores up to 75 from the blank's, float64 for differences up to 690 in a frame.
    ``gradient`` is ``(batch, query, key)``, or ``(batch, 1, key)`` when it is not wanted.
    """
    row_step = 1 if gradient.shape[1] == scores.shape[1] else 0
    max_queries = query_lengths[start:stop].max()
    width = min(key_lengths[start:stop].max(), 2 * half_width + 1)
    weights = np.empty((max_queries, width + _ROW_MULTIPLE), no_weights.dtype)
    forward = np.empty((max_queries, width + 2))
    frames = np.empty((max_queries, 3))
    windows = np.empty((max_queries, 2), np.int64)
    for b in range(start, stop):
        if not pending[b]:
            continue
        num_queries, num_keys = query_lengths[b], key_lengths[b]
        if num_queries < num_keys:
            pending[b] = False
            nll[b] = np.inf
            gradient[b] = 0.0
            continue
        loss, final = _forward(scores[b], num_queries, num_keys, blank, half_width, weights, forward, frames, windows)
        if final > 0.0:
            largest = _backward(
                num_queries, num_keys, half_width, weights, forward, frames, windows, final, gradient[b], row_step
            )
            gradient[b, num_queries * row_step :] = 0.0
            pending[b] = not largest < _LARGEST_BACKWARD
            nll[b] = loss


@kernel
def scale_valid(start, stop, gradient, query_lengths, key_lengths, factors):
    """Multiply an utterance's valid cells, in place; padding, which is often half of a batch, is not touched."""
    for b in range(start, stop):
        for t in range(query_lengths[b]):
            row = gradient[b, t]
            for k in range(key_lengths[b]):
                row[k] *= factors[b]
