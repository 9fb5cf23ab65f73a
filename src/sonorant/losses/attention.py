"""Losses on attention weights."""

from typing import get_args

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.attention import GuidedReduction
from sonorant.functional.reduction import check_reduction

__all__ = ["GuidedAttentionLoss"]


class GuidedAttentionLoss(nn.Module):
    """:func:`sonorant.functional.guided_attention_loss` as a Module.

    Its weight is commonly scheduled: SpeechBrain starts at 50, halves every 10 epochs and stops after 50.

    Args:
        sigma: the width of the band around the diagonal that is hardly penalised.
        reduction: ``"none"``, ``"sum"``, ``"mean"``, ``"batchmean"`` or ``"query_mean"``.

    Raises:
        ValueError: another ``reduction``; ``sigma`` not positive.

    Example:
        >>> import torch
        >>> from sonorant.losses import GuidedAttentionLoss
        >>> GuidedAttentionLoss()(torch.eye(5).unsqueeze(0), torch.tensor([5]), torch.tensor([5]))
        tensor(0.)
    """

    def __init__(self, sigma: float = 0.2, reduction: GuidedReduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction, get_args(GuidedReduction))
        if not sigma > 0:
            raise ValueError(f"sigma must be positive; got {sigma}")
        self.sigma = sigma
        self.reduction = reduction

    def forward(self, attention: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
        """See :func:`sonorant.functional.guided_attention_loss`."""
        return functional.guided_attention_loss(
            attention, query_lengths, key_lengths, self.sigma, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"sigma={self.sigma}, reduction={self.reduction!r}"
