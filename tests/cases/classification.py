"""Label smoothing."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from sonorant.functional import label_smoothing_loss, linear_label_smoothing_loss
from sonorant.losses import LabelSmoothingLoss
from tests.cases.case import Case, Inputs, Rng
from tests.reference.classification import label_smoothing_by_distribution, linear_label_smoothing_by_logits

CLASSES = 7
WIDTH = 4
IGNORED = -12345  # what the padding contract puts into padded targets
OPTIONS = {"smoothing": 0.1, "ignore_index": IGNORED, "reduction": "mean", "kl": True}


def _make_targets(lengths: dict[str, Tensor], rng: Rng) -> Tensor:
    batch_size, longest = len(lengths["lengths"]), int(lengths["lengths"].max())
    targets = rng.randint(0, CLASSES, batch_size, longest)
    return torch.where(torch.arange(longest) < lengths["lengths"].unsqueeze(1), targets, IGNORED)


def _make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    targets = _make_targets(lengths, rng)
    return {"logits": rng.randn(*targets.shape, CLASSES) * 3, "targets": targets}


def _make_linear(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    targets = _make_targets(lengths, rng)
    hidden, weight, bias = rng.randn(*targets.shape, WIDTH), rng.randn(CLASSES, WIDTH), rng.randn(CLASSES)
    return {"hidden": hidden, "weight": weight, "targets": targets, "bias": bias}


def _lengths(inputs: Inputs) -> Tensor:
    return (inputs["targets"] != IGNORED).sum(1)


def _golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
    logits = tensors["input/logits"].requires_grad_()
    for reduction in ("mean", "batchmean"):
        loss = label_smoothing_loss(logits, tensors["input/targets"], reduction=reduction, **arguments)
        yield reduction, loss, tensors[f"output/{reduction}"]
        if reduction == "mean":
            yield "gradient", torch.autograd.grad(loss, logits)[0], tensors["output/grad_of_mean"]


def _operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    logits = inputs["logits"].flatten(0, 1).clone().requires_grad_()
    return torch.ops.sonorant.label_smoothing, (logits, inputs["targets"].flatten(), 0.1, IGNORED)


def _backward_operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    logits, targets = inputs["logits"].flatten(0, 1), inputs["targets"].flatten()
    losses, statistics = torch.ops.sonorant.label_smoothing(logits, targets, 0.1, IGNORED)
    return torch.ops.sonorant.label_smoothing_backward, (losses, logits, targets, statistics, 0.1, IGNORED)


def _layer(inputs: Inputs) -> tuple[Tensor, ...]:
    leaves = (inputs["hidden"].flatten(0, 1), inputs["weight"], inputs["bias"])
    return *(t.clone().requires_grad_() for t in leaves), inputs["targets"].flatten()


def _linear_operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    return torch.ops.sonorant.linear_label_smoothing, (*_layer(inputs), 0.1, IGNORED, 2)


def _total_operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    return torch.ops.sonorant.linear_label_smoothing_total, (*_layer(inputs), None, 0.1, IGNORED, 2, True)


def _plain(name: str, operator: Any, **options: Any) -> Case:
    return Case(
        name=name,
        make=_make,
        lengths={"lengths": (0, 5)},
        reference=label_smoothing_by_distribution,
        function=label_smoothing_loss,
        module=LabelSmoothingLoss,
        options={**OPTIONS, **options},
        differentiable=("logits",),
        padding={"logits": {1: _lengths}, "targets": {1: _lengths}},
        per_utterance={"reduction": "none"},
        duplicable=({"reduction": "mean"}, {"reduction": "batchmean"}),
        golden=_golden,
        golden_file="label_smoothing",
        operator=operator,
    )


def _linear(name: str, operator: Any, outputs: tuple[dict[int, Any], ...] = ({},), **options: Any) -> Case:
    return Case(
        name=name,
        make=_make_linear,
        lengths={"lengths": (0, 5)},
        reference=linear_label_smoothing_by_logits,
        function=linear_label_smoothing_loss,
        options={**OPTIONS, "chunk_size": 2, **options},
        differentiable=("hidden", "weight", "bias"),
        padding={"hidden": {1: _lengths}, "targets": {1: _lengths}},
        outputs=outputs,
        unbatched=("weight", "bias"),
        per_utterance={"reduction": "none"},
        duplicable=({"reduction": "mean"}, {"reduction": "batchmean"}) if outputs == ({},) else (),
        operator=operator,
    )


CASES = [
    _plain("label_smoothing_loss", _operator),
    _plain("label_smoothing_loss, cross entropy", _backward_operator, reduction="batchmean", kl=False, smoothing=0.3),
    _linear("linear_label_smoothing_loss", _total_operator),
    _linear("linear_label_smoothing_loss, a token", _linear_operator, ({1: _lengths},), reduction="none", kl=False),
]
