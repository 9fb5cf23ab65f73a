"""The forward-sum loss."""

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.reduction import Reduction, check_reduction

__all__ = ["ForwardSumLoss"]


class ForwardSumLoss(nn.Module):
    """:func:`sonorant.functional.forward_sum_loss` as a Module.

    Args:
        blank_logprob: the score of the blank in every frame.
        band: the half width of the band in keys; None: no band.
        reduction: ``"none"``, ``"sum"``, ``"mean"`` or ``"batchmean"``.

    Raises:
        ValueError: another ``reduction``.

    Example:
        >>> import torch
        >>> from sonorant.losses import ForwardSumLoss
        >>> ForwardSumLoss()(torch.zeros(1, 3, 2), torch.tensor([3]), torch.tensor([2]))
        tensor(0.7267)
    """

    def __init__(self, blank_logprob: float = -1.0, band: int | None = None, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.blank_logprob = blank_logprob
        self.band = band
        self.reduction = reduction

    def forward(self, log_attention: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
        """See :func:`sonorant.functional.forward_sum_loss`."""
        return functional.forward_sum_loss(
            log_attention,
            query_lengths,
            key_lengths,
            blank_logprob=self.blank_logprob,
            band=self.band,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"blank_logprob={self.blank_logprob}, band={self.band}, reduction={self.reduction!r}"
