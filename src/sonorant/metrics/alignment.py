"""How well a soft attention aligns, and how far the boundaries of two hard alignments are apart.

The three attention metrics give one value an utterance (and head), 1 at best. Whatever stands in padding changes
nothing.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.functional import alignment_durations
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask

__all__ = [
    "BoundaryErrors",
    "attention_coverage",
    "attention_diagonality",
    "attention_focus_rate",
    "boundary_errors",
]


def attention_focus_rate(
    attention: Float[Tensor, "batch *heads query key"],
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
) -> Float[Tensor, "batch ..."]:
    r"""How sharply each frame attends: the mean over frames of the largest weight.

    .. math:: F = \frac{1}{Q} \sum_q \max_k a_{q,k}

    1 where every frame attends to one key, 1 / K where attention is uniform. FastSpeech takes durations from the head
    for which it is largest.

    Args:
        attention: ``(batch, query, key)`` or ``(batch, heads, query, key)``, probabilities over keys.
        query_lengths: ``(batch,)``, frames.
        key_lengths: ``(batch,)``, tokens.

    Returns:
        ``(batch,)`` or ``(batch, heads)``.

    Raises:
        ValueError: lengths that do not fit.

    References:
        Ren et al. 2019, "FastSpeech", arXiv 1905.09263, section 3.3.

    Example:
        >>> import torch
        >>> from sonorant.metrics import attention_focus_rate
        >>> attention = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])
        >>> attention_focus_rate(attention, torch.tensor([2]), torch.tensor([2]))
        tensor([0.7500])
    """
    weights, queries, _ = _valid_weights(attention, query_lengths, key_lengths)
    return weights.amax(-1).sum(-1) / queries


def attention_coverage(
    attention: Float[Tensor, "batch *heads query key"],
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
) -> Float[Tensor, "batch ..."]:
    r"""How much of the input was attended to: each key's total weight, counted up to one frame's.

    .. math:: C = \frac{1}{K} \sum_k \min\Big(1, \sum_q a_{q,k}\Big)

    Well below 1 where tokens were skipped. It does not see repetitions.

    Args:
        attention: ``(batch, query, key)`` or ``(batch, heads, query, key)``, probabilities over keys.
        query_lengths: ``(batch,)``, frames.
        key_lengths: ``(batch,)``, tokens.

    Returns:
        ``(batch,)`` or ``(batch, heads)``.

    Raises:
        ValueError: lengths that do not fit.

    References:
        Wu et al. 2016, "Google's neural machine translation system", arXiv 1609.08144: the terms of its coverage
        penalty, averaged instead of their logarithms summed.

    Example:
        >>> import torch
        >>> from sonorant.metrics import attention_coverage
        >>> attention = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])
        >>> attention_coverage(attention, torch.tensor([2]), torch.tensor([2]))
        tensor([0.7500])
    """
    weights, _, keys = _valid_weights(attention, query_lengths, key_lengths)
    return weights.sum(-2).clamp(max=1).sum(-1) / keys


def attention_diagonality(
    attention: Float[Tensor, "batch *heads query key"],
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
    *,
    width: float = 0.1,
) -> Float[Tensor, "batch ..."]:
    r"""The share of the attention that lies near the diagonal.

    .. math:: D = \frac{\sum_{q,k:\, |k/K - q/Q| \le w} a_{q,k}}{\sum_{q,k} a_{q,k}}

    with q and k counted from 0, the diagonal of the guided attention loss. It departs from the source in that the
    width is relative to the number of tokens, so that long and short utterances compare.

    Args:
        attention: ``(batch, query, key)`` or ``(batch, heads, query, key)``, probabilities over keys.
        query_lengths: ``(batch,)``, frames.
        key_lengths: ``(batch,)``, tokens.
        width: half the width of the band, as a share of the text.

    Returns:
        ``(batch,)`` or ``(batch, heads)``; 0 where there is no attention at all.

    Raises:
        ValueError: lengths that do not fit; ``width`` not positive.

    References:
        Xu et al. 2020, "LRSpeech", arXiv 2008.03687 (attention diagonal ratio); Tachibana et al. 2017,
        arXiv 1710.08969 for the diagonal.

    Example:
        >>> import torch
        >>> from sonorant.metrics import attention_diagonality
        >>> attention = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])
        >>> attention_diagonality(attention, torch.tensor([2]), torch.tensor([2]))
        tensor([0.7500])
    """
    if width <= 0:
        raise ValueError(f"width is {width}; it must be positive")
    weights, queries, keys = _valid_weights(attention, query_lengths, key_lengths)
    num_queries, num_keys = queries.unsqueeze(-1).unsqueeze(-1), keys.unsqueeze(-1).unsqueeze(-1)
    rows = torch.arange(weights.shape[-2], device=weights.device, dtype=weights.dtype).unsqueeze(1)
    columns = torch.arange(weights.shape[-1], device=weights.device, dtype=weights.dtype)
    near = (columns / num_keys - rows / num_queries).abs() <= width
    total = weights.sum((-2, -1))
    share = torch.where(near, weights, 0.0).sum((-2, -1)) / total
    return torch.where(total > 0, share, 0.0)


class BoundaryErrors(NamedTuple):
    """How far the boundaries of two alignments are apart: floats in frames, or in the unit of ``frame_shift``."""

    mean: float
    median: float
    percentiles: dict[float, float]
    within: dict[float, float]
    num_boundaries: int


def boundary_errors(
    predicted: Tensor,
    reference: Tensor,
    key_lengths: Int[Tensor, " batch"],
    *,
    frame_shift: float = 1.0,
    percentiles: tuple[float, ...] = (90.0, 95.0),
    tolerances: tuple[float, ...] = (),
) -> BoundaryErrors:
    r"""Absolute differences between the boundaries of two alignments, over all utterances.

    .. math:: e_{b,j} = \Big| \sum_{k \le j} d_{b,k} - \sum_{k \le j} d'_{b,k} \Big| \cdot \text{frame shift},
        \qquad j = 1, \dots, K_b - 1

    An utterance of K tokens has K - 1 boundaries; its begin and end are no decisions and do not count.

    Args:
        predicted: durations, int ``(batch, key)``, or an alignment of 0 and 1, ``(batch, query, key)``.
        reference: likewise; the two forms may be mixed.
        key_lengths: ``(batch,)``, tokens.
        frame_shift: the length of a frame, for example 256 / 22050 seconds; 1 gives frames.
        percentiles: which ones to report, in 0 to 100, linearly interpolated.
        tolerances: for each the share of boundaries that are at most so far apart, in the unit of ``frame_shift``
            (20 ms is the customary one in forced alignment).

    Returns:
        ``BoundaryErrors``; NaN where there is no boundary at all.

    Raises:
        ValueError: lengths that do not fit, or different numbers of utterances.

    References:
        McAuliffe et al. 2017, "Montreal Forced Aligner", for the measure.

    Example:
        >>> import torch
        >>> from sonorant.metrics import boundary_errors
        >>> predicted, reference = torch.tensor([[2, 3, 5]]), torch.tensor([[3, 3, 4]])
        >>> boundary_errors(predicted, reference, torch.tensor([3]), percentiles=(50.0,), tolerances=(1.0,))
        BoundaryErrors(mean=1.0, median=1.0, percentiles={50.0: 1.0}, within={1.0: 1.0}, num_boundaries=2)
    """
    ends = []
    for name, alignment in (("predicted", predicted), ("reference", reference)):
        durations = alignment_durations(alignment) if alignment.dim() == 3 else alignment
        if durations.dim() != 2 or durations.shape[0] != key_lengths.shape[0]:
            raise ValueError(f"{name} has shape {tuple(alignment.shape)} for a batch of {key_lengths.shape[0]}")
        check_lengths(key_lengths, "key_lengths", batch_size=durations.shape[0], max_length=durations.shape[1])
        ends.append(durations.cumsum(1)[:, : int(key_lengths.max())])
    mask = sequence_mask((key_lengths - 1).clamp(min=0), int(key_lengths.max()))
    # tolerances are compared in frames: in seconds, 2 frames of 10 ms are not always 20 ms
    frames = (ends[0] - ends[1]).abs()[mask].double()
    if frames.numel() == 0:
        nan = float("nan")
        return BoundaryErrors(nan, nan, dict.fromkeys(percentiles, nan), dict.fromkeys(tolerances, nan), 0)
    quantiles = torch.quantile(frames, torch.tensor([50.0, *percentiles], dtype=torch.float64) / 100) * frame_shift
    median, *others = quantiles.tolist()
    return BoundaryErrors(
        mean=float(frames.mean()) * frame_shift,
        median=median,
        percentiles=dict(zip(percentiles, others, strict=True)),
        within={limit: float((frames <= limit / frame_shift + 1e-6).double().mean()) for limit in tolerances},
        num_boundaries=frames.numel(),
    )


def _valid_weights(attention: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The attention with 0 in padding; the lengths as floats that broadcast against ``(batch, *heads)``."""
    batch_size, (max_queries, max_keys) = attention.shape[0], attention.shape[-2:]
    check_lengths(query_lengths, "query_lengths", batch_size=batch_size, max_length=max_queries)
    check_lengths(key_lengths, "key_lengths", batch_size=batch_size, max_length=max_keys)
    mask = sequence_mask(query_lengths, max_queries).unsqueeze(2) & sequence_mask(key_lengths, max_keys).unsqueeze(1)
    shape = (batch_size, *[1] * (attention.dim() - 3))
    weights = torch.where(mask.view(*shape, max_queries, max_keys), attention.to(compute_dtype(attention)), 0.0)
    queries, keys = (n.to(weights.dtype).view(shape) for n in (query_lengths, key_lengths))
    return weights, queries, keys
