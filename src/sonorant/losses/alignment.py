"""Attention binarization, and what trains an aligner: forward-sum and binarization together."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.reduction import Reduction, check_reduction
from sonorant.losses.weights import BinarizationSchedule

__all__ = ["AlignmentLoss", "AlignmentLossWeights", "AlignmentLosses", "AttentionBinarizationLoss"]


class AttentionBinarizationLoss(nn.Module):
    """:func:`sonorant.functional.attention_binarization_loss` as a Module.

    Args:
        eps: the floor of the probabilities.
        reduction: ``"none"``, ``"sum"``, ``"mean"`` or ``"batchmean"``.

    Raises:
        ValueError: another ``reduction``.

    Example:
        >>> import torch
        >>> from sonorant.losses import AttentionBinarizationLoss
        >>> AttentionBinarizationLoss()(torch.eye(2).unsqueeze(0), torch.full((1, 2, 2), 0.25))
        tensor(1.3863)
    """

    def __init__(self, eps: float = 1e-12, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.eps = eps
        self.reduction = reduction

    def forward(self, alignment: Tensor, attention: Tensor) -> Tensor:
        """See :func:`sonorant.functional.attention_binarization_loss`."""
        return functional.attention_binarization_loss(alignment, attention, eps=self.eps, reduction=self.reduction)

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"eps={self.eps}, reduction={self.reduction!r}"


class AlignmentLosses(NamedTuple):
    """The unweighted terms of :class:`AlignmentLoss`, scalars."""

    forward_sum: Tensor
    binarization: Tensor


@dataclass(frozen=True)
class AlignmentLossWeights(BinarizationSchedule):
    """The weights of :class:`AlignmentLosses`. Binarization is weighted 0 until alignments have formed."""

    forward_sum: float = 0.1
    binarization: float = 1.0


class AlignmentLoss(nn.Module):
    """What trains an aligner: the forward-sum loss of its scores and the binarization of its attention.

    Args:
        blank_logprob: the score of the blank in every frame.

    References:
        Badlani et al. 2021, arXiv 2108.10447.

    Example:
        >>> import torch
        >>> from sonorant.losses import AlignmentLoss
        >>> scores = torch.zeros(1, 2, 2)
        >>> AlignmentLoss()(torch.eye(2).unsqueeze(0), scores.softmax(2), scores, torch.tensor([2]), torch.tensor([2]))
        AlignmentLosses(forward_sum=tensor(0.8620), binarization=tensor(0.6931))
    """

    def __init__(self, blank_logprob: float = -1.0) -> None:
        super().__init__()
        self.blank_logprob = blank_logprob

    def forward(
        self, alignment: Tensor, attention: Tensor, log_attention: Tensor, query_lengths: Tensor, key_lengths: Tensor
    ) -> AlignmentLosses:
        """The two terms, unweighted.

        Args:
            alignment: ``(batch, query, key)``, 1 in the cells selected (a hard path, or a soft attention before
                binarization starts: it then selects next to nothing).
            attention: ``(batch, query, key)``, probabilities.
            log_attention: ``(batch, query, key)``, the scores behind them.
            query_lengths: ``(batch,)``, frames.
            key_lengths: ``(batch,)``, tokens.

        Returns:
            ``AlignmentLosses``: scalars, in float32 for half precision.

        Raises:
            ValueError: shapes or lengths that do not fit.
        """
        return AlignmentLosses(
            functional.forward_sum_loss(log_attention, query_lengths, key_lengths, blank_logprob=self.blank_logprob),
            functional.attention_binarization_loss(alignment, attention),
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"blank_logprob={self.blank_logprob}"
