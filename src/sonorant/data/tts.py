"""Examples and batches of recordings, of what is said in them, by whom and how."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from sonorant.data.acoustic import AcousticFeatures
from sonorant.data.batching import Draw
from sonorant.data.feature_store import FeatureStore, StoredFeatures
from sonorant.data.speaker_statistics import AcousticStatistics
from sonorant.lengths import pad_sequences

__all__ = ["TtsBatch", "TtsDataset", "TtsExample", "collate_tts"]


class TtsExample(NamedTuple):
    """One utterance.

    ``log_mel`` ``(frames, n_mels)``; of each frame ``(frames,)`` ``f0`` and ``energy``, normalised by the statistics of
    the corpus, ``voiced``, 0 or 1, and ``speaker_f0`` and ``speaker_energy``, normalised by those of the speaker;
    ``tokens`` ``(tokens,)``, ids; the numbers of speaker and accent, and a seed.
    """

    id: str
    log_mel: Tensor
    f0: Tensor
    energy: Tensor
    voiced: Tensor
    speaker_f0: Tensor
    speaker_energy: Tensor
    tokens: Tensor
    speaker: int
    accent: int
    seed: int = 0


class TtsBatch(NamedTuple):
    """Padded, see :class:`TtsExample`: ``log_mel`` ``(batch, time, n_mels)``, what there is of each frame
    ``(batch, time)``, ``tokens`` ``(batch, token)``, lengths, numbers and seeds ``(batch,)``.
    """

    ids: list[str]
    log_mel: Tensor
    mel_lengths: Tensor
    f0: Tensor
    energy: Tensor
    voiced: Tensor
    speaker_f0: Tensor
    speaker_energy: Tensor
    tokens: Tensor
    token_lengths: Tensor
    speakers: Tensor
    accents: Tensor
    seeds: Tensor


class TtsDataset(Dataset[TtsExample]):
    """Examples whose features are read when they are asked for.

    Args:
        store: where from.
        stored: the features, of :class:`~sonorant.data.acoustic.AcousticExtractor`.
        tokens: for each the ids of its text.
        speakers: for each its speaker's number.
        accents: for each its accent's number.
        statistics: f0 and energy are normalised by; all speakers of the utterances are in them.
    """

    def __init__(
        self,
        store: FeatureStore,
        stored: Sequence[StoredFeatures],
        tokens: Sequence[Sequence[int]],
        speakers: Sequence[int],
        accents: Sequence[int],
        statistics: AcousticStatistics,
    ) -> None:
        self._store = store
        self._stored = stored
        self._tokens = tokens
        self._speakers = speakers
        self._accents = accents
        self._statistics = statistics

    @property
    def lengths(self) -> list[int]:
        """Frames of each example; nothing is read."""
        return [stored.num_frames for stored in self._stored]

    def __len__(self) -> int:
        """The number of examples."""
        return len(self._stored)

    def __getitem__(self, draw: Draw) -> TtsExample:
        """One example."""
        stored = self._stored[draw.utterance]
        recording = AcousticFeatures.from_columns(self._store.read(stored))
        corpus, speaker = self._statistics.corpus, self._statistics.of(stored.utterance.speaker)
        return TtsExample(
            stored.id,
            recording.log_mel,
            corpus.normalize_f0(recording.f0),
            corpus.normalize_energy(recording.energy),
            recording.voiced.float(),
            speaker.normalize_f0(recording.f0),
            speaker.normalize_energy(recording.energy),
            torch.tensor(self._tokens[draw.utterance]),
            self._speakers[draw.utterance],
            self._accents[draw.utterance],
            draw.seed,
        )


def collate_tts(examples: Sequence[TtsExample]) -> TtsBatch:
    """Pad examples into a batch."""
    log_mel = pad_sequences([example.log_mel for example in examples])
    tokens = pad_sequences([example.tokens for example in examples])

    def of_frames(name: str) -> Tensor:
        return pad_sequences([getattr(example, name) for example in examples]).values

    def numbers(name: str) -> Tensor:
        return torch.tensor([getattr(example, name) for example in examples])

    return TtsBatch(
        [example.id for example in examples],
        *log_mel,
        of_frames("f0"),
        of_frames("energy"),
        of_frames("voiced"),
        of_frames("speaker_f0"),
        of_frames("speaker_energy"),
        *tokens,
        numbers("speaker"),
        numbers("accent"),
        numbers("seed"),
    )
