"""The fundamental frequency of speech, and where there is one."""

import math

import numpy as np
import numpy.typing as npt

__all__ = ["estimate_f0"]

Array = npt.NDArray[np.float64]

_MAX_PERIOD_MS = 5.0  # of the candidates: DIO joins those of neighbouring frames, and loses voicing when they are far
_MARGIN_SECONDS = 0.1  # of silence around the samples: WORLD's filters want something to run over
_MIN_CORRELATION = 0.5  # between one stretch and the next, from which on a frame is voiced
_PERIODS = 2  # that a stretch lasts
_BLOCK = 512  # frames that are compared at a time
_NOISE_POWER = 1e-7  # added to both stretches, -70 dB of full scale: the hum of a silence is not voiced


def estimate_f0(samples: Array, sample_rate: int, hop_length: int, *, floor: float, ceiling: float) -> Array:
    """Track the fundamental frequency with WORLD, and decide which frames are voiced.

    DIO and StoneMask find candidates at least every 5 ms. A frame keeps its own if the two periods before its centre
    resemble the two after it (normalised correlation of at least 0.5); all others are unvoiced. Against the frames on
    which Praat and pYIN agree, of 60 digits by six speakers and 30 sentences by a seventh, 4.6 % of the voiced frames
    and 5.6 % of the unvoiced ones are decided wrongly, and 0.3 % of the frequencies are off by a fifth or more. (DIO
    at steps of 10 ms without that decision: 6.6, 13.9 and 0.3 %; Harvest: 0.5, 54 and 0.6 % in 30 times the time.)

    Args:
        samples: float64 ``(samples,)``, finite.
        sample_rate: in Hz.
        hop_length: samples from one frame to the next; frame i is centred at ``i * hop_length + hop_length // 2``.
        floor: the lowest frequency that is looked for, in Hz.
        ceiling: the highest frequency that is looked for, in Hz.

    Returns:
        float64 ``(frames,)`` in Hz, 0 in unvoiced frames; ``(samples + hop_length // 2) // hop_length`` frames.

    Raises:
        ModuleNotFoundError: pyworld is not installed.

    References:
        Morise, Kawahara and Katayose 2009, "Fast and reliable F0 estimation method based on the period extraction of
        vocal fold vibration of singing voice and speech"; Morise, Yokomori and Ozawa 2016, "WORLD".
    """
    try:
        import pyworld
    except ModuleNotFoundError as error:
        message = "f0 is estimated with pyworld, which comes with the extra sonorant[tts]"
        raise ModuleNotFoundError(message, name=error.name) from error

    num_frames = (len(samples) + hop_length // 2) // hop_length
    margin = math.ceil(_MARGIN_SECONDS * sample_rate / hop_length)
    left, right = margin * hop_length - hop_length // 2, (margin + 1) * hop_length
    padded = np.pad(np.asarray(samples, dtype=np.float64), (left, right))
    steps = math.ceil(1000 * hop_length / sample_rate / _MAX_PERIOD_MS)
    candidates, times = pyworld.dio(
        padded, sample_rate, f0_floor=floor, f0_ceil=ceiling, frame_period=1000 * hop_length / sample_rate / steps
    )
    refined = pyworld.stonemask(padded, candidates, times, sample_rate)
    f0: Array = refined[steps * margin :: steps][:num_frames].copy()
    f0[~np.isfinite(f0) | (f0 < floor) | (f0 > ceiling)] = 0
    voiced = np.flatnonzero(f0)
    for first in range(0, len(voiced), _BLOCK):
        frames = voiced[first : first + _BLOCK]
        centres = frames * hop_length + margin * hop_length
        similar = _periodicity(padded, centres, sample_rate / f0[frames]) >= _MIN_CORRELATION
        f0[frames[~similar]] = 0
    return f0


def _periodicity(samples: Array, centres: npt.NDArray[np.int64], periods: Array) -> Array:
    """Normalised correlation of stretches around each centre that lie a period apart, rounded down or up.

    Args:
        samples: ``(samples,)``.
        centres: ``(frames,)``, indices.
        periods: ``(frames,)``, in samples.
    """
    widths = np.ceil(_PERIODS * periods).astype(np.int64)
    offsets = np.arange(int(widths.max()))
    inside = offsets < widths[:, None]
    best = np.full(len(centres), -1.0)
    for lags in (np.floor(periods).astype(np.int64), np.floor(periods).astype(np.int64) + 1):
        first = (centres - (widths + lags) // 2)[:, None] + offsets
        pair = []
        for places in (first, first + lags[:, None]):
            stretch = np.where(inside, samples[np.clip(places, 0, len(samples) - 1)], 0.0)
            pair.append(np.where(inside, stretch - stretch.sum(1, keepdims=True) / widths[:, None], 0.0))
        first_energy, second_energy = ((stretch**2).sum(1) + _NOISE_POWER * widths for stretch in pair)
        best = np.maximum(best, (pair[0] * pair[1]).sum(1) / np.sqrt(first_energy * second_energy))
    return best
