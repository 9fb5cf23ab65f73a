"""Examples and batches of recordings and the tokens that are to be found in them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from sonorant.data.batching import Draw
from sonorant.data.feature_store import FeatureStore, StoredFeatures
from sonorant.lengths import pad_sequences

__all__ = ["AlignmentBatch", "AlignmentDataset", "AlignmentExample", "collate_alignment"]


class AlignmentExample(NamedTuple):
    """One utterance: its id, features ``(frames, features)``, token ids ``(tokens,)`` and its speaker's number."""

    id: str
    features: Tensor
    tokens: Tensor
    speaker: int


class AlignmentBatch(NamedTuple):
    """Padded: features ``(batch, query, features)``, tokens ``(batch, key)``; lengths, speakers ``(batch,)``."""

    ids: list[str]
    features: Tensor
    feature_lengths: Tensor
    tokens: Tensor
    token_lengths: Tensor
    speakers: Tensor


class AlignmentDataset(Dataset[AlignmentExample]):
    """Examples whose features are read when they are asked for.

    Args:
        store: where from.
        stored: the features.
        tokens: for each the ids of its text.
        speakers: for each its speaker's number, 0 if that is not known.
    """

    def __init__(
        self,
        store: FeatureStore,
        stored: Sequence[StoredFeatures],
        tokens: Sequence[Sequence[int]],
        speakers: Sequence[int],
    ) -> None:
        self._store = store
        self._stored = stored
        self._tokens = tokens
        self._speakers = speakers

    @property
    def lengths(self) -> list[int]:
        """Frames of each example; nothing is read."""
        return [stored.num_frames for stored in self._stored]

    def __len__(self) -> int:
        """The number of examples."""
        return len(self._stored)

    def __getitem__(self, draw: Draw) -> AlignmentExample:
        """One example."""
        stored, tokens = self._stored[draw.utterance], torch.tensor(self._tokens[draw.utterance])
        return AlignmentExample(stored.id, self._store.read(stored), tokens, self._speakers[draw.utterance])


def collate_alignment(examples: Sequence[AlignmentExample]) -> AlignmentBatch:
    """Pad examples into a batch."""
    features = pad_sequences([example.features for example in examples])
    tokens = pad_sequences([example.tokens for example in examples])
    speakers = torch.tensor([example.speaker for example in examples])
    return AlignmentBatch([example.id for example in examples], *features, *tokens, speakers)
