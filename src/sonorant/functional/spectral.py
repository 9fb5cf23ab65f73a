"""Distances between spectra of waveforms."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.functional import stft
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, ratio_lengths

__all__ = ["StftLosses", "a_weighting_curve", "multi_resolution_stft_loss"]

Magnitude = Literal["log", "log1p"]
StftNorm = Literal["utterance", "frame", "batch"]


class StftLosses(NamedTuple):
    """The two terms of :func:`multi_resolution_stft_loss`, unweighted scalars."""

    spectral_convergence: Tensor
    log_magnitude: Tensor


def multi_resolution_stft_loss(
    prediction: Float[Tensor, "batch samples"],
    target: Float[Tensor, "batch samples"],
    *,
    resolutions: Sequence[tuple[int, int, int]],
    magnitude: Magnitude = "log",
    norm: StftNorm = "utterance",
    lengths: Int[Tensor, " batch"] | None = None,
    length_ratios: Float[Tensor, " batch"] | None = None,
    a_weighting: bool = False,
    sample_rate: int | None = None,
) -> StftLosses:
    r"""How far the magnitude spectra of two waveforms are apart, at several resolutions.

    .. math::
        m = \sqrt{\max(\mathrm{re}^2 + \mathrm{im}^2, 10^{-7})}, \quad
        L_\mathrm{sc} = \frac{\lVert m_y - m_x \rVert}{\lVert m_y \rVert}, \quad
        L_\mathrm{log} = \mathrm{E}\,|f(m_y) - f(m_x)|

    with target :math:`y`, prediction :math:`x`, and :math:`f` the log of :math:`m` or of :math:`1 + m`. The STFT is
    centred and reflect-padded, with a periodic Hann window centred in ``n_fft``; both terms are means over the
    resolutions. It departs from the original, which swaps prediction and target at the call, computes A-weights and
    overwrites them with 1, and lets the frames at an utterance's end read the padding: with ``lengths`` an utterance
    gives what it would give alone, reflection at its own end included. Only the prediction gets a gradient: the
    target's transforms have no graph, and padded frames are not transformed. Silence is finite.

    Args:
        prediction: ``(batch, samples)``.
        target: ``(batch, samples)``; a constant.
        resolutions: ``(n_fft, hop_length, win_length)``, in samples. RAD-MMM at 22,050 Hz uses (1024, 120, 600),
            (2048, 240, 1200), (512, 50, 240), (64, 10, 50), (8192, 2000, 8000).
        magnitude: ``"log"`` for log(m), ``"log1p"`` for log(1 + m).
        norm: what a ratio (and a mean log difference) is taken over: ``"utterance"``, so that batch size does not
            matter; ``"frame"``, every valid frame counting the same; ``"batch"``, everything at once.
        lengths: ``(batch,)``, samples; None: all are valid. Clips of ``n_fft // 2`` samples or fewer are zero-padded
            to ``n_fft // 2 + 1``.
        length_ratios: ``(batch,)`` in (0, 1], instead of ``lengths``: the first ``ceil(ratio * frames)`` frames of
            the padded waveform count, as in the original. The last ones read samples beyond the ratio, so that
            what stands there matters.
        a_weighting: multiply the bins' differences by :func:`a_weighting_curve`; denominators stay as they are.
        sample_rate: in Hz, for ``a_weighting``.

    Returns:
        ``StftLosses(spectral_convergence, log_magnitude)``, scalars, in float32 for half precision, else in the dtype
        of ``prediction``.

    Raises:
        ValueError: shapes that differ, lengths or ratios that do not fit, no resolution or an impossible one, an
            unknown ``magnitude`` or ``norm``, ``a_weighting`` without ``sample_rate``.

    References:
        Arik, Jun and Diamos 2018, arXiv 1808.06719; Yamamoto, Song and Kim 2020, "Parallel WaveGAN",
        arXiv 1910.11480.

    Example:
        >>> import torch
        >>> from sonorant.functional import multi_resolution_stft_loss
        >>> target = torch.sin(torch.arange(800) / 5).unsqueeze(0)
        >>> losses = multi_resolution_stft_loss(0.5 * target, target, resolutions=[(256, 64, 256), (128, 32, 128)])
        >>> losses.spectral_convergence
        tensor(0.5000)
    """
    check_stft_options(resolutions, magnitude, norm, a_weighting, sample_rate)
    if prediction.dim() != 2 or prediction.shape != target.shape:
        raise ValueError(
            f"prediction is {tuple(prediction.shape)} and target is {tuple(target.shape)}; expected the same "
            "(batch, samples)"
        )
    sample_lengths = _sample_lengths(prediction, lengths, length_ratios)
    prediction = prediction.to(compute_dtype(prediction))
    target = target.detach().to(prediction.dtype)
    terms = []
    for n_fft, hop_length, win_length in resolutions:
        if length_ratios is None:
            frame_lengths = stft.num_stft_frames(sample_lengths, n_fft, hop_length)
        else:
            frame_lengths = ratio_lengths(length_ratios, stft.num_stft_frames(prediction.shape[1], n_fft, hop_length))
        if a_weighting and sample_rate is not None:
            weights = a_weighting_curve(n_fft, sample_rate, dtype=prediction.dtype, device=prediction.device)
        else:
            weights = prediction.new_ones(n_fft // 2 + 1)
        values, _ = torch.ops.sonorant.stft_distance(
            prediction,
            target,
            sample_lengths,
            frame_lengths,
            weights,
            n_fft,
            hop_length,
            win_length,
            0.0 if magnitude == "log" else 1.0,
            norm,
            torch.is_grad_enabled() and prediction.requires_grad,
        )
        terms.append(values)
    spectral_convergence, log_magnitude = torch.stack(terms).mean(0).unbind()
    return StftLosses(spectral_convergence, log_magnitude)


def a_weighting_curve(
    n_fft: int,
    sample_rate: int,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, " bins"]:
    r"""The A-weighting of an STFT's bins: how loud a frequency sounds.

    .. math::
        R(f) = \frac{12194^2 f^4}{(f^2 + 20.6^2) \sqrt{(f^2 + 107.7^2)(f^2 + 737.9^2)} (f^2 + 12194^2)}

    It is the amplitude response itself, without the offset of 2 dB that makes it 1 at 1 kHz.

    Args:
        n_fft: the size of the transform, in samples.
        sample_rate: in Hz.
        dtype: of the result; torch's default dtype if None. Computed in float64.
        device: of the result.

    Returns:
        ``(n_fft // 2 + 1,)``, for frequencies from 0 to half the sample rate.

    Raises:
        ValueError: ``n_fft`` or ``sample_rate`` below 1.

    References:
        IEC 61672-1:2013, annex E.

    Example:
        >>> from sonorant.functional import a_weighting_curve
        >>> a_weighting_curve(8, 8000)
        tensor([0.0000, 0.7943, 0.9122, 0.9150, 0.8875])
    """
    if n_fft < 1 or sample_rate < 1:
        raise ValueError(f"n_fft is {n_fft} and sample_rate is {sample_rate}; both must be at least 1")
    square = torch.linspace(0, sample_rate / 2, n_fft // 2 + 1, dtype=torch.float64, device=device).square()
    low, middle_low, middle_high, high = 20.6**2, 107.7**2, 737.9**2, 12194.0**2
    middle = ((square + middle_low) * (square + middle_high)).sqrt()
    curve = high * square.square() / ((square + low) * middle * (square + high))
    return curve.to(torch.get_default_dtype() if dtype is None else dtype)


def check_stft_options(
    resolutions: Sequence[tuple[int, int, int]],
    magnitude: str,
    norm: str,
    a_weighting: bool,
    sample_rate: int | None,
) -> None:
    """Refuse hyperparameters of :func:`multi_resolution_stft_loss` that cannot be right.

    Raises:
        ValueError: see there.
    """
    if a_weighting and sample_rate is None:
        raise ValueError("sample_rate is needed for a_weighting")
    if magnitude not in get_args(Magnitude):
        raise ValueError(f"magnitude must be one of {', '.join(get_args(Magnitude))}; got {magnitude!r}")
    if norm not in get_args(StftNorm):
        raise ValueError(f"norm must be one of {', '.join(get_args(StftNorm))}; got {norm!r}")
    if not resolutions:
        raise ValueError("resolutions is empty")
    for index, (n_fft, hop_length, win_length) in enumerate(resolutions):
        if n_fft < 2 or hop_length < 1 or not 1 <= win_length <= n_fft:
            raise ValueError(
                f"resolutions[{index}] is ({n_fft}, {hop_length}, {win_length}); expected n_fft >= 2, hop_length >= 1 "
                "and 1 <= win_length <= n_fft"
            )


def _sample_lengths(prediction: Tensor, lengths: Tensor | None, length_ratios: Tensor | None) -> Tensor:
    batch_size, num_samples = prediction.shape
    if lengths is not None and length_ratios is not None:
        raise ValueError("lengths and length_ratios: give one of them")
    if length_ratios is not None and length_ratios.shape != (batch_size,):
        raise ValueError(f"length_ratios has shape {tuple(length_ratios.shape)}; expected ({batch_size},)")
    if lengths is None:
        return torch.full((batch_size,), num_samples, device=prediction.device)
    check_lengths(lengths, "lengths", batch_size=batch_size, max_length=num_samples)
    return lengths.long()
