"""Acoustic features."""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sonorant.data.audio import Samples

__all__ = ["Fbank", "FbankConfig"]


@dataclass(frozen=True)
class FbankConfig:
    """Log mel filterbank energies as Kaldi computes them.

    Args:
        sample_rate: of the recordings, in Hz.
        n_mels: the number of mel bins.
        f_min: the lowest frequency, in Hz.
        f_max: the highest frequency, in Hz; counted down from half the sample rate when it is not positive.
        frame_length_ms: the window, in milliseconds.
        frame_shift_ms: the step, in milliseconds.
    """

    sample_rate: int = 16000
    n_mels: int = 80
    f_min: float = 20.0
    f_max: float = -400.0
    frame_length_ms: float = 25.0
    frame_shift_ms: float = 10.0

    def __post_init__(self) -> None:
        nyquist = self.sample_rate / 2
        top = self.f_max if self.f_max > 0 else nyquist + self.f_max
        if not 0 <= self.f_min < top <= nyquist:
            raise ValueError(
                f"the mel bins need 0 <= f_min < f_max <= {nyquist:g} Hz; got f_min {self.f_min:g}, f_max {top:g}"
            )
        if self.n_mels < 1 or self.frame_length_ms <= 0 or self.frame_shift_ms <= 0:
            raise ValueError(f"n_mels, frame_length_ms and frame_shift_ms must be positive; got {self}")

    def extractor(self) -> "Fbank":
        """What computes these features."""
        return Fbank(self)


class Fbank:
    """Computes :class:`FbankConfig` features with kaldi-native-fbank: no dither, edges mirrored, energy floor 1e-10.

    Example:
        >>> import numpy as np
        >>> from sonorant.data.features import Fbank, FbankConfig
        >>> fbank = Fbank(FbankConfig(sample_rate=8000, n_mels=23))
        >>> fbank(np.zeros(800, dtype=np.float32)).shape
        torch.Size([10, 23])
    """

    def __init__(self, config: FbankConfig) -> None:
        import kaldi_native_fbank as knf

        self.config = config
        self._options = options = knf.FbankOptions()
        options.frame_opts.samp_freq = config.sample_rate
        options.frame_opts.frame_length_ms = config.frame_length_ms
        options.frame_opts.frame_shift_ms = config.frame_shift_ms
        options.frame_opts.dither = 0.0
        options.frame_opts.snip_edges = False
        options.mel_opts.num_bins = config.n_mels
        options.mel_opts.low_freq = config.f_min
        options.mel_opts.high_freq = config.f_max
        options.energy_floor = 1e-10

    def __reduce__(self) -> tuple[type["Fbank"], tuple[FbankConfig]]:
        """For worker processes: the options of kaldi-native-fbank cannot be pickled."""
        return Fbank, (self.config,)

    @property
    def sample_rate(self) -> int:
        """Of the samples, in Hz."""
        return self.config.sample_rate

    @property
    def num_features(self) -> int:
        """Columns: the mel bins."""
        return self.config.n_mels

    @property
    def settings(self) -> dict[str, object]:
        """All that the features depend on besides the samples."""
        return asdict(self.config)

    def num_frames(self, num_samples: int) -> int:
        """Frames of a recording of so many samples."""
        shift = round(self.config.sample_rate * self.config.frame_shift_ms / 1000)
        return (num_samples + shift // 2) // shift

    def __call__(self, samples: Samples) -> Tensor:
        """Compute the features.

        Args:
            samples: ``(samples,)`` in [-1, 1], at the configured rate.

        Returns:
            float32 ``(frames, n_mels)``, log energies.
        """
        import kaldi_native_fbank as knf

        computer = knf.OnlineFbank(self._options)
        computer.accept_waveform(self.config.sample_rate, samples.tolist())
        computer.input_finished()
        frames: list[npt.NDArray[np.float32]] = [computer.get_frame(i) for i in range(computer.num_frames_ready)]
        if not frames:
            return torch.zeros(0, self.config.n_mels)
        return torch.from_numpy(np.stack(frames))
