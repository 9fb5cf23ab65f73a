"""The multi-resolution STFT loss with torch.stft over one utterance at a time."""

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.reference.adversarial import valid

Pair = tuple[Tensor, Tensor]


def stft_loss_by_utterance(
    prediction: Tensor,
    target: Tensor,
    resolutions: list[tuple[int, int, int]],
    lengths: Tensor | None = None,
    length_ratios: Tensor | None = None,
    magnitude: str = "log",
    norm: str = "utterance",
    a_weighting: bool = False,
    sample_rate: int = 0,
) -> tuple[Tensor, Tensor]:
    terms = []
    for resolution in resolutions:
        pairs = _magnitudes(prediction, target.detach(), resolution, lengths, length_ratios)
        if norm == "batch":
            groups = [(torch.cat([x for x, _ in pairs]), torch.cat([y for _, y in pairs]))]
        elif norm == "utterance":
            groups = pairs
        else:
            groups = [frame for x, y in pairs for frame in zip(x, y, strict=True)]
        weights = a_weighting_by_formula(resolution[0], sample_rate) if a_weighting else torch.ones(())
        values = torch.stack([torch.stack(_terms(x, y, weights, magnitude)) for x, y in groups])
        terms.append(values.mean(0))
    convergence, log_magnitude = torch.stack(terms).mean(0)
    return convergence, log_magnitude


def _terms(x: Tensor, y: Tensor, weights: Tensor, magnitude: str) -> Pair:
    f = torch.log if magnitude == "log" else torch.log1p
    difference = (weights * (y - x)).flatten()
    distance = difference.norm() if difference.any() else difference.sum()  # the norm has no gradient at 0
    return distance / y.norm(), (weights * (f(y) - f(x)).abs()).mean()


def _magnitudes(
    prediction: Tensor,
    target: Tensor,
    resolution: tuple[int, int, int],
    lengths: Tensor | None,
    length_ratios: Tensor | None,
) -> list[Pair]:
    """Magnitudes ``(frames, bins)`` of each utterance's valid frames."""
    if length_ratios is not None:
        waves = zip(prediction, target, strict=True)
        both = [torch.stack([_magnitude(x, resolution), _magnitude(y, resolution)]) for x, y in waves]
        frames = valid(torch.stack(both).transpose(1, 2), length_ratios)
        return [(pair[:, 0], pair[:, 1]) for pair in frames]
    sizes = [prediction.shape[1]] * len(prediction) if lengths is None else lengths.tolist()
    rows = zip(prediction, target, sizes, strict=True)
    return [(_magnitude(x[:n], resolution), _magnitude(y[:n], resolution)) for x, y, n in rows]


def _magnitude(wave: Tensor, resolution: tuple[int, int, int]) -> Tensor:
    n_fft, hop_length, win_length = resolution
    wave = F.pad(wave, (0, max(n_fft // 2 + 1 - len(wave), 0)))
    window = torch.hann_window(win_length, dtype=wave.dtype)
    spectrum = torch.stft(wave, n_fft, hop_length, win_length, window, center=True, return_complex=True)
    return (spectrum.real**2 + spectrum.imag**2).clamp(min=1e-7).sqrt().T


def a_weighting_by_formula(n_fft: int, sample_rate: int, dtype: torch.dtype = torch.float64) -> Tensor:
    weights = []
    for k in range(n_fft // 2 + 1):
        f = sample_rate / 2 * k / (n_fft // 2)
        middle = ((f**2 + 107.7**2) * (f**2 + 737.9**2)) ** 0.5
        weights.append(12194**2 * f**4 / ((f**2 + 20.6**2) * middle * (f**2 + 12194**2)))
    return torch.tensor(weights, dtype=dtype)
