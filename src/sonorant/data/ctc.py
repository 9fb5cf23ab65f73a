"""Examples and batches for training with CTC."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from sonorant.functional import ctc_required_frames
from sonorant.lengths import pad_sequences

__all__ = ["CtcBatch", "CtcDataset", "CtcExample", "check_examples", "collate_ctc"]


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


def check_examples(examples: Sequence[CtcExample], output_lengths: Callable[[Tensor], Tensor]) -> None:
    """Refuse a training set with examples that cannot be learned, naming all of them.

    Args:
        examples: the training set.
        output_lengths: frames of the model's output from frames of its input.

    Raises:
        ValueError: features that are not finite, or a target longer than the model's output frames allow.
    """
    faults = []
    for example in examples:
        frames = len(example.features)
        if not example.features.isfinite().all():
            frame = int((~example.features.isfinite()).any(1).nonzero()[0])
            faults.append(f"{example.id}: the features of frame {frame} are not finite")
        available = int(output_lengths(torch.tensor([frames]))[0])
        required = int(ctc_required_frames(example.target.unsqueeze(0), torch.tensor([len(example.target)]))[0])
        if available < max(required, 1):
            faults.append(
                f"{example.id}: {frames} frames leave {available} after the model, "
                f"and its {len(example.target)} labels need at least {max(required, 1)}"
            )
    if faults:
        raise ValueError(f"{len(faults)} of {len(examples)} utterances cannot be trained on:\n  " + "\n  ".join(faults))
