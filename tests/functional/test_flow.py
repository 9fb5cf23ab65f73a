"""The likelihood of flows: what the contracts do not cover."""

import math

import pytest
import torch
from torch import Tensor

from sonorant.functional import flow_nll
from sonorant.losses import FlowNllLoss


def example() -> tuple[Tensor, list[Tensor], list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, 5, 4, generator=generator, dtype=torch.float64)
    log_scales = [torch.randn(2, 5, 2, generator=generator, dtype=torch.float64) for _ in range(3)]
    log_dets = list(torch.randn(3, generator=generator, dtype=torch.float64))
    return z, log_scales, log_dets, torch.tensor([5, 2])


def test_a_second_call_gives_the_same() -> None:
    z, log_scales, log_dets, lengths = example()
    before = [t.clone() for t in (*log_scales, *log_dets)]
    first = flow_nll(z, log_scales, log_dets, lengths)
    second = flow_nll(z, log_scales, log_dets, lengths)
    assert first == second
    assert len(log_scales) == len(log_dets) == 3
    assert all(torch.equal(a, b) for a, b in zip((*log_scales, *log_dets), before, strict=True))


def test_no_determinants_are_determinants_of_one() -> None:
    z, log_scales, _, lengths = example()
    zeros = [torch.zeros((), dtype=torch.float64)] * 3
    assert flow_nll(z, log_scales, [], lengths) == flow_nll(z, log_scales, zeros, lengths)


def test_the_constant_makes_it_the_likelihood_of_a_gaussian() -> None:
    z, _, _, lengths = example()
    valid = torch.cat([z[0], z[1, :2]])
    nothing = [torch.zeros(2, 5, 2, dtype=torch.float64)]
    for sigma in (0.5, 2.0):
        expected = -torch.distributions.Normal(0.0, sigma).log_prob(valid).mean()
        found = flow_nll(z, nothing, [], lengths, sigma=sigma, include_constant=True)
        torch.testing.assert_close(found.nll, expected)
        torch.testing.assert_close(found.prior_nll, expected)
        without = flow_nll(z, nothing, [], lengths, sigma=sigma)
        assert float(found.nll - without.nll) == pytest.approx(math.log(math.sqrt(2 * math.pi) * sigma))


def test_it_is_the_density_of_what_a_flow_transforms() -> None:
    # x -> z = x W * s is linear, so that x is Gaussian with a known covariance
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, 4, 3, generator=generator, dtype=torch.float64)
    matrix = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    log_scale = torch.randn(3, generator=generator, dtype=torch.float64)
    z = x @ matrix * log_scale.exp()
    loss = flow_nll(
        z, [log_scale.expand(1, 4, 3)], [torch.linalg.slogdet(matrix)[1]], torch.tensor([4]), include_constant=True
    )
    inverse = torch.linalg.inv(matrix * log_scale.exp())
    gaussian = torch.distributions.MultivariateNormal(torch.zeros(3).double(), inverse.T @ inverse)
    torch.testing.assert_close(loss.nll, -gaussian.log_prob(x[0]).mean() / 3)


def test_half_scales_are_summed_in_float32() -> None:
    z = torch.zeros(1, 50, 128)
    log_scales = [torch.full((1, 50, 128), 9.0, dtype=torch.float16)]  # half ends at 65504
    loss = flow_nll(z, log_scales, [], torch.tensor([50]))
    assert loss.nll.dtype == torch.float32
    assert loss.nll.item() == -9.0


def test_bad_arguments_are_named() -> None:
    z, log_scales, log_dets, lengths = example()
    with pytest.raises(ValueError, match="log_scales is empty"):
        flow_nll(z, [], [], lengths)
    with pytest.raises(ValueError, match="differ in length: 3 and 2"):
        flow_nll(z, log_scales, log_dets[:2], lengths)
    with pytest.raises(ValueError, match=r"log_scales\[1\] must have shape \(2, 5, channels\)"):
        flow_nll(z, [log_scales[0], log_scales[1][:, :4], log_scales[2]], log_dets, lengths)
    with pytest.raises(ValueError, match=r"log_dets\[2\] must be a scalar"):
        flow_nll(z, log_scales, [*log_dets[:2], torch.zeros(2)], lengths)
    with pytest.raises(ValueError, match=r"lengths\[1\] is 0"):
        flow_nll(z, log_scales, log_dets, torch.tensor([5, 0]))
    with pytest.raises(ValueError, match="z must have shape"):
        flow_nll(z[0], log_scales, log_dets, lengths)
    for sigma in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="sigma must be positive"):
            flow_nll(z, log_scales, log_dets, lengths, sigma=sigma)
        with pytest.raises(ValueError, match="sigma must be positive"):
            FlowNllLoss(sigma)
