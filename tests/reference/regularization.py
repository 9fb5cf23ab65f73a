"""Embedding regularisers, one pair of dimensions at a time."""

import torch
from torch import Tensor


def _covariance(x: Tensor, y: Tensor, mean_x: Tensor | None = None, mean_y: Tensor | None = None) -> Tensor:
    mean_x, mean_y = (x.mean() if mean_x is None else mean_x), (y.mean() if mean_y is None else mean_y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / (len(x) - 1)


def variance_by_dimensions(embeddings: Tensor, gamma: float = 1.0, eps: float = 1e-4) -> Tensor:
    total = embeddings.sum() * 0
    if len(embeddings) > 1:
        for x in embeddings.T:
            total = total + torch.clamp(gamma - (_covariance(x, x) + eps).sqrt(), min=0)
    return total / embeddings.shape[1]


def covariance_by_pairs(embeddings: Tensor) -> Tensor:
    total = embeddings.sum() * 0
    if len(embeddings) > 1:
        for i, x in enumerate(embeddings.T):
            for j, y in enumerate(embeddings.T):
                if i != j:
                    total = total + _covariance(x, y) ** 2
    return total / embeddings.shape[1]


def cross_covariance_by_pairs(
    a: Tensor, b: Tensor, mean_a: Tensor | None = None, mean_b: Tensor | None = None
) -> Tensor:
    total = a.sum() * 0 + b.sum() * 0
    if len(a) > 1:
        for i, x in enumerate(a.T):
            for j, y in enumerate(b.T):
                means = (None if mean_a is None else mean_a[i]), (None if mean_b is None else mean_b[j])
                total = total + _covariance(x, y, *means) ** 2
    return total / (a.shape[1] * b.shape[1])


def invariance_by_elements(a: Tensor, b: Tensor) -> Tensor:
    return sum((x - y) ** 2 for x, y in zip(a.flatten(), b.flatten(), strict=True)) / a.numel()
