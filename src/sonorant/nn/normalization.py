"""Normalisation layers for padded batches."""

import torch
from torch import Tensor, nn

from sonorant import functional

__all__ = ["MaskedBatchNorm1d", "UtteranceCmvn"]


class MaskedBatchNorm1d(nn.BatchNorm1d):
    """:class:`torch.nn.BatchNorm1d` for ``(batch, channels, time)`` with lengths: padding changes nothing.

    The arguments and the state dict are torch's. See :func:`sonorant.functional.masked_batch_norm`.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: the weight of the new statistics in the running ones; None averages over all batches.
        affine: learn a weight and a bias of each channel.
        track_running_stats: keep running statistics for use after training.
        synchronized: in training, the batches of all processes of ``torch.distributed`` make up one, as with
            :class:`torch.nn.SyncBatchNorm`. Can be set later.

    Example:
        >>> import torch
        >>> from sonorant.nn import MaskedBatchNorm1d
        >>> norm = MaskedBatchNorm1d(1, affine=False, eps=0.0)
        >>> norm(torch.tensor([[[1.0, 3.0, 99.0]]]), torch.tensor([2]))
        tensor([[[-1.,  1.,  0.]]])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        synchronized: bool = False,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.synchronized = synchronized

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:  # type: ignore[override]
        """Normalise the valid frames.

        Args:
            x: ``(batch, channels, time)``.
            lengths: ``(batch,)``, frames.

        Returns:
            ``(batch, channels, time)``, 0 beyond the lengths.

        Raises:
            ValueError: another shape, lengths that do not fit, fewer than two valid frames when training.
        """
        if x.dim() != 3 or x.shape[1] != self.num_features:
            raise ValueError(f"x must have shape (batch, {self.num_features}, time); got {tuple(x.shape)}")
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        return functional.masked_batch_norm(
            x,
            lengths,
            self.running_mean,
            self.running_var,
            self.weight if self.affine else None,
            self.bias if self.affine else None,
            training=self.training or self.running_mean is None,
            momentum=momentum or 0.0,
            eps=self.eps,
            process_group=_all_processes() if self.synchronized and self.training else None,
        )


def _all_processes() -> torch.distributed.ProcessGroup | None:
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed.group.WORLD if torch.distributed.get_world_size() > 1 else None


class UtteranceCmvn(nn.Module):
    """:func:`sonorant.functional.utterance_cmvn` as a Module: each utterance's own mean and variance are removed.

    Args:
        normalize_variance: divide by the standard deviation as well.
        eps: added to the variance.

    Example:
        >>> import torch
        >>> from sonorant.nn import UtteranceCmvn
        >>> UtteranceCmvn(eps=0.0)(torch.tensor([[[1.0], [3.0]]]), torch.tensor([2])).flatten()
        tensor([-1.,  1.])
    """

    def __init__(self, normalize_variance: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.normalize_variance = normalize_variance
        self.eps = eps

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """See :func:`sonorant.functional.utterance_cmvn`."""
        return functional.utterance_cmvn(
            features,
            lengths,
            normalize_variance=self.normalize_variance,
            eps=self.eps,
        )

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"normalize_variance={self.normalize_variance}, eps={self.eps}"
