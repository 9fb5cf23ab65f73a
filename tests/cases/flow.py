"""The likelihood of flows."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from sonorant.functional import flow_nll
from sonorant.losses import FlowNllLoss
from tests.cases.case import Case, Inputs, Rng, pack_lists
from tests.reference.flow import flow_nll_by_frames

STEPS = 2


def _make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    batch_size, frames = len(lengths["lengths"]), int(lengths["lengths"].max())
    scales = {f"log_scales_{step}": rng.randn(batch_size, frames, 1 + step) for step in range(STEPS)}
    dets = {f"log_dets_{step}": rng.randn(1)[0] for step in range(STEPS)}
    return {"z": rng.randn(batch_size, frames, 4), **scales, **dets, **lengths}


def _golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
    steps = range(arguments["n_steps"])
    z = tensors["input/z"].requires_grad_()
    log_scales = [tensors[f"input/log_s{step}"].requires_grad_() for step in steps]
    log_dets = [tensors[f"input/log_det_w{step}"].requires_grad_() for step in steps]
    losses = flow_nll(z, log_scales, log_dets, tensors["input/lengths"], sigma=arguments["sigma"])
    yield "nll", losses.nll, tensors["output/nll"]
    yield "prior_nll", losses.prior_nll, tensors["output/prior_nll"]
    names = ["z", *(f"log_s{step}" for step in steps), *(f"log_det_w{step}" for step in steps)]
    gradients = torch.autograd.grad(losses.nll, [z, *log_scales, *log_dets])
    for name, gradient in zip(names, gradients, strict=True):
        yield f"gradient of {name}", gradient, tensors[f"output/grad_{name}"]


CASES = [
    Case(
        name="flow_nll",
        make=_make,
        lengths={"lengths": (1, 6)},
        reference=flow_nll_by_frames,
        function=flow_nll,
        module=FlowNllLoss,
        pack=pack_lists("log_scales", "log_dets"),
        options={"sigma": 0.7, "include_constant": True},
        differentiable=("z", *(f"log_scales_{step}" for step in range(STEPS)), "log_dets_0", "log_dets_1"),
        padding={"z": {1: "lengths"}, **{f"log_scales_{step}": {1: "lengths"} for step in range(STEPS)}},
        outputs=({}, {}),
        unbatched=("log_dets_0", "log_dets_1"),
        duplicable=({},),
        golden=_golden,
        golden_file="flow_nll",
    )
]
