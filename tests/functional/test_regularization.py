"""Embedding regularisers: what the contracts do not cover."""

import pytest
import torch

from sonorant.functional import covariance_loss, cross_covariance_loss, invariance_loss, variance_loss


def test_a_constant_batch() -> None:
    embeddings = torch.ones(5, 3, requires_grad=True)
    value = variance_loss(embeddings)
    assert value.item() == pytest.approx(0.99)
    assert torch.autograd.grad(value, embeddings)[0].isfinite().all()
    assert covariance_loss(embeddings).item() == 0.0


@pytest.mark.parametrize("number", [0, 1])
def test_a_single_vector_has_no_spread(number: int) -> None:
    a, b = torch.randn(number, 4, requires_grad=True), torch.randn(number, 3, requires_grad=True)
    means = {"mean_a": torch.randn(4), "mean_b": torch.randn(3)}
    for value in (
        variance_loss(a),
        covariance_loss(a),
        cross_covariance_loss(a, b),
        cross_covariance_loss(a, b, **means),
    ):
        assert value.item() == 0.0
        assert not torch.autograd.grad(value, a)[0].any()


def test_statistics_are_unbiased() -> None:
    x = torch.randn(6, 4, dtype=torch.float64)
    covariance = torch.cov(x.T)
    off_diagonal = covariance - torch.diag(covariance.diagonal())
    torch.testing.assert_close(covariance_loss(x), off_diagonal.square().sum() / 4)
    torch.testing.assert_close(cross_covariance_loss(x, x), covariance.square().mean())
    hinge = (3 - (x.var(0) + 1e-4).sqrt()).clamp(min=0).mean()
    torch.testing.assert_close(variance_loss(x, gamma=3.0), hinge)


def test_wide_dimensions_are_not_penalised() -> None:
    x = torch.tensor([[10.0, 0.0], [-10.0, 0.0]])
    assert variance_loss(x).item() == pytest.approx(0.99 / 2)


def test_one_dimension_has_no_pairs() -> None:
    assert covariance_loss(torch.randn(4, 1)).item() == 0.0


def test_only_one_mean_is_given() -> None:
    a, b, mean = torch.randn(5, 3), torch.randn(5, 2), torch.randn(3)
    given = cross_covariance_loss(a, b, mean_a=mean)
    # about b's own mean the mean of a does not matter
    torch.testing.assert_close(given, cross_covariance_loss(a, b))


def test_gradients_reach_the_tables_through_their_means() -> None:
    table = torch.randn(7, 3, requires_grad=True)
    mean_b = torch.randn(2)
    value = cross_covariance_loss(table[:4], torch.randn(4, 2), mean_a=table.mean(0), mean_b=mean_b)
    assert torch.autograd.grad(value, table)[0][4:].abs().min() > 0


def test_invariance_is_zero_for_equal_vectors_and_empty_batches() -> None:
    x = torch.randn(3, 2)
    assert invariance_loss(x, x.clone()).item() == 0.0
    assert invariance_loss(x[:0], x[:0]).item() == 0.0


def test_bad_arguments_are_named() -> None:
    x = torch.randn(4, 3)
    with pytest.raises(ValueError, match="embeddings"):
        variance_loss(x[0])
    with pytest.raises(ValueError, match="embeddings"):
        covariance_loss(x.unsqueeze(0))
    with pytest.raises(ValueError, match="number of rows; got 4 and 3"):
        cross_covariance_loss(x, x[:3])
    with pytest.raises(ValueError, match=r"mean_b must have shape \(3,\)"):
        cross_covariance_loss(x, x, mean_b=torch.zeros(1, 3))
    with pytest.raises(ValueError, match="same shape"):
        invariance_loss(x, x[:1])
