"""Invertible linear maps of the channels of a frame, each with the logarithm of its determinant."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sonorant.functional.reduction import compute_dtype

__all__ = ["InvertibleLinear", "Whitening"]


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
