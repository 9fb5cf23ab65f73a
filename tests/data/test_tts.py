"""Examples and batches of speech synthesis."""

from pathlib import Path

import pytest
import torch

from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.batching import Draw
from sonorant.data.corpus import read_corpus
from sonorant.data.feature_store import FeatureStore
from sonorant.data.frontend import Frontend
from sonorant.data.speaker_statistics import AcousticStatistics, collect_statistics
from sonorant.data.tts import TtsDataset, collate_tts
from tests.voices import VoiceCorpus

FEATURES = AcousticConfig(sample_rate=8000, n_fft=256, hop_length=80, n_mels=20)


@pytest.fixture(scope="module")
def made(voices: VoiceCorpus) -> tuple[TtsDataset, list[AcousticFeatures], AcousticStatistics]:
    utterances = read_corpus(voices.table)[:4]
    store = FeatureStore(Frontend(FEATURES), None)
    stored = store.collect(utterances, (1.0,))
    features = [AcousticFeatures.from_columns(store.read(one)) for one in stored]
    statistics = collect_statistics(zip([u.speaker for u in utterances], features, strict=True))
    tokens = [[1] * (index + 2) for index in range(4)]
    return TtsDataset(store, stored, tokens, [0, 1, 0, 1], [1, 0, 1, 0], statistics), features, statistics


def test_an_example(made: tuple[TtsDataset, list[AcousticFeatures], AcousticStatistics]) -> None:
    dataset, features, statistics = made
    assert (len(dataset), dataset.lengths) == (4, [len(one.energy) for one in features])
    example, recording = dataset[Draw(1, 77)], features[1]
    assert Path(example.id).name == "1.wav"
    assert (example.speaker, example.accent, example.seed, example.tokens.tolist()) == (1, 0, 77, [1, 1, 1])
    assert torch.equal(example.log_mel, recording.log_mel)
    assert torch.equal(example.voiced, recording.voiced.float())
    assert 0 < example.voiced.mean() < 1
    ben = statistics.of("ben")
    for f0, energy, by in (
        (example.f0, example.energy, statistics.corpus),
        (example.speaker_f0, example.speaker_energy, ben),
    ):
        assert torch.equal(f0, by.normalize_f0(recording.f0))
        assert torch.equal(energy, by.normalize_energy(recording.energy))
        assert not f0[~recording.voiced].any()


def test_a_batch(made: tuple[TtsDataset, list[AcousticFeatures], AcousticStatistics]) -> None:
    dataset = made[0]
    examples = [dataset[Draw(index, index)] for index in range(4)]
    batch = collate_tts(examples)
    longest = max(dataset.lengths)
    assert batch.log_mel.shape == (4, longest, 20)
    assert batch.mel_lengths.tolist() == dataset.lengths
    assert batch.token_lengths.tolist() == [2, 3, 4, 5]
    assert (batch.speakers.tolist(), batch.accents.tolist()) == ([0, 1, 0, 1], [1, 0, 1, 0])
    assert batch.seeds.tolist() == [0, 1, 2, 3]
    for name in ("f0", "energy", "voiced", "speaker_f0", "speaker_energy"):
        padded = getattr(batch, name)
        assert padded.shape == (4, longest)
        for row, example in zip(padded, examples, strict=True):
            values = getattr(example, name)
            assert torch.equal(row[: len(values)], values)
            assert not row[len(values) :].any()
