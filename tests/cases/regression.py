"""Masked regression."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from sonorant.functional import masked_bce_with_logits_loss, masked_l1_loss, masked_mse_loss
from sonorant.losses import MaskedBceWithLogitsLoss, MaskedL1Loss, MaskedMseLoss
from tests.cases.case import Case, Inputs, Rng
from tests.reference.regression import bce_by_elements, l1_by_elements, mse_by_elements

FEATURES = 2


def _with_lengths(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    shape = len(lengths["lengths"]), int(lengths["lengths"].max()), FEATURES
    return {"prediction": rng.randn(*shape) * 2, "target": rng.rand(*shape), **lengths}


def _with_mask(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    """Holes anywhere, with infinity in them."""
    inputs = _with_lengths(lengths, rng)
    shape = inputs["prediction"].shape
    mask = rng.rand(*shape) < 0.5
    for name in ("prediction", "target"):
        inputs[name] = torch.where(mask, inputs[name], torch.inf)
    return {"prediction": inputs["prediction"], "target": inputs["target"], "mask": mask}


def _golden(
    function: Callable[..., Tensor], target: str, value: str, gradient: str
) -> Callable[[dict[str, Tensor], dict[str, Any]], Iterator[tuple[str, Tensor, Tensor]]]:
    def golden(tensors: dict[str, Tensor], _: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
        prediction = tensors["input/prediction"].requires_grad_()
        loss = function(prediction, tensors[f"input/{target}"], lengths=tensors["input/lengths"])
        yield value, loss, tensors[f"output/{value}"]
        yield gradient, torch.autograd.grad(loss, prediction)[0], tensors[f"output/{gradient}"]

    return golden


def _cases(
    function: Callable[..., Tensor], module: type[nn.Module], reference: Callable[..., Tensor], golden: Any = None
) -> list[Case]:
    by_length = Case(
        name=function.__name__,
        make=_with_lengths,
        lengths={"lengths": (1, 5)},
        reference=reference,
        function=function,
        module=module,
        options={"reduction": "mean"},
        differentiable=("prediction", "target"),
        padding={"prediction": {1: "lengths"}, "target": {1: "lengths"}},
        per_utterance={"reduction": "none"},
        duplicable=({"reduction": "mean"}, {"reduction": "batchmean"}),
        golden=golden,
        golden_file="masked_regression",
    )
    by_mask = Case(
        name=f"{function.__name__}, mask",
        make=_with_mask,
        lengths={"lengths": (1, 4)},
        reference=reference,
        function=function,
        module=module,
        options={"reduction": "batchmean"},
        differentiable=("prediction", "target"),
        per_utterance={"reduction": "none"},
    )
    return [by_length, by_mask]


CASES = [
    *_cases(masked_l1_loss, MaskedL1Loss, l1_by_elements),
    *_cases(masked_mse_loss, MaskedMseLoss, mse_by_elements, _golden(masked_mse_loss, "target", "mse", "grad_mse")),
    *_cases(
        masked_bce_with_logits_loss,
        MaskedBceWithLogitsLoss,
        bce_by_elements,
        _golden(masked_bce_with_logits_loss, "binary_target", "bce_with_logits", "grad_bce"),
    ),
]
