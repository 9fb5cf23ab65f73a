"""The likelihood of normalizing flows over padded batches."""

from collections.abc import Sequence

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.flow import FlowNll

__all__ = ["FlowNllLoss"]


class FlowNllLoss(nn.Module):
    """:func:`sonorant.functional.flow_nll` as a Module.

    Args:
        sigma: the standard deviation of the prior.
        include_constant: add ``log(sqrt(2 pi) sigma)``, so that the values are true likelihoods.

    Raises:
        ValueError: ``sigma`` not positive.

    Example:
        >>> import torch
        >>> from sonorant.losses import FlowNllLoss
        >>> FlowNllLoss()(torch.ones(1, 3, 4), [torch.full((1, 3, 2), 0.5)], [], torch.tensor([2]))
        FlowNll(nll=tensor(0.2500), prior_nll=tensor(0.5000))
    """

    def __init__(self, sigma: float = 1.0, include_constant: bool = False) -> None:
        super().__init__()
        if not sigma > 0:
            raise ValueError(f"sigma must be positive; got {sigma}")
        self.sigma = sigma
        self.include_constant = include_constant

    def forward(self, z: Tensor, log_scales: Sequence[Tensor], log_dets: Sequence[Tensor], lengths: Tensor) -> FlowNll:
        """See :func:`sonorant.functional.flow_nll`."""
        return functional.flow_nll(
            z, log_scales, log_dets, lengths, sigma=self.sigma, include_constant=self.include_constant
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"sigma={self.sigma}, include_constant={self.include_constant}"
