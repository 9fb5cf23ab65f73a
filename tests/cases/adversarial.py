"""Least-squares adversarial losses and feature matching."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from sonorant.functional import feature_matching_loss, lsgan_discriminator_loss, lsgan_generator_loss
from sonorant.lengths import ratio_lengths
from sonorant.losses import FeatureMatchingLoss, LsganDiscriminatorLoss, LsganGeneratorLoss
from tests.cases.case import Axes, Case, Inputs, Rng, pack_lists
from tests.reference.adversarial import (
    discriminator_by_utterance,
    feature_matching_by_utterance,
    generator_by_utterance,
)

STEPS = (9, 5)
MAPS = (((3, 8), (2, 4)), ((3, 5, 2), (1, 3, 2)))
SCORE_NAMES = [f"{kind}_scores_{index}" for kind in ("real", "fake") for index in range(len(STEPS))]
MAP_NAMES = [
    f"{kind}_maps_{outer}_{inner}"
    for kind in ("real", "fake")
    for outer, maps in enumerate(MAPS)
    for inner in range(len(maps))
]
GOLDEN_RATIOS = {"": None, "_masked": "input/length_ratios"}


def _ratios(lengths: dict[str, Tensor]) -> Tensor:
    return lengths["eighths"].double() / 8


def _make_scores(names: list[str]) -> Callable[[dict[str, Tensor], Rng], Inputs]:
    def make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
        ratios = _ratios(lengths)
        return {name: rng.randn(len(ratios), STEPS[int(name[-1])]) for name in names} | {"length_ratios": ratios}

    return make


def _make_maps(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    ratios = _ratios(lengths)
    shapes = [shape for _ in ("real", "fake") for maps in MAPS for shape in maps]
    maps = {name: rng.randn(len(ratios), *shape) for name, shape in zip(MAP_NAMES, shapes, strict=True)}
    return {**maps, "length_ratios": ratios}


def _padding(names: list[str], axis: int) -> dict[str, Axes]:
    def lengths(name: str) -> Callable[[Inputs], Tensor]:
        return lambda inputs: ratio_lengths(inputs["length_ratios"], inputs[name].shape[axis])

    return {name: {axis: lengths(name)} for name in names}


def _golden_scores(tensors: dict[str, Tensor], kind: str) -> list[Tensor]:
    return [tensors[f"input/{kind}_score{index}"] for index in range(2)]


def _golden_discriminator(
    tensors: dict[str, Tensor], arguments: dict[str, Any]
) -> Iterator[tuple[str, Tensor, Tensor]]:
    real, fake = _golden_scores(tensors, "real"), _golden_scores(tensors, "fake")
    for suffix, ratios in GOLDEN_RATIOS.items():
        value = lsgan_discriminator_loss(real, fake, length_ratios=tensors.get(ratios))
        yield f"discriminator{suffix}", value, tensors[f"output/discriminator{suffix}"]


def _golden_generator(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
    for suffix, ratios in GOLDEN_RATIOS.items():
        value = lsgan_generator_loss(_golden_scores(tensors, "fake"), length_ratios=tensors.get(ratios))
        yield f"generator{suffix}", value, tensors[f"output/generator{suffix}"]


def _golden_features(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
    numbers = range(arguments["n_discriminators"]), range(arguments["n_maps"])
    real, fake = (
        [[tensors[f"input/{kind}_map{outer}_{inner}"] for inner in numbers[1]] for outer in numbers[0]]
        for kind in ("real", "fake")
    )
    for suffix, ratios in GOLDEN_RATIOS.items():
        value = feature_matching_loss(real, fake, length_ratios=tensors.get(ratios))
        yield f"feature_matching{suffix}", value, tensors[f"output/feature_matching{suffix}"]


def _operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
    fake, real = inputs["fake_maps_0_0"].clone().requires_grad_(), inputs["real_maps_0_0"]
    lengths = ratio_lengths(inputs["length_ratios"], fake.shape[2])
    return torch.ops.sonorant.feature_distance, (fake, real, lengths, True)


CASES = [
    Case(
        name="lsgan_discriminator_loss",
        make=_make_scores(SCORE_NAMES),
        lengths={"eighths": (1, 8)},
        reference=discriminator_by_utterance,
        function=lsgan_discriminator_loss,
        module=LsganDiscriminatorLoss,
        pack=pack_lists("real_scores", "fake_scores"),
        options={"reduction": "none"},
        differentiable=tuple(SCORE_NAMES),
        padding=_padding(SCORE_NAMES, 1),
        extra_padding=0,
        duplicable=({"reduction": "sum"}, {"reduction": "none"}),
        golden=_golden_discriminator,
        golden_file="adversarial",
    ),
    Case(
        name="lsgan_generator_loss",
        make=_make_scores(SCORE_NAMES[2:]),
        lengths={"eighths": (1, 8)},
        reference=generator_by_utterance,
        function=lsgan_generator_loss,
        module=LsganGeneratorLoss,
        pack=pack_lists("fake_scores"),
        options={"reduction": "none"},
        differentiable=tuple(SCORE_NAMES[2:]),
        padding=_padding(SCORE_NAMES[2:], 1),
        extra_padding=0,
        duplicable=({"reduction": "sum"}, {"reduction": "none"}),
        golden=_golden_generator,
        golden_file="adversarial",
    ),
    Case(
        name="feature_matching_loss",
        make=_make_maps,
        lengths={"eighths": (1, 8)},
        reference=feature_matching_by_utterance,
        function=feature_matching_loss,
        module=FeatureMatchingLoss,
        pack=pack_lists("real_maps", "fake_maps"),
        differentiable=tuple(name for name in MAP_NAMES if name.startswith("fake")),
        padding=_padding(MAP_NAMES, 2),
        extra_padding=0,
        duplicable=({},),
        golden=_golden_features,
        golden_file="adversarial",
        operator=_operator,
    ),
]
