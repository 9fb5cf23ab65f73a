"""The L1 distance between two feature maps and its gradient, in two passes without a temporary."""

from typing import Any

from sonorant.functional.kernels import kernel

__all__ = ["l1_gradient", "l1_sums"]


@kernel(fast_math=True)
def l1_sums(start: int, stop: int, real: Any, fake: Any, lengths: Any, sums: Any) -> None:
    """``sums[b]`` is the sum of ``|fake - real|`` over the first ``lengths[b]`` cells of every channel.

    Maps are ``(batch, channels, cells)``, contiguous, and ``sums`` is float64. A run of float32 additions is kept to
    4,096 cells, so that large maps lose no digits.
    """
    for b in range(start, stop):
        num_channels = real.shape[1]
        length = lengths[b]
        total = 0.0
        for channel in range(num_channels):
            for first in range(0, length, 4096):
                real_run = real[b, channel, first:]
                fake_run = fake[b, channel, first:]
                run = real.dtype.type(0)
                for cell in range(min(4096, length - first)):
                    run += abs(fake_run[cell] - real_run[cell])
                total += run
        sums[b] = total


@kernel
def l1_gradient(start: int, stop: int, real: Any, fake: Any, lengths: Any, scale: Any, gradient: Any) -> None:
    """``gradient = scale * sign(fake - real)`` within the lengths, 0 beyond them."""
    zero = scale - scale
    for b in range(start, stop):
        num_channels, num_cells = real.shape[1:]
        length = lengths[b]
        for channel in range(num_channels):
            real_run = real[b, channel]
            fake_run = fake[b, channel]
            gradient_run = gradient[b, channel]
            for cell in range(length):
                above = scale if fake_run[cell] > real_run[cell] else zero
                below = scale if fake_run[cell] < real_run[cell] else zero
                gradient_run[cell] = above - below
            padding = gradient_run[length:]
            for cell in range(num_cells - length):
                padding[cell] = zero
