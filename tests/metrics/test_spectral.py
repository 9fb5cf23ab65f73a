"""Mel-cepstral distance and dynamic time warping, against every path there is."""

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from sonorant.metrics import dynamic_time_warping, mean_pairwise_distance, mel_cepstral_distance, mel_cepstrum

SIZES = [(1, 1), (1, 4), (4, 1), (2, 2), (3, 4), (4, 3), (4, 4)]


def all_paths(rows: int, columns: int) -> Iterator[list[tuple[int, int]]]:
    """Every way from (0, 0) to (rows - 1, columns - 1)."""
    if rows == columns == 1:
        yield [(0, 0)]
    for down, right in ((1, 1), (1, 0), (0, 1)):
        if rows > down and columns > right:
            yield from ([*path, (rows - 1, columns - 1)] for path in all_paths(rows - down, columns - right))


def cost(costs: Tensor, path: list[tuple[int, int]]) -> float:
    return sum(costs[place].item() for place in path)


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_no_path_is_better(rows: int, columns: int) -> None:
    paths = list(all_paths(rows, columns))
    for seed in range(20):
        costs = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        found = list(map(tuple, dynamic_time_warping(costs).tolist()))
        assert found in paths
        assert cost(costs, found) == pytest.approx(min(cost(costs, path) for path in paths), abs=1e-12)


def test_of_equal_paths_the_shortest_that_repeats_the_second_first() -> None:
    assert dynamic_time_warping(torch.zeros(3, 3)).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert dynamic_time_warping(torch.zeros(2, 3)).tolist() == [[0, 0], [0, 1], [1, 2]]
    costs = torch.tensor([[0.0, 1.0, 9.0], [1.0, 9.0, 1.0], [9.0, 1.0, 0.0]])
    assert dynamic_time_warping(costs).tolist() == [[0, 0], [0, 1], [1, 2], [2, 2]]


def test_long_sequences_of_float32_and_a_gradient() -> None:
    times = torch.linspace(0, 1, 300)
    first, second = (6.0 * times).sin(), (6.0 * times[::2] ** 1.5).sin()
    path = dynamic_time_warping((first.unsqueeze(1) - second).abs().requires_grad_())
    steps = path.diff(dim=0)
    assert {tuple(step) for step in steps.tolist()} <= {(1, 1), (1, 0), (0, 1)}
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [299, 149]
    assert (first[path[:, 0]] - second[path[:, 1]]).abs().max() < 0.05


@pytest.mark.parametrize("costs", [torch.zeros(0, 3), torch.zeros(3, 0), torch.zeros(3), torch.zeros(1, 2, 2)])
def test_costs_of_another_shape_are_refused(costs: Tensor) -> None:
    with pytest.raises(ValueError, match=r"costs must be finite, \(first, second\).*got \("):
        dynamic_time_warping(costs)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_costs_that_are_no_numbers_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=rf"got \(2, 2\) with {value}"):
        dynamic_time_warping(torch.tensor([[0.0, 1.0], [value, 0.0]]))


def test_the_cepstrum_gives_the_spectrum_back() -> None:
    log_mel = torch.randn(4, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cepstrum = mel_cepstrum(log_mel, 6)
    for t, k in itertools.product(range(4), range(7)):
        waves = sum(cepstrum[t, m - 1] * math.cos(math.pi * m * (k + 0.5) / 7) for m in range(1, 7))
        assert log_mel[t].mean() + waves == pytest.approx(log_mel[t, k].item(), abs=1e-12)
    assert torch.equal(mel_cepstrum(log_mel, 3), cepstrum[:, :3])
    torch.testing.assert_close(mel_cepstrum(log_mel + 5, 6), cepstrum)


def test_the_distance_is_the_difference_of_the_spectra_in_decibels() -> None:
    first, second = torch.randn(2, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    shapes = [20 / math.log(10) * (spectrum - spectrum.mean()) for spectrum in (first, second)]
    expected = (shapes[0] - shapes[1]).square().mean().sqrt()
    assert mel_cepstral_distance(first, second, num_coefficients=7).distance == pytest.approx(expected.item())
    assert mel_cepstral_distance(first, second, num_coefficients=3).distance < expected


def test_level_and_tempo_make_no_distance() -> None:
    spectrum = torch.randn(9, 20, generator=torch.Generator().manual_seed(2))
    slow = spectrum.repeat_interleave(torch.arange(1, 10), 0)
    found = mel_cepstral_distance(spectrum, slow + 3)
    assert found.distance == pytest.approx(0, abs=1e-5)
    assert found.path[:, 0].tolist() == [frame for frame in range(9) for _ in range(frame + 1)]
    assert found.path[:, 1].tolist() == list(range(45))
    assert mel_cepstral_distance(slow, spectrum).distance == pytest.approx(0, abs=1e-5)
    other = torch.randn(9, 20, generator=torch.Generator().manual_seed(3))
    assert mel_cepstral_distance(spectrum, other).distance > 5


def test_the_mean_runs_over_the_best_path() -> None:
    generator = torch.Generator().manual_seed(4)
    first, second = torch.randn(4, 16, generator=generator), torch.randn(3, 16, generator=generator)
    cepstra = mel_cepstrum(first), mel_cepstrum(second)
    distances = 10 / math.log(10) * (2 * (cepstra[0].unsqueeze(1) - cepstra[1]).square().sum(2)).sqrt()
    best = min(all_paths(4, 3), key=lambda path: cost(distances, path))
    found = mel_cepstral_distance(first, second)
    assert found.path.tolist() == list(map(list, best))
    assert found.distance == pytest.approx(cost(distances, best) / len(best))


def test_the_variety_is_the_mean_over_pairs() -> None:
    renditions = [torch.randn(size, 20, generator=torch.Generator().manual_seed(size)) for size in (3, 5, 4)]
    pairs = [mel_cepstral_distance(*pair).distance for pair in itertools.combinations(renditions, 2)]
    assert mean_pairwise_distance(renditions) == pytest.approx(sum(pairs) / 3)
    assert mean_pairwise_distance(renditions, num_coefficients=4) < mean_pairwise_distance(renditions)
    assert mean_pairwise_distance([renditions[0]] * 3) == 0
    assert math.isnan(mean_pairwise_distance(renditions[:1]))
    assert math.isnan(mean_pairwise_distance([]))


def test_spectra_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="20 and 19 mel bins"):
        mel_cepstral_distance(torch.zeros(2, 20), torch.zeros(2, 19))
    with pytest.raises(ValueError, match="different numbers of mel bins"):
        mean_pairwise_distance([torch.zeros(2, 20), torch.zeros(2, 19)])
    with pytest.raises(ValueError, match=r"log_mel must be finite.*\(2, 20\) with -inf"):
        mel_cepstral_distance(torch.zeros(2, 20), torch.zeros(2, 20).log())
    with pytest.raises(ValueError, match="num_coefficients is 20; 20 mel bins give 1 to 19"):
        mel_cepstral_distance(torch.zeros(2, 20), torch.zeros(2, 20), num_coefficients=20)
    with pytest.raises(ValueError, match="at least one of each"):
        mel_cepstral_distance(torch.zeros(0, 20), torch.zeros(2, 20))
