"""f0 and voicing."""

import sys

import numpy as np
import pytest

from sonorant.cli import EXTRAS
from sonorant.data.audio import load_audio
from sonorant.data.fsdd import FsddCorpus, of_speakers
from sonorant.data.pitch import estimate_f0

RATES = [(8000, 80), (16000, 200), (22050, 256)]


def pulses(f0: np.ndarray | float, sample_rate: int, seconds: float = 0.5, level: float = 0.03) -> np.ndarray:
    """Twelve harmonics of a frequency that may change from sample to sample."""
    frequency = np.broadcast_to(f0, (round(seconds * sample_rate),))
    phase = 2 * np.pi * np.cumsum(frequency) / sample_rate
    harmonics = [np.where(k * frequency < sample_rate / 2, np.sin(k * phase + k * k), 0) for k in range(1, 13)]
    return level * np.sum(harmonics, 0)


def track(samples: np.ndarray, sample_rate: int = 8000, hop_length: int = 80) -> np.ndarray:
    return estimate_f0(samples, sample_rate, hop_length, floor=60.0, ceiling=500.0)


@pytest.mark.parametrize(("sample_rate", "hop_length"), RATES)
@pytest.mark.parametrize("f0", [65.0, 110.0, 220.0, 450.0])
def test_tones_are_found(f0: float, sample_rate: int, hop_length: int) -> None:
    found = track(pulses(f0, sample_rate), sample_rate, hop_length)
    assert len(found) == (sample_rate // 2 + hop_length // 2) // hop_length
    np.testing.assert_allclose(found[3:-3], f0, rtol=0.005)


@pytest.mark.parametrize(("sample_rate", "hop_length"), RATES)
def test_frames_are_centred_half_a_step_after_their_start(sample_rate: int, hop_length: int) -> None:
    # an octave a second: half a step of 10 ms would be 0.35 %
    times = np.arange(sample_rate) / sample_rate
    found = track(pulses(100 * 2**times, sample_rate, seconds=1), sample_rate, hop_length)[5:-5]
    centres = (np.arange(5, len(found) + 5) * hop_length + hop_length // 2) / sample_rate
    assert (found > 0).all()
    assert abs(np.log2(found / 100) - centres).mean() < 0.001


def test_what_is_not_periodic_is_unvoiced() -> None:
    random = np.random.default_rng(0)
    noise = random.normal(0, 0.1, 8000)
    assert not track(np.zeros(8000)).any()
    assert not track(np.full(8000, 0.5)).any()
    assert (track(noise) > 0).mean() < 0.05
    assert not track(pulses(120, 8000, level=1e-6)).any()  # the hum of a silence
    both = np.concatenate([noise[:4000], pulses(120, 8000) + random.normal(0, 0.005, 4000), noise[4000:]])
    voiced = track(both) > 0
    assert voiced[53:97].all()
    assert voiced[:47].mean() < 0.05
    assert voiced[103:].mean() < 0.05


@pytest.mark.parametrize("num_samples", [0, 1, 2, 39, 40, 41, 80, 200, 1000])
def test_the_shortest_clips_do_no_harm(num_samples: int) -> None:
    for samples in (np.zeros(num_samples), np.random.default_rng(0).uniform(-1, 1, num_samples)):
        found = track(samples)
        assert found.shape == ((num_samples + 40) // 80,)
        assert np.isfinite(found).all()


def test_speakers_are_found_at_their_pitch(fsdd: FsddCorpus) -> None:
    heights = {}
    for speaker in ("george", "jackson", "theo", "nicolas"):
        words = [utterance for utterance in of_speakers(fsdd.test, [speaker]) if utterance.text in ("nine", "one")]
        voiced = [(found := track(load_audio(utterance.path).samples))[found > 0] for utterance in words]
        heights[speaker] = np.median(np.concatenate(voiced))
    expected = {"george": 155, "jackson": 108, "theo": 131, "nicolas": 122}  # Praat's
    assert heights == pytest.approx(expected, rel=0.08)


def test_a_hiss_is_unvoiced_and_a_vowel_is_voiced(fsdd: FsddCorpus) -> None:
    hiss, vowel = [], []
    for utterance in fsdd.test:
        if utterance.text in ("six", "seven", "three"):
            samples = load_audio(utterance.path).samples.astype(np.float64)
            voiced = track(samples) > 0
            frames = np.stack([samples[i * 80 : i * 80 + 80] for i in range(len(samples) // 80)])
            spectrum = np.abs(np.fft.rfft(frames)) ** 2  # bins of 100 Hz
            low, high = spectrum[:, 1:10].sum(1), spectrum[:, 25:].sum(1)
            loud = low + high > 0.05 * (low + high).max()
            hiss += list(voiced[: len(low)][high > 10 * low])
            vowel += list(voiced[: len(low)][loud & (low > 100 * high)])
    assert min(len(hiss), len(vowel)) > 250
    assert np.mean(hiss) < 0.05
    assert np.mean(vowel) > 0.85


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyworld", None)
    with pytest.raises(ModuleNotFoundError, match=r"extra sonorant\[tts\]") as caught:
        track(np.zeros(800))
    assert EXTRAS[str(caught.value.name)] == "tts"
