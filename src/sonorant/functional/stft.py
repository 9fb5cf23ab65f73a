"""The operator behind the STFT loss: both terms at one resolution, and their gradients, in two forms."""

from typing import Any, NamedTuple, overload

import torch
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional import kernels
from sonorant.lengths import sequence_mask

__all__ = ["num_stft_frames"]

POWER_FLOOR = 1e-7
ROW_BLOCK = 2**18  # samples of frames that are transformed at a time: what a cache holds


class _Job(NamedTuple):
    """One resolution. ``ends`` are the sample lengths with the silence that makes short clips long enough."""

    prediction: Tensor
    target: Tensor
    lengths: Tensor
    ends: Tensor
    frame_lengths: Tensor
    window: Tensor
    weights: Tensor
    n_fft: int
    hop_length: int
    offset: float
    norm: str


@overload
def num_stft_frames(num_samples: int, n_fft: int, hop_length: int) -> int: ...
@overload
def num_stft_frames(num_samples: Tensor, n_fft: int, hop_length: int) -> Tensor: ...
def num_stft_frames(num_samples: int | Tensor, n_fft: int, hop_length: int) -> int | Tensor:
    """How many frames a centred STFT has, for clips zero-padded to ``n_fft // 2 + 1`` samples."""
    shortest = n_fft // 2 + 1
    padded = num_samples.clamp(min=shortest) if isinstance(num_samples, Tensor) else max(num_samples, shortest)
    return 1 + (padded + 2 * (n_fft // 2) - n_fft) // hop_length


@torch.library.custom_op("sonorant::stft_distance", mutates_args=())
def _stft_distance(
    prediction: Tensor,
    target: Tensor,
    lengths: Tensor,
    frame_lengths: Tensor,
    weights: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    offset: float,
    norm: str,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """Spectral convergence and log magnitude ``(2,)``, and their gradients ``(2, batch, samples)`` (or empty)."""
    window = torch.hann_window(win_length, dtype=prediction.dtype, device=prediction.device)
    ends = lengths.clamp(min=n_fft // 2 + 1)
    job = _Job(prediction, target, lengths, ends, frame_lengths, window, weights, n_fft, hop_length, offset, norm)
    form = _by_rows if prediction.device.type == "cpu" and kernels.available() else _batched
    sums, gradients = form(job, needs_gradient)
    values, scales = _reduce(sums, frame_lengths, n_fft // 2 + 1, norm)
    if needs_gradient:
        gradients.mul_(scales.unsqueeze(2))
    return values.to(prediction.dtype), gradients


@_stft_distance.register_fake
def _(
    prediction: Tensor,
    target: Tensor,
    lengths: Tensor,
    frame_lengths: Tensor,
    weights: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    offset: float,
    norm: str,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor]:
    return prediction.new_empty(2), prediction.new_empty((2, *prediction.shape) if needs_gradient else 0)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)  # else the gradients' own gradients would be made, as zeros of their size
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 11
    (gradients,) = ctx.saved_tensors
    return (grad[0] * gradients[0] + grad[1] * gradients[1], *[None] * 10)


_stft_distance.register_autograd(_backward, setup_context=_setup_context)


def _reduce(sums: Tensor, frame_lengths: Tensor, num_bins: int, norm: str) -> tuple[Tensor, Tensor]:
    """Both terms, and what the gradients of each utterance's sums are multiplied with ``(2, batch)``.

    Args:
        sums: ``(3, batch, frames)``, 0 in padding: squared difference, target energy, log difference.
        frame_lengths: ``(batch,)``.
        num_bins: the bins of a frame.
        norm: what a ratio is taken over.
    """
    counts = frame_lengths.to(sums.dtype)
    share = 1 / counts.sum()
    if norm == "frame":
        distance, energy, log_difference = sums
        ratios = torch.where(energy > 0, distance / energy, 0.0).sqrt()
        values = torch.stack([ratios.sum(), log_difference.sum() / num_bins]) * share
        return values, torch.stack([share, share / num_bins]).unsqueeze(1).expand(2, len(counts))
    if norm == "batch":
        distance, energy, log_difference = sums.sum((1, 2))
        values = torch.stack([(distance / energy).sqrt(), log_difference * share / num_bins])
        scales = torch.stack([_inverse_norms(distance, energy), share / num_bins])
        return values, scales.unsqueeze(1).expand(2, len(counts))
    distance, energy, log_difference = sums.sum(2)
    values = torch.stack([(distance / energy).sqrt(), log_difference / (counts * num_bins)])
    scales = torch.stack([_inverse_norms(distance, energy), 1 / (counts * num_bins)])
    return values.mean(1), scales / len(counts)


def _inverse_norms(distance: Tensor, energy: Tensor) -> Tensor:
    """``1 / (sqrt(distance) sqrt(energy))``; 0 where both spectra are equal, where the ratio has no gradient."""
    return torch.where(distance > 0, distance.rsqrt() * energy.rsqrt(), 0.0)


def _by_rows(job: _Job, needs_gradient: bool) -> tuple[Tensor, Tensor]:
    """The kernels, over the valid frames of all utterances, a block that fits the cache at a time."""
    from sonorant.functional.kernels.spectral import add_frames, compare_spectra, cut_frames

    batch_size, dtype, n_fft = len(job.prediction), job.prediction.dtype, job.n_fft
    waves = [job.prediction.contiguous().numpy(), job.target.contiguous().numpy()]
    lengths, ends, window = job.lengths.contiguous().numpy(), job.ends.numpy(), job.window.numpy()
    starts = F.pad(job.frame_lengths.cumsum(0), (1, 0))
    utterances = torch.repeat_interleave(torch.arange(batch_size), job.frame_lengths)
    indices = torch.arange(len(utterances)) - starts[utterances]
    firsts = indices * job.hop_length - n_fft // 2
    sums = torch.empty(len(utterances), 3, dtype=torch.float64)
    gradients = torch.zeros(2, *job.prediction.shape, dtype=dtype) if needs_gradient else job.prediction.new_empty(0)
    weights = job.weights.contiguous()
    offset, floor = torch.tensor([job.offset, POWER_FLOOR], dtype=dtype).numpy()

    block = min(max(1, ROW_BLOCK // n_fft), len(utterances))
    frames = torch.empty(2 * block, n_fft, dtype=dtype)
    ratios = torch.empty(block, n_fft // 2 + 1, dtype=dtype)
    for first in range(0, len(utterances), block):
        here = slice(first, min(first + block, len(utterances)))
        size = here.stop - first
        rows = utterances[here].numpy(), firsts[here].numpy()
        for wave, part in zip(waves, (frames[:size], frames[size : 2 * size]), strict=True):
            kernels.run_over_batch(cut_frames, size, wave, *rows, lengths, ends, window, part.numpy())
        spectra = torch.fft.rfft(frames[: 2 * size])
        parts = torch.view_as_real(spectra).flatten(1).numpy()
        outputs = ratios.numpy(), sums[here].numpy()
        kernels.run_over_batch(
            compare_spectra, size, parts[:size], parts[size:], weights.numpy(), offset, floor, *outputs
        )
        sums[here, 2] = (ratios[:size].log_().mul_(weights)).sum(1).double()
        if not needs_gradient:
            continue
        scales = torch.ones(2, size, dtype=dtype)
        if job.norm == "frame":
            scales[0] = _inverse_norms(sums[here, 0], sums[here, 1])
        bounds = (starts - first).clamp(0, size).numpy()
        cotangents = torch.fft.irfft(_double_edges(spectra, n_fft), n_fft, norm="forward").view(2, size, n_fft)
        for cotangent, scale, gradient in zip(cotangents.numpy(), scales.numpy(), gradients.numpy(), strict=True):
            arguments = (cotangent, scale, bounds, rows[1], lengths, ends, window, gradient)
            kernels.run_over_batch(add_frames, batch_size, *arguments)
    dense = torch.zeros(3, *job.frame_lengths.shape, int(job.frame_lengths.max()), dtype=torch.float64)
    dense[:, utterances, indices] = sums.T
    return dense, gradients


def _batched(job: _Job, needs_gradient: bool) -> tuple[Tensor, Tensor]:
    """Tensors over all frames of the batch, for devices and for a CPU without the kernels."""
    half, (batch_size, num_samples) = job.n_fft // 2, job.prediction.shape
    total = max(num_samples, half + 1) + 2 * half
    positions = (torch.arange(total, device=job.ends.device) - half).abs()
    ends = job.ends.unsqueeze(1)
    positions = torch.where(positions >= ends, 2 * (ends - 1) - positions, positions)
    inside = (positions >= 0) & (positions < job.lengths.unsqueeze(1))
    positions = positions.clamp(0, num_samples - 1)
    left = (job.n_fft - len(job.window)) // 2
    window = F.pad(job.window, (left, job.n_fft - len(job.window) - left))
    num_frames = 1 + (total - job.n_fft) // job.hop_length
    valid = sequence_mask(job.frame_lengths, num_frames)

    def spectrum(wave: Tensor) -> Tensor:
        padded = torch.where(inside, wave.gather(1, positions), 0.0)
        spectra = torch.fft.rfft(padded.unfold(1, job.n_fft, job.hop_length) * window)
        return torch.where(valid.unsqueeze(2), spectra, 0.0)

    spectra = spectrum(job.prediction)
    power = torch.view_as_real(spectra).square().sum(3)
    energy = torch.view_as_real(spectrum(job.target)).square().sum(3).clamp_(min=POWER_FLOOR)
    magnitude, target_magnitude = power.clamp(min=POWER_FLOOR).sqrt(), energy.sqrt()
    weighted = (magnitude - target_magnitude).mul_(job.weights)
    log_difference = ((job.offset + magnitude) / (job.offset + target_magnitude)).log_().abs_().mul_(job.weights)
    sums = torch.stack([weighted.square().sum(2), energy.sum(2), log_difference.sum(2)])
    sums = torch.where(valid, sums, 0.0)
    if not needs_gradient:
        return sums, job.prediction.new_empty(0)

    # below the floor the magnitude is constant; halved, as an inverse transform counts each bin twice
    slopes = torch.where(power > POWER_FLOOR, job.weights / (2 * magnitude), 0.0)
    factors = [slopes * weighted, slopes * weighted.sign() / (job.offset + magnitude)]
    if job.norm == "frame":
        factors[0].mul_(_inverse_norms(sums[0], sums[1]).unsqueeze(2))
    gradients = torch.zeros(2, batch_size, num_samples, dtype=spectra.real.dtype, device=spectra.device)
    for factor, gradient in zip(factors, gradients, strict=True):
        frames = torch.fft.irfft(_double_edges(factor * spectra, job.n_fft), job.n_fft, norm="forward") * window
        padded = F.fold(frames.transpose(1, 2), (1, total), (1, job.n_fft), stride=(1, job.hop_length))
        gradient.scatter_add_(1, positions, torch.where(inside, padded.flatten(1), 0.0))
    return sums, gradients


def _double_edges(spectra: Tensor, n_fft: int) -> Tensor:
    """Twice the bins that an inverse real transform counts once, in place."""
    spectra[..., 0].mul_(2)
    if n_fft % 2 == 0:
        spectra[..., -1].mul_(2)
    return spectra
