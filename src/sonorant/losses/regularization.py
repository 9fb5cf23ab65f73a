"""Terms that keep embeddings spread out, decorrelated and stable."""

from torch import Tensor, nn

from sonorant import functional

__all__ = ["CovarianceLoss", "CrossCovarianceLoss", "InvarianceLoss", "VarianceLoss"]


class VarianceLoss(nn.Module):
    """:func:`sonorant.functional.variance_loss` as a Module.

    Args:
        gamma: the standard deviation below which a dimension is penalised.
        eps: added to the variance.

    Example:
        >>> import torch
        >>> from sonorant.losses import VarianceLoss
        >>> VarianceLoss()(torch.ones(4, 2))
        tensor(0.9900)
    """

    def __init__(self, gamma: float = 1.0, eps: float = 1e-4) -> None:
        super().__init__()
        self.gamma = gamma
        self.eps = eps

    def forward(self, embeddings: Tensor) -> Tensor:
        """See :func:`sonorant.functional.variance_loss`."""
        return functional.variance_loss(embeddings, self.gamma, self.eps)

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"gamma={self.gamma}, eps={self.eps}"


class CovarianceLoss(nn.Module):
    """:func:`sonorant.functional.covariance_loss` as a Module.

    Example:
        >>> import torch
        >>> from sonorant.losses import CovarianceLoss
        >>> CovarianceLoss()(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
        tensor(4.)
    """

    def forward(self, embeddings: Tensor) -> Tensor:
        """See :func:`sonorant.functional.covariance_loss`."""
        return functional.covariance_loss(embeddings)


class CrossCovarianceLoss(nn.Module):
    """:func:`sonorant.functional.cross_covariance_loss` as a Module.

    Example:
        >>> import torch
        >>> from sonorant.losses import CrossCovarianceLoss
        >>> CrossCovarianceLoss()(torch.tensor([[1.0], [-1.0]]), torch.tensor([[2.0], [-2.0]]))
        tensor(16.)
    """

    def forward(self, a: Tensor, b: Tensor, *, mean_a: Tensor | None = None, mean_b: Tensor | None = None) -> Tensor:
        """See :func:`sonorant.functional.cross_covariance_loss`."""
        return functional.cross_covariance_loss(a, b, mean_a=mean_a, mean_b=mean_b)


class InvarianceLoss(nn.Module):
    """:func:`sonorant.functional.invariance_loss` as a Module.

    Example:
        >>> import torch
        >>> from sonorant.losses import InvarianceLoss
        >>> InvarianceLoss()(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 4.0]]))
        tensor(2.)
    """

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """See :func:`sonorant.functional.invariance_loss`."""
        return functional.invariance_loss(a, b)
