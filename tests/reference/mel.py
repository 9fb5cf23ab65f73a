"""Mel filters, one weight at a time, by interpolating between corners found with a table of the scale."""

import math

import torch
from torch import Tensor


def mel_filterbank_by_weights(
    n_fft: int,
    sample_rate: int,
    n_mels: int,
    f_min: float = 0.0,
    f_max: float | None = None,
    mel_scale: str = "slaney",
    norm: str | None = "slaney",
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    f_max = sample_rate / 2 if f_max is None else f_max
    low, high = mel(f_min, mel_scale), mel(f_max, mel_scale)
    corners = [_inverse(low + (high - low) * k / (n_mels + 1), mel_scale) for k in range(n_mels + 2)]
    weights = torch.zeros(n_fft // 2 + 1, n_mels, dtype=torch.float64)
    for j in range(n_fft // 2 + 1):
        f = sample_rate * j / n_fft
        for k, (a, b, c) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
            height = (f - a) / (b - a) if a < f <= b else (c - f) / (c - b) if b < f < c else 0.0
            weights[j, k] = height * (2 / (c - a) if norm else 1)
    return weights.to(dtype)


def mel(f: float, scale: str) -> float:
    if scale == "htk":
        return 2595 * math.log10(1 + f / 700)
    return 3 * f / 200 if f < 1000 else 15 + 27 * math.log(f / 1000, 6.4)


def _inverse(target: float, scale: str) -> float:
    low, high = 0.0, 16384.0
    for _ in range(64):  # bisection needs no second formula
        middle = (low + high) / 2
        low, high = (middle, high) if mel(middle, scale) < target else (low, middle)
    return low
