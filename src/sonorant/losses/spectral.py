"""Distances between spectra of waveforms."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.spectral import Magnitude, StftLosses, StftNorm, check_stft_options

__all__ = ["MultiResolutionStftLoss", "StftLossWeights"]


@dataclass(frozen=True)
class StftLossWeights:
    """The weights of :class:`~sonorant.functional.StftLosses`."""

    spectral_convergence: float = 1.0
    log_magnitude: float = 1.0


class MultiResolutionStftLoss(nn.Module):
    """:func:`sonorant.functional.multi_resolution_stft_loss` as a Module.

    Args:
        resolutions: ``(n_fft, hop_length, win_length)``, in samples.
        magnitude: ``"log"`` or ``"log1p"``.
        norm: ``"utterance"``, ``"frame"`` or ``"batch"``.
        a_weighting: weigh the bins' differences as the ear does.
        sample_rate: in Hz, for ``a_weighting``.

    Raises:
        ValueError: no resolution or an impossible one, an unknown ``magnitude`` or ``norm``, ``a_weighting`` without
            ``sample_rate``.

    Example:
        >>> import torch
        >>> from sonorant.losses import MultiResolutionStftLoss
        >>> target = torch.sin(torch.arange(800) / 5).unsqueeze(0)
        >>> MultiResolutionStftLoss([(256, 64, 256)])(0.5 * target, target).spectral_convergence
        tensor(0.5000)
    """

    def __init__(
        self,
        resolutions: Sequence[tuple[int, int, int]],
        magnitude: Magnitude = "log",
        norm: StftNorm = "utterance",
        a_weighting: bool = False,
        sample_rate: int | None = None,
    ) -> None:
        super().__init__()
        check_stft_options(resolutions, magnitude, norm, a_weighting, sample_rate)
        self.resolutions = tuple(resolutions)
        self.magnitude: Magnitude = magnitude
        self.norm: StftNorm = norm
        self.a_weighting = a_weighting
        self.sample_rate = sample_rate

    def forward(
        self,
        prediction: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        length_ratios: Tensor | None = None,
    ) -> StftLosses:
        """See :func:`sonorant.functional.multi_resolution_stft_loss`."""
        return functional.multi_resolution_stft_loss(
            prediction,
            target,
            resolutions=self.resolutions,
            magnitude=self.magnitude,
            norm=self.norm,
            lengths=lengths,
            length_ratios=length_ratios,
            a_weighting=self.a_weighting,
            sample_rate=self.sample_rate,
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return (
            f"resolutions={self.resolutions}, magnitude={self.magnitude!r}, norm={self.norm!r}, "
            f"a_weighting={self.a_weighting}, sample_rate={self.sample_rate}"
        )
