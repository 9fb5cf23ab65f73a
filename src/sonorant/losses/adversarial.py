"""Least-squares adversarial losses and feature matching."""

from collections.abc import Sequence

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.adversarial import ScoreReduction
from sonorant.functional.reduction import check_reduction

__all__ = ["FeatureMatchingLoss", "LsganDiscriminatorLoss", "LsganGeneratorLoss"]


class LsganDiscriminatorLoss(nn.Module):
    """:func:`sonorant.functional.lsgan_discriminator_loss` as a Module.

    Args:
        reduction: ``"sum"`` over the discriminators, or ``"none"`` for one value each.

    Raises:
        ValueError: another ``reduction``.

    Example:
        >>> import torch
        >>> from sonorant.losses import LsganDiscriminatorLoss
        >>> LsganDiscriminatorLoss()([torch.tensor([[1.0, 0.5]])], [torch.tensor([[0.5, 0.5]])])
        tensor(0.3750)
    """

    def __init__(self, reduction: ScoreReduction = "sum") -> None:
        super().__init__()
        check_reduction(reduction, ("none", "sum"))
        self.reduction = reduction

    def forward(
        self,
        real_scores: Sequence[Tensor],
        fake_scores: Sequence[Tensor],
        length_ratios: Tensor | None = None,
    ) -> Tensor:
        """See :func:`sonorant.functional.lsgan_discriminator_loss`."""
        return functional.lsgan_discriminator_loss(
            real_scores, fake_scores, length_ratios=length_ratios, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"reduction={self.reduction!r}"


class LsganGeneratorLoss(nn.Module):
    """:func:`sonorant.functional.lsgan_generator_loss` as a Module.

    Args:
        reduction: ``"sum"`` over the discriminators, or ``"none"`` for one value each.

    Raises:
        ValueError: another ``reduction``.

    Example:
        >>> import torch
        >>> from sonorant.losses import LsganGeneratorLoss
        >>> LsganGeneratorLoss()([torch.tensor([[0.5, 0.0]])])
        tensor(0.6250)
    """

    def __init__(self, reduction: ScoreReduction = "sum") -> None:
        super().__init__()
        check_reduction(reduction, ("none", "sum"))
        self.reduction = reduction

    def forward(self, fake_scores: Sequence[Tensor], length_ratios: Tensor | None = None) -> Tensor:
        """See :func:`sonorant.functional.lsgan_generator_loss`."""
        return functional.lsgan_generator_loss(fake_scores, length_ratios=length_ratios, reduction=self.reduction)

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"reduction={self.reduction!r}"


class FeatureMatchingLoss(nn.Module):
    """:func:`sonorant.functional.feature_matching_loss` as a Module.

    Example:
        >>> import torch
        >>> from sonorant.losses import FeatureMatchingLoss
        >>> FeatureMatchingLoss()([[torch.tensor([[[1.0, 2.0]]])]], [[torch.tensor([[[1.5, 0.0]]])]])
        tensor(1.2500)
    """

    def forward(
        self,
        real_maps: Sequence[Sequence[Tensor]],
        fake_maps: Sequence[Sequence[Tensor]],
        length_ratios: Tensor | None = None,
    ) -> Tensor:
        """See :func:`sonorant.functional.feature_matching_loss`."""
        return functional.feature_matching_loss(real_maps, fake_maps, length_ratios=length_ratios)
