"""Invertible layers over padded batches, each with the logarithm of its Jacobian's determinant."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask
from sonorant.nn.wavenet import WaveNet

__all__ = ["AffineCoupling", "InvertibleLinear", "Whitening"]

_SMALLEST_SCALE = 1e-6  # tanh is -1 in float32 from -9 on: a scale of 0 could not be inverted


def _matmul(x: Tensor, weight: Tensor) -> Tensor:
    """In float32 at least, whatever autocast says: half a precision's error would be divided by small scales."""
    dtype = compute_dtype(x)
    with torch.autocast(x.device.type, enabled=False):
        return x.to(dtype) @ weight.to(dtype)


def _check_channels(x: Tensor, channels: int) -> None:
    if x.shape[-1] != channels:
        raise ValueError(f"x must have {channels} channels; got shape {tuple(x.shape)}")


class InvertibleLinear(nn.Module):
    r"""A linear map of a frame's channels whose determinant is known: P L U.

    .. math:: y = x W, \quad W = P L (U + \mathrm{diag}(\sigma e^{s})), \quad \log |\det W| = \sum_i s_i

    with a fixed permutation P and fixed signs :math:`\sigma`, L unit lower triangular and U strictly upper triangular.
    It begins as a random rotation. It departs from Glow in that L and U share one matrix, whose halves they are.

    Everything is computed in float32 for half precision and under autocast; the inverse is made in float64.

    Args:
        channels: features of a frame.

    Raises:
        ValueError: channels below 1.

    References:
        Kingma and Dhariwal 2018, "Glow", arXiv 1807.03039.

    Example:
        >>> import torch
        >>> from sonorant.nn import InvertibleLinear
        >>> layer, x = InvertibleLinear(4), torch.randn(2, 3, 4)
        >>> y, log_det = layer(x)
        >>> torch.allclose(layer.inverse(y), x, atol=1e-5)
        True
    """

    permutation: Tensor
    signs: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels must be at least 1; got {channels}")
        self.channels = channels
        rotation = torch.linalg.qr(torch.randn(channels, channels, dtype=torch.float64))[0]
        permutation, lower, upper = torch.linalg.lu(rotation)
        diagonal, dtype = upper.diagonal(), torch.get_default_dtype()
        # row i of W is row permutation[i] of L U, column i of its inverse column permutation[i] of theirs
        self.register_buffer("permutation", permutation.argmax(1))
        self.register_buffer("signs", diagonal.sign().to(dtype))
        self.triangles = nn.Parameter((lower.tril(-1) + upper.triu(1)).to(dtype))
        self.log_diagonal = nn.Parameter(diagonal.abs().log().to(dtype))

    def forward(self, x: Float[Tensor, "*batch channels"]) -> tuple[Tensor, Tensor]:
        """Map each frame by itself.

        Args:
            x: ``(..., channels)``.

        Returns:
            ``(y, log_det)``: ``(..., channels)`` and the scalar :math:`\\log |\\det W|` of one frame.

        Raises:
            ValueError: another number of channels.
        """
        _check_channels(x, self.channels)
        dtype = compute_dtype(x)
        lower, upper = self._factors(dtype)
        with torch.autocast(x.device.type, enabled=False):
            weight = (lower @ upper)[self.permutation]
        return _matmul(x, weight), self.log_diagonal.to(dtype).sum()

    def inverse(self, y: Float[Tensor, "*batch channels"]) -> Float[Tensor, "*batch channels"]:
        """What :meth:`forward` made ``y`` of.

        Args:
            y: ``(..., channels)``.

        Returns:
            ``(..., channels)``.

        Raises:
            ValueError: another number of channels.
        """
        _check_channels(y, self.channels)
        lower, upper = self._factors(torch.float64)
        identity = torch.eye(self.channels, dtype=torch.float64, device=y.device)
        unmixed = torch.linalg.solve_triangular(lower, identity, upper=False, unitriangular=True)
        inverse = torch.linalg.solve_triangular(upper, unmixed, upper=True)
        return _matmul(y, inverse[:, self.permutation])

    def _factors(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        triangles, diagonal = self.triangles.to(dtype), self.signs.to(dtype) * self.log_diagonal.to(dtype).exp()
        identity = torch.eye(self.channels, dtype=dtype, device=triangles.device)
        return triangles.tril(-1) + identity, triangles.triu(1) + diagonal.diag_embed()

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"channels={self.channels}"


class Whitening(nn.Module):
    r"""The fixed linear map that makes channels uncorrelated, with mean 0 and variance 1.

    .. math:: y = (x - \mu) W, \quad W^\top \Sigma W = I, \quad W = L^{-\top} \text{ for } \Sigma = L L^\top

    W is upper triangular: a channel is what the ones before it do not tell. Before :meth:`fit` it is the identity.
    Everything is computed in float32 for half precision and under autocast; the inverse is made in float64.

    Args:
        channels: features of a frame.

    Raises:
        ValueError: channels below 1.

    References:
        Badlani et al. 2023, "RAD-MMM", arXiv 2301.10335.

    Example:
        >>> import torch
        >>> from sonorant.nn import Whitening
        >>> layer, x = Whitening(2), torch.tensor([[1.0, 2.0], [3.0, 2.0], [5.0, 8.0], [7.0, 6.0]])
        >>> layer.fit(x.mean(0), x.T.cov(correction=0))
        >>> layer(x)[0].T.cov(correction=0).round(decimals=2) + 0.0
        tensor([[1., 0.],
                [0., 1.]])
    """

    mean: Tensor
    weight: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels must be at least 1; got {channels}")
        self.channels = channels
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("weight", torch.eye(channels))

    @torch.no_grad()
    def fit(
        self,
        mean: Float[Tensor, " channels"],
        covariance: Float[Tensor, "channels channels"],
        *,
        ridge: float = 1e-4,
    ) -> None:
        """Take the statistics of the data.

        Args:
            mean: ``(channels,)``.
            covariance: ``(channels, channels)``; best in float64.
            ridge: is added to all variances, relative to their mean, so that a channel that is constant, or a sum of
                others, is divided by a little and not by nothing.

        Raises:
            ValueError: shapes that do not fit, values that are not finite, no variance at all, a matrix that is no
                covariance.
        """
        shape = (self.channels,)
        if mean.shape != shape or covariance.shape != shape * 2:
            raise ValueError(
                f"mean and covariance must have shapes {shape} and {shape * 2}; "
                f"got {tuple(mean.shape)} and {tuple(covariance.shape)}"
            )
        if not (mean.isfinite().all() and covariance.isfinite().all()):
            raise ValueError("mean and covariance must be finite")
        covariance = covariance.double()
        variance = float(covariance.diagonal().mean())
        if not variance > 0:
            raise ValueError(f"covariance has no variance: the mean of its diagonal is {variance:g}")
        identity = torch.eye(self.channels, dtype=torch.float64, device=covariance.device)
        lower, failed = torch.linalg.cholesky_ex(covariance + ridge * variance * identity)
        if failed:
            raise ValueError(f"covariance is not positive definite (leading minor {int(failed)})")
        self.mean.copy_(mean)
        self.weight.copy_(torch.linalg.solve_triangular(lower.T, identity, upper=True))

    def forward(self, x: Float[Tensor, "*batch channels"]) -> tuple[Tensor, Tensor]:
        """Whiten each frame by itself.

        Args:
            x: ``(..., channels)``.

        Returns:
            ``(y, log_det)``: ``(..., channels)`` and the scalar :math:`\\log |\\det W|` of one frame.

        Raises:
            ValueError: another number of channels.
        """
        _check_channels(x, self.channels)
        dtype = compute_dtype(x)
        log_det = self.weight.diagonal().to(dtype).log().sum()
        return _matmul(x.to(dtype) - self.mean.to(dtype), self.weight), log_det

    def inverse(self, y: Float[Tensor, "*batch channels"]) -> Float[Tensor, "*batch channels"]:
        """What :meth:`forward` made ``y`` of.

        Args:
            y: ``(..., channels)``.

        Returns:
            ``(..., channels)``.

        Raises:
            ValueError: another number of channels.
        """
        _check_channels(y, self.channels)
        identity = torch.eye(self.channels, dtype=torch.float64, device=y.device)
        inverse = torch.linalg.solve_triangular(self.weight.double(), identity, upper=True)
        return _matmul(y, inverse) + self.mean.to(compute_dtype(y))

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"channels={self.channels}"


class AffineCoupling(nn.Module):
    r"""Half of the channels, and a context, say how the other half is scaled and shifted.

    .. math:: (u, b) = \mathrm{WaveNet}(x_a, c), \quad s = \tanh(u) + 1 + 10^{-6}, \quad y = (x_a, s \odot x_b + b)

    with :math:`x_a` the first ``channels // 2``. It begins as the identity. Scale, shift and their inverse are
    computed in float32 for half precision, the network as autocast has it.

    Args:
        channels: features of a frame, at least 1.
        context_dim: features of a frame of the context.
        hidden_channels: of the :class:`WaveNet`.
        num_layers: of the :class:`WaveNet`.
        kernel_size: of the :class:`WaveNet`.

    Raises:
        ValueError: sizes that the :class:`WaveNet` refuses.

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
        self, channels: int, *, context_dim: int, hidden_channels: int, num_layers: int, kernel_size: int = 3
    ) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels must be at least 1; got {channels}")
        self.channels = channels
        self.num_kept = channels // 2
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
            channels // 2)``, the logarithms of the scales, of no use there.

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
        _check_channels(x, self.channels)
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
