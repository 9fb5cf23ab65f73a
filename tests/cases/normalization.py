"""Normalisation."""

from typing import Any

from torch import Tensor

from sonorant.functional import masked_batch_norm, subtract_floor, utterance_cmvn
from sonorant.nn import MaskedBatchNorm1d, UtteranceCmvn
from tests.cases.case import Case, Inputs, Rng
from tests.reference.normalization import batch_norm_by_frames, cmvn_by_utterance, floor_by_utterance

CHANNELS = 3


def _make_batch_norm(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    x = rng.randn(len(lengths["lengths"]), CHANNELS, int(lengths["lengths"].max())) * 3 + 5
    return {
        "x": x,
        "running_mean": rng.randn(CHANNELS) * 0,
        "running_var": rng.rand(CHANNELS) * 0 + 1,
        "weight": rng.rand(CHANNELS) + 0.5,
        "bias": rng.randn(CHANNELS),
        **lengths,
    }


def _make_cmvn(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    x = rng.randn(len(lengths["lengths"]), int(lengths["lengths"].max()), CHANNELS) * 3 + 5
    return {"features": x, **lengths}


def _batch_norm(name: str, training: bool) -> Case:
    def module(**_: Any) -> MaskedBatchNorm1d:
        return MaskedBatchNorm1d(CHANNELS, affine=False)

    return Case(
        name=name,
        make=_make_batch_norm,
        lengths={"lengths": (2, 9)},
        reference=batch_norm_by_frames,
        function=masked_batch_norm,
        module=module,
        module_arguments=("x", "lengths"),
        options={"training": training},
        differentiable=("x", "weight", "bias"),
        padding={"x": {2: "lengths"}},
        outputs=({2: "lengths"},),
        unbatched=("running_mean", "running_var", "weight", "bias"),
        mutates=("running_mean", "running_var") if training else (),
        per_utterance=None if training else {},
        training=training,
        computes_in_float32=False,
        half_tolerance=1e-2,
    )


CASES = [
    _batch_norm("masked_batch_norm, training", training=True),
    _batch_norm("masked_batch_norm, inference", training=False),
    Case(
        name="utterance_cmvn",
        make=_make_cmvn,
        lengths={"lengths": (0, 9)},
        reference=cmvn_by_utterance,
        function=utterance_cmvn,
        module=UtteranceCmvn,
        options={"normalize_variance": True, "eps": 1e-5},
        differentiable=("features",),
        padding={"features": {1: "lengths"}},
        outputs=({1: "lengths"},),
        per_utterance={},
        computes_in_float32=False,
        half_tolerance=1e-2,
    ),
    Case(
        name="subtract_floor",
        make=_make_cmvn,
        lengths={"lengths": (0, 9)},
        reference=floor_by_utterance,
        function=subtract_floor,
        options={"dynamic_range": 4.0},
        differentiable=("features",),
        padding={"features": {1: "lengths"}},
        outputs=({1: "lengths"},),
        per_utterance={},
        computes_in_float32=False,
        half_tolerance=1e-2,
    ),
]
