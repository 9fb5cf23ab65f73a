"""What goes with an alignment: the pull towards it, its durations, and the prior that starts an aligner off."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sonorant.functional.reduction import Reduction, check_reduction, compute_dtype
from sonorant.lengths import check_lengths, sequence_mask, values_are_checkable

__all__ = ["alignment_durations", "attention_binarization_loss", "beta_binomial_prior"]


def attention_binarization_loss(
    alignment: Float[Tensor, "batch *heads query key"] | Bool[Tensor, "batch *heads query key"],
    attention: Float[Tensor, "batch *heads query key"],
    *,
    eps: float = 1e-12,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Pull a soft attention towards a hard alignment: cross entropy at the cells that the alignment selects.

    .. math:: -\frac{1}{n} \sum_{q,k:\, h_{q,k} = 1} \log \max(a_{q,k}, \epsilon)

    It departs from the original in that a batch in which nothing is selected gives 0, with gradient 0, not NaN. It
    needs no lengths: an alignment selects nothing in padding, and the attention is read nowhere else. A loss of this
    kind from the first step stops an aligner from learning; start it once alignments have formed.

    Args:
        alignment: ``(batch, query, key)`` or ``(batch, heads, query, key)``, 1 (or True) in the cells selected. It
            gets no gradient.
        attention: the same shape, probabilities.
        eps: the floor of the probabilities; below it the gradient is 0.
        reduction: ``"none"`` gives the sum of each utterance ``(batch,)`` (the mean over its heads), ``"sum"`` their
            sum, ``"mean"`` the mean over the selected cells of the batch, ``"batchmean"`` the sum / batch size.

    Returns:
        ``(batch,)`` or a scalar, in float32 for half precision, else in the dtype of ``attention``.

    Raises:
        ValueError: different shapes, or ``eps`` not positive.

    References:
        Badlani et al. 2021, arXiv 2108.10447; Shih et al. 2021, "RAD-TTS".

    Example:
        >>> import torch
        >>> from sonorant.functional import attention_binarization_loss
        >>> attention = torch.full((1, 2, 2), 0.25)
        >>> attention_binarization_loss(torch.eye(2).unsqueeze(0), attention)
        tensor(1.3863)
    """
    check_reduction(reduction)
    if alignment.shape != attention.shape:
        raise ValueError(f"alignment has shape {tuple(alignment.shape)}, attention {tuple(attention.shape)}")
    if eps <= 0:
        raise ValueError(f"eps is {eps}; it must be positive")
    selected = alignment.detach() == 1
    num_heads = attention.shape[1] if attention.dim() == 4 else 1
    if values_are_checkable(attention):
        # where the number of cells may be known, only they are visited: half the time
        cells = selected.nonzero(as_tuple=True)
        terms = -attention[cells].to(compute_dtype(attention)).clamp(min=eps).log()
        values = terms.new_zeros(attention.shape[0]).index_add(0, cells[0], terms) / num_heads
    else:
        probs = torch.where(selected, attention.to(compute_dtype(attention)), 1.0)
        values = -probs.clamp(min=eps).log().sum((-2, -1)).view(-1, num_heads).mean(1)
    if reduction == "none":
        return values
    if reduction == "mean":
        # (the sum of a bool tensor would make an int64 one of its size first)
        return values.sum() * num_heads / selected.count_nonzero().clamp(min=1)
    return values.sum() if reduction == "sum" else values.mean()


def alignment_durations(
    alignment: Float[Tensor, "batch *heads query key"] | Bool[Tensor, "batch *heads query key"],
) -> Int[Tensor, "batch *heads key"]:
    r"""How many frames a hard alignment gives to each key.

    .. math:: d_k = \sum_q h_{q,k}

    Args:
        alignment: ``(batch, query, key)`` or ``(batch, heads, query, key)`` of 0 and 1 (or bool), 0 in padding. Of a
            soft attention the sums are rounded, and need not add up to the frames.

    Returns:
        int64, the shape without the query axis.

    References:
        Ren et al. 2019, "FastSpeech", arXiv 1905.09263.

    Example:
        >>> import torch
        >>> from sonorant.functional import alignment_durations
        >>> alignment_durations(torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]))
        tensor([[2, 1]])
    """
    if alignment.dtype == torch.bool:
        return alignment.sum(-2)
    return alignment.detach().sum(-2, dtype=compute_dtype(alignment)).round().long()


def beta_binomial_prior(
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
    scaling: float = 1.0,
    *,
    max_query_length: int | None = None,
    max_key_length: int | None = None,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "batch query key"]:
    r"""A prior along the diagonal for an aligner's attention: a beta-binomial distribution over the keys a frame.

    .. math::
        P_{q,k} = \binom{K-1}{k} \frac{B(k + \alpha, K - 1 - k + \beta)}{B(\alpha, \beta)}, \qquad
        \alpha = s q, \; \beta = s (Q + 1 - q)

    with q from 1 to Q and k from 0 to K - 1. Its logarithm is added to an aligner's scores (with 1e-8 for the zeros
    of rounding); without it an aligner takes much longer to find the diagonal.

    Args:
        query_lengths: ``(batch,)``, frames.
        key_lengths: ``(batch,)``, tokens.
        scaling: s; the larger, the narrower about the diagonal.
        max_query_length: the size of the query axis; the longest length if None, which synchronises with a GPU.
        max_key_length: the size of the key axis, likewise.
        dtype: of the result; torch's default if None. It is computed in float64.

    Returns:
        ``(batch, query, key)`` on the device of the lengths; rows sum to 1 over valid keys, 0 in padding.

    Raises:
        ValueError: lengths below 1 or beyond the given sizes; ``scaling`` not positive.

    References:
        Shih et al. 2021, "RAD-TTS: parallel flow-based TTS with robust alignment learning and diverse synthesis";
        Badlani et al. 2021, arXiv 2108.10447.

    Example:
        >>> import torch
        >>> from sonorant.functional import beta_binomial_prior
        >>> beta_binomial_prior(torch.tensor([3]), torch.tensor([2]))
        tensor([[[0.7500, 0.2500],
                 [0.5000, 0.5000],
                 [0.2500, 0.7500]]])
    """
    if scaling <= 0:
        raise ValueError(f"scaling is {scaling}; it must be positive")
    check_lengths(query_lengths, "query_lengths", max_length=max_query_length)
    check_lengths(key_lengths, "key_lengths", batch_size=query_lengths.shape[0], max_length=max_key_length)
    max_queries = int(query_lengths.max()) if max_query_length is None else max_query_length
    max_keys = int(key_lengths.max()) if max_key_length is None else max_key_length
    key_mask = sequence_mask(key_lengths, max_keys).unsqueeze(1)
    query_mask = sequence_mask(query_lengths, max_queries).unsqueeze(2)
    prior = key_mask.new_empty(
        (len(key_lengths), max_queries, max_keys), dtype=torch.get_default_dtype() if dtype is None else dtype
    )
    rows = torch.arange(1, max_queries + 1, device=key_lengths.device, dtype=torch.float64).unsqueeze(1)
    # some rows at a time, so that the logarithms in float64 take no memory to speak of beside the result
    step = max_queries if torch.compiler.is_compiling() else _rows_at_a_time(prior)
    chunks = torch.split(rows, step), torch.split(query_mask, step, 1), torch.split(prior, step, 1)
    for some_rows, row_mask, some_prior in zip(*chunks, strict=True):
        log_prior = _log_beta_binomial(some_rows, query_lengths, key_lengths, scaling, max_keys)
        some_prior.copy_(log_prior.exp_().masked_fill_(~(row_mask & key_mask), 0.0))
    return prior


def _rows_at_a_time(prior: Tensor) -> int:
    """So many that a temporary stays in a CPU's cache; on other devices few large steps are better."""
    num_cells = 2**15 if prior.device.type == "cpu" else 2**22
    return max(num_cells // max(prior.shape[0] * prior.shape[2], 1), 1)


def _log_beta_binomial(
    rows: Tensor, query_lengths: Tensor, key_lengths: Tensor, scaling: float, max_keys: int
) -> Tensor:
    """The logarithm of the prior in ``rows (row, 1)``, counted from 1: ``(batch, row, key)``, anything in padding."""
    keys = torch.arange(max_keys, device=rows.device, dtype=torch.float64)
    num_rows, last_key = query_lengths.double().view(-1, 1, 1), key_lengths.double().view(-1, 1, 1) - 1
    # in padding some numbers would be out of range; clamped, they give values that the mask leaves out
    alpha, beta = scaling * rows, scaling * (num_rows + 1 - rows).clamp(min=1)
    first = (
        torch.lgamma(last_key + beta)
        - torch.lgamma(last_key + alpha + beta)
        + torch.lgamma(alpha + beta)
        - torch.lgamma(beta)
    )
    # each probability from the one before it: P(k) / P(k - 1) = (n - k + 1) (k - 1 + alpha) / (k (n - k + beta))
    ratios = (keys - 1 + alpha) / ((last_key - keys).clamp(min=0) + beta)
    ratios *= (last_key - keys + 1).clamp(min=1) / keys
    ratios.log_()[:, :, :1] = first  # key 0 has none before it
    return ratios.cumsum_(2)
