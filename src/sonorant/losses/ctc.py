"""Connectionist temporal classification."""

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.reduction import Reduction, check_reduction

__all__ = ["CtcLoss"]


class CtcLoss(nn.Module):
    """:func:`sonorant.functional.ctc_loss` as a Module.

    Args:
        blank: the id of the blank.
        reduction: ``"none"``, ``"sum"``, ``"mean"`` or ``"batchmean"``.

    Raises:
        ValueError: another ``reduction``.

    Example:
        >>> import torch
        >>> from sonorant.losses import CtcLoss
        >>> log_probs = torch.full((1, 2, 3), 1 / 3).log()
        >>> CtcLoss()(log_probs, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
        tensor(1.0986)
    """

    def __init__(self, blank: int = 0, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.blank = blank
        self.reduction = reduction

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        """See :func:`sonorant.functional.ctc_loss`."""
        return functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, blank=self.blank, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"blank={self.blank}, reduction={self.reduction!r}"
