"""Alignment."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from sonorant.functional import (
    alignment_durations,
    attention_binarization_loss,
    beta_binomial_prior,
    forward_sum_loss,
    monotonic_alignment_durations,
    monotonic_alignment_search,
)
from sonorant.losses import AlignmentLoss, AttentionBinarizationLoss, ForwardSumLoss
from tests.cases.case import Axes, Case, Inputs, Rng
from tests.reference.alignment import (
    binarization_by_cell,
    durations_by_counting,
    durations_by_enumeration,
    forward_sum_by_item,
    prior_by_row,
    search_by_enumeration,
)

CELLS: Axes = {1: "query_lengths", 2: "key_lengths"}
SEARCH_LENGTHS = {"query_lengths": (5, 8), "key_lengths": (1, 5)}


def _make_scores(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    shape = [int(lengths[name].max()) for name in ("query_lengths", "key_lengths")]
    return {"log_attention": rng.randn(len(lengths["query_lengths"]), *shape), **lengths}


def _make_attention(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    """A hard path for each utterance, and probabilities; the lengths are not arguments."""
    scores = rng.randn(3, 7, 4)
    alignment = search_by_enumeration(scores, torch.tensor([7, 6, 4]), torch.tensor([4, 1, 4]))
    return {"alignment": alignment, "attention": rng.randn(3, 7, 4).softmax(2)}


def _make_composite(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    scores = _make_scores(lengths, rng)["log_attention"]
    alignment = search_by_enumeration(scores, lengths["query_lengths"], lengths["key_lengths"])
    attention = rng.randn(*scores.shape).softmax(2)
    return {"alignment": alignment, "attention": attention, "log_attention": scores, **lengths}


def _make_lengths(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return dict(lengths)


def _composite_reference(module: AlignmentLoss, **inputs: Tensor) -> tuple[Tensor, Tensor]:
    scores = [inputs[name] for name in ("log_attention", "query_lengths", "key_lengths")]
    return (
        forward_sum_by_item(*scores, module.blank_logprob),
        binarization_by_cell(inputs["alignment"], inputs["attention"]),
    )


def _forward_sum_operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    scores = inputs["log_attention"].clone().requires_grad_()
    return torch.ops.sonorant.forward_sum, (scores, inputs["query_lengths"], inputs["key_lengths"], -1.0, 9, True)


def _search_operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    return torch.ops.sonorant.monotonic_alignment_search, tuple(inputs.values())


def _durations_operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    return torch.ops.sonorant.monotonic_alignment_durations, tuple(inputs.values())


Golden = Iterator[tuple[str, Tensor, Tensor]]


def _golden_inputs(tensors: dict[str, Tensor]) -> Inputs:
    return {name.removeprefix("input/"): t for name, t in tensors.items() if name.startswith("input/")}


def _forward_sum_golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Golden:
    inputs = _golden_inputs(tensors)
    scores = inputs["log_attention"].requires_grad_()
    mean = forward_sum_loss(**inputs, **arguments)
    yield "mean", mean.detach(), tensors["output/mean"]
    yield "nll", forward_sum_loss(**inputs, **arguments, reduction="none").detach(), tensors["output/nll"]
    yield "gradient", torch.autograd.grad(mean, scores)[0], tensors["output/grad_of_mean"]


def _binarization_golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Golden:
    attention = tensors["input/soft"].requires_grad_()
    mean = attention_binarization_loss(tensors["input/hard"], attention)
    yield "mean", mean.detach(), tensors["output/mean"]
    yield "gradient", torch.autograd.grad(mean, attention)[0], tensors["output/grad_of_mean"]


def _search_golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Golden:
    alignment = monotonic_alignment_search(**_golden_inputs(tensors))
    yield "alignment", alignment, tensors["output/alignment"]
    yield "durations", alignment_durations(alignment), tensors["output/durations"]


def _durations_golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Golden:
    yield "durations", monotonic_alignment_durations(**_golden_inputs(tensors)), tensors["output/durations"]


def _prior_golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Golden:
    prior = beta_binomial_prior(**_golden_inputs(tensors), **arguments, dtype=torch.float64)
    yield "prior", prior, tensors["output/prior"]


def _forward_sum(name: str, band: int | None, **more: Any) -> Case:
    return Case(
        name=name,
        make=_make_scores,
        lengths={"query_lengths": (1, 9), "key_lengths": (1, 5)},
        reference=forward_sum_by_item,
        function=forward_sum_loss,
        module=ForwardSumLoss,
        options={"reduction": "mean", "blank_logprob": -1.0, "band": band},
        differentiable=("log_attention",),
        padding={"log_attention": CELLS},
        per_utterance={"reduction": "none"},
        duplicable=({"reduction": "mean"}, {"reduction": "batchmean"}),
        **more,
    )


def _search(name: str, **more: Any) -> Case:
    return Case(
        name=name,
        make=_make_scores,
        lengths=SEARCH_LENGTHS,
        padding={"log_attention": CELLS},
        per_utterance={},
        computes_in_float32=False,
        golden_file="monotonic_alignment_search",
        **more,
    )


CASES = [
    _forward_sum(
        "forward_sum_loss",
        band=None,
        operator=_forward_sum_operator,
        golden=_forward_sum_golden,
        golden_file="forward_sum",
    ),
    _forward_sum("forward_sum_loss, band", band=1),
    Case(
        name="attention_binarization_loss",
        make=_make_attention,
        lengths={},
        reference=binarization_by_cell,
        function=attention_binarization_loss,
        module=AttentionBinarizationLoss,
        options={"reduction": "mean", "eps": 1e-12},
        differentiable=("attention",),
        duplicable=({"reduction": "mean"}, {"reduction": "batchmean"}),
        golden=_binarization_golden,
        golden_file="attention_binarization",
    ),
    _search(
        "monotonic_alignment_search",
        reference=search_by_enumeration,
        function=monotonic_alignment_search,
        outputs=(CELLS,),
        operator=_search_operator,
        golden=_search_golden,
    ),
    _search(
        "monotonic_alignment_durations",
        reference=durations_by_enumeration,
        function=monotonic_alignment_durations,
        outputs=({1: "key_lengths"},),
        operator=_durations_operator,
        golden=_durations_golden,
    ),
    Case(
        name="alignment_durations",
        make=lambda lengths, rng: {"alignment": _make_attention(lengths, rng)["alignment"]},
        lengths={},
        reference=durations_by_counting,
        function=alignment_durations,
    ),
    Case(
        name="beta_binomial_prior",
        make=_make_lengths,
        lengths={"query_lengths": (1, 8), "key_lengths": (1, 5)},
        reference=prior_by_row,
        function=beta_binomial_prior,
        options={"scaling": 0.7, "max_query_length": 8, "max_key_length": 5, "dtype": torch.float64},
        per_utterance={},
        golden=_prior_golden,
        golden_file="beta_binomial_prior",
    ),
    Case(
        name="AlignmentLoss",
        make=_make_composite,
        lengths=SEARCH_LENGTHS,
        reference=_composite_reference,
        module=AlignmentLoss,
        options={"blank_logprob": -1.0},
        differentiable=("attention", "log_attention"),
        padding={"alignment": CELLS, "attention": CELLS, "log_attention": CELLS},
        outputs=({}, {}),
        duplicable=({},),
    ),
]
