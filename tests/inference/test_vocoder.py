"""Griffin-Lim on the library's features: real recordings come back, silence stays silent, nothing wraps."""

import time

import numpy as np
import pytest
import torch

from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.fsdd import FsddCorpus
from sonorant.functional.griffin_lim import FrameGrid
from sonorant.inference import GriffinLim

CONFIG = AcousticConfig(sample_rate=8000, n_fft=512, win_length=400, hop_length=80, n_mels=40, f0_ceiling=400)


@pytest.fixture(scope="module")
def recordings(fsdd: FsddCorpus) -> list[AcousticFeatures]:
    """Two digits of each of six speakers."""
    extract = CONFIG.extractor()
    return [AcousticFeatures.from_columns(extract(u.load_audio(8000).samples)) for u in fsdd.test[::25]]


def again(samples: np.ndarray) -> AcousticFeatures:
    return AcousticFeatures.from_columns(CONFIG.extractor()(samples))


def distance(mine: AcousticFeatures, other: AcousticFeatures) -> float:
    """Mean absolute difference of log mel magnitudes."""
    return float((mine.log_mel - other.log_mel).abs().mean())


def pseudo_inverse(features: AcousticFeatures) -> np.ndarray:
    """What is usual: magnitudes by the pseudo-inverse, phases of 0, the inverse transform."""
    magnitudes = (features.log_mel.exp() @ torch.linalg.pinv(CONFIG.mel_filters())).clamp(min=0)
    grid = FrameGrid(len(magnitudes), CONFIG.extractor().window, CONFIG.hop_length)
    return grid.synthesize(magnitudes.to(torch.complex64)).clamp(-1, 1).numpy()


def test_real_recordings_come_back(recordings: list[AcousticFeatures]) -> None:
    vocoder = GriffinLim(CONFIG)
    found, blind, naive, voicing, octaves = [], [], [], [], []
    for features in recordings:
        spoken = again(vocoder(features.log_mel, features.f0))
        found.append(distance(spoken, features))
        blind.append(distance(again(vocoder(features.log_mel)), features))
        naive.append(distance(again(pseudo_inverse(features)), features))
        voicing.append((spoken.voiced != features.voiced).float().mean())
        both = spoken.voiced & features.voiced
        octaves += (spoken.f0[both] / features.f0[both]).log2().abs().tolist()
    assert np.mean(found) < 0.03  # measured: 0.026, which is 0.23 dB
    assert np.mean(found) < np.mean(blind) < 0.04  # 0.034
    assert np.mean(naive) > 10 * np.mean(found)
    assert np.median(octaves) < 0.1 / 12
    assert np.mean(voicing) < 0.12  # 0.10; without f0 0.31


def test_it_is_much_faster_than_speech(recordings: list[AcousticFeatures]) -> None:
    vocoder = GriffinLim(CONFIG)
    vocoder(recordings[0].log_mel, recordings[0].f0)
    start = time.process_time()
    seconds = sum(len(vocoder(features.log_mel, features.f0)) for features in recordings) / 8000
    assert time.process_time() - start < 0.5 * seconds  # measured: 0.05


def test_the_same_features_give_the_same_samples(recordings: list[AcousticFeatures]) -> None:
    features = recordings[3]
    first = GriffinLim(CONFIG)(features.log_mel, features.f0)
    torch.manual_seed(123)
    assert np.array_equal(GriffinLim(CONFIG)(features.log_mel, features.f0), first)
    assert first.dtype == np.float32
    assert len(first) == len(features.f0) * 80


@pytest.mark.parametrize("voiced", [True, False, None])
def test_silence_stays_silent(voiced: bool | None) -> None:
    silence = CONFIG.extractor()(np.zeros(4000, dtype=np.float32))[:, :40]
    f0 = None if voiced is None else torch.full((50,), 100.0 * voiced)
    assert not GriffinLim(CONFIG)(silence, f0).any()


def test_silence_and_sound(recordings: list[AcousticFeatures]) -> None:
    log_mel, f0 = recordings[0].log_mel, recordings[0].f0
    silence = torch.full((50, 40), float(np.log(1e-5)))
    samples = GriffinLim(CONFIG)(torch.cat([silence, log_mel]), torch.cat([torch.zeros(50), f0]))
    assert np.isfinite(samples).all()
    assert not samples[: 40 * 80].any()
    assert samples[50 * 80 :].any()


def test_what_is_too_loud_is_clipped() -> None:
    samples = GriffinLim(CONFIG)(torch.full((30, 40), 3.0), torch.full((30,), 100.0))
    assert samples.max() == 1 >= -samples.min()
    loudest = GriffinLim(CONFIG)(torch.full((30, 40), 1000.0))
    assert np.isfinite(loudest).all()
    assert np.abs(loudest).max() == 1


def test_any_number_of_frames() -> None:
    vocoder = GriffinLim(CONFIG)
    for frames in (0, 1, 2, 7):
        samples = vocoder(torch.full((frames, 40), -4.0), torch.full((frames,), 100.0))
        assert samples.shape == (80 * frames,)
        assert np.isfinite(samples).all()


def test_what_cannot_be_is_named() -> None:
    vocoder = GriffinLim(CONFIG)
    with pytest.raises(ValueError, match=r"log_mel is \(5, 39\); expected \(frames, 40\)"):
        vocoder(torch.zeros(5, 39))
    with pytest.raises(ValueError, match=r"f0 is \(4,\); expected \(5,\)"):
        vocoder(torch.zeros(5, 40), torch.zeros(4))
    with pytest.raises(ValueError, match="log_mel holds values that are not finite"):
        vocoder(torch.full((5, 40), torch.nan))
    with pytest.raises(ValueError, match="f0 holds values that are not finite"):
        vocoder(torch.zeros(5, 40), torch.full((5,), torch.inf))
    with pytest.raises(ValueError, match="iterations must be at least 0; got -1"):
        GriffinLim(CONFIG, iterations=-1)
    with pytest.raises(ValueError, match=r"momentum must lie in \[0, 1\); got 1"):
        GriffinLim(CONFIG, momentum=1.0)
