"""Terms that keep embeddings spread out, decorrelated and stable."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional.reduction import compute_dtype

__all__ = ["covariance_loss", "cross_covariance_loss", "invariance_loss", "variance_loss"]


def variance_loss(embeddings: Float[Tensor, "number dim"], gamma: float = 1.0, eps: float = 1e-4) -> Tensor:
    r"""Hinge that keeps the standard deviation of every dimension above ``gamma``.

    .. math:: \frac{1}{D} \sum_d \max(0, \gamma - \sqrt{\mathrm{Var}(x_d) + \epsilon})

    The variance is unbiased. A single embedding has none: the loss is then 0, where the original gives NaN.

    Args:
        embeddings: ``(number, dim)``, a table or a batch of vectors.
        gamma: the standard deviation below which a dimension is penalised.
        eps: added to the variance, so that the gradient stays finite.

    Returns:
        A scalar, in float32 for half precision.

    Raises:
        ValueError: embeddings that are not a matrix.

    References:
        Bardes, Ponce and LeCun 2022, "VICReg", arXiv 2105.04906.

    Example:
        >>> import torch
        >>> from sonorant.functional import variance_loss
        >>> variance_loss(torch.ones(4, 2))
        tensor(0.9900)
    """
    _check_matrix(embeddings, "embeddings")
    x = embeddings.to(compute_dtype(embeddings))
    if len(x) < 2 or x.shape[1] == 0:
        return x.sum() * 0.0
    return torch.relu(gamma - torch.sqrt(x.var(0) + eps)).mean()


def covariance_loss(embeddings: Float[Tensor, "number dim"]) -> Tensor:
    r"""Penalty on the correlation between dimensions.

    .. math:: \frac{1}{D} \sum_{i \ne j} \mathrm{Cov}(x_i, x_j)^2

    The covariance is unbiased. A single embedding has none: the loss is then 0, where the original gives NaN.

    Args:
        embeddings: ``(number, dim)``, a table or a batch of vectors.

    Returns:
        A scalar, in float32 for half precision.

    Raises:
        ValueError: embeddings that are not a matrix.

    References:
        Bardes, Ponce and LeCun 2022, "VICReg", arXiv 2105.04906.

    Example:
        >>> import torch
        >>> from sonorant.functional import covariance_loss
        >>> covariance_loss(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
        tensor(4.)
    """
    centred = _centred(embeddings, "embeddings", None)
    covariance = _cross_covariance(centred, centred).fill_diagonal_(0.0)
    return covariance.square().sum() / max(len(covariance), 1)


def cross_covariance_loss(
    a: Float[Tensor, "number dim_a"],
    b: Float[Tensor, "number dim_b"],
    *,
    mean_a: Float[Tensor, " dim_a"] | None = None,
    mean_b: Float[Tensor, " dim_b"] | None = None,
) -> Tensor:
    r"""Penalty on what two sets of vectors tell about each other, such as speaker and accent.

    .. math:: \frac{1}{D_a D_b} \sum_{i, j}
        \left( \frac{1}{N - 1} \sum_n (a_{ni} - \bar a_i)(b_{nj} - \bar b_j) \right)^2

    A single pair has no covariance: the loss is then 0, where the original gives NaN.

    Args:
        a: ``(number, dim_a)``.
        b: ``(number, dim_b)``; row n belongs with row n of ``a``.
        mean_a: ``(dim_a,)``, such as the mean of the table that ``a`` was taken from; None: the mean of ``a``.
        mean_b: ``(dim_b,)``, likewise.

    Returns:
        A scalar, in float32 for half precision.

    Raises:
        ValueError: different numbers of rows, means of another size.

    References:
        Badlani et al. 2023, "Multilingual multiaccented multispeaker TTS with RADTTS", arXiv 2301.10335; after
        Bardes, Ponce and LeCun 2022, "VICReg", arXiv 2105.04906.

    Example:
        >>> import torch
        >>> from sonorant.functional import cross_covariance_loss
        >>> cross_covariance_loss(torch.tensor([[1.0], [-1.0]]), torch.tensor([[2.0], [-2.0]]))
        tensor(16.)
    """
    centred_a, centred_b = _centred(a, "a", mean_a), _centred(b, "b", mean_b)
    if len(a) != len(b):
        raise ValueError(f"a and b must have the same number of rows; got {len(a)} and {len(b)}")
    covariance = _cross_covariance(centred_a, centred_b)
    return covariance.square().sum() / max(covariance.numel(), 1)


def invariance_loss(a: Float[Tensor, "number dim"], b: Float[Tensor, "number dim"]) -> Tensor:
    r"""Mean squared difference between two views of the same things.

    .. math:: \frac{1}{N D} \sum_{n, d} (a_{nd} - b_{nd})^2

    Shapes must be equal: broadcasting hides mistakes here.

    Args:
        a: ``(number, dim)``, such as the speaker vectors of utterances.
        b: ``(number, dim)``, such as those of augmented copies.

    Returns:
        A scalar, in float32 for half precision; 0 for empty tensors.

    Raises:
        ValueError: shapes that differ.

    References:
        Badlani et al. 2023, "Multilingual multiaccented multispeaker TTS with RADTTS", arXiv 2301.10335; after
        Bardes, Ponce and LeCun 2022, "VICReg", arXiv 2105.04906.

    Example:
        >>> import torch
        >>> from sonorant.functional import invariance_loss
        >>> invariance_loss(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 4.0]]))
        tensor(2.)
    """
    if a.shape != b.shape:
        raise ValueError(f"a and b must have the same shape; got {tuple(a.shape)} and {tuple(b.shape)}")
    dtype = torch.promote_types(compute_dtype(a), compute_dtype(b))
    reduction = "mean" if a.numel() else "sum"  # the mean of nothing would be NaN
    return F.mse_loss(a.to(dtype), b.to(dtype), reduction=reduction)


def _check_matrix(x: Tensor, name: str) -> None:
    if x.dim() != 2:
        raise ValueError(f"{name} must have shape (number, dim); got {tuple(x.shape)}")


def _centred(x: Tensor, name: str, mean: Tensor | None) -> Tensor:
    _check_matrix(x, name)
    if mean is not None and mean.shape != x.shape[1:]:
        raise ValueError(f"mean_{name} must have shape ({x.shape[1]},); got {tuple(mean.shape)}")
    x = x.to(compute_dtype(x))
    return x - (x.sum(0) / max(len(x), 1) if mean is None else mean.to(x.dtype))


def _cross_covariance(a: Tensor, b: Tensor) -> Tensor:
    dtype = torch.promote_types(a.dtype, b.dtype)
    with torch.autocast(a.device.type, enabled=False):
        products = a.to(dtype).T @ b.to(dtype)
    return products / (len(a) - 1) if len(a) > 1 else products * 0.0
