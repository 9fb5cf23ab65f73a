"""The L1 distance between two feature maps and its gradient: each map is read once."""

from typing import Any

import numpy as np

from sonorant.functional.kernels import kernel

__all__ = ["l1_sums", "l1_sums_and_signs", "scale_signs"]

RUN = 4096  # float32 additions in a row, so that large maps lose no digits


@kernel(fast_math=True)
def l1_sums(start: int, stop: int, real: Any, fake: Any, lengths: Any, sums: Any) -> None:
    """``sums[b]`` is the sum of ``|fake - real|`` over the first ``lengths[b]`` cells of every channel.

    Maps are ``(batch, channels, cells)``, contiguous, and ``sums`` is float64.
    """
    for b in range(start, stop):
        total = 0.0
        for channel in range(real.shape[1]):
            for first in range(0, lengths[b], RUN):
                real_run = real[b, channel, first:]
                fake_run = fake[b, channel, first:]
                run = real.dtype.type(0)
                for cell in range(min(RUN, lengths[b] - first)):
                    run += abs(fake_run[cell] - real_run[cell])
                total += run
        sums[b] = total


@kernel(fast_math=True)
def l1_sums_and_signs(start: int, stop: int, real: Any, fake: Any, lengths: Any, sums: Any, signs: Any) -> None:
    """:func:`l1_sums`, and in int8 ``signs = sign(fake - real)``, 0 beyond the lengths."""
    for b in range(start, stop):
        total = 0.0
        for channel in range(real.shape[1]):
            for first in range(0, lengths[b], RUN):
                real_run = real[b, channel, first:]
                fake_run = fake[b, channel, first:]
                sign_run = signs[b, channel, first:]
                run = real.dtype.type(0)
                for cell in range(min(RUN, lengths[b] - first)):
                    difference = fake_run[cell] - real_run[cell]
                    run += abs(difference)
                    sign_run[cell] = np.int8(difference > 0) - np.int8(difference < 0)
                total += run
            signs[b, channel, lengths[b] :] = 0
        sums[b] = total


@kernel
def scale_signs(start: int, stop: int, signs: Any, scale: Any, gradient: Any) -> None:
    """``gradient = scale * signs``."""
    for b in range(start, stop):
        for channel in range(signs.shape[1]):
            sign_run = signs[b, channel]
            gradient_run = gradient[b, channel]
            for cell in range(signs.shape[2]):
                gradient_run[cell] = scale * sign_run[cell]
