"""Reading recordings: samples in [-1, 1], one channel, at the rate that was asked for, or a clear refusal."""

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Audio", "AudioError", "change_speed", "check_samples", "load_audio", "resample"]

Samples = npt.NDArray[np.float32]
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)  # what a stream writes into its header


class AudioError(ValueError):
    """A recording that cannot be used; the message names the file and the value."""


class Audio(NamedTuple):
    """Samples, float32 ``(samples,)`` in [-1, 1], and their rate in Hz."""

    samples: Samples
    sample_rate: int


def load_audio(
    path: str | Path, sample_rate: int | None = None, *, allow_resampling: bool = False, mix_channels: bool = False
) -> Audio:
    """Read a recording of any format that libsndfile knows.

    Args:
        path: the file.
        sample_rate: the rate that is needed, in Hz; None takes the file's own.
        allow_resampling: convert another rate with soxr; it is refused otherwise.
        mix_channels: average the channels of a recording that has several; it is refused otherwise.

    Returns:
        ``Audio``: float32 samples in [-1, 1], whatever the file's own format, and the rate.

    Raises:
        FileNotFoundError: no such file.
        AudioError: not audio, truncated, without samples, with several channels, at another rate, or holding NaN.
    """
    import soundfile

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    _refuse_truncated_wav(path)
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise AudioError(f"{path}: not a recording that can be read ({error.error_string})") from error
    if samples.shape[1] > 1 and not mix_channels:
        raise AudioError(f"{path}: has {samples.shape[1]} channels; one is expected (mix them down first)")
    mono = np.ascontiguousarray(samples.mean(1) if samples.shape[1] > 1 else samples[:, 0])
    mono = check_samples(mono, str(path))
    if sample_rate is not None and rate != sample_rate:
        if not allow_resampling:
            raise AudioError(f"{path}: the sample rate is {rate} Hz; {sample_rate} Hz is needed (resample it first)")
        mono, rate = resample(mono, rate, sample_rate), sample_rate
    return Audio(mono, rate)


def check_samples(samples: npt.ArrayLike, name: str) -> Samples:
    """Samples as float32, or a refusal that says what is wrong with them.

    Args:
        samples: one-dimensional, floating, in [-1, 1]. Integers are refused: their scale is not known.
        name: the file or argument, for the message.

    Raises:
        AudioError: not one-dimensional, not floating, empty, or not finite.
    """
    array = np.asarray(samples)
    if array.ndim != 1:
        raise AudioError(f"{name}: samples have shape {array.shape}; one channel, (samples,), is expected")
    if not np.issubdtype(array.dtype, np.floating):
        raise AudioError(f"{name}: samples are {array.dtype}; floats in [-1, 1] are expected")
    if array.size == 0:
        raise AudioError(f"{name}: holds 0 samples")
    if not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise AudioError(f"{name}: sample {index} is {array[index]}")
    return array.astype(np.float32, copy=False)


def resample(samples: Samples, from_rate: float, to_rate: float) -> Samples:
    """Convert between sample rates with soxr's high quality filter.

    Args:
        samples: float32 ``(samples,)``.
        from_rate: in Hz.
        to_rate: in Hz.
    """
    import soxr

    return np.asarray(soxr.resample(samples, from_rate, to_rate), dtype=np.float32)


def change_speed(samples: Samples, factor: float) -> Samples:
    """Play a recording faster (``factor`` > 1) or slower, which moves its pitch as well.

    Args:
        samples: float32 ``(samples,)``.
        factor: 1.1 makes it a tenth faster.

    References:
        Ko, Peddinti, Povey and Khudanpur 2015, "Audio augmentation for speech recognition".
    """
    if factor <= 0:
        raise ValueError(f"factor must be positive; got {factor}")
    return samples if factor == 1 else resample(samples, factor, 1.0)


def _refuse_truncated_wav(path: Path) -> None:
    """libsndfile reads what is left of a cut-off WAV without a word."""
    with path.open("rb") as file:
        head = file.read(12)
        if len(head) < 12 or head[:4] != b"RIFF" or head[8:] != b"WAVE":
            return
        size = path.stat().st_size
        while len(chunk := file.read(8)) == 8:
            name, declared = struct.unpack("<4sI", chunk)
            start = file.tell()
            if name == b"data":
                if declared not in _UNKNOWN_SIZES and declared > size - start:
                    raise AudioError(
                        f"{path}: truncated: its header declares {declared} bytes of samples, "
                        f"but the file holds {size - start}"
                    )
                return
            file.seek(start + declared + declared % 2)
        raise AudioError(f"{path}: truncated: a WAV header without samples")
