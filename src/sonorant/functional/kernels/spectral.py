"""Frames, spectra and overlap-add of the STFT loss, over rows that each hold one frame of one utterance."""

import math
from typing import Any

from sonorant.functional.kernels import kernel

__all__ = ["add_frames", "compare_spectra", "cut_frames"]


@kernel
def cut_frames(
    start: int, stop: int, wave: Any, utterances: Any, firsts: Any, lengths: Any, ends: Any, window: Any, frames: Any
) -> None:
    """Row ``r`` becomes the windowed samples of ``utterances[r]`` from position ``firsts[r]``, window in the middle.

    Positions before 0 and from ``ends[b]`` on are reflected; those from ``lengths[b]`` on hold silence.
    """
    n_fft = frames.shape[1]
    win_length = window.shape[0]
    left = (n_fft - win_length) // 2
    for row in range(start, stop):
        b = utterances[row]
        frame = frames[row]
        first = firsts[row] + left
        for tap in range(left):
            frame[tap] = 0
        right = frame[left + win_length :]
        for tap in range(n_fft - win_length - left):
            right[tap] = 0
        inner = frame[left:]
        if first >= 0 and first + win_length <= lengths[b]:
            samples = wave[b, first:]
            for tap in range(win_length):
                inner[tap] = samples[tap] * window[tap]
        else:
            for tap in range(win_length):
                position = abs(first + tap)
                if position >= ends[b]:
                    position = 2 * (ends[b] - 1) - position
                inner[tap] = wave[b, position] * window[tap] if position < lengths[b] else 0


@kernel(fast_math=True)
def compare_spectra(
    start: int,
    stop: int,
    predicted: Any,
    target: Any,
    weights: Any,
    offset: Any,
    floor: Any,
    ratios: Any,
    sums: Any,
) -> None:
    """Compare two spectra a row and overwrite them with gradients.

    Spectra hold real and imaginary parts in turn. Per row, ``sums`` takes the weighted squared difference of the
    magnitudes and the energy of the target; ``ratios`` the larger over the smaller of ``offset + magnitude``, whose
    log is the log difference (taken outside, where a vector log is at hand). ``predicted`` becomes the gradient of
    half the first sum, ``target`` that of the weighted sum of the logs, both halved, as an inverse transform counts
    each bin twice.
    """
    num_bins = weights.shape[0]
    zero = floor - floor
    half = weights.dtype.type(0.5)
    for row in range(start, stop):
        x = predicted[row]
        y = target[row]
        ratio = ratios[row]
        distance = zero
        energy = zero
        for k in range(num_bins):
            re, im = x[2 * k], x[2 * k + 1]
            target_re, target_im = y[2 * k], y[2 * k + 1]
            power = re * re + im * im
            target_power = target_re * target_re + target_im * target_im
            target_power = floor if target_power < floor else target_power  # a NaN stays one
            magnitude = math.sqrt(floor if power < floor else power)
            target_magnitude = math.sqrt(target_power)
            difference = magnitude - target_magnitude
            weighted = weights[k] * difference
            distance += weighted * weighted
            energy += target_power
            above = difference > zero
            upper = magnitude if above else target_magnitude
            lower = target_magnitude if above else magnitude
            ratio[k] = (offset + upper) / (offset + lower)
            # below the floor the magnitude is constant
            scale = half * weights[k] / magnitude if power > floor else zero
            sign = scale if above else (-scale if difference < zero else zero)
            quadratic = scale * weighted
            logarithmic = sign / (offset + magnitude)
            x[2 * k] = quadratic * re
            x[2 * k + 1] = quadratic * im
            y[2 * k] = logarithmic * re
            y[2 * k + 1] = logarithmic * im
        sums[row, 0] = distance
        sums[row, 1] = energy


@kernel
def add_frames(
    start: int,
    stop: int,
    frames: Any,
    scales: Any,
    bounds: Any,
    firsts: Any,
    lengths: Any,
    ends: Any,
    window: Any,
    wave: Any,
) -> None:
    """The transpose of :func:`cut_frames`: adds the rows ``bounds[b]`` to ``bounds[b + 1]``, scaled, to ``wave[b]``."""
    n_fft = frames.shape[1]
    win_length = window.shape[0]
    left = (n_fft - win_length) // 2
    for b in range(start, stop):
        for row in range(bounds[b], bounds[b + 1]):
            scale = scales[row]
            first = firsts[row] + left
            inner = frames[row, left:]
            if first >= 0 and first + win_length <= lengths[b]:
                samples = wave[b, first:]
                for tap in range(win_length):
                    samples[tap] += scale * window[tap] * inner[tap]
            else:
                for tap in range(win_length):
                    position = abs(first + tap)
                    if position >= ends[b]:
                        position = 2 * (ends[b] - 1) - position
                    if position < lengths[b]:
                        wave[b, position] += scale * window[tap] * inner[tap]
