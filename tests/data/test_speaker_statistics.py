"""f0 and energy by speaker."""

import json
import math
import tracemalloc
from collections.abc import Iterator

import pytest
import torch

from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.feature_store import FeatureStore
from sonorant.data.frontend import Frontend
from sonorant.data.fsdd import FsddCorpus, of_speakers
from sonorant.data.speaker_statistics import AcousticStatistics, SpeakerStatistics, collect_statistics


def recording(num_frames: int, height: float = 5.0, share: float = 0.7, seed: int = 0) -> AcousticFeatures:
    """Log f0 about a height; in unvoiced frames the energy is far lower."""
    generator = torch.Generator().manual_seed(seed)
    voiced = torch.rand(num_frames, generator=generator) < share
    f0 = torch.where(voiced, (height + 0.2 * torch.randn(num_frames, generator=generator)).exp(), 0.0)
    energy = torch.where(voiced, -3 + 0.5 * torch.randn(num_frames, generator=generator), -11.0)
    return AcousticFeatures(torch.zeros(num_frames, 4), energy, f0, voiced)


def direct(recordings: list[AcousticFeatures]) -> SpeakerStatistics:
    """With everything at once."""
    logs = torch.cat([features.f0[features.voiced].double().log() for features in recordings])
    energy = torch.cat([features.energy[features.voiced].double() for features in recordings])
    numbers = [logs.mean(), logs.std(correction=0), energy.mean(), energy.std(correction=0)]
    return SpeakerStatistics(len(logs), *map(float, numbers))


def test_sums_give_what_all_frames_at_once_give() -> None:
    of_ann = [recording(100 + 37 * seed, 5.3, seed=seed) for seed in range(5)]
    of_ben = [recording(400, 4.7, seed=9)]  # one recording
    pairs = [("ann", features) for features in of_ann[:3]] + [("ben", of_ben[0])] + [("ann", f) for f in of_ann[3:]]
    statistics = collect_statistics(iter(pairs))
    assert list(statistics.speakers) == ["ann", "ben"]
    for actual, expected in (
        (statistics.of("ann"), direct(of_ann)),
        (statistics.of("ben"), direct(of_ben)),
        (statistics.corpus, direct(of_ann + of_ben)),
    ):
        assert actual.num_frames == expected.num_frames
        assert tuple(actual) == pytest.approx(tuple(expected), abs=1e-6)


def test_unvoiced_frames_count_for_nothing() -> None:
    voiced = recording(500)
    silence = recording(5000, share=0.0)
    assert collect_statistics([("a", voiced), ("a", silence)]) == collect_statistics([("a", voiced)])


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_speaker_with_hardly_any_voice_gets_the_statistics_of_the_corpus(share: float) -> None:
    whispered = recording(100, 3.0, share=share)
    count = int(whispered.voiced.sum())
    assert count < 50
    statistics = collect_statistics([("ann", recording(500)), ("whisper", whispered)])
    assert statistics.of("whisper") == statistics.corpus._replace(num_frames=count)
    assert collect_statistics([("ann", recording(500)), ("whisper", recording(500, 3.0))]).of(
        "whisper"
    ).log_f0_mean == pytest.approx(3.0, abs=0.05)


def test_a_corpus_without_voice_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the 2 recordings has a voiced frame"):
        collect_statistics([("a", recording(80, share=0)), ("b", recording(90, share=0))])
    with pytest.raises(ValueError, match="none of the 0 recordings"):
        collect_statistics([])


def test_one_speaker_without_a_name() -> None:
    statistics = collect_statistics([(None, recording(300)), ("", recording(300, seed=1))])
    assert list(statistics.speakers) == [""]
    assert statistics.of(None) == statistics.of("") == statistics.corpus
    with pytest.raises(ValueError, match="no speaker 'ann'; known are ''"):
        statistics.of("ann")


def test_values_are_normalised_and_had_back() -> None:
    features = recording(600)
    statistics = collect_statistics([("ann", features)]).of("ann")
    f0, energy = statistics.normalize_f0(features.f0), statistics.normalize_energy(features.energy)
    for values in (f0, energy):
        assert float(values[features.voiced].mean()) == pytest.approx(0, abs=1e-4)
        assert float(values[features.voiced].std()) == pytest.approx(1, abs=1e-2)
    assert not f0[~features.voiced].any()
    noisy = torch.where(features.voiced, f0, torch.nan)  # what a model says where nothing is voiced
    torch.testing.assert_close(statistics.denormalize_f0(noisy, features.voiced), features.f0)
    torch.testing.assert_close(statistics.denormalize_energy(energy), features.energy)


def test_gradients_are_finite_in_unvoiced_frames() -> None:
    statistics = SpeakerStatistics(100, 5.0, 0.2, -3.0, 0.5)
    f0 = torch.tensor([0.0, 120.0], requires_grad=True)
    statistics.normalize_f0(f0).sum().backward()
    assert f0.grad is not None
    assert f0.grad.isfinite().all()
    assert f0.grad[0] == 0


def test_a_single_tone_is_not_divided_by_0() -> None:
    f0 = torch.full((100,), 120.0)
    tone = AcousticFeatures(torch.zeros(100, 4), torch.full((100,), -2.0), f0, f0 > 0)
    statistics = collect_statistics([("a", tone)]).of("a")
    assert statistics.log_f0_std == statistics.energy_std == 0.01
    torch.testing.assert_close(statistics.normalize_f0(f0), torch.zeros(100), rtol=0, atol=1e-3)


def test_it_goes_through_json() -> None:
    statistics = collect_statistics([("ann", recording(300)), ("ben", recording(20))])
    assert AcousticStatistics.from_json(json.loads(json.dumps(statistics.to_json()))) == statistics


def test_memory_does_not_grow_with_the_corpus() -> None:
    def corpus(number: int) -> Iterator[tuple[str, AcousticFeatures]]:
        for seed in range(number):
            yield f"speaker {seed % 3}", recording(2000, seed=seed)

    peaks = []
    for number in (10, 300):
        tracemalloc.start()
        collect_statistics(corpus(number))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 50_000


def test_speakers_of_a_corpus_from_the_cache(fsdd: FsddCorpus) -> None:
    utterances = of_speakers(fsdd.test, ["george", "lucas"])
    store = FeatureStore(Frontend(AcousticConfig(sample_rate=8000, n_fft=256, hop_length=80, n_mels=20)), None)
    stored = store.collect(utterances, [1.0])
    statistics = collect_statistics(
        (entry.utterance.speaker, AcousticFeatures.from_columns(store.read(entry))) for entry in stored
    )
    heights = {name: math.exp(speaker.log_f0_mean) for name, speaker in statistics.speakers.items()}
    assert heights == pytest.approx({"george": 158, "lucas": 109}, rel=0.08)
    assert all(0.03 < speaker.log_f0_std < 0.4 for speaker in statistics.speakers.values())
