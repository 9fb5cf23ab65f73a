"""Monotonic alignment search."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.functional import kernels
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask, values_are_checkable

__all__ = ["monotonic_alignment_durations", "monotonic_alignment_search"]


def monotonic_alignment_search(
    log_attention: Float[Tensor, "batch *heads query key"],
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
) -> Float[Tensor, "batch *heads query key"]:
    r"""The best monotonic path through a matrix of scores, by dynamic programming.

    .. math:: \arg\max_\pi \sum_{q=1}^{Q} a_{q,\pi_q}, \qquad \pi_1 = 1, \; \pi_Q = K, \; \pi_q - \pi_{q-1} \in \{0, 1\}

    Of two equally good ways the path takes the one that advances. Every key gets at least one frame. Where scores of
    -inf leave no path, it still is a monotonic path from the first key to the last.

    Args:
        log_attention: ``(batch, query, key)`` or ``(batch, heads, query, key)``. It gets no gradient.
        query_lengths: ``(batch,)``, frames; at least as many as keys.
        key_lengths: ``(batch,)``, tokens.

    Returns:
        0 and 1 in the shape of ``log_attention`` and in its dtype, 0 in padding. Where lengths cannot be checked (on
        a GPU) an utterance with fewer frames than keys has zeros.

    Raises:
        ValueError: lengths beyond the tensor or below 1; fewer frames than keys.

    References:
        Kim, Kim, Kong and Yoon 2020, "Glow-TTS", arXiv 2005.11129; Badlani et al. 2021, arXiv 2108.10447.

    Example:
        >>> import torch
        >>> from sonorant.functional import monotonic_alignment_search
        >>> scores = torch.tensor([[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]]).log()
        >>> monotonic_alignment_search(scores, torch.tensor([3]), torch.tensor([2]))
        tensor([[[1., 0.],
                 [1., 0.],
                 [0., 1.]]])
    """
    scores, lengths = _search_arguments(log_attention, query_lengths, key_lengths)
    path: Tensor = torch.ops.sonorant.monotonic_alignment_search(scores, *lengths)
    return path.view(log_attention.shape).to(log_attention.dtype)


def monotonic_alignment_durations(
    log_attention: Float[Tensor, "batch *heads query key"],
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
) -> Int[Tensor, "batch *heads key"]:
    r"""The durations of :func:`monotonic_alignment_search`'s path, which is never built.

    .. math:: d_k = \left|\{\, q : \pi_q = k \,\}\right|

    Args:
        log_attention: ``(batch, query, key)`` or ``(batch, heads, query, key)``.
        query_lengths: ``(batch,)``, frames; at least as many as keys.
        key_lengths: ``(batch,)``, tokens.

    Returns:
        int64 ``(batch, key)`` (or ``(batch, heads, key)``): frames of each key, at least 1 for valid keys and 0 in
        padding; they sum to the query length.

    Raises:
        ValueError: as for the search.

    References:
        Those of the search.

    Example:
        >>> import torch
        >>> from sonorant.functional import monotonic_alignment_durations
        >>> scores = torch.tensor([[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]]).log()
        >>> monotonic_alignment_durations(scores, torch.tensor([3]), torch.tensor([2]))
        tensor([[2, 1]])
    """
    scores, lengths = _search_arguments(log_attention, query_lengths, key_lengths)
    durations: Tensor = torch.ops.sonorant.monotonic_alignment_durations(scores, *lengths)
    return durations.view(*log_attention.shape[:-2], log_attention.shape[-1])


def _search_arguments(
    log_attention: Tensor, query_lengths: Tensor, key_lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Checks; scores ``(batch * heads, query, key)`` and their lengths."""
    batch_size, (max_queries, max_keys) = log_attention.shape[0], log_attention.shape[-2:]
    check_lengths(query_lengths, "query_lengths", batch_size=batch_size, max_length=max_queries)
    check_lengths(key_lengths, "key_lengths", batch_size=batch_size, max_length=max_keys)
    if values_are_checkable(query_lengths) and values_are_checkable(key_lengths):
        too_short = query_lengths < key_lengths
        if too_short.any():
            index = int(too_short.nonzero()[0])
            raise ValueError(
                f"query_lengths[{index}] is {int(query_lengths[index])}, fewer than "
                f"key_lengths[{index}] = {int(key_lengths[index])}: no monotonic path reaches the last key"
            )
    scores = log_attention.detach().to(compute_dtype(log_attention)).reshape(-1, max_queries, max_keys)
    num_heads = log_attention.shape[1] if log_attention.dim() == 4 else 1
    queries, keys = (
        n.to(device=scores.device, dtype=torch.int64).repeat_interleave(num_heads) for n in (query_lengths, key_lengths)
    )
    return scores, (queries, keys)


@torch.library.custom_op("sonorant::monotonic_alignment_search", mutates_args=())
def _monotonic_alignment_search(scores: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    path = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if scores.device.type == "cpu" and kernels.available():
        _by_kernel(scores, query_lengths, key_lengths, path)
        return path
    keys, valid = _by_frame(scores, query_lengths, key_lengths)
    return path.zero_().scatter_(2, keys.unsqueeze(2), valid.to(path.dtype).unsqueeze(2))


@torch.library.custom_op("sonorant::monotonic_alignment_durations", mutates_args=())
def _monotonic_alignment_durations(scores: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    if scores.device.type == "cpu" and kernels.available():
        return _by_kernel(scores, query_lengths, key_lengths, scores.new_empty(scores.shape[0], 0, 0))
    keys, valid = _by_frame(scores, query_lengths, key_lengths)
    durations = torch.zeros(scores.shape[0], scores.shape[2], dtype=torch.int64, device=scores.device)
    return durations.scatter_add_(1, keys, valid.long())


@_monotonic_alignment_search.register_fake
def _(scores: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


@_monotonic_alignment_durations.register_fake
def _(scores: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    return scores.new_empty(scores.shape[0], scores.shape[2], dtype=torch.int64)


def _by_kernel(scores: Tensor, query_lengths: Tensor, key_lengths: Tensor, path: Tensor) -> Tensor:
    """Fills ``path``; returns the durations."""
    from sonorant.functional.kernels.monotonic_alignment import monotonic_alignment

    # a compiled graph comes here without checks, and the kernel would read out of bounds
    check_lengths(query_lengths, "query_lengths", max_length=scores.shape[1])
    check_lengths(key_lengths, "key_lengths", max_length=scores.shape[2])
    durations = torch.empty(scores.shape[0], scores.shape[2], dtype=torch.int64)
    inputs = [t.numpy() for t in (scores.contiguous(), query_lengths, key_lengths)]
    kernels.run_over_batch(monotonic_alignment, scores.shape[0], *inputs, durations.numpy(), path.numpy())
    return durations


def _by_frame(scores: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The search for the whole batch at once: the key of each frame, and whether that frame counts."""
    batch_size, num_frames, num_keys = scores.shape
    advanced = torch.zeros(num_frames, batch_size, num_keys, dtype=torch.bool, device=scores.device)
    best = scores.new_full((batch_size, num_keys + 1), -torch.inf)  # from the key before key 0 on
    best[:, 1] = scores[:, 0, 0]
    for t in range(1, num_frames):
        torch.ge(best[:, :-1], best[:, 1:], out=advanced[t])
        best[:, 1:] = torch.where(advanced[t], best[:, :-1], best[:, 1:]) + scores[:, t]
    path = torch.empty(num_frames, batch_size, dtype=torch.int64, device=scores.device)
    key = key_lengths - 1
    for t in range(num_frames - 1, -1, -1):
        path[t] = key
        # where all scores are -inf, ties could lead before key 0, or leave key t for a frame that never reached it
        back = (advanced[t].gather(1, key.unsqueeze(1)).squeeze(1) | (key == t)) & (key > 0) & (t < query_lengths)
        key = key - back.long()
    valid = sequence_mask(query_lengths, num_frames) & (query_lengths >= key_lengths).unsqueeze(1)
    return path.T, valid
