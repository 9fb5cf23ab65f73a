"""Waveforms from mel spectra without a trained model."""

import math

import numpy as np
import torch
from torch import Tensor

from sonorant.data.acoustic import LOG_FLOOR, AcousticConfig
from sonorant.data.audio import Samples
from sonorant.functional.griffin_lim import FrameGrid, griffin_lim, pulse_excitation

__all__ = ["GriffinLim"]

_SEED = 0  # of the noise: the same features always give the same samples


class GriffinLim:
    """Griffin and Lim's algorithm on the frames of an :class:`~sonorant.data.acoustic.AcousticExtractor`.

    With f0, it starts from pulses of that frequency and noise where there is none, which have the right phases and
    harmonics already. Without, it starts from phases of 0, and voices sound hoarse.

    Args:
        config: of the features.
        iterations: the more, the nearer the mel spectrum of the samples is to the given one.
        momentum: see :func:`sonorant.functional.griffin_lim.griffin_lim`.

    Example:
        >>> import numpy as np
        >>> from sonorant.data.acoustic import AcousticConfig
        >>> from sonorant.inference.vocoder import GriffinLim
        >>> config = AcousticConfig(sample_rate=8000, n_fft=256, hop_length=80, n_mels=20)
        >>> log_mel = config.extractor()(0.1 * np.sin(np.arange(1600) / 5))[:, :20]
        >>> GriffinLim(config)(log_mel).shape
        (1600,)
    """

    def __init__(self, config: AcousticConfig, *, iterations: int = 32, momentum: float = 0.7) -> None:
        if iterations < 0:
            raise ValueError(f"iterations must be at least 0; got {iterations}")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1); got {momentum}")
        self.config = config
        self.iterations = iterations
        self.momentum = momentum
        self._window = config.extractor().window
        self._filters = config.mel_filters()
        self._loudest = math.log(float(self._filters.sum(0).max() * self._window.sum()))

    def __call__(self, log_mel: Tensor, f0: Tensor | None = None) -> Samples:
        """Compute the samples.

        Args:
            log_mel: ``(frames, n_mels)``, as :class:`~sonorant.data.acoustic.AcousticFeatures` hold it. Bins at the
                floor are silent.
            f0: ``(frames,)`` in Hz, 0 where unvoiced, or None where it is not known.

        Returns:
            float32 ``(frames * hop_length,)``, clipped to [-1, 1].

        Raises:
            ValueError: other shapes, or a value that is not finite.
        """
        config = self.config
        if log_mel.dim() != 2 or log_mel.shape[1] != config.n_mels:
            raise ValueError(f"log_mel is {tuple(log_mel.shape)}; expected (frames, {config.n_mels})")
        if f0 is not None and f0.shape != log_mel.shape[:1]:
            raise ValueError(f"f0 is {tuple(f0.shape)}; expected ({len(log_mel)},)")
        for name, values in (("log_mel", log_mel), ("f0", f0)):
            if values is not None and not values.isfinite().all():
                raise ValueError(f"{name} holds values that are not finite")
        if len(log_mel) == 0:
            return np.zeros(0, dtype=np.float32)
        with torch.inference_mode():
            return self._samples(log_mel.float().cpu(), None if f0 is None else f0.float().cpu())

    def _samples(self, log_mel: Tensor, f0: Tensor | None) -> Samples:
        config = self.config
        silent = log_mel <= math.log(LOG_FLOOR) + 1e-3
        mel = torch.where(silent, 0.0, log_mel.clamp(max=self._loudest).exp())
        grid = FrameGrid(len(mel), self._window, config.hop_length)
        if f0 is None:
            start = torch.ones(len(mel), len(self._filters), dtype=torch.complex64)
        else:
            generator = torch.Generator().manual_seed(_SEED)
            start = grid.analyze(pulse_excitation(f0, config.sample_rate, config.hop_length, generator=generator))
        samples = griffin_lim(start, mel, self._filters, grid, iterations=self.iterations, momentum=self.momentum)
        return np.asarray(samples.clamp(-1, 1).numpy(), dtype=np.float32)
