"""The mel scale, and the filters that bring spectra to it."""

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["MelScale", "mel_edges", "mel_filterbank"]

MelScale = Literal["slaney", "htk"]

# Slaney's scale: 3 mels for 200 Hz up to 1 kHz, above it 27 mels for a factor of 6.4
_SLANEY_HZ_PER_MEL = 200 / 3
_SLANEY_CORNER_HZ = 1000.0
_SLANEY_CORNER = _SLANEY_CORNER_HZ / _SLANEY_HZ_PER_MEL
_SLANEY_LOG_STEP = math.log(6.4) / 27
_HTK_FACTOR, _HTK_HZ = 2595 / math.log(10), 700.0


def mel_filterbank(
    n_fft: int,
    sample_rate: int,
    n_mels: int,
    *,
    f_min: float = 0.0,
    f_max: float | None = None,
    mel_scale: MelScale = "slaney",
    norm: Literal["slaney"] | None = "slaney",
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "bins mels"]:
    r"""Triangular filters, equally spaced on the mel scale, that sum an STFT's bins.

    .. math::
        w_{jk} = c_k \max\Bigl(0, \min\Bigl(\frac{f_j - e_k}{e_{k+1} - e_k},
            \frac{e_{k+2} - f_j}{e_{k+2} - e_{k+1}}\Bigr)\Bigr), \quad f_j = \frac{j\,\mathrm{sr}}{n_\mathrm{fft}}

    where :math:`e_0 \dots e_{n+1}` lie equally far apart in mel from ``f_min`` to ``f_max``, and :math:`c_k` is
    :math:`2 / (e_{k+2} - e_k)` (each triangle has the area 1 in Hz), or 1 without ``norm``. In mel, ``"slaney"`` is
    :math:`3 f / 200` below 1 kHz and :math:`15 + 27 \log_{6.4}(f / 1000)` above; ``"htk"`` is
    :math:`2595 \log_{10}(1 + f / 700)`. Triangles are straight in Hz, as librosa's and torchaudio's are; Kaldi's are
    straight in mel.

    Args:
        n_fft: the size of the transform, in samples.
        sample_rate: in Hz.
        n_mels: the number of filters.
        f_min: where the first filter begins, in Hz.
        f_max: where the last filter ends, in Hz; None: half the sample rate.
        mel_scale: ``"slaney"`` or ``"htk"``.
        norm: ``"slaney"`` for filters of area 1, None for a height of 1.
        dtype: of the result; torch's default dtype if None. Computed in float64.
        device: of the result.

    Returns:
        ``(n_fft // 2 + 1, n_mels)``: a spectrum ``(time, bins)`` is multiplied with it.

    Raises:
        ValueError: sizes below 1, frequencies that are not 0 <= f_min < f_max <= sample_rate / 2, an unknown scale or
            norm, or filters so narrow that one of them lies between two bins.

    References:
        Slaney 1998, "Auditory Toolbox: Version 2"; Young et al. 2002, "The HTK Book".

    Example:
        >>> from sonorant.functional import mel_filterbank
        >>> mel_filterbank(8, 8000, 2, norm=None)
        tensor([[0.0000, 0.0000],
                [0.7826, 0.2174],
                [0.0000, 0.9037],
                [0.0000, 0.4518],
                [0.0000, 0.0000]])
    """
    if n_fft < 1 or sample_rate < 1 or n_mels < 1:
        raise ValueError(f"n_fft is {n_fft}, sample_rate {sample_rate} and n_mels {n_mels}; all must be at least 1")
    if norm not in ("slaney", None):
        raise ValueError(f"norm must be 'slaney' or None; got {norm!r}")
    nyquist = sample_rate / 2
    f_max = nyquist if f_max is None else f_max
    if not 0 <= f_min < f_max <= nyquist:
        raise ValueError(
            f"the mel bins need 0 <= f_min < f_max <= {nyquist:g} Hz; got f_min {f_min:g}, f_max {f_max:g}"
        )
    edges = mel_edges(n_mels, f_min, f_max, mel_scale)
    spacing = sample_rate / n_fft
    for index, (begin, end) in enumerate(zip(edges, edges[2:], strict=False)):
        if (math.floor(begin / spacing) + 1) * spacing >= end:
            raise ValueError(
                f"mel bin {index} ({begin:.1f} to {end:.1f} Hz) lies between two bins of the transform, which are "
                f"{spacing:.1f} Hz apart; n_mels {n_mels} must be smaller, or n_fft {n_fft} larger"
            )
    corners = torch.tensor(edges, dtype=torch.float64, device=device)
    low, middle, high = corners[:-2], corners[1:-1], corners[2:]
    frequencies = torch.arange(n_fft // 2 + 1, dtype=torch.float64, device=device).mul(spacing).unsqueeze(1)
    rise, fall = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    filters = torch.minimum(rise, fall).clamp(min=0)
    if norm == "slaney":
        filters = filters * (2 / (high - low))
    return filters.to(torch.get_default_dtype() if dtype is None else dtype)


def mel_edges(n_mels: int, f_min: float, f_max: float, mel_scale: MelScale = "slaney") -> list[float]:
    """Where the filters begin, peak and end: filter k at k, k + 1 and k + 2.

    Args:
        n_mels: the number of filters.
        f_min: in Hz.
        f_max: in Hz.
        mel_scale: ``"slaney"`` or ``"htk"``.

    Returns:
        ``n_mels + 2`` frequencies in Hz.

    Raises:
        ValueError: an unknown scale.
    """
    if mel_scale not in get_args(MelScale):
        raise ValueError(f"mel_scale must be one of {', '.join(get_args(MelScale))}; got {mel_scale!r}")
    first, last = _hz_to_mel(f_min, mel_scale), _hz_to_mel(f_max, mel_scale)
    step = (last - first) / (n_mels + 1)
    return [f_min, *(_mel_to_hz(first + step * k, mel_scale) for k in range(1, n_mels + 1)), f_max]


def _hz_to_mel(frequency: float, mel_scale: MelScale) -> float:
    if mel_scale == "htk":
        return _HTK_FACTOR * math.log1p(frequency / _HTK_HZ)
    if frequency < _SLANEY_CORNER_HZ:
        return frequency / _SLANEY_HZ_PER_MEL
    return _SLANEY_CORNER + math.log(frequency / _SLANEY_CORNER_HZ) / _SLANEY_LOG_STEP


def _mel_to_hz(mel: float, mel_scale: MelScale) -> float:
    if mel_scale == "htk":
        return _HTK_HZ * math.expm1(mel / _HTK_FACTOR)
    if mel < _SLANEY_CORNER:
        return mel * _SLANEY_HZ_PER_MEL
    return _SLANEY_CORNER_HZ * math.exp((mel - _SLANEY_CORNER) * _SLANEY_LOG_STEP)
