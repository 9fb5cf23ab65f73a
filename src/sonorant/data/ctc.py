"""Examples and batches for training with CTC."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from torch.utils.data import Dataset

from sonorant.lengths import pad_sequences

__all__ = ["CtcBatch", "CtcDataset", "CtcExample", "collate_ctc"]


class CtcExample(NamedTuple):
    """One utterance: its id, features ``(frames, features)`` and target ids ``(labels,)``."""

    id: str
    features: Tensor
    target: Tensor


class CtcBatch(NamedTuple):
    """A padded batch: features ``(batch, time, features)``, targets ``(batch, label)``, lengths ``(batch,)``."""

    ids: list[str]
    features: Tensor
    feature_lengths: Tensor
    targets: Tensor
    target_lengths: Tensor


class CtcDataset(Dataset[CtcExample]):
    """Examples in memory."""

    def __init__(self, examples: Sequence[CtcExample]) -> None:
        self.examples = examples

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.examples)

    def __getitem__(self, index: int) -> CtcExample:
        """One example."""
        return self.examples[index]


def collate_ctc(examples: Sequence[CtcExample]) -> CtcBatch:
    """Pad examples into a batch."""
    features = pad_sequences([example.features for example in examples])
    targets = pad_sequences([example.target for example in examples])
    return CtcBatch([example.id for example in examples], *features, *targets)
