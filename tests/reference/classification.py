"""Label smoothing the way it is usually written: the target distribution is built, and KLDivLoss applied to it."""

import torch
from torch import Tensor
from torch.nn import functional as F


def label_smoothing_by_distribution(
    logits: Tensor,
    targets: Tensor,
    smoothing: float = 0.1,
    ignore_index: int = -100,
    reduction: str = "mean",
    kl: bool = True,
) -> Tensor:
    num_classes = logits.shape[-1]
    rows = logits.reshape(-1, num_classes)
    ignored = targets.reshape(-1) == ignore_index
    ids = targets.reshape(-1).masked_fill(ignored, 0)
    distribution = torch.full_like(rows, smoothing / (num_classes - 1))
    distribution.scatter_(1, ids.unsqueeze(1), 1 - smoothing)
    log_probs = torch.log_softmax(rows, 1)
    elements = torch.nn.KLDivLoss(reduction="none")(log_probs, distribution) if kl else -distribution * log_probs
    elements = elements.masked_fill(ignored.unsqueeze(1), 0.0)
    if reduction == "none":
        return elements.sum(1).view(targets.shape)
    total = elements.sum()
    if reduction == "mean":
        return total / max(int((~ignored).sum()), 1)
    return total / len(targets) if reduction == "batchmean" else total


def linear_label_smoothing_by_logits(
    hidden: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None = None, **options: object
) -> Tensor:
    options.pop("chunk_size", None)
    return label_smoothing_by_distribution(F.linear(hidden, weight, bias), targets, **options)
