"""Batches of utterances of similar length, in an order that depends on (seed, epoch) alone."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

__all__ = ["BucketBatchSampler", "Draw", "StatefulLoader"]


class Draw(NamedTuple):
    """What a dataset is asked for: an utterance, and the seed of what is done to it in this epoch."""

    utterance: int
    seed: int


class BucketBatchSampler(Sampler[list[Draw]]):
    """Shuffled batches in which lengths are similar, so that little is padded.

    The utterances are shuffled, cut into pools of ``pool_batches`` batches, sorted by length within each pool and cut
    into batches, which are shuffled again. With several ranks each takes every ``num_ranks``-th utterance of a global
    batch, and all ranks take the same number of batches; :class:`StatefulLoader` gives an empty one to those that have
    no part in a batch.

    Args:
        lengths: of the utterances, in any unit.
        batch_size: utterances of a batch, over all ranks.
        seed: of the order, and, with epoch and utterance, of the seed that each draw brings along.
        pool_batches: batches of a pool; 1 shuffles freely, more sorts better.
        rank: which rank this is.
        num_ranks: of how many.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        *,
        seed: int = 0,
        pool_batches: int = 20,
        rank: int = 0,
        num_ranks: int = 1,
    ) -> None:
        if not lengths:
            raise ValueError("lengths: no utterance to make batches of")
        if batch_size < num_ranks:
            raise ValueError(f"batch_size {batch_size} is smaller than the number of ranks, {num_ranks}")
        if pool_batches < 1:
            raise ValueError(f"pool_batches must be at least 1; got {pool_batches}")
        self._lengths = lengths
        self._batch_size = batch_size
        self._seed = seed
        self._pool_batches = pool_batches
        self._rank = rank
        self._num_ranks = num_ranks
        self.epoch = 0
        self.start = 0

    def __len__(self) -> int:
        """Batches of an epoch."""
        return -(-len(self._lengths) // self._batch_size)

    def batches(self, epoch: int) -> list[list[int]]:
        """All global batches of an epoch, in order."""
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
        order = torch.randperm(len(self._lengths), generator=generator).tolist()
        pool = self._batch_size * self._pool_batches
        batches = []
        for first in range(0, len(order), pool):
            members = sorted(order[first : first + pool], key=lambda index: self._lengths[index])
            batches += [members[i : i + self._batch_size] for i in range(0, len(members), self._batch_size)]
        return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]

    def parts(self) -> list[list[int]]:
        """This rank's part of each batch, from ``start`` on; empty where there are fewer utterances than ranks."""
        return [self._part(batch) for batch in self.batches(self.epoch)[self.start :]]

    def __iter__(self) -> Iterator[list[Draw]]:
        """What is drawn for each part; where it is empty an utterance all the same, whose shapes are needed."""
        for batch in self.batches(self.epoch)[self.start :]:
            yield [self._draw(index) for index in self._part(batch) or batch[:1]]

    def _part(self, batch: list[int]) -> list[int]:
        return batch[self._rank :: self._num_ranks]

    def _draw(self, index: int) -> Draw:
        words = np.random.SeedSequence((self._seed, self.epoch, index)).generate_state(1)
        return Draw(index, int(words[0]))


class StatefulLoader(DataLoader[Any]):
    """A DataLoader that can be stopped in mid-epoch and goes on with the next batch.

    ``state_dict`` counts the batches that were handed out, not those that workers have prepared. Each iteration is
    one epoch of the sampler. The loader draws from a generator of its own, so that making an iterator leaves torch's
    global one alone.

    Args:
        dataset: yields examples by :class:`Draw`. A batch of them is a NamedTuple, in each field the batch comes first.
        sampler: what is in a batch.
        **options: DataLoader's own, such as ``collate_fn`` and ``num_workers``.
    """

    def __init__(self, dataset: Dataset[Any], sampler: BucketBatchSampler, **options: Any) -> None:
        super().__init__(dataset, batch_sampler=sampler, generator=torch.Generator().manual_seed(0), **options)
        self._order = sampler
        self._epoch = 0
        self._handed_out = 0

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        """The batches of the current epoch that have not been handed out yet."""
        if self._handed_out == len(self):
            self._epoch, self._handed_out = self._epoch + 1, 0
        self._order.epoch, self._order.start = self._epoch, self._handed_out
        for part, batch in zip(self._order.parts(), super().__iter__(), strict=True):
            self._handed_out += 1
            yield batch if part else type(batch)(*(field[:0] for field in batch))

    def state_dict(self) -> dict[str, int]:
        """Where in which epoch the loader stands."""
        return {"epoch": self._epoch, "handed_out": self._handed_out}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from there when next iterated."""
        self._epoch, self._handed_out = state["epoch"], state["handed_out"]
