"""What speech is made from again: log mel spectrum, energy, f0 and voicing of every frame."""

from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sonorant.data.audio import Samples, check_samples
from sonorant.data.pitch import estimate_f0
from sonorant.functional import mel_filterbank
from sonorant.functional.mel import mel_edges

__all__ = ["AcousticConfig", "AcousticExtractor", "AcousticFeatures"]

LOG_FLOOR = 1e-5  # of magnitudes in mel bins, and of the root mean square
_REVISION = 1  # goes up whenever the same samples and settings give other features
_MIN_F0_FLOOR = 40.0  # Hz: below any voice; the silence that f0 is estimated in holds four such periods


class AcousticFeatures(NamedTuple):
    """The features of one recording, frame by frame.

    ``log_mel`` float32 ``(frames, n_mels)``, natural logs of magnitudes; ``energy`` float32 ``(frames,)``, the natural
    log of the root mean square (1 is a square wave of full scale, so that ``20 / log(10)`` times it is dBFS); ``f0``
    float32 ``(frames,)`` in Hz, 0 where unvoiced; ``voiced`` bool ``(frames,)``.
    """

    log_mel: Tensor
    energy: Tensor
    f0: Tensor
    voiced: Tensor

    @classmethod
    def from_columns(cls, columns: Tensor) -> "AcousticFeatures":
        """Take apart what an :class:`AcousticExtractor` gives.

        Args:
            columns: ``(frames, n_mels + 2)``.
        """
        f0 = columns[:, -1]
        return cls(columns[:, :-2], columns[:, -2], f0, f0 > 0)


@dataclass(frozen=True)
class AcousticConfig:
    """Log mel magnitudes, energy and f0, all on one grid of frames.

    Frame i is centred at sample ``i * hop_length + hop_length // 2``, as in :class:`~sonorant.data.features.Fbank`, so
    that alignments made on one kind of features hold for the other if the hops are the same. Apart from this grid the
    log mel spectrum is the one that HiFi-GAN and most vocoders take: a Hann window, magnitudes, triangles of area 1
    on Slaney's mel scale, natural log, floor 1e-5.

    Args:
        sample_rate: of the recordings, in Hz.
        n_fft: the size of the transform, in samples.
        win_length: the window, in samples, at most ``n_fft``; None takes ``n_fft``.
        hop_length: the step, in samples, at most ``n_fft``.
        n_mels: the number of mel bins.
        f_min: the lowest frequency of the mel bins, in Hz.
        f_max: the highest frequency of the mel bins, in Hz; counted down from half the sample rate when it is not
            positive.
        f0_floor: the lowest fundamental frequency, in Hz.
        f0_ceiling: the highest fundamental frequency, in Hz.
    """

    sample_rate: int = 22050
    n_fft: int = 1024
    win_length: int | None = None
    hop_length: int = 256
    n_mels: int = 80
    f_min: float = 0.0
    f_max: float = 0.0
    f0_floor: float = 60.0
    f0_ceiling: float = 500.0

    def __post_init__(self) -> None:
        window = self.n_fft if self.win_length is None else self.win_length
        if not 1 <= self.hop_length <= self.n_fft or not 1 <= window <= self.n_fft:
            raise ValueError(f"hop_length and win_length must lie in [1, n_fft = {self.n_fft}]; got {self}")
        if not _MIN_F0_FLOOR <= self.f0_floor < self.f0_ceiling <= self.sample_rate / 4:
            raise ValueError(
                f"f0 needs {_MIN_F0_FLOOR:g} <= f0_floor < f0_ceiling <= {self.sample_rate / 4:g} Hz (a quarter of the "
                f"sample rate); got f0_floor {self.f0_floor:g}, f0_ceiling {self.f0_ceiling:g}"
            )
        self.mel_filters()  # refuses mel bins that cannot be

    def extractor(self) -> "AcousticExtractor":
        """What computes these features."""
        return AcousticExtractor(self)

    def mel_filters(self) -> Tensor:
        """The filters, float32 ``(n_fft // 2 + 1, n_mels)``."""
        return mel_filterbank(
            self.n_fft, self.sample_rate, self.n_mels, f_min=self.f_min, f_max=self._top, dtype=torch.float32
        )

    @property
    def mel_frequencies(self) -> list[float]:
        """Where the mel bins have their peaks, in Hz."""
        return mel_edges(self.n_mels, self.f_min, self._top)[1:-1]

    @property
    def _top(self) -> float:
        return self.f_max if self.f_max > 0 else self.sample_rate / 2 + self.f_max


class AcousticExtractor:
    """Computes :class:`AcousticConfig` features. Edges are mirrored for the spectrum; f0 sees silence beyond them.

    Example:
        >>> import numpy as np
        >>> from sonorant.data.acoustic import AcousticConfig, AcousticExtractor, AcousticFeatures
        >>> extractor = AcousticExtractor(AcousticConfig(sample_rate=8000, n_fft=512, hop_length=80, n_mels=40))
        >>> times = np.arange(800) / 8000
        >>> pulses = sum(np.sin(2 * np.pi * 120 * k * times) for k in range(1, 20))
        >>> features = AcousticFeatures.from_columns(extractor(0.03 * pulses))
        >>> features.log_mel.shape, int(features.f0[5])
        (torch.Size([10, 40]), 120)
    """

    def __init__(self, config: AcousticConfig) -> None:
        self.config = config
        length = config.n_fft if config.win_length is None else config.win_length
        left = (config.n_fft - length) // 2
        window = torch.hann_window(length, dtype=torch.float32)
        self.window = torch.nn.functional.pad(window, (left, config.n_fft - length - left))
        self._filters = config.mel_filters()

    @property
    def sample_rate(self) -> int:
        """Of the samples, in Hz."""
        return self.config.sample_rate

    @property
    def num_features(self) -> int:
        """Columns: the mel bins, energy and f0."""
        return self.config.n_mels + 2

    @property
    def settings(self) -> dict[str, object]:
        """All that the features depend on besides the samples."""
        return {"extractor": "acoustic", "revision": _REVISION, **asdict(self.config)}

    def num_frames(self, num_samples: int) -> int:
        """Frames of a recording of so many samples."""
        return (num_samples + self.config.hop_length // 2) // self.config.hop_length

    def __call__(self, samples: Samples) -> Tensor:
        """Compute the features.

        Args:
            samples: ``(samples,)`` in [-1, 1], at the configured rate; float32 or float64.

        Returns:
            float32 ``(frames, n_mels + 2)``: log mel magnitudes, energy, f0. See
            :meth:`AcousticFeatures.from_columns`.

        Raises:
            AudioError: samples that are not one channel of finite floats, or none at all.
            ModuleNotFoundError: pyworld is not installed.
        """
        samples = check_samples(samples, "samples")
        config = self.config
        if self.num_frames(len(samples)) == 0:
            return torch.zeros(0, self.num_features)
        frames = self._frames(samples)
        magnitudes = torch.fft.rfft(frames).abs()
        log_mel = (magnitudes @ self._filters).clamp(min=LOG_FLOOR).log()
        power = frames.square().sum(1) / self.window.square().sum()
        energy = power.sqrt().clamp(min=LOG_FLOOR).log()
        f0 = estimate_f0(
            samples.astype(np.float64),
            config.sample_rate,
            config.hop_length,
            floor=config.f0_floor,
            ceiling=config.f0_ceiling,
        )
        return torch.cat([log_mel, energy.unsqueeze(1), torch.from_numpy(f0).float().unsqueeze(1)], 1)

    def _frames(self, samples: Samples) -> Tensor:
        """Windowed frames ``(frames, n_fft)``, mirrored at the edges as often as need be."""
        n_fft, hop = self.config.n_fft, self.config.hop_length
        num_frames = self.num_frames(len(samples))
        left = n_fft // 2 - hop // 2
        right = max(0, (num_frames - 1) * hop + n_fft - left - len(samples))
        padded = torch.from_numpy(np.pad(samples, (left, right), mode="symmetric"))
        return padded.unfold(0, n_fft, hop)[:num_frames] * self.window
