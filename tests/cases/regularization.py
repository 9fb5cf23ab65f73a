"""Embedding regularisers."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from sonorant.functional import covariance_loss, cross_covariance_loss, invariance_loss, variance_loss
from sonorant.losses import CovarianceLoss, CrossCovarianceLoss, InvarianceLoss, VarianceLoss
from tests.cases.case import Case, Inputs, Rng
from tests.reference.regularization import (
    covariance_by_pairs,
    cross_covariance_by_pairs,
    invariance_by_elements,
    variance_by_dimensions,
)

Recorded = Iterator[tuple[str, Tensor, Tensor]]


def _table(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return {"embeddings": rng.randn(len(lengths["rows"]), 4)}


def _two(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return {"a": rng.randn(len(lengths["rows"]), 4), "b": rng.randn(len(lengths["rows"]), 3)}


def _two_with_means(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return {**_two(lengths, rng), "mean_a": rng.randn(4), "mean_b": rng.randn(3)}


def _twins(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return {"a": rng.randn(len(lengths["rows"]), 4), "b": rng.randn(len(lengths["rows"]), 4)}


def _golden_variance(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Recorded:
    yield "variance", variance_loss(tensors["input/table_a"], arguments["gamma"]), tensors["output/variance"]


def _golden_covariance(tensors: dict[str, Tensor], _: dict[str, Any]) -> Recorded:
    yield "covariance", covariance_loss(tensors["input/table_a"]), tensors["output/covariance"]


def _golden_cross_covariance(tensors: dict[str, Tensor], _: dict[str, Any]) -> Recorded:
    table_a, table_b = tensors["input/table_a"], tensors["input/table_b"]
    a, b = table_a[tensors["input/index_a"]], table_b[tensors["input/index_b"]]
    about_tables = cross_covariance_loss(a, b, mean_a=table_a.mean(0), mean_b=table_b.mean(0))
    yield "about the tables", about_tables, tensors["output/cross_covariance_about_tables"]
    yield "about the batch", cross_covariance_loss(a, b), tensors["output/cross_covariance_about_batch"]


def _golden_invariance(tensors: dict[str, Tensor], _: dict[str, Any]) -> Recorded:
    a = tensors["input/table_a"][tensors["input/index_a"]]
    yield "rolled", invariance_loss(a, a.roll(1, 0)), tensors["output/invariance_to_rolled_batch"]


def _case(
    function: Callable[..., Tensor],
    module: type[nn.Module],
    make: Callable[[dict[str, Tensor], Rng], Inputs],
    reference: Callable[..., Tensor],
    golden: Callable[..., Recorded],
    differentiable: tuple[str, ...],
    name: str = "",
    options: dict[str, Any] | None = None,
) -> Case:
    return Case(
        name=name or function.__name__,
        make=make,
        lengths={"rows": (1, 1)},  # only their number counts
        reference=reference,
        function=function,
        module=module,
        options=options or {},
        differentiable=differentiable,
        golden=golden,
        golden_file="embedding_regularization",
    )


CASES = [
    _case(
        variance_loss,
        VarianceLoss,
        _table,
        variance_by_dimensions,
        _golden_variance,
        ("embeddings",),
        options={"gamma": 1.5, "eps": 1e-3},
    ),
    _case(covariance_loss, CovarianceLoss, _table, covariance_by_pairs, _golden_covariance, ("embeddings",)),
    _case(
        cross_covariance_loss,
        CrossCovarianceLoss,
        _two,
        cross_covariance_by_pairs,
        _golden_cross_covariance,
        ("a", "b"),
    ),
    _case(
        cross_covariance_loss,
        CrossCovarianceLoss,
        _two_with_means,
        cross_covariance_by_pairs,
        _golden_cross_covariance,
        ("a", "b", "mean_a", "mean_b"),
        name="cross_covariance_loss, about given means",
    ),
    _case(invariance_loss, InvarianceLoss, _twins, invariance_by_elements, _golden_invariance, ("a", "b")),
]
