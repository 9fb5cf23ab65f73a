"""The order of batches, over epochs, ranks and interruptions."""

import random
from itertools import chain

import pytest
import torch
from torch.utils.data import Dataset

from sonorant.data.batching import BucketBatchSampler, StatefulLoader

_random = random.Random(0)
LENGTHS = [_random.randint(1, 100) for _ in range(53)]


class Indices(Dataset[int]):
    def __len__(self) -> int:
        return len(LENGTHS)

    def __getitem__(self, index: int) -> int:
        return index


def sampler(**options: int) -> BucketBatchSampler:
    return BucketBatchSampler(LENGTHS, 4, **{"seed": 1, "pool_batches": 3, **options})


def loader(**options: int) -> StatefulLoader:
    return StatefulLoader(Indices(), sampler(), collate_fn=list, **options)


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
def test_ranks_share_each_batch_and_take_as_many(num_ranks: int) -> None:
    ranks = [list(sampler(rank=rank, num_ranks=num_ranks)) for rank in range(num_ranks)]
    whole = sampler().batches(0)
    assert {len(batches) for batches in ranks} == {len(whole)}
    for parts, batch in zip(zip(*ranks, strict=True), whole, strict=True):
        assert set(chain(*parts)) == set(batch)
        assert all(parts)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [0, 1, 9, 14])
def test_a_stopped_loader_goes_on_with_the_next_batch(workers: int, stop: int) -> None:
    whole = loader()
    expected = [list(whole) for _ in range(3)]
    assert expected[0] == sampler().batches(0)
    assert expected[1] == sampler().batches(1)

    first = loader(num_workers=workers)
    seen = list(first)
    iterator = iter(first)
    seen += [next(iterator) for _ in range(stop)]
    second = loader(num_workers=workers)
    second.load_state_dict(first.state_dict())
    if stop < 14:
        seen += list(second)
    seen += list(second)
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
