"""Log mel, energy and f0 on one grid."""

import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.audio import AudioError, load_audio
from sonorant.data.features import FbankConfig
from sonorant.data.fsdd import FsddCorpus
from sonorant.data.parallel import map_in_order
from tests.reference.mel import mel_filterbank_by_weights

CONFIG = AcousticConfig(sample_rate=8000, n_fft=256, win_length=200, hop_length=80, n_mels=30)


def noise(num_samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.3, 0.3, num_samples).astype(np.float32)


def extract(samples: np.ndarray, config: AcousticConfig = CONFIG) -> AcousticFeatures:
    return AcousticFeatures.from_columns(config.extractor()(samples))


def frame_by_formula(samples: np.ndarray, index: int) -> tuple[np.ndarray, float]:
    """Log mel and energy of one frame in float64, by the definition of the transform."""
    centre, size, length = index * 80 + 40, len(samples), 200
    mirrored = [(place if place >= 0 else -place - 1) for place in range(centre - 100, centre + 100)]
    mirrored = [(place if place < size else 2 * size - 1 - place) for place in mirrored]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    frame = window * samples[mirrored].astype(np.float64)
    bins = np.exp(-2j * np.pi * np.outer(np.arange(129), np.arange(length)) / 256) @ frame
    mel = np.abs(bins) @ mel_filterbank_by_weights(256, 8000, 30).numpy()
    return np.log(np.maximum(mel, 1e-5)), float(np.log(np.sqrt((frame**2).sum() / (window**2).sum())))


def test_values_are_those_of_the_definition() -> None:
    samples = noise(833)
    features = extract(samples)
    assert features.log_mel.shape == (10, 30)
    for index in range(10):  # the first and the last ones look beyond the edges
        log_mel, energy = frame_by_formula(samples, index)
        np.testing.assert_allclose(features.log_mel[index], log_mel, atol=1e-4)
        assert float(features.energy[index]) == pytest.approx(energy, abs=1e-5)


@pytest.mark.parametrize(
    ("sample_rate", "hop_length"), [(8000, 80), (8000, 100), (22050, 256), (16000, 160), (8000, 1)]
)
def test_frames_are_those_of_the_filterbanks(sample_rate: int, hop_length: int) -> None:
    fbank = FbankConfig(sample_rate, n_mels=20, frame_shift_ms=1000 * hop_length / sample_rate).extractor()
    config = replace(CONFIG, sample_rate=sample_rate, n_fft=1024, hop_length=hop_length)
    extractor = config.extractor()
    for num_samples in [1, hop_length // 2 + 1, hop_length, 7 * hop_length - 1, 7 * hop_length + hop_length // 2 + 1]:
        samples = noise(num_samples)
        frames = len(fbank(samples))
        assert len(extractor(samples)) == frames == extractor.num_frames(num_samples) == fbank.num_frames(num_samples)


def test_a_click_is_in_the_same_frame_as_in_the_filterbanks() -> None:
    fbank = FbankConfig(8000, n_mels=20).extractor()
    for place in (5, 40, 79, 80, 395, 1000, 1599):
        samples = np.zeros(1600, dtype=np.float32)
        samples[place] = 0.5
        energy = extract(samples).energy
        assert int(energy.argmax()) == int(fbank(samples).sum(1).argmax()) == place // 80


def test_f0_and_its_flags_are_on_the_grid_of_the_rest() -> None:
    times = np.arange(8000) / 8000
    tone = sum(np.sin(2 * np.pi * 150 * k * times + k * k) for k in range(1, 10)) * 0.02
    samples = np.concatenate([noise(2000) / 30, tone[:4000], noise(2000, 1) / 30]).astype(np.float32)
    features = extract(samples)
    assert features.voiced.dtype == torch.bool
    assert torch.equal(features.voiced, features.f0 > 0)
    loud = features.energy > -4
    assert (loud == features.voiced).float().mean() > 0.95
    torch.testing.assert_close(features.f0[28:72], torch.full((44,), 150.0), rtol=0.005, atol=0)


def test_the_spectrum_can_be_had_back(fsdd: FsddCorpus) -> None:
    config = AcousticConfig(sample_rate=8000, n_fft=512, hop_length=80, n_mels=80)
    extractor, filters = config.extractor(), config.mel_filters()
    assert (filters[1:-1].sum(1) > 0).all()  # no bin is lost, save those at 0 and half the rate
    assert float(torch.linalg.cond(filters)) < 10
    samples = load_audio(fsdd.test[40].path).samples
    magnitudes = torch.fft.rfft(extractor._frames(samples)).abs()
    mel = extractor(samples)[:, :-2].exp()
    guess = (mel @ torch.linalg.pinv(filters)).clamp(min=0)
    assert float((guess - magnitudes).norm() / magnitudes.norm()) < 0.35
    assert float((guess @ filters - mel).norm() / mel.norm()) < 0.1


def test_silence_is_finite() -> None:
    features = extract(np.zeros(800, dtype=np.float32))
    assert (features.log_mel == np.log(np.float32(1e-5))).all()
    assert (features.energy == np.log(np.float32(1e-5))).all()
    assert not features.f0.any()
    assert not features.voiced.any()


def test_full_scale_is_energy_0() -> None:
    square = np.sign(np.sin(2 * np.pi * 100.5 * np.arange(1600) / 8000) + 1e-9).astype(np.float32)
    torch.testing.assert_close(extract(square).energy, torch.zeros(20), rtol=0, atol=1e-5)


@pytest.mark.parametrize("num_samples", [1, 39, 40, 100, 300])
def test_the_shortest_clips_do_no_harm(num_samples: int) -> None:
    features = extract(noise(num_samples), AcousticConfig(sample_rate=8000, n_fft=1024, hop_length=80))
    assert len(features.log_mel) == (num_samples + 40) // 80
    assert all(field.isfinite().all() for field in features)


def test_any_layout_of_floats_will_do_and_nothing_else() -> None:
    samples = noise(1600)
    expected = CONFIG.extractor()(samples)
    strided = np.stack([samples, samples], 1)[:, 0]
    for other in (samples.astype(np.float64), strided, samples[::-1][::-1], strided.astype(np.float64)):
        before = other.copy()
        assert torch.equal(CONFIG.extractor()(other), expected)
        assert np.array_equal(other, before)
    broken = samples.copy()
    broken[7] = np.nan
    cases: Sequence[tuple[np.ndarray, str]] = [
        ((samples * 32768).astype(np.int16), "samples are int16"),
        (samples.reshape(2, 800), r"samples have shape \(2, 800\)"),
        (samples[:0], "holds 0 samples"),
        (broken, "sample 7 is nan"),
    ]
    for bad, message in cases:
        with pytest.raises(AudioError, match=message):
            CONFIG.extractor()(bad)


def test_threads_and_processes_give_the_same(fsdd: FsddCorpus) -> None:
    extractor = CONFIG.extractor()
    clips = [load_audio(utterance.path).samples for utterance in fsdd.test[:20]]
    alone = [extractor(samples) for samples in clips]
    assert all(map(torch.equal, alone, map_in_order(extractor, clips, jobs=4)))
    assert torch.equal(pickle.loads(pickle.dumps(extractor))(clips[0]), alone[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hop_length": 0}, r"hop_length and win_length must lie in \[1, n_fft = 256\]"),
        ({"hop_length": 257}, "hop_length=257"),
        ({"win_length": 300}, "win_length=300"),
        ({"f_max": 5000.0}, "f_max 5000"),
        ({"f_max": -5000.0}, "f_max -1000"),
        ({"n_mels": 200}, "lies between two bins"),
        ({"f0_floor": 20.0}, "40 <= f0_floor"),
        ({"f0_ceiling": 50.0}, "f0_floor 60, f0_ceiling 50"),
        ({"f0_ceiling": 2500.0}, "f0_ceiling 2500"),
    ],
)
def test_impossible_settings_are_named(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **changes)


def test_f_max_counts_down_from_half_the_rate() -> None:
    assert torch.equal(replace(CONFIG, f_max=-400.0).mel_filters(), replace(CONFIG, f_max=3600.0).mel_filters())
    assert torch.equal(replace(CONFIG, f_max=0.0).mel_filters(), replace(CONFIG, f_max=4000.0).mel_filters())
