"""Affine coupling: a part of a frame says how the rest is scaled and shifted, which can be undone."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask
from sonorant.nn.wavenet import WaveNet

__all__ = ["AffineCoupling"]

_SMALLEST_SCALE = 1e-6  # tanh is -1 in float32 from -9 on: a scale of 0 could not be inverted


class AffineCoupling(nn.Module):
    r"""Some of the channels, and a context, say how the others are scaled and shifted.

    .. math:: (u, b) = \mathrm{WaveNet}(x_a, c), \quad s = \tanh(u) + 1 + 10^{-6}, \quad y = (x_a, s \odot x_b + b)

    with :math:`x_a` the first ``num_kept`` channels. It begins as the identity. Scale, shift and their inverse are
    computed in float32 for half precision, the network as autocast has it.

    Args:
        channels: features of a frame, at least 1.
        num_kept: channels that stay as they are; by default half of them, rounded down. With 0 the context alone says
            how a frame is scaled and shifted.
        context_dim: features of a frame of the context.
        hidden_channels: of the :class:`WaveNet`.
        num_layers: of the :class:`WaveNet`.
        kernel_size: of the :class:`WaveNet`.

    Raises:
        ValueError: nothing to change, sizes that the :class:`WaveNet` refuses.

    References:
        Dinh, Sohl-Dickstein and Bengio 2016, arXiv 1605.08803; Shih et al. 2021, "RAD-TTS".

    Example:
        >>> import torch
        >>> from sonorant.nn import AffineCoupling
        >>> layer = AffineCoupling(5, context_dim=3, hidden_channels=8, num_layers=2)
        >>> y, log_scale = layer(torch.randn(2, 9, 5), torch.randn(2, 9, 3), torch.tensor([9, 5]))
        >>> y.shape, log_scale.shape
        (torch.Size([2, 9, 5]), torch.Size([2, 9, 3]))
    """

    def __init__(
        self,
        channels: int,
        *,
        num_kept: int | None = None,
        context_dim: int,
        hidden_channels: int,
        num_layers: int,
        kernel_size: int = 3,
    ) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels must be at least 1; got {channels}")
        self.channels = channels
        self.num_kept = channels // 2 if num_kept is None else num_kept
        if not 0 <= self.num_kept < channels:
            raise ValueError(f"num_kept must lie in [0, {channels}); got {num_kept}")
        self.wavenet = WaveNet(
            self.num_kept,
            2 * (channels - self.num_kept),
            context_dim=context_dim,
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            kernel_size=kernel_size,
        )

    def forward(
        self,
        x: Float[Tensor, "batch time channels"],
        context: Float[Tensor, "batch time context"],
        lengths: Int[Tensor, " batch"],
    ) -> tuple[Tensor, Tensor]:
        """Scale and shift.

        Args:
            x: ``(batch, time, channels)``.
            context: ``(batch, time, context_dim)``.
            lengths: ``(batch,)``, frames.

        Returns:
            ``(y, log_scale)``: ``(batch, time, channels)``, 0 beyond the lengths, and ``(batch, time, channels -
            num_kept)``, the logarithms of the scales, of no use there.

        Raises:
            ValueError: another number of channels, lengths that do not fit.
        """
        mask = self._check(x, lengths)
        return self.run(torch.where(mask, x, 0.0), torch.where(mask, context, 0.0), mask)

    def run(
        self,
        x: Float[Tensor, "batch time channels"],
        context: Float[Tensor, "batch time context"],
        mask: Bool[Tensor, "batch time 1"],
    ) -> tuple[Tensor, Tensor]:
        """What :meth:`forward` does, for padding that is finite: for models made of this layer.

        Args:
            x: ``(batch, time, channels)``.
            context: ``(batch, time, context_dim)``.
            mask: ``(batch, time, 1)``, True in valid frames.

        Returns:
            As :meth:`forward`, but for ``y`` in padding, which is finite.
        """
        kept, changed = self._split(x)
        scale, shift = self._scale_and_shift(kept, context, mask)
        y = torch.cat([kept, (changed * scale + shift).to(x.dtype)], 2)
        return y, scale.log().to(x.dtype)

    def inverse(
        self,
        y: Float[Tensor, "batch time channels"],
        context: Float[Tensor, "batch time context"],
        lengths: Int[Tensor, " batch"],
    ) -> Float[Tensor, "batch time channels"]:
        """What :meth:`forward` made ``y`` of, with the same context.

        Args:
            y: ``(batch, time, channels)``.
            context: ``(batch, time, context_dim)``.
            lengths: ``(batch,)``, frames.

        Returns:
            ``(batch, time, channels)``, 0 beyond the lengths.

        Raises:
            ValueError: another number of channels, lengths that do not fit.
        """
        mask = self._check(y, lengths)
        kept, changed = self._split(torch.where(mask, y, 0.0))
        scale, shift = self._scale_and_shift(kept, torch.where(mask, context, 0.0), mask)
        return torch.cat([kept, ((changed - shift) / scale).to(y.dtype)], 2)

    def _check(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The mask of the valid frames, ``(batch, time, 1)``."""
        if x.shape[-1] != self.channels:
            raise ValueError(f"x must have {self.channels} channels; got shape {tuple(x.shape)}")
        check_lengths(lengths, "lengths", batch_size=x.shape[0], max_length=x.shape[1])
        return sequence_mask(lengths, x.shape[1]).unsqueeze(2)

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        kept, changed = torch.split(x, [self.num_kept, self.channels - self.num_kept], 2)
        return kept, changed

    def _scale_and_shift(self, kept: Tensor, context: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        dtype = self.wavenet.end.weight.dtype
        output = self.wavenet.run(kept.to(dtype), context.to(dtype), mask)
        unbounded, shift = output.to(compute_dtype(kept)).chunk(2, 2)
        return unbounded.tanh() + (1 + _SMALLEST_SCALE), shift
