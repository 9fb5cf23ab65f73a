"""Recordings: read as samples in [-1, 1], one channel, at the rate that was asked for, or refused; and written."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Audio", "AudioError", "change_speed", "check_samples", "load_audio", "resample", "write_audio"]

Samples = npt.NDArray[np.float32]
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)  # what a stream writes into its header
_LARGEST_OGG_PAGE = 27 + 255 + 255 * 255  # bytes
_FULL_SCALE = 32768  # of 16-bit samples
_OVERSHOOT = 0.1  # seconds by which a table may reach beyond the end: times are rounded


class AudioError(ValueError):
    """A recording that cannot be used; the message names the file and the value.

    Args:
        message: what is wrong.
        kind: in a word or two, so that refusals can be counted.
    """

    def __init__(self, message: str, kind: str = "unreadable") -> None:
        super().__init__(message)
        self.kind = kind


class Audio(NamedTuple):
    """Samples, float32 ``(samples,)`` in [-1, 1], and their rate in Hz."""

    samples: Samples
    sample_rate: int


def load_audio(
    path: str | Path,
    sample_rate: int | None = None,
    *,
    start: float = 0.0,
    duration: float | None = None,
    channel: int | None = None,
    allow_resampling: bool = False,
    mix_channels: bool = False,
    max_duration: float | None = None,
) -> Audio:
    """Read a recording, or a stretch of it, of any format that libsndfile knows.

    Args:
        path: the file.
        sample_rate: the rate that is needed, in Hz; None takes the file's own.
        start: where the stretch begins, in seconds; what lies before it is not read.
        duration: of the stretch, in seconds; None reads to the end. It may reach 0.1 s beyond the end, as rounded
            times do.
        channel: the one to read, counted from 0, of a recording that has several.
        allow_resampling: convert another rate with soxr; it is refused otherwise.
        mix_channels: average the channels of a recording that has several; it is refused otherwise.
        max_duration: refuse what is longer, in seconds, before it is read.

    Returns:
        ``Audio``: float32 samples in [-1, 1], whatever the file's own format, and the rate.

    Raises:
        FileNotFoundError: no such file.
        AudioError: not audio, truncated, without samples, with several channels, at another rate, too long, holding
            NaN, or shorter than the stretch.
    """
    path = Path(path)
    with _open(path) as file:
        rate = file.samplerate
        if channel is not None and channel >= file.channels:
            raise AudioError(f"{path}: has {file.channels} channels; there is no channel {channel}", "stretch")
        if file.channels > 1 and channel is None and not mix_channels:
            message = f"{path}: has {file.channels} channels; one is expected (mix them down first)"
            raise AudioError(message, "channels")
        if sample_rate is not None and rate != sample_rate and not allow_resampling:
            message = f"{path}: the sample rate is {rate} Hz; {sample_rate} Hz is needed (resample it first)"
            raise AudioError(message, "sample rate")
        samples = _read_stretch(file, path, start, duration, max_duration)
    mono = samples[:, channel or 0] if channel is not None or samples.shape[1] == 1 else samples.mean(1)
    mono = check_samples(np.ascontiguousarray(mono), str(path))
    if sample_rate is not None and rate != sample_rate:
        mono, rate = resample(mono, rate, sample_rate), sample_rate
    return Audio(mono, rate)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """The open recording; what libsndfile cannot read is refused, now or while it is read."""
    import soundfile

    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    _refuse_truncated(path)
    try:
        with soundfile.SoundFile(path) as file:
            yield file
    except soundfile.LibsndfileError as error:
        raise AudioError(f"{path}: not a recording that can be read ({error.error_string})") from error


def _read_stretch(file: Any, path: Path, start: float, duration: float | None, max_duration: float | None) -> Samples:
    """Samples ``(samples, channels)`` of a stretch of an open recording."""
    rate, total = file.samplerate, file.frames
    first = round(start * rate)
    last = total if duration is None else round((start + duration) * rate)
    if first < 0 or last > total + _OVERSHOOT * rate or (first >= total and start > 0):
        end = "its end" if duration is None else f"{start + duration:g} s"
        message = f"{path}: from {start:g} s to {end} is needed, and it ends at {total / rate:g} s"
        raise AudioError(message, "stretch")
    last = min(last, total)
    if max_duration is not None and last - first > max_duration * rate:
        message = f"{path}: lasts {(last - first) / rate:.2f} s; at most {max_duration:g} s are allowed"
        raise AudioError(message, "duration")
    if first:
        file.seek(first)
    samples: Samples = file.read(last - first, dtype="float32", always_2d=True)
    if len(samples) < last - first:
        message = f"{path}: truncated: its header declares {total} samples, but it ends at {first + len(samples)}"
        raise AudioError(message, "truncated")
    return samples


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
        raise AudioError(f"{name}: samples have shape {array.shape}; one channel, (samples,), is expected", "channels")
    if not np.issubdtype(array.dtype, np.floating):
        raise AudioError(f"{name}: samples are {array.dtype}; floats in [-1, 1] are expected")
    if array.size == 0:
        raise AudioError(f"{name}: holds 0 samples", "no samples")
    if not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise AudioError(f"{name}: sample {index} is {array[index]}", "samples")
    return array.astype(np.float32, copy=False)


def write_audio(path: str | Path, samples: npt.ArrayLike, sample_rate: int) -> None:
    """Write a recording, of 16 bits where the format is lossless; a file that is there is replaced in one step.

    Args:
        path: its ending tells the format, such as ``.wav`` or ``.flac``.
        samples: ``(samples,)``, floating; what is beyond [-1, 1] is clipped.
        sample_rate: in Hz.

    Raises:
        AudioError: samples that cannot be written, or an ending that is not known.
    """
    import soundfile

    path = Path(path)
    ending = path.suffix[1:].upper()
    if ending not in soundfile.available_formats():
        raise AudioError(f"{path}: the ending does not tell a format that can be written; give .wav or .flac")
    # as integers: the conversion of floats is the library's own and not exact
    scaled = np.round(check_samples(samples, str(path)).astype(np.float64) * _FULL_SCALE)
    whole = np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1).astype(np.int16)
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        soundfile.write(file, whole, sample_rate, format=ending)
    part.replace(path)


def cut_frames(samples: Samples, size: int) -> npt.NDArray[np.float64]:
    """Frames one after the other, without what is left at the end.

    Args:
        samples: float32 ``(samples,)``.
        size: samples of a frame.

    Returns:
        float64 ``(frames, size)``.
    """
    count = len(samples) // size
    return samples[: count * size].astype(np.float64).reshape(count, size)


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


def _refuse_truncated(path: Path) -> None:
    """libsndfile reads what is left of a cut-off WAV or Ogg file without a word."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(12)
        if head[:4] == b"RIFF" and head[8:] == b"WAVE":
            _refuse_truncated_wav(path, file, size)
        elif head[:4] == b"OggS":
            file.seek(max(0, size - _LARGEST_OGG_PAGE))
            _refuse_truncated_ogg(path, file.read())


def _refuse_truncated_wav(path: Path, file: BinaryIO, size: int) -> None:
    while len(chunk := file.read(8)) == 8:
        name, declared = struct.unpack("<4sI", chunk)
        start = file.tell()
        if name == b"data":
            if declared not in _UNKNOWN_SIZES and declared > size - start:
                raise AudioError(
                    f"{path}: truncated: its header declares {declared} bytes of samples, "
                    f"but the file holds {size - start}",
                    "truncated",
                )
            return
        file.seek(start + declared + declared % 2)
    raise AudioError(f"{path}: truncated: a WAV header without samples", "truncated")


def _refuse_truncated_ogg(path: Path, end: bytes) -> None:
    """The last page (RFC 3533, section 6) must be whole, and marked as the last."""
    page = end[end.rfind(b"OggS") :]
    segments = page[26] if len(page) > 26 else 0
    is_last = len(page) > 26 and page[5] & 4
    if not is_last or len(page) < 27 + segments + sum(page[27 : 27 + segments]):
        raise AudioError(f"{path}: truncated: it breaks off before the end of its stream", "truncated")
