"""CTC: likelihood and gradient by the forward-backward recursion on probabilities, scaled in every frame.

Of a frame only the classes of the targets and the blank are looked at. Blank ``k`` stands before label ``k``, blank
``L`` after the last label. Probabilities leave the range of a float where paths are very improbable: what is lost had
a forward probability below 1e-290 of its frame's, and its share of the likelihood is that times its backward
probability. An utterance is accepted when its backward probabilities stay small, and else left ``pending`` for the
caller, who has a slower form.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import math

import numpy as np

from sonorant.functional.kernels import kernel, kernel_part

__all__ = ["ctc"]

_SMALLEST_EXPONENT = -690.0
_NEGLIGIBLE = 1e-290  # made 0: arithmetic on denormal numbers is many times slower
_LARGEST_BACKWARD = 1e265


@kernel_part()
def _weigh(log_probs, targets, blank, weights):
    """exp(log_prob - peak) of the labels and, last, of the blank; returns the peak, NaN where that is out of range."""
    num_labels = len(targets)
    for k in range(num_labels):
        weights[k] = log_probs[targets[k]]
    weights[num_labels] = log_probs[blank]
    peak = -np.inf
    for k in range(num_labels + 1):
        peak = max(peak, weights[k])
    in_range = peak > -np.inf
    for k in range(num_labels + 1):
        difference = weights[k] - peak
        in_range = in_range and (difference > _SMALLEST_EXPONENT or weights[k] == -np.inf)
        weights[k] = math.exp(difference)
    return peak if in_range else np.nan


@kernel_part(inline=True)
def _forward_row(labels_before, blanks_before, labels, blanks, weights, skips, scale):
    """One frame's forward probabilities, from the frame before; rows of labels start one label early, with a 0."""
    num_labels = len(skips) - 1
    blank_weight = weights[num_labels] * scale
    total = 0.0
    for k in range(num_labels):
        entering = blanks_before[k] + labels_before[k + 1] + skips[k] * labels_before[k]
        label = entering * (weights[k] * scale)
        label = label if label > _NEGLIGIBLE else 0.0
        blank = (blanks_before[k] + labels_before[k]) * blank_weight
        blank = blank if blank > _NEGLIGIBLE else 0.0
        labels[k + 1] = label
        blanks[k] = blank
        total += label + blank
    blanks[num_labels] = (blanks_before[num_labels] + labels_before[num_labels]) * blank_weight
    return total + blanks[num_labels]


@kernel_part(inline=True)
def _backward_row(labels, blanks, labels_before, blanks_before, weights, skips, scale):
    """Backward probabilities of the frame before, from a frame's; rows of labels end one label late, with a 0."""
    num_labels = len(skips) - 1
    blank_weight = weights[num_labels] * scale
    total = 0.0
    for k in range(num_labels):
        label = labels[k] * (weights[k] * scale)
        skipping = skips[k + 1] * labels[k + 1] * (weights[k + 1] * scale)
        staying = label + blanks[k + 1] * blank_weight + skipping
        blank = blanks[k] * blank_weight + label
        labels_before[k] = staying if staying > _NEGLIGIBLE else 0.0
        blanks_before[k] = blank if blank > _NEGLIGIBLE else 0.0
        total += staying + blank
    blanks_before[num_labels] = blanks[num_labels] * blank_weight
    return total + blanks_before[num_labels]


@kernel_part(fast_math=True)
def _forward(log_probs, targets, blank, skips, weights, scales, labels, blanks):
    """The NLL, and the probability of the end in scaled units; not positive where the numbers' range does not do."""
    num_labels = len(targets)
    nll = 0.0
    total = 1.0
    # what stands before the first frame: a path enters by blank 0 or label 0
    labels_before, blanks_before = np.zeros(num_labels + 1), np.zeros(num_labels + 1)
    blanks_before[0] = 1.0
    for t in range(len(log_probs)):
        peak = _weigh(log_probs[t], targets, blank, weights[t])
        scales[t] = 1.0 / total
        nll += math.log(scales[t]) - peak
        total = _forward_row(labels_before, blanks_before, labels[t], blanks[t], weights[t], skips, scales[t])
        if not total > 0.0 or np.isnan(peak):
            return np.nan, 0.0
        labels_before, blanks_before = labels[t], blanks[t]
    final = blanks_before[num_labels] + labels_before[num_labels]
    return nll - math.log(final), final


@kernel_part(fast_math=True)
def _backward(targets, blank, skips, weights, scales, labels, blanks, final, gradient):
    """Subtracts the occupancies from the gradient; returns the largest backward probability."""
    num_labels = len(targets)
    # two rows each, used in turns
    labels_after, blanks_after = np.zeros((2, num_labels + 1)), np.zeros((2, num_labels + 1))
    turn = 0
    blanks_after[turn, num_labels] = 1.0 / final
    if num_labels:
        labels_after[turn, num_labels - 1] = 1.0 / final
    largest = 1.0 / final
    for t in range(len(scales) - 1, -1, -1):
        blank_occupancy = blanks[t, num_labels] * blanks_after[turn, num_labels]
        for k in range(num_labels):
            blank_occupancy += blanks[t, k] * blanks_after[turn, k]
            if len(gradient):
                gradient[t, targets[k]] -= labels[t, k + 1] * labels_after[turn, k]
        if len(gradient):
            gradient[t, blank] -= blank_occupancy
        total = _backward_row(
            labels_after[turn],
            blanks_after[turn],
            labels_after[1 - turn],
            blanks_after[1 - turn],
            weights[t],
            skips,
            scales[t],
        )
        if not total <= largest:  # also when it is NaN
            largest = total
        turn = 1 - turn
    return largest


@kernel
def ctc(start, stop, log_probs, targets, input_lengths, target_lengths, blank, pending, nll, gradient):
    """NLL of the utterances, inf where infeasible; its gradient is added to ``gradient``, which may be empty.

    ``pending`` becomes True, and the gradient is 0, where an utterance has left the numbers' range.
    """
    max_frames, max_labels = input_lengths[start:stop].max(), target_lengths[start:stop].max()
    weights = np.empty((max_frames, max_labels + 1))
    labels = np.zeros((max_frames, max_labels + 1))
    blanks = np.empty((max_frames, max_labels + 1))
    scales = np.empty(max_frames)
    for b in range(start, stop):
        num_frames, num_labels = input_lengths[b], target_lengths[b]
        frames, target = log_probs[b, :num_frames], targets[b, :num_labels]
        skips = np.zeros(num_labels + 1)  # 1 where a path may come from the label before without a blank
        for k in range(1, num_labels):
            skips[k] = 1.0 if target[k] != target[k - 1] else 0.0
        if num_frames < num_labels + max(0, num_labels - 1 - skips.sum()):
            nll[b] = np.inf
            continue
        rows = gradient[b, :num_frames] if len(gradient) else gradient[:0, 0, :]
        nll[b], final = _forward(frames, target, blank, skips, weights, scales, labels, blanks)
        largest = np.inf
        if final > 0.0:
            used = scales[:num_frames]
            largest = _backward(target, blank, skips, weights, used, labels, blanks, final, rows)
        if not largest < _LARGEST_BACKWARD:
            pending[b] = True
            rows[:] = 0.0
