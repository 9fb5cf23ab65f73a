"""Attention weights under masks, and the loss that pulls an attention to the diagonal."""

import math
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from sonorant.functional.reduction import check_reduction, compute_dtype
from sonorant.lengths import check_lengths, sequence_mask, values_are_checkable

__all__ = ["GuidedReduction", "guided_attention_loss", "guided_attention_weights", "masked_softmax"]

GuidedReduction = Literal["none", "sum", "mean", "batchmean", "query_mean"]

_SMALL_GRID = 8192  # cells, above which an utterance at a time is faster on a CPU


def masked_softmax(
    scores: Float[Tensor, "*shape"], mask: Bool[Tensor, "..."], dim: int = -1
) -> Float[Tensor, "*shape"]:
    r"""Softmax over the unmasked scores; a row without any gives zeros.

    .. math:: w_k = \frac{m_k \, e^{s_k}}{\sum_j m_j \, e^{s_j}}

    It departs from ``scores.masked_fill(~mask, -inf).softmax(dim)`` where that gives NaN: a fully masked row has
    zero weights and zero gradients, and whatever stands in masked scores, NaN included, changes nothing. A score of
    -inf counts as masked.

    Args:
        scores: any shape.
        mask: bool, broadcastable to ``scores``; True where a score counts.
        dim: the axis that is normalised.

    Returns:
        The shape and dtype of ``scores``; half precision is computed in float32.

    Raises:
        ValueError: a mask that is not bool.

    References:
        Vaswani et al. 2017, "Attention is all you need", arXiv 1706.03762, section 3.2.3 for the masks.

    Example:
        >>> import torch
        >>> from sonorant.functional import masked_softmax
        >>> mask = torch.tensor([[True, True, False], [False, False, False]])
        >>> masked_softmax(torch.zeros(2, 3), mask)
        tensor([[0.5000, 0.5000, 0.0000],
                [0.0000, 0.0000, 0.0000]])
    """
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool, True where a score counts; got {mask.dtype}")
    weights: Tensor = _MaskedSoftmax.apply(scores.to(compute_dtype(scores)), mask, dim)  # type: ignore[no-untyped-call]
    return weights.to(scores.dtype)


def guided_attention_weights(
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
    sigma: float = 0.2,
    *,
    max_query_length: int | None = None,
    max_key_length: int | None = None,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "batch query key"]:
    r"""Penalties of attention away from each utterance's own diagonal.

    .. math:: W_{q,k} = 1 - \exp\left(-\frac{(k/K - q/Q)^2}{2\sigma^2}\right)

    Args:
        query_lengths: ``(batch,)``, Q: output frames (decoder steps where there is a reduction factor).
        key_lengths: ``(batch,)``, K: input tokens.
        sigma: the width of the band around the diagonal that is hardly penalised.
        max_query_length: the size of the query axis; the longest length if None (which synchronises with a GPU).
        max_key_length: likewise of the key axis.
        dtype: of the result; torch's default if None.

    Returns:
        ``(batch, max_query_length, max_key_length)`` on the lengths' device, 0 outside an utterance's cells.

    Raises:
        ValueError: lengths that are not positive integers or beyond the sizes; ``sigma`` not positive.

    References:
        Tachibana, Uenoyama and Aihara 2017, arXiv 1710.08969.

    Example:
        >>> import torch
        >>> from sonorant.functional import guided_attention_weights
        >>> guided_attention_weights(torch.tensor([2]), torch.tensor([2]), sigma=0.5)
        tensor([[[0.0000, 0.3935],
                 [0.3935, 0.0000]]])
    """
    _check_sigma(sigma)
    check_lengths(query_lengths, "query_lengths", max_length=max_query_length)
    check_lengths(key_lengths, "key_lengths", batch_size=query_lengths.shape[0], max_length=max_key_length)
    if max_query_length is None:
        max_query_length = int(query_lengths.max())
    if max_key_length is None:
        max_key_length = int(key_lengths.max())
    queries = _scaled_positions(query_lengths, max_query_length, sigma, dtype or torch.get_default_dtype())
    keys = _scaled_positions(key_lengths, max_key_length, sigma, dtype or torch.get_default_dtype())
    distance = queries.unsqueeze(2) - keys.unsqueeze(1)
    inside = _cells(query_lengths, key_lengths, max_query_length, max_key_length)
    return torch.where(inside, 1.0 - torch.exp(-distance.square()), 0.0)


def guided_attention_loss(
    attention: Float[Tensor, "batch *heads query key"],
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
    sigma: float = 0.2,
    *,
    reduction: GuidedReduction = "mean",
) -> Tensor:
    r"""Mean penalty of attention away from the diagonal.

    .. math:: \frac{1}{\sum_b Q_b K_b} \sum_b \sum_{q,k} W_{b,q,k} A_{b,q,k}

    with the weights of :func:`guided_attention_weights`. It departs from SpeechBrain's, which divides by all cells
    of the padded grid: there the loss of an utterance depends on its neighbours. On a CPU the weights of large grids
    are never stored: they are computed again for the gradient, utterance by utterance.

    Args:
        attention: ``(batch, query, key)`` or ``(batch, heads, query, key)``, of which the heads are averaged.
        query_lengths: ``(batch,)``, output frames (decoder steps where there is a reduction factor).
        key_lengths: ``(batch,)``, input tokens.
        sigma: the width of the band around the diagonal that is hardly penalised.
        reduction: ``"none"`` gives the sum over each utterance, ``"sum"`` the total; ``"mean"`` divides the total by
            the valid cells, ``"batchmean"`` by the batch size, ``"query_mean"`` by the valid query frames, so that
            the loss does not shrink as texts grow.

    Returns:
        ``(batch,)`` or a scalar, in float32 for half precision, else in the dtype of ``attention``.

    Raises:
        ValueError: lengths that are not positive integers or beyond ``attention``; ``sigma`` not positive.

    References:
        Tachibana, Uenoyama and Aihara 2017, arXiv 1710.08969.

    Example:
        >>> import torch
        >>> from sonorant.functional import guided_attention_loss
        >>> attention = torch.full((1, 5, 5), 0.2)
        >>> guided_attention_loss(attention, torch.tensor([5]), torch.tensor([5]))
        tensor(0.1143)
    """
    check_reduction(reduction, get_args(GuidedReduction))
    _check_sigma(sigma)
    if attention.dim() not in (3, 4):
        raise ValueError(f"attention must have shape (batch, [heads,] query, key); got {tuple(attention.shape)}")
    batch_size, max_query_length, max_key_length = attention.shape[0], *attention.shape[-2:]
    check_lengths(query_lengths, "query_lengths", batch_size=batch_size, max_length=max_query_length)
    check_lengths(key_lengths, "key_lengths", batch_size=batch_size, max_length=max_key_length)

    attention = attention.to(compute_dtype(attention))
    if attention.dim() == 4:
        attention = attention.mean(1)
    if values_are_checkable(attention) and max_query_length * max_key_length > _SMALL_GRID:
        sums: Tensor = _GuidedSums.apply(attention, query_lengths, key_lengths, sigma)  # type: ignore[no-untyped-call]
    else:  # lengths stay on the device; a compiler fuses this; words are too short to be worth a call each
        weights = guided_attention_weights(
            query_lengths,
            key_lengths,
            sigma,
            max_query_length=max_query_length,
            max_key_length=max_key_length,
            dtype=attention.dtype,
        )
        inside = _cells(query_lengths, key_lengths, max_query_length, max_key_length)
        sums = torch.where(inside, weights * attention, 0.0).sum((1, 2))
    return _reduce(sums, reduction, query_lengths, key_lengths)


def _reduce(sums: Tensor, reduction: GuidedReduction, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    if reduction == "none":
        return sums
    total = sums.sum()
    if reduction == "mean":
        return total / (query_lengths.long() * key_lengths.long()).sum().clamp(min=1)
    if reduction == "query_mean":
        return total / query_lengths.sum().clamp(min=1)
    return total / max(sums.shape[0], 1) if reduction == "batchmean" else total


def _check_sigma(sigma: float) -> None:
    if not sigma > 0:
        raise ValueError(f"sigma must be positive; got {sigma}")


def _scaled_positions(lengths: Tensor, max_length: int, sigma: float, dtype: torch.dtype) -> Tensor:
    """Relative positions ``i / length`` in units of ``sqrt(2) * sigma``, ``(batch, max_length)``."""
    positions = torch.arange(max_length, device=lengths.device, dtype=dtype)
    return positions / lengths.clamp(min=1).to(dtype).unsqueeze(1) / (math.sqrt(2) * sigma)


def _cells(query_lengths: Tensor, key_lengths: Tensor, max_query_length: int, max_key_length: int) -> Tensor:
    """True inside the utterances, ``(batch, query, key)``."""
    queries = sequence_mask(query_lengths, max_query_length).unsqueeze(2)
    return queries & sequence_mask(key_lengths, max_key_length).unsqueeze(1)


class _MaskedSoftmax(torch.autograd.Function):
    """Where no row is undefined, the softmax itself makes weights and gradients 0 wherever a score is masked."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor, dim: int) -> Tensor:
        scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(dim)
        if _may_hold_nan(weights, dim):  # a row of nothing but -inf, or NaN among its scores
            weights.masked_fill_(scores == -torch.inf, 0.0)
        ctx.save_for_backward(weights)
        ctx.dim = dim
        return weights

    @staticmethod
    def backward(ctx: Any, grad_weights: Tensor) -> tuple[Tensor, None, None]:
        (weights,) = ctx.saved_tensors
        gradient = torch._softmax_backward_data(grad_weights, weights, ctx.dim, weights.dtype)
        if _may_hold_nan(gradient, ctx.dim):  # as 0 * inf, behind the logarithm of a weight of 0
            masked = weights == 0
            grad_weights = torch.where(masked, 0.0, grad_weights)
            gradient = torch._softmax_backward_data(grad_weights, weights, ctx.dim, weights.dtype)
            gradient = torch.where(masked, 0.0, gradient)
        return gradient, None, None


def _may_hold_nan(rows: Tensor, dim: int) -> bool:
    """Whether a row holds NaN, as far as that can be known; a softmax and its gradient spread it over the row."""
    if not values_are_checkable(rows):
        return True
    first = rows.narrow(dim, 0, min(1, rows.shape[dim]))
    return math.isnan(first.sum().item())


class _GuidedSums(torch.autograd.Function):
    """Sum of weights * attention an utterance, on the CPU: one utterance's cells at a time, which stay in cache."""

    @staticmethod
    def forward(ctx: Any, attention: Tensor, query_lengths: Tensor, key_lengths: Tensor, sigma: float) -> Tensor:
        ctx.lengths = list(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True))
        ctx.sigma = sigma
        ctx.shape = attention.shape
        buffer = attention.new_empty(attention[:1].numel())
        sums = attention.new_empty(len(attention))
        for index, (num_queries, num_keys) in enumerate(ctx.lengths):
            cells = attention[index, :num_queries, :num_keys]
            gaussian = _write_gaussian(buffer[: cells.numel()].view(num_queries, num_keys), sigma)
            sums[index] = torch.addcmul(cells, cells, gaussian, value=-1, out=gaussian).sum()
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_sums: Tensor) -> tuple[Tensor | None, ...]:
        gradient = grad_sums.new_zeros(ctx.shape)
        sizes = zip(ctx.lengths, grad_sums.tolist(), strict=True)
        for index, ((num_queries, num_keys), scale) in enumerate(sizes):
            cells = gradient[index, :num_queries, :num_keys]
            _write_gaussian(cells, ctx.sigma).mul_(-scale).add_(scale)
        return gradient, None, None, None


def _write_gaussian(cells: Tensor, sigma: float) -> Tensor:
    """Fill the cells of one utterance with ``1 - weight``."""
    queries, keys = (torch.arange(size, dtype=cells.dtype) / size / (math.sqrt(2) * sigma) for size in cells.shape)
    torch.sub(queries.unsqueeze(1), keys, out=cells)
    return cells.square_().neg_().exp_()
