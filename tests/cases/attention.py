"""Attention: guided loss, masked softmax, location-aware attention by step and by sequence."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from sonorant.functional import (
    guided_attention_loss,
    guided_attention_weights,
    location_attention_weights,
    masked_softmax,
)
from sonorant.lengths import sequence_mask
from sonorant.losses import GuidedAttentionLoss
from sonorant.nn import LocationAttention
from tests.cases.case import Case, Inputs, Rng
from tests.reference import attention as reference

MEMORY, QUERY, ATTENTION = 4, 3, 5
SIZES = {"query_lengths": (1, 7), "key_lengths": (1, 5)}
CELLS = {1: "query_lengths", 2: "key_lengths"}


def _make_lengths(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return dict(lengths)


def _shape(lengths: dict[str, Tensor]) -> tuple[int, int, int]:
    first, second = lengths.values()
    return len(first), int(first.max()), int(second.max())


def _make_attention(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return {"attention": rng.rand(*_shape(lengths)), **lengths}


def _make_heads(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    batch_size, num_queries, num_keys = _shape(lengths)
    return {"attention": rng.rand(batch_size, 2, num_queries, num_keys), **lengths}


def _make_scores(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    mask = rng.rand(3, 1, 5) > 0.4
    mask[1] = False
    return {"scores": rng.randn(3, 2, 5) * 3, "mask": mask}


def _golden_guided(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
    attention = tensors["input/attention"].requires_grad_()
    lengths = tensors["input/query_lengths"], tensors["input/key_lengths"]
    sigma = arguments["sigma"]
    total = guided_attention_loss(attention, *lengths, sigma, reduction="sum")
    mean = guided_attention_loss(attention, *lengths, sigma)
    sizes = {"max_query_length": attention.shape[1], "max_key_length": attention.shape[2]}
    yield "weights", guided_attention_weights(*lengths, sigma, **sizes, dtype=torch.float64), tensors["output/weights"]
    yield "sum", total, tensors["output/sum"]
    yield "mean", mean, tensors["output/mean_over_valid_cells"]
    # the original divides by the padded grid
    cells = (lengths[0] * lengths[1]).sum()
    yield "padded mean", mean * cells / attention.numel(), tensors["output/mean_over_padded_grid"]
    yield "gradient", torch.autograd.grad(total, attention)[0], tensors["output/grad_of_sum"]


def _make_location(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    batch_size, num_queries, num_keys = _shape(lengths)
    return {
        "queries": rng.randn(batch_size, num_queries, ATTENTION),
        "keys": rng.randn(batch_size, num_keys, ATTENTION),
        "location_filters": rng.randn(ATTENTION, 2, 5),
        "energy_weight": rng.randn(ATTENTION),
        "state": rng.rand(batch_size, 2, num_keys),
        **lengths,
    }


def _location_operator(inputs: Inputs) -> tuple[Any, tuple[Any, ...]]:
    floats = [inputs[n].requires_grad_() for n in ("queries", "keys", "location_filters", "energy_weight", "state")]
    return torch.ops.sonorant.location_attention, (*floats, inputs["query_lengths"], inputs["key_lengths"], 2.0)


class Step(LocationAttention):
    """One step, taking plain tensors; the state is 0 in padding, as the layer leaves it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(ATTENTION, MEMORY, QUERY, conv_channels=3, kernel_size=5, **options)

    def forward(self, memory: Tensor, memory_lengths: Tensor, query: Tensor, state: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        prepared = self.precompute(memory, memory_lengths)
        state = torch.where(sequence_mask(memory_lengths, memory.shape[1]).unsqueeze(1), state, 0.0)
        return super().forward(query, prepared, state)


class Sequence(Step):
    """A sequence of steps, taking plain tensors."""

    def forward(  # type: ignore[override]
        self, memory: Tensor, memory_lengths: Tensor, queries: Tensor, query_lengths: Tensor, state: Tensor
    ) -> tuple[Tensor, ...]:
        return self.attend_sequence(queries, self.precompute(memory, memory_lengths), state, query_lengths)


def _make_step(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    batch_size, max_length = len(lengths["memory_lengths"]), int(lengths["memory_lengths"].max())
    return {
        "memory": rng.randn(batch_size, max_length, MEMORY),
        "memory_lengths": lengths["memory_lengths"],
        "query": rng.randn(batch_size, QUERY),
        "state": rng.rand(batch_size, 2, max_length),
    }


def _make_sequence(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    inputs = _make_step(lengths, rng)
    query = inputs.pop("query")
    queries = rng.randn(len(query), int(lengths["query_lengths"].max()), QUERY)
    return {**inputs, "queries": queries, "query_lengths": lengths["query_lengths"]}


def _golden_location(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
    attention = LocationAttention(
        arguments["attn_dim"],
        arguments["encoder_dim"],
        arguments["decoder_dim"],
        state_channels=arguments["attn_state_kernel_size"],
        conv_channels=arguments["conv_dim"],
        kernel_size=2 * arguments["conv_kernel_size"] + 1,
        scaling=arguments["scaling"],
    ).double()
    state_dict = {k.removeprefix("state/"): v for k, v in tensors.items() if k.startswith("state/")}
    attention.load_state_dict(state_dict, strict=True)
    memory = attention.precompute(tensors["input/memory"], tensors["input/memory_lengths"])
    state, query = tensors["input/attention_state"], tensors["input/query"]
    for suffix, given in (("", query), ("_without_query", None)):
        step = attention(given, memory, state)
        yield f"context{suffix}", step.context, tensors[f"output/context{suffix}"]
        yield f"weights{suffix}", step.weights, tensors[f"output/weights{suffix}"]


def _guided(name: str, heads: bool) -> Case:
    return Case(
        name=name,
        make=_make_heads if heads else _make_attention,
        lengths=SIZES,
        reference=reference.guided_loss_by_utterance,
        function=guided_attention_loss,
        module=GuidedAttentionLoss,
        options={"sigma": 0.3, "reduction": "mean"},
        differentiable=("attention",),
        padding={"attention": {2: "query_lengths", 3: "key_lengths"} if heads else CELLS},
        per_utterance={"reduction": "none"},
        duplicable=({"reduction": "mean"}, {"reduction": "batchmean"}, {"reduction": "query_mean"}),
        golden=None if heads else _golden_guided,
        golden_file="guided_attention",
    )


CASES = [
    Case(
        name="guided_attention_weights",
        make=_make_lengths,
        lengths=SIZES,
        reference=reference.guided_weights_by_cell,
        function=guided_attention_weights,
        options={"sigma": 0.3, "max_query_length": 7, "max_key_length": 5, "dtype": torch.float64},
        per_utterance={},
    ),
    _guided("guided_attention_loss", heads=False),
    _guided("guided_attention_loss, heads", heads=True),
    Case(
        name="masked_softmax",
        make=_make_scores,
        lengths={},
        reference=reference.softmax_by_row,
        function=masked_softmax,
        differentiable=("scores",),
        computes_in_float32=False,
        half_tolerance=5e-3,
    ),
    Case(
        name="location_attention_weights",
        make=_make_location,
        lengths={"query_lengths": (0, 6), "key_lengths": (0, 8)},
        reference=reference.location_weights_by_step,
        function=location_attention_weights,
        differentiable=("queries", "keys", "location_filters", "energy_weight", "state"),
        padding={"queries": {1: "query_lengths"}, "keys": {1: "key_lengths"}, "state": {2: "key_lengths"}},
        outputs=(CELLS,),
        unbatched=("location_filters", "energy_weight"),
        per_utterance={},
        operator=_location_operator,
        computes_in_float32=False,
        half_tolerance=5e-3,
    ),
    Case(
        name="LocationAttention, step",
        make=_make_step,
        lengths={"memory_lengths": (0, 8)},
        reference=reference.attend_by_hand,
        module=Step,
        differentiable=("memory", "query", "state"),
        padding={"memory": {1: "memory_lengths"}, "state": {2: "memory_lengths"}},
        outputs=({}, {1: "memory_lengths"}),
        per_utterance={},
        golden=_golden_location,
        golden_file="location_attention",
        computes_in_float32=False,
        half_tolerance=2e-2,
    ),
    Case(
        name="LocationAttention, sequence",
        make=_make_sequence,
        lengths={"memory_lengths": (0, 8), "query_lengths": (0, 6)},
        reference=reference.attend_sequence_by_hand,
        module=Sequence,
        differentiable=("memory", "queries", "state"),
        padding={
            "memory": {1: "memory_lengths"},
            "queries": {1: "query_lengths"},
            "state": {2: "memory_lengths"},
        },
        outputs=({1: "query_lengths"}, {1: "query_lengths", 2: "memory_lengths"}, {2: "memory_lengths"}),
        per_utterance={},
        computes_in_float32=False,
        half_tolerance=2e-2,
    ),
]
