"""Random numbers by utterance."""

import pytest
import torch

from sonorant.nn.randomness import UtteranceRandomness, dropout_masks

CPU = torch.device("cpu")


def randomness(*seeds: int) -> UtteranceRandomness:
    return UtteranceRandomness(torch.tensor(seeds), len(seeds), CPU)


def test_numbers_depend_on_the_utterance_s_seed_alone() -> None:
    lengths = torch.tensor([30, 20])
    both = randomness(7, 8)
    uniform, normal = both.uniform(2), both.normal(lengths, torch.empty(2, 30, 5))
    alone = randomness(8)
    assert torch.equal(uniform[1:], alone.uniform(2))
    padded_further = alone.normal(lengths[1:], torch.empty(1, 50, 5))
    assert torch.equal(normal[1, :20], padded_further[0, :20])
    assert not normal[1, 20:].any()
    assert not torch.equal(normal[0, :20], normal[1, :20])


def test_numbers_are_uniform_and_standard_normal() -> None:
    draws = randomness(*range(2000))
    uniform = draws.uniform(5)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert uniform.mean() == pytest.approx(0.5, abs=0.01)
    normal = draws.normal(torch.full((2000,), 10), torch.empty(2000, 10, 3))
    assert normal.mean() == pytest.approx(0, abs=0.02)
    assert normal.std() == pytest.approx(1, abs=0.02)
    assert abs(float(torch.corrcoef(torch.stack([normal[:, 0, 0], uniform[:, 0]]))[0, 1])) < 0.1


def test_without_seeds_torch_s_generator_gives_them() -> None:
    def draw() -> torch.Tensor:
        return UtteranceRandomness(None, 3, CPU).uniform(2)

    torch.manual_seed(0)
    first, second = draw(), draw()
    torch.manual_seed(0)
    assert torch.equal(draw(), first)
    assert not torch.equal(first, second)


def test_a_batch_of_no_utterance_draws_nothing() -> None:
    nobody = UtteranceRandomness(torch.empty(0, dtype=torch.int64), 0, CPU)
    assert nobody.uniform(2).shape == (0, 2)
    assert nobody.normal(torch.empty(0, dtype=torch.int64), torch.empty(0, 9, 5)).shape == (0, 9, 5)


def test_a_seed_is_needed_for_each_utterance() -> None:
    with pytest.raises(ValueError, match=r"seeds must have shape \(3,\); got \(2,\)"):
        UtteranceRandomness(torch.tensor([1, 2]), 3, CPU)


def test_dropout_takes_its_share_and_keeps_the_mean() -> None:
    narrow, wide = dropout_masks(torch.arange(50), 50, [3, 400], 0.25, CPU)
    assert (narrow.shape, wide.shape) == ((50, 1, 3), (50, 1, 400))
    torch.testing.assert_close(wide.unique(), torch.tensor([0, 4 / 3]))
    assert float(wide.mean()) == pytest.approx(1, abs=0.02)
    assert torch.equal(wide[7:8], dropout_masks(torch.tensor([7]), 1, [3, 400], 0.25, CPU)[1])
