"""How per-utterance or per-element values become one number, and in which precision they are computed."""

from typing import Literal, get_args

import torch
from torch import Tensor

__all__ = ["Reduction", "check_reduction", "compute_dtype", "reduce_utterances"]

Reduction = Literal["none", "sum", "mean", "batchmean"]


def check_reduction(reduction: str, allowed: tuple[str, ...] = get_args(Reduction)) -> None:
    """Refuse an unknown reduction.

    Raises:
        ValueError: ``reduction`` is not one of ``allowed``.
    """
    if reduction not in allowed:
        raise ValueError(f"reduction must be one of {', '.join(allowed)}; got {reduction!r}")


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """The precision that a floating tensor is computed in: float32 for half and bfloat16, else its own."""
    return torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.dtype


def reduce_utterances(values: Tensor, reduction: Reduction, *, divisors: Tensor, counted: Tensor) -> Tensor:
    """Reduce one value an utterance.

    Args:
        values: ``(batch,)``, already 0 where not ``counted``.
        reduction: ``"mean"`` is the mean of ``values / divisors``, ``"batchmean"`` the mean of ``values``, both
            over the counted utterances.
        divisors: ``(batch,)``, positive.
        counted: bool ``(batch,)``.

    Returns:
        ``(batch,)`` for ``"none"``, else a scalar; 0 when nothing counts.
    """
    check_reduction(reduction)
    if reduction == "none":
        return values
    if reduction == "mean":
        values = values / divisors
    total = values.sum()
    return total if reduction == "sum" else total / counted.sum().clamp(min=1)
