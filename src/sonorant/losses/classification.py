"""Classification of tokens against smoothed targets."""

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.reduction import Reduction, check_reduction

__all__ = ["LabelSmoothingLoss"]


class LabelSmoothingLoss(nn.Module):
    """:func:`sonorant.functional.label_smoothing_loss` as a Module.

    Args:
        smoothing: the mass given to the wrong classes.
        ignore_index: the target of positions that do not count.
        reduction: ``"none"``, ``"sum"``, ``"mean"`` or ``"batchmean"``.
        kl: add the negative entropy of the target; False leaves the cross entropy.

    Raises:
        ValueError: another ``reduction``; smoothing outside [0, 1].

    Example:
        >>> import torch
        >>> from sonorant.losses import LabelSmoothingLoss
        >>> LabelSmoothingLoss(smoothing=0.0)(torch.zeros(1, 1, 2), torch.tensor([[1]]))
        tensor(0.6931)
    """

    def __init__(
        self, smoothing: float = 0.1, ignore_index: int = -100, reduction: Reduction = "mean", kl: bool = True
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        if not 0 <= smoothing <= 1:
            raise ValueError(f"smoothing must be in [0, 1]; got {smoothing}")
        self.smoothing = smoothing
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.kl = kl

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """See :func:`sonorant.functional.label_smoothing_loss`."""
        return functional.label_smoothing_loss(
            logits, targets, self.smoothing, ignore_index=self.ignore_index, reduction=self.reduction, kl=self.kl
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return (
            f"smoothing={self.smoothing}, ignore_index={self.ignore_index}, reduction={self.reduction!r}, kl={self.kl}"
        )
