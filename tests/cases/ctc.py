"""Connectionist temporal classification."""

from itertools import pairwise

import torch
from torch import Tensor

from sonorant.functional import ctc_loss, ctc_required_frames
from sonorant.lengths import sequence_mask
from sonorant.losses import CtcLoss
from tests.cases.case import Case, Inputs, Rng
from tests.reference.ctc import ctc_loss_by_recursion

CLASSES = 5
PADDING = {
    "log_probs": {1: "input_lengths"},
    "targets": {1: "target_lengths"},
}


def _make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    batch, frames, labels = len(lengths["input_lengths"]), *(int(v.max()) for v in lengths.values())
    log_probs = rng.randn(batch, frames, CLASSES).log_softmax(-1)
    targets = rng.randint(1, CLASSES, batch, labels)
    return {"log_probs": log_probs, "targets": targets, **lengths}


def _make_targets(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    targets = rng.randint(1, 3, len(lengths["target_lengths"]), int(lengths["target_lengths"].max()))
    return {"targets": targets, **lengths}


def _operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    targets = torch.where(sequence_mask(inputs["target_lengths"], inputs["targets"].shape[1]), inputs["targets"], 0)
    log_probs = inputs["log_probs"].clone().requires_grad_()
    return torch.ops.sonorant.ctc, (log_probs, targets, inputs["input_lengths"], inputs["target_lengths"], 0, True)


def _required(targets: Tensor, target_lengths: Tensor) -> Tensor:
    rows = [row[:n].tolist() for row, n in zip(targets, target_lengths.tolist(), strict=True)]
    return torch.tensor([len(row) + sum(a == b for a, b in pairwise(row)) for row in rows])


CASES = [
    Case(
        name="ctc_loss",
        make=_make,
        lengths={"input_lengths": (0, 9), "target_lengths": (0, 4)},
        reference=ctc_loss_by_recursion,
        function=ctc_loss,
        module=CtcLoss,
        options={"reduction": "mean", "blank": 0},
        differentiable=("log_probs",),
        padding=PADDING,
        per_utterance={"reduction": "none"},
        duplicable=({"reduction": "mean"}, {"reduction": "batchmean"}),
        operator=_operator,
    ),
    Case(
        name="ctc_required_frames",
        make=_make_targets,
        lengths={"target_lengths": (0, 6)},
        reference=_required,
        function=ctc_required_frames,
        padding={"targets": {1: "target_lengths"}},
        per_utterance={},
    ),
]
