"""Regression and binary classification of frames, over valid elements only."""

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.reduction import Reduction, check_reduction

__all__ = ["MaskedBceWithLogitsLoss", "MaskedL1Loss", "MaskedMseLoss"]


class MaskedL1Loss(nn.Module):
    """:func:`sonorant.functional.masked_l1_loss` as a Module.

    Args:
        reduction: ``"none"``, ``"sum"``, ``"mean"`` or ``"batchmean"``.

    Raises:
        ValueError: another ``reduction``.

    Example:
        >>> import torch
        >>> from sonorant.losses import MaskedL1Loss
        >>> MaskedL1Loss()(torch.full((1, 2, 1), 3.0), torch.zeros(1, 2, 1), lengths=torch.tensor([2]))
        tensor(3.)
    """

    def __init__(self, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(
        self, prediction: Tensor, target: Tensor, *, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """See :func:`sonorant.functional.masked_l1_loss`."""
        return functional.masked_l1_loss(prediction, target, lengths=lengths, mask=mask, reduction=self.reduction)

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"reduction={self.reduction!r}"


class MaskedMseLoss(nn.Module):
    """:func:`sonorant.functional.masked_mse_loss` as a Module.

    Args:
        reduction: ``"none"``, ``"sum"``, ``"mean"`` or ``"batchmean"``.

    Raises:
        ValueError: another ``reduction``.

    Example:
        >>> import torch
        >>> from sonorant.losses import MaskedMseLoss
        >>> MaskedMseLoss()(torch.full((1, 2, 1), 3.0), torch.zeros(1, 2, 1), lengths=torch.tensor([2]))
        tensor(9.)
    """

    def __init__(self, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(
        self, prediction: Tensor, target: Tensor, *, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """See :func:`sonorant.functional.masked_mse_loss`."""
        return functional.masked_mse_loss(prediction, target, lengths=lengths, mask=mask, reduction=self.reduction)

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"reduction={self.reduction!r}"


class MaskedBceWithLogitsLoss(nn.Module):
    """:func:`sonorant.functional.masked_bce_with_logits_loss` as a Module.

    Args:
        reduction: ``"none"``, ``"sum"``, ``"mean"`` or ``"batchmean"``.

    Raises:
        ValueError: another ``reduction``.

    Example:
        >>> import torch
        >>> from sonorant.losses import MaskedBceWithLogitsLoss
        >>> MaskedBceWithLogitsLoss()(torch.full((1, 2, 1), 3.0), torch.zeros(1, 2, 1), lengths=torch.tensor([2]))
        tensor(3.0486)
    """

    def __init__(self, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(
        self, prediction: Tensor, target: Tensor, *, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """See :func:`sonorant.functional.masked_bce_with_logits_loss`."""
        return functional.masked_bce_with_logits_loss(
            prediction, target, lengths=lengths, mask=mask, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"reduction={self.reduction!r}"
