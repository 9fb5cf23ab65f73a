"""Adversarial losses over one utterance of one discriminator at a time."""

import math
from fractions import Fraction

import torch
from torch import Tensor

Scores = list[Tensor]
Maps = list[list[Tensor]]


def discriminator_by_utterance(
    real_scores: Scores, fake_scores: Scores, length_ratios: Tensor | None = None, reduction: str = "sum"
) -> Tensor:
    values = [
        _mean([(1 - row) ** 2 for row in valid(real, length_ratios)])
        + _mean([row**2 for row in valid(fake, length_ratios)])
        for real, fake in zip(real_scores, fake_scores, strict=True)
    ]
    return torch.stack(values) if reduction == "none" else torch.stack(values).sum()


def generator_by_utterance(fake_scores: Scores, length_ratios: Tensor | None = None, reduction: str = "sum") -> Tensor:
    values = [_mean([(1 - row) ** 2 for row in valid(fake, length_ratios)]) for fake in fake_scores]
    return torch.stack(values) if reduction == "none" else torch.stack(values).sum()


def feature_matching_by_utterance(real_maps: Maps, fake_maps: Maps, length_ratios: Tensor | None = None) -> Tensor:
    values = []
    for real_list, fake_list in zip(real_maps, fake_maps, strict=True):
        for real, fake in zip(real_list, fake_list, strict=True):
            pairs = zip(valid(real.movedim(2, 1), length_ratios), valid(fake.movedim(2, 1), length_ratios), strict=True)
            values.append(_mean([(one - other).abs() for one, other in pairs]))
    return torch.stack(values).sum()


def valid(tensor: Tensor, length_ratios: Tensor | None) -> list[Tensor]:
    """The valid steps, axis 1, of each utterance; ratios are taken to be fractions of small numbers."""
    if length_ratios is None:
        return list(tensor)
    ratios = [Fraction(ratio).limit_denominator(1000) for ratio in length_ratios.tolist()]
    return [row[: math.ceil(ratio * len(row))] for row, ratio in zip(tensor, ratios, strict=True)]


def _mean(parts: list[Tensor]) -> Tensor:
    return torch.cat([part.flatten() for part in parts]).mean()
