"""The order of batches, over epochs, ranks and interruptions."""

import random
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset

from sonorant.data.batching import BucketBatchSampler, Draw, StatefulLoader

_random = random.Random(0)
LENGTHS = [_random.randint(1, 100) for _ in range(53)]


class Batch(NamedTuple):
    indices: list[int]
    seeds: Tensor


class Draws(Dataset[Draw]):
    def __len__(self) -> int:
        return len(LENGTHS)

    def __getitem__(self, draw: Draw) -> Draw:
        return draw


def collate(draws: list[Draw]) -> Batch:
    return Batch([draw.utterance for draw in draws], torch.tensor([draw.seed for draw in draws]))


def sampler(**options: int) -> BucketBatchSampler:
    return BucketBatchSampler(LENGTHS, 4, **{"seed": 1, "pool_batches": 3, **options})


def loader(**options: int) -> StatefulLoader:
    return StatefulLoader(Draws(), sampler(), collate_fn=collate, **options)


def indices(batches: Iterable[Batch]) -> list[list[int]]:
    return [batch.indices for batch in batches]


def test_every_utterance_comes_once_an_epoch() -> None:
    for epoch in range(3):
        batches = sampler().batches(epoch)
        assert sorted(chain(*batches)) == list(range(53))
        assert len(batches) == len(sampler()) == 14


def test_order_depends_on_seed_and_epoch_alone() -> None:
    torch.manual_seed(5)
    first = sampler().batches(2)
    torch.manual_seed(6)
    assert sampler().batches(2) == first
    assert sampler().batches(3) != first
    assert sampler(seed=2).batches(2) != first


def test_pools_make_lengths_similar() -> None:
    def padding(batches: list[list[int]]) -> int:
        return sum(max(LENGTHS[i] for i in batch) * len(batch) - sum(LENGTHS[i] for i in batch) for batch in batches)

    assert padding(sampler(pool_batches=14).batches(0)) < padding(sampler(pool_batches=1).batches(0)) / 3


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_share_each_batch_and_take_as_many(num_ranks: int, workers: int) -> None:
    """The last of 53 utterances is alone in its batch: all ranks but one get an empty one."""
    ranks = []
    for rank in range(num_ranks):
        order = sampler(rank=rank, num_ranks=num_ranks)
        ranks.append(list(StatefulLoader(Draws(), order, collate_fn=collate, num_workers=workers)))
    whole = list(loader())
    assert {len(batches) for batches in ranks} == {len(whole)}
    for parts, batch in zip(zip(*ranks, strict=True), whole, strict=True):
        drawn = [draw for part in parts for draw in zip(part.indices, part.seeds.tolist(), strict=True)]
        assert sorted(drawn) == sorted(zip(batch.indices, batch.seeds.tolist(), strict=True))
    assert {len(part.indices) for batches in ranks for part in batches} >= {0, 1}


def test_seeds_depend_on_seed_epoch_and_utterance_alone() -> None:
    def seeds(order: BucketBatchSampler, epoch: int) -> dict[int, int]:
        order.epoch = epoch
        return dict(chain(*order))

    first = seeds(sampler(), 0)
    assert len(set(first.values())) == 53
    assert seeds(sampler(pool_batches=1), 0) == first
    for others in (seeds(sampler(), 1), seeds(sampler(seed=2), 0)):
        assert not set(others.values()) & set(first.values())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [0, 1, 9, 14])
def test_a_stopped_loader_goes_on_with_the_next_batch(workers: int, stop: int) -> None:
    whole = loader()
    expected = [indices(whole) for _ in range(3)]
    assert expected[0] == sampler().batches(0)
    assert expected[1] == sampler().batches(1)

    first = loader(num_workers=workers)
    seen = indices(first)
    iterator = iter(first)
    seen += [next(iterator).indices for _ in range(stop)]
    second = loader(num_workers=workers)
    second.load_state_dict(first.state_dict())
    if stop < 14:
        seen += indices(second)
    seen += indices(second)
    assert seen == list(chain(*expected))


def test_making_an_iterator_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    list(loader())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lengths": []}, "no utterance"),
        ({"batch_size": 1, "num_ranks": 2}, "batch_size 1 is smaller"),
        ({"pool_batches": 0}, "pool_batches must be at least 1; got 0"),
    ],
)
def test_impossible_settings_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BucketBatchSampler(**{"lengths": LENGTHS, "batch_size": 4, **options})
