"""CTC: likelihood and gradient by the forward-backward recursion on probabilities, scaled where they grow small.

The states of a frame are the labels, in order, and the blanks between them: blank ``i`` stands before label ``i``, the
last one behind all labels. Only a window of labels is visited: those that a path can have reached by then and from
which it can still finish. Of the classes only the blank and those among the labels are read.

Two things decide whether an utterance is accepted; else it is left ``pending`` for the caller, who has a slower form.
At first, forward probabilities below 1e-290 are made 0, and what that can have cost is bounded on the way: what is lost
is at most multiplied by the sum of the visited classes' probabilities from one frame to the next, since no two
successors of a state have the same class. Where this bound is not negligible, the recursion is run again with
probabilities raised to 1e-250 in place of 0, forward and backward, so that all of them are upper bounds: what was added
to the likelihood is then at most 1e-250 times the backward probabilities.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import math

import numpy as np

from sonorant.functional.kernels import kernel, kernel_part
from sonorant.functional.kernels.exponential import exp_float64

__all__ = ["ctc", "scatter"]

_SMALLEST, _LARGEST = -600.0, 40.0  # of the log probabilities, except for -inf
_NEGLIGIBLE = 1e-290  # made 0: arithmetic on denormal numbers is many times slower
_FLOOR = 1e-250
_TOLERANCE = 1e-20  # of the likelihood, relative
_SMALL_TOTAL, _LARGE_TOTAL = 1e-20, 1e20  # of a frame: beyond them it is scaled to 1


@kernel_part()
def _prepare(labels, num_labels, blank, slot_of_class, columns, slots, skips, frames_needed):
    """How the labels are laid out; returns the number of classes that are visited, or 0 where a label is no label.

    ``columns`` lists the classes, the blank first, ``slots`` has the place of each label's class among them. ``skips``
    is 1 where the blank before a label may be left out. ``frames_needed`` is what it takes to emit all labels to this
    one.
    """
    columns[0] = blank
    skips[num_labels] = 0.0
    num_columns = 1
    needed = 0
    valid = True
    for i in range(num_labels):
        label = labels[i]
        if not 0 <= label < slot_of_class.size or label == blank:
            valid = False
            break
        if slot_of_class[label] == 0:
            slot_of_class[label] = num_columns
            columns[num_columns] = label
            num_columns += 1
        slots[i] = slot_of_class[label]
        is_repeat = i > 0 and label == labels[i - 1]
        skips[i] = 0.0 if i == 0 or is_repeat else 1.0
        needed += 2 if is_repeat else 1
        frames_needed[i] = needed
    for column in range(1, num_columns):
        slot_of_class[columns[column]] = 0
    columns[num_columns:] = blank
    return num_columns if valid else 0


@kernel_part()
def _weigh(log_probs, num_frames, columns, num_columns, weights):
    """The probabilities of the classes that are visited, frame after frame; whether all of them are in range."""
    for t in range(num_frames):
        row = log_probs[t]
        frame = weights[t * num_columns :]
        for column in range(num_columns):
            frame[column] = row[columns[column]]
    num_outside = 0
    for i in range(num_frames * num_columns):
        x = weights[i]
        num_outside += not _SMALLEST <= x <= _LARGEST
        weights[i] = exp_float64(x)
    if num_outside == 0:
        return True
    for t in range(num_frames):
        for column in range(num_columns):
            x = log_probs[t, columns[column]]
            if x == -np.inf:
                weights[t * num_columns + column] = 0.0
            elif not _SMALLEST <= x <= _LARGEST:
                return False
    return True


@kernel_part()
def _spread(weights, num_columns, num_frames, num_labels, slots, label_weights):
    """The labels' probabilities, in advance: a vector that is read just after its elements were stored stalls."""
    for t in range(num_frames):
        frame, row = weights[t * num_columns :], label_weights[t]
        for i in range(num_labels):
            row[i] = frame[slots[i]]


@kernel_part(inline=True)
def _forward_row(before, now, blanks, weights, skips, size, blank_weight, scale, negligible, floor):
    """One frame's forward probabilities: their sum and a bound of those replaced by ``floor``.

    ``before`` and ``now`` start one label earlier than the others.
    """
    total = 0.0
    lost = 0.0
    blank_weight *= scale
    for i in range(size):
        previous = before[i]
        label = (before[i + 1] + blanks[i] + skips[i] * previous) * (weights[i] * scale)
        blank = (blanks[i] + previous) * blank_weight
        lost += (0.0 if label > negligible else negligible) + (0.0 if blank > negligible else negligible)
        kept_label = label if label > negligible else floor
        kept_blank = blank if blank > negligible else floor
        now[i + 1] = kept_label
        blanks[i] = kept_blank
        total += kept_label + kept_blank
    entering = blanks[size] + before[size]
    blank = entering * blank_weight
    lost += 0.0 if blank > negligible or entering == 0.0 else negligible
    blanks[size] = blank if blank > negligible else floor
    return total + blanks[size], lost


@kernel_part(fast_math=True)
def _forward(
    weights,
    label_weights,
    num_columns,
    num_frames,
    num_labels,
    skips,
    frames_needed,
    forward,
    scales,
    windows,
    floor,
):
    """The NLL, the last frame's probability in scaled units, and a bound of what it lacks."""
    blanks = np.zeros(num_labels + 1)
    blanks[0] = 1.0  # before the first frame
    spare = num_frames - frames_needed[num_labels - 1] if num_labels else num_frames
    negligible = max(floor, _NEGLIGIBLE)
    nll = 0.0
    total = 1.0
    lost = 0.0
    low, high = 0, 0
    forward[0] = 0.0
    for t in range(num_frames):
        if high < num_labels and frames_needed[high] <= t + 1:
            high += 1
        if low < num_labels and frames_needed[low] + spare <= t:
            low += 1
        scale = 1.0
        if not _SMALL_TOTAL < total < _LARGE_TOTAL:
            scale = 1.0 / total
            nll -= math.log(total)
        size = high - low
        if size < 0:
            return np.nan, 0.0, np.inf
        before = forward[t]
        now = forward[t + 1]
        now[low] = 0.0
        now[high + 1] = 0.0
        if lost > 0.0:
            lost *= weights[t * num_columns : (t + 1) * num_columns].sum() * scale
        total, lost_now = _forward_row(
            before[low:],
            now[low:],
            blanks[low:],
            label_weights[t, low:],
            skips[low:],
            size,
            weights[t * num_columns],
            scale,
            negligible,
            floor,
        )
        lost += lost_now
        if not total > 0.0:
            return np.nan, 0.0, np.inf
        scales[t] = scale
        windows[t, 0], windows[t, 1] = low, high
        if size > 1 and now[low + 1] == 0.0 and blanks[low] == 0.0:
            low += 1
        if size > 1 and now[high] == 0.0:
            high -= 1
    is_through = windows[num_frames - 1, 1] == num_labels
    final = forward[num_frames, num_labels] + blanks[num_labels] if is_through else 0.0
    return nll - math.log(final), final, lost


@kernel_part(inline=True)
def _backward_row(
    forward,
    blanks,
    labels,
    arriving,
    occupancies,
    weights,
    slots,
    skips,
    size,
    blank_weight,
    scale,
    negligible,
    floor,
):
    """Adds up each class's share of the frame, and steps the backward probabilities to the frame before.

    ``labels`` starts one label earlier than the others: from there a path may come in. Returns the new ones' sum.
    """
    for i in range(size):
        label = labels[i + 1]
        occupancies[slots[i]] += forward[i] * label
        arriving[i] = label * (weights[i] * scale)
    arriving[size] = 0.0
    blank_weight *= scale
    entering = blanks[0] * blank_weight + skips[0] * arriving[0]
    labels[0] = entering if entering > negligible else floor
    total = labels[0]
    for i in range(size):
        blank_after = blanks[i + 1] * blank_weight
        label = arriving[i] + blank_after + skips[i + 1] * arriving[i + 1]
        blank = blanks[i] * blank_weight + arriving[i]
        kept_label = label if label > negligible else floor
        kept_blank = blank if blank > negligible else floor
        labels[i + 1] = kept_label
        blanks[i] = kept_blank
        total += kept_label + kept_blank
    blank = blanks[size] * blank_weight
    blanks[size] = blank if blank > negligible else floor
    total += blanks[size]
    return total


@kernel_part(fast_math=True)
def _backward(
    weights,
    label_weights,
    num_columns,
    num_frames,
    num_labels,
    slots,
    skips,
    forward,
    scales,
    windows,
    final,
    floor,
    values,
    step,
):
    """Writes the gradient of the classes that are visited; returns the largest sum of a frame's probabilities."""
    labels = np.zeros(num_labels + 1)  # the first stands for the label before label 0
    blanks = np.zeros(num_labels + 1)
    arriving = np.zeros(num_labels + 1)
    occupancies = np.empty(num_columns)
    labels[num_labels] = 1.0 / final
    blanks[num_labels] = 1.0 / final
    negligible = max(floor, _NEGLIGIBLE)
    largest = 2.0 / final
    for t in range(num_frames - 1, -1, -1):
        low, high = windows[t, 0], windows[t, 1]
        occupancies[:] = 0.0
        row = weights[t * num_columns : (t + 1) * num_columns]
        total = _backward_row(
            forward[t + 1, low + 1 :],
            blanks[low:],
            labels[low:],
            arriving,
            occupancies,
            label_weights[t, low:],
            slots[low:],
            skips[low:],
            high - low,
            row[0],
            scales[t],
            negligible,
            floor,
        )
        if not total <= largest:  # also when it is NaN
            largest = total
        out = values[t * step]
        rest = 1.0
        for column in range(1, num_columns):
            occupancy = occupancies[column] if row[column] > 0.0 else 0.0
            rest -= occupancy
            out[column] = -occupancy
        blank = -max(rest, 0.0) if row[0] > 0.0 else 0.0
        out[0] = blank
        out[num_columns:] = blank
    return largest


@kernel
def ctc(start, stop, log_probs, targets, input_lengths, target_lengths, blank, pending, nll, columns, values):
    """NLL and gradient of every utterance; what stays ``pending`` has left the numbers' range, or has wrong labels.

    ``columns``, ``(batch, width)``, receives the classes that are visited and ``values``, ``(batch, time, width)``, the
    gradient there, filled up with the blank's; all others have none. ``values`` is ``(batch, 0, width)`` when it is
    not wanted.
    """
    max_frames, num_classes = log_probs.shape[1:]
    max_labels = targets.shape[1]
    step = 1 if values.shape[1] else 0
    no_values = np.empty((1, columns.shape[1]), values.dtype)
    weights = np.empty(max_frames * columns.shape[1])
    label_weights = np.empty((max_frames, max_labels))
    forward = np.empty((max_frames + 1, max_labels + 2))  # the first row stands for the time before
    scales = np.empty(max_frames)
    windows = np.empty((max_frames, 2), np.int64)
    slot_of_class = np.zeros(num_classes, np.int64)
    slots = np.empty(max_labels, np.int64)
    skips = np.empty(max_labels + 1)
    frames_needed = np.empty(max_labels, np.int64)
    for b in range(start, stop):
        num_frames, num_labels = input_lengths[b], target_lengths[b]
        if not (0 <= num_frames <= max_frames and 0 <= num_labels <= max_labels):
            continue
        num_columns = _prepare(targets[b], num_labels, blank, slot_of_class, columns[b], slots, skips, frames_needed)
        if num_columns == 0:
            continue
        if num_frames == 0 or (num_labels and frames_needed[num_labels - 1] > num_frames):
            nll[b] = np.inf if num_labels else 0.0
            values[b] = 0.0
            pending[b] = False
            continue
        if not _weigh(log_probs[b], num_frames, columns[b], num_columns, weights):
            continue
        _spread(weights, num_columns, num_frames, num_labels, slots, label_weights)
        out = values[b] if step else no_values
        for floor in (0.0, _FLOOR):
            loss, final, lost = _forward(
                weights,
                label_weights,
                num_columns,
                num_frames,
                num_labels,
                skips,
                frames_needed,
                forward,
                scales,
                windows,
                floor,
            )
            accepted = lost <= final * _TOLERANCE
            if not final > 0.0 or not (accepted or floor > 0.0):
                continue
            if step or not accepted:
                largest = _backward(
                    weights,
                    label_weights,
                    num_columns,
                    num_frames,
                    num_labels,
                    slots,
                    skips,
                    forward,
                    scales,
                    windows,
                    final,
                    floor,
                    out,
                    step,
                )
                accepted = accepted or largest * num_frames * floor < _TOLERANCE
            if accepted:
                nll[b] = loss
                values[b, num_frames * step :] = 0.0
                pending[b] = False
                break


@kernel
def scatter(start, stop, columns, values, factors, gradient):
    """Write the gradient of all classes: ``values`` times one factor an utterance in their ``columns``, 0 elsewhere."""
    num_frames, width = values.shape[1:]
    for b in range(start, stop):
        factor = factors[b]
        for t in range(num_frames):
            row = gradient[b, t]
            row[:] = 0.0
            for i in range(width):
                row[columns[b, i]] = values[b, t, i] * factor
