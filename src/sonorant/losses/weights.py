"""How the terms of a composite loss become one number."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor

__all__ = ["BinarizationSchedule", "weighted_total"]


@dataclass(frozen=True)
class BinarizationSchedule:
    """Weights among which is one of the binarization, which starts when alignments have formed.

    From the first step on it would stop the aligner from learning.

    Args:
        binarization_start: the last training step without binarization; 5,000 by default in RAD-TTS, 18,000 to 25,000
            in its recipes.
    """

    binarization_start: int = field(default=5000, kw_only=True)

    def at(self, step: int) -> Self:
        """The weights at a training step: binarization is 0 up to ``binarization_start``.

        Example:
            >>> from sonorant.losses import AlignmentLossWeights
            >>> weights = AlignmentLossWeights(binarization_start=100)
            >>> weights.at(100).binarization, weights.at(101).binarization
            (0.0, 1.0)
        """
        changes: dict[str, Any] = {"binarization": 0.0}
        return self if step > self.binarization_start else replace(self, **changes)


def weighted_total(terms: tuple[Tensor, ...], weights: object) -> Tensor:
    """The weighted sum of the terms, without those of weight 0: a NaN in one of these never reaches the total.

    Args:
        terms: a NamedTuple of scalar tensors, as the composite losses return.
        weights: an object with a number of the same name for each, such as the dataclass that goes with the terms.

    Returns:
        A scalar; 0 when all weights are 0.

    Raises:
        ValueError: a term without a weight.

    Example:
        >>> import torch
        >>> from sonorant.losses import AlignmentLosses, AlignmentLossWeights, weighted_total
        >>> terms = AlignmentLosses(torch.tensor(2.0), torch.tensor(float("nan")))
        >>> weighted_total(terms, AlignmentLossWeights().at(step=10))
        tensor(0.2000)
    """
    names: tuple[str, ...] = getattr(terms, "_fields", ())
    if len(names) != len(terms) or not names:
        raise ValueError(f"terms must be a NamedTuple of tensors; got {type(terms).__name__}")
    for name in names:
        if not hasattr(weights, name):
            raise ValueError(f"{type(weights).__name__} has no weight for {name}")
    pairs = [(getattr(weights, name), term) for name, term in zip(names, terms, strict=True)]
    weighted = [weight * term for weight, term in pairs if weight != 0]
    return torch.stack(weighted).sum() if weighted else terms[0].new_zeros(())
