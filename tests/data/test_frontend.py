"""Recordings on their way into a model."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from sonorant.data.audio import AudioError
from sonorant.data.features import FbankConfig
from sonorant.data.frontend import Frontend, RecordingConfig, pad_edges
from sonorant.data.manifest import Utterance

FEATURES = FbankConfig(sample_rate=8000, n_mels=23)


def tone(seconds: float = 0.1, level: float = 0.3) -> np.ndarray:
    times = np.arange(round(seconds * 8000)) / 8000
    return (level * np.sin(2 * np.pi * 440 * times)).astype(np.float32)


def level_db(samples: np.ndarray) -> float:
    return float(10 * np.log10((samples.astype(np.float64) ** 2).mean()))


def test_edges_surround_the_recording_and_are_the_same_every_time() -> None:
    samples = tone()
    padded = pad_edges(samples, 8000, 1600)
    assert padded.dtype == np.float32
    assert len(padded) == len(samples) + 3200
    assert np.array_equal(padded[1600:-1600], samples)
    assert np.array_equal(padded, pad_edges(samples, 8000, 1600))
    assert not np.array_equal(padded[:1600], pad_edges(tone(0.11), 8000, 1600)[:1600])
    assert pad_edges(samples, 8000, 0) is samples


def test_the_level_of_the_edges_is_that_of_the_background() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-3, 8000).astype(np.float32)
    recording = np.concatenate([noise[:4000], tone(), noise[4000:]])
    assert level_db(pad_edges(recording, 8000, 8000)[:8000]) == pytest.approx(level_db(noise), abs=3)
    lower = pad_edges(recording, 8000, 8000, level_db=-20)[:8000]
    assert level_db(lower) == pytest.approx(level_db(pad_edges(recording, 8000, 8000)[:8000]) - 20, abs=0.5)
    # a clip without background: well below the word; digital silence: one step of 16 bits
    assert level_db(pad_edges(tone(), 8000, 8000)[:8000]) == pytest.approx(level_db(tone()) - 35, abs=0.5)
    assert level_db(pad_edges(np.zeros(80, np.float32), 8000, 8000)) == pytest.approx(20 * np.log10(1 / 32768), abs=0.5)


@pytest.mark.parametrize("length", [1, 79, 80, 801])
def test_the_shortest_clips_become_long_enough(length: int) -> None:
    frontend = Frontend(FEATURES, RecordingConfig(edge_seconds=0.2))
    features = frontend(tone(1)[:length])
    assert len(features) == frontend.num_frames(length) >= 40
    assert torch.isfinite(features).all()


def test_rates_and_channels_are_refused_unless_asked_for(write_wav: Callable[..., Path]) -> None:
    fast = Utterance("a", write_wav("a.wav", sample_rate=16000), "x")
    stereo = Utterance("b", write_wav("b.wav", channels=2), "x")
    for utterance in (fast, stereo):
        with pytest.raises(AudioError):
            Frontend(FEATURES).load(utterance)
    frontend = Frontend(FEATURES, RecordingConfig(resample=True, mix_channels=True))
    for utterance in (fast, stereo):
        assert frontend.load(utterance).samples.shape == (8000,)
        assert frontend.load(utterance).sample_rate == 8000


def test_it_goes_to_worker_processes() -> None:
    frontend = Frontend(FEATURES, RecordingConfig(edge_seconds=0.1))
    assert torch.equal(pickle.loads(pickle.dumps(frontend))(tone()), frontend(tone()))


def test_impossible_edges_are_refused() -> None:
    with pytest.raises(ValueError, match=r"edge_seconds must lie in \[0, 60\); got -1"):
        RecordingConfig(edge_seconds=-1)
