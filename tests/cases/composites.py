"""Composite losses of speech synthesis."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from sonorant.lengths import ratio_lengths
from sonorant.losses import (
    AdversarialTtsLoss,
    AlignmentLosses,
    AlignmentLossWeights,
    DeterministicTtsLoss,
    DiffusionTtsLoss,
    FlowTtsLoss,
    FlowTtsLosses,
    FlowTtsLossWeights,
    weighted_total,
)
from tests.cases.case import Axes, Case, Inputs, Rng, pack_lists
from tests.reference.adversarial import feature_matching_by_utterance, generator_by_utterance
from tests.reference.alignment import binarization_by_cell, forward_sum_by_item
from tests.reference.flow import flow_nll_by_frames
from tests.reference.regression import l1_by_elements, mse_by_elements
from tests.reference.spectral import stft_loss_by_utterance

ALIGNED_LENGTHS = {"query_lengths": (2, 8), "key_lengths": (1, 4)}
CELLS: Axes = {1: "query_lengths", 2: "key_lengths"}
ALIGNED_PADDING: dict[str, Axes] = {"alignment": CELLS, "attention": CELLS, "log_attention": CELLS}
ALIGNED = ("attention", "log_attention")
GROUP_SIZE = 2
RESOLUTIONS = [(16, 5, 12)]

Reference = tuple[Tensor, ...]


def make_aligned(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    """Scores, probabilities, and a path along each utterance's diagonal."""
    queries, keys = lengths["query_lengths"], lengths["key_lengths"]
    shape = (len(queries), int(queries.max()), int(keys.max()))
    alignment = torch.zeros(shape, dtype=rng.dtype)
    for path, num_queries, num_keys in zip(alignment, queries.tolist(), keys.tolist(), strict=True):
        for query in range(num_queries):
            path[query, query * num_keys // num_queries] = 1
    scores = rng.randn(*shape)
    return {"alignment": alignment, "attention": rng.randn(*shape).softmax(2), "log_attention": scores, **lengths}


def _make_flow(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    aligned = make_aligned(lengths, rng)
    grouped = (len(lengths["query_lengths"]), int(lengths["query_lengths"].max()) // GROUP_SIZE)
    return {
        "z": rng.randn(*grouped, 4),
        "log_scales_0": rng.randn(*grouped, 2),
        "log_scales_1": rng.randn(*grouped, 1),
        "log_dets_0": rng.randn(1)[0],
        "log_dets_1": rng.randn(1)[0],
        **aligned,
    }


def _make_mel(prediction: str, target: str) -> Callable[[dict[str, Tensor], Rng], Inputs]:
    def make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
        shape = (len(lengths["query_lengths"]), int(lengths["query_lengths"].max()), 3)
        return {prediction: rng.randn(*shape), target: rng.randn(*shape), **make_aligned(lengths, rng)}

    return make


def _make_adversarial(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    aligned = make_aligned({name: lengths[name] for name in ALIGNED_LENGTHS}, rng)
    batch_size, num_samples = len(lengths["lengths"]), int(lengths["lengths"].max())
    target = rng.randn(batch_size, num_samples)
    return {
        "prediction": target + 0.5 * rng.randn(batch_size, num_samples),
        "target": target,
        "fake_scores_0": rng.randn(batch_size, 7),
        "real_maps_0_0": rng.randn(batch_size, 2, 5),
        "fake_maps_0_0": rng.randn(batch_size, 2, 5),
        **aligned,
        "lengths": lengths["lengths"],
    }


def _ratios(inputs: Inputs) -> Tensor:
    return inputs["lengths"] / inputs["target"].shape[1]


def _aligned_reference(inputs: Inputs) -> Reference:
    return (
        forward_sum_by_item(*(inputs[name] for name in ("log_attention", "query_lengths", "key_lengths"))),
        binarization_by_cell(inputs["alignment"], inputs["attention"]),
    )


def _flow_reference(module: FlowTtsLoss, **inputs: Any) -> Reference:
    grouped = inputs["query_lengths"] // GROUP_SIZE
    flow = flow_nll_by_frames(inputs["z"], inputs["log_scales"], inputs["log_dets"], grouped, module.sigma)
    return (*flow, *_aligned_reference(inputs))


def _deterministic_reference(module: DeterministicTtsLoss, **inputs: Tensor) -> Reference:
    return l1_by_elements(inputs["prediction"], inputs["target"], inputs["query_lengths"]), *_aligned_reference(inputs)


def _diffusion_reference(module: DiffusionTtsLoss, **inputs: Tensor) -> Reference:
    mse = mse_by_elements(inputs["predicted_noise"], inputs["noise"], inputs["query_lengths"])
    return (mse, *_aligned_reference(inputs))


def _adversarial_reference(module: AdversarialTtsLoss, **inputs: Any) -> Reference:
    ratios = _ratios(inputs)
    return (
        *stft_loss_by_utterance(inputs["prediction"], inputs["target"], RESOLUTIONS, inputs["lengths"]),
        generator_by_utterance(inputs["fake_scores"], ratios),
        feature_matching_by_utterance(inputs["real_maps"], inputs["fake_maps"], ratios),
        *_aligned_reference(inputs),
    )


Golden = Iterator[tuple[str, Tensor, Tensor]]


def _golden_flow(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Golden:
    loss = FlowTtsLoss(arguments["sigma"], arguments["n_group_size"], arguments["blank_logprob"])
    log_scales, log_dets = (
        [t for name, t in sorted(tensors.items()) if name.startswith(f"input/{prefix}")]
        for prefix in ("log_s", "log_det_w")
    )
    names = ("hard", "soft", "log_attention", "query_lengths", "key_lengths")
    terms = loss(tensors["input/z"], log_scales, log_dets, *(tensors[f"input/{name}"] for name in names))
    weights = FlowTtsLossWeights(**arguments["weights"], binarization_start=arguments["kl_loss_start_iter"])
    for name in FlowTtsLosses._fields:
        yield name, getattr(terms, name), tensors[f"output/step9000_{name}"]
    for step in (10, 9000):
        yield f"total {step}", weighted_total(terms, weights.at(step)), tensors[f"output/step{step}_total"]


def _golden_mel(loss: DeterministicTtsLoss | DiffusionTtsLoss, name: str) -> Callable[..., Golden]:
    def golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Golden:
        lengths = tensors["input/lengths"]
        aligned = make_aligned({"query_lengths": lengths, "key_lengths": lengths.clamp(max=2)}, Rng(0))
        yield name, loss(tensors["input/prediction"], tensors["input/target"], **aligned)[0], tensors[f"output/{name}"]

    return golden


def _make_terms(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return {name: rng.randn(1)[0] for name in AlignmentLosses._fields}


def _total_reference(terms: AlignmentLosses, weights: AlignmentLossWeights) -> Tensor:
    return weights.forward_sum * terms.forward_sum + weights.binarization * terms.binarization


def _mel(name: str, prediction: str, target: str, **more: Any) -> Case:
    return Case(
        name=name,
        make=_make_mel(prediction, target),
        lengths=ALIGNED_LENGTHS,
        differentiable=(prediction, target, *ALIGNED),
        padding={prediction: {1: "query_lengths"}, target: {1: "query_lengths"}, **ALIGNED_PADDING},
        outputs=({}, {}, {}),
        duplicable=({},),
        golden_file="mel_tts_composites",
        **more,
    )


CASES = [
    Case(
        name="weighted_total",
        make=_make_terms,
        lengths={},
        reference=_total_reference,
        function=weighted_total,
        pack=lambda inputs: {"terms": AlignmentLosses(**inputs)},
        options={"weights": AlignmentLossWeights()},
        differentiable=AlignmentLosses._fields,
        computes_in_float32=False,
        half_tolerance=1e-2,
    ),
    Case(
        name="FlowTtsLoss",
        make=_make_flow,
        lengths=ALIGNED_LENGTHS,
        reference=_flow_reference,
        module=FlowTtsLoss,
        pack=pack_lists("log_scales", "log_dets"),
        options={"sigma": 0.7, "group_size": GROUP_SIZE},
        differentiable=("z", "log_scales_0", "log_scales_1", "log_dets_0", "log_dets_1", *ALIGNED),
        padding={
            **{name: {1: lambda i: i["query_lengths"] // GROUP_SIZE} for name in ("z", "log_scales_0", "log_scales_1")},
            **ALIGNED_PADDING,
        },
        outputs=({}, {}, {}, {}),
        unbatched=("log_dets_0", "log_dets_1"),
        duplicable=({},),
        golden=_golden_flow,
        golden_file="flow_tts_composite",
    ),
    _mel(
        "DeterministicTtsLoss",
        "prediction",
        "target",
        reference=_deterministic_reference,
        module=DeterministicTtsLoss,
        golden=_golden_mel(DeterministicTtsLoss(), "deterministic_mae"),
    ),
    _mel(
        "DiffusionTtsLoss",
        "predicted_noise",
        "noise",
        reference=_diffusion_reference,
        module=DiffusionTtsLoss,
        golden=_golden_mel(DiffusionTtsLoss(), "diffusion_mse"),
    ),
    Case(
        name="AdversarialTtsLoss",
        make=_make_adversarial,
        lengths={**ALIGNED_LENGTHS, "lengths": (10, 60)},
        reference=_adversarial_reference,
        module=AdversarialTtsLoss,
        pack=pack_lists("fake_scores", "real_maps", "fake_maps"),
        options={"resolutions": RESOLUTIONS},
        differentiable=("prediction", "fake_scores_0", "fake_maps_0_0", *ALIGNED),
        padding={
            "prediction": {1: "lengths"},
            "target": {1: "lengths"},
            "fake_scores_0": {1: lambda inputs: ratio_lengths(_ratios(inputs), 7)},
            "real_maps_0_0": {2: lambda inputs: ratio_lengths(_ratios(inputs), 5)},
            "fake_maps_0_0": {2: lambda inputs: ratio_lengths(_ratios(inputs), 5)},
            **ALIGNED_PADDING,
        },
        extra_padding=0,  # the ratios are those of the waveforms' size
        outputs=({},) * 6,
        duplicable=({},),
        tolerance=1e-4,  # see multi_resolution_stft_loss
    ),
]
