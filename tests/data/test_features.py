"""Kaldi's filterbanks."""

import numpy as np
import pytest
import torch

from sonorant.data.features import Fbank, FbankConfig

CONFIG = FbankConfig(sample_rate=8000, n_mels=23)


@pytest.mark.parametrize("num_samples", [1, 39, 40, 119, 120, 800, 8037])
def test_the_number_of_frames_is_known_beforehand(num_samples: int) -> None:
    fbank = Fbank(CONFIG)
    features = fbank(np.random.default_rng(0).standard_normal(num_samples).astype(np.float32) * 0.1)
    assert features.shape == (fbank.num_frames(num_samples), 23)


def test_silence_sits_at_the_energy_floor_and_nothing_is_random() -> None:
    fbank = Fbank(CONFIG)
    silence = fbank(np.zeros(1600, dtype=np.float32))
    assert silence.isfinite().all()
    assert torch.equal(silence, fbank(np.zeros(1600, dtype=np.float32)))
    assert (silence < -15).all()


def test_a_tone_is_loudest_in_its_own_bin() -> None:
    fbank = Fbank(CONFIG)
    mel = 1127 * np.log(1 + np.array([20, 3600]) / 700)
    edges = 700 * (np.exp(np.linspace(*mel, 25) / 1127) - 1)
    for index in (4, 12, 20):
        tone = np.sin(2 * np.pi * edges[index + 1] * np.arange(4000) / 8000).astype(np.float32) * 0.3
        assert int(fbank(tone)[20].argmax()) == index


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"f_max": 5000.0}, "f_max 5000"), ({"f_min": -1.0}, "f_min -1"), ({"n_mels": 0}, "n_mels")],
)
def test_impossible_settings_are_named(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FbankConfig(sample_rate=8000, **changes)
