"""Examples and batches for training with CTC."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from sonorant.data.batching import Draw
from sonorant.data.feature_store import FeatureStore, StoredFeatures
from sonorant.lengths import pad_sequences

__all__ = ["CtcBatch", "CtcDataset", "CtcExample", "collate_ctc"]


class CtcExample(NamedTuple):
    """One utterance: its id, features ``(frames, features)``, target ids ``(labels,)``, and a seed."""

    id: str
    features: Tensor
    target: Tensor
    seed: int


class CtcBatch(NamedTuple):
    """A padded batch: features ``(batch, time, features)``, targets ``(batch, label)``, lengths, seeds ``(batch,)``."""

    ids: list[str]
    features: Tensor
    feature_lengths: Tensor
    targets: Tensor
    target_lengths: Tensor
    seeds: Tensor


class CtcDataset(Dataset[CtcExample]):
    """Examples whose features are read when they are asked for.

    Args:
        store: where from.
        stored: the features.
        targets: for each the target ids ``(labels,)``.
    """

    def __init__(self, store: FeatureStore, stored: Sequence[StoredFeatures], targets: Sequence[Tensor]) -> None:
        self._store = store
        self._stored = stored
        self._targets = targets

    @property
    def lengths(self) -> list[int]:
        """Frames of each example; nothing is read."""
        return [stored.num_frames for stored in self._stored]

    def __len__(self) -> int:
        """The number of examples."""
        return len(self._stored)

    def __getitem__(self, draw: Draw) -> CtcExample:
        """One example."""
        stored = self._stored[draw.utterance]
        return CtcExample(stored.id, self._store.read(stored), self._targets[draw.utterance], draw.seed)


def collate_ctc(examples: Sequence[CtcExample]) -> CtcBatch:
    """Pad examples into a batch."""
    features = pad_sequences([example.features for example in examples])
    targets = pad_sequences([example.target for example in examples])
    seeds = torch.tensor([example.seed for example in examples])
    return CtcBatch([example.id for example in examples], *features, *targets, seeds)
