"""Masked regression, one element at a time."""

from collections.abc import Callable

import torch
from torch import Tensor


def _over_elements(element: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def loss(
        prediction: Tensor,
        target: Tensor,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        reduction: str = "mean",
    ) -> Tensor:
        values = []
        batch_size, num_frames, num_features = prediction.shape
        for b in range(batch_size):
            for t in range(num_frames):
                for c in range(num_features):
                    if mask is None:
                        valid = t < int(lengths[b])
                    else:
                        valid = bool(mask[b, t] if mask.dim() == 2 else mask[b, t, c])
                    values.append(element(prediction[b, t, c], target[b, t, c]) if valid else None)
        if reduction == "none":
            return torch.stack([prediction.new_zeros(()) if v is None else v for v in values]).view(prediction.shape)
        valid_values = [v for v in values if v is not None]
        total = sum(valid_values, prediction.new_zeros(()))
        divisor = {"sum": 1, "mean": max(len(valid_values), 1), "batchmean": batch_size}[reduction]
        return total / divisor

    return loss


def _cross_entropy(logit: Tensor, label: Tensor) -> Tensor:
    p = 1 / (1 + torch.exp(-logit))
    return -(label * torch.log(p) + (1 - label) * torch.log(1 - p))


l1_by_elements = _over_elements(lambda x, y: (x - y).abs())
mse_by_elements = _over_elements(lambda x, y: (x - y) ** 2)
bce_by_elements = _over_elements(_cross_entropy)
