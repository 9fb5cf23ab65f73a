"""Monotonic alignment search: the best path's durations, or the path itself.

A byte a cell says where the best path to it came from. Only cells that a path can have reached, and from which it can
still reach the last key, are visited; both edges of that band move by at most one key a frame.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np

from sonorant.functional.kernels import kernel, kernel_part

__all__ = ["monotonic_alignment"]


@kernel_part(inline=True)
def _score_row(scores, before, now, advanced, size):
    """One frame's best scores, from the frame before; ``before`` and ``now`` start one key earlier than the others."""
    for i in range(size):
        advance = before[i]
        stay = before[i + 1]
        now[i + 1] = scores[i] + (advance if advance >= stay else stay)
        advanced[i] = advance >= stay


@kernel_part()
def _search(scores, num_queries, num_keys, best, advanced):
    """Fills ``advanced`` (query, key) within the band; ``best`` is scratch for two rows, from the key before key 0."""
    best[:, :] = -np.inf
    best[0, 1] = scores[0, 0]
    for t in range(1, num_queries):
        low = max(0, num_keys - num_queries + t)
        high = min(num_keys, t + 1)
        now = best[t & 1]
        _score_row(scores[t, low:], best[1 - (t & 1), low:], now[low:], advanced[t, low:], high - low)
        now[low] = -np.inf  # the key before the band


@kernel
def monotonic_alignment(start, stop, scores, query_lengths, key_lengths, durations, path):
    """Durations and, where it has as many queries as ``scores``, the ``path`` of 0 and 1.

    An utterance with fewer frames than keys has no path: its durations are 0.
    """
    is_wanted = path.shape[1] == scores.shape[1]
    best = np.empty((2, key_lengths[start:stop].max() + 1), scores.dtype)
    advanced = np.empty((query_lengths[start:stop].max(), key_lengths[start:stop].max()), np.uint8)
    for b in range(start, stop):
        num_queries, num_keys = query_lengths[b], key_lengths[b]
        durations[b] = 0
        path[b] = 0  # here and not for the whole batch before, so that it still is in the cache below
        if num_queries < num_keys:
            continue
        _search(scores[b], num_queries, num_keys, best, advanced)
        key = num_keys - 1
        for t in range(num_queries - 1, -1, -1):
            durations[b, key] += 1
            if is_wanted:
                path[b, t, key] = 1
            # where all scores are -inf the bytes may lead out of the band; its edges have only one way back
            if key > 0 and (advanced[t, key] or key == t):
                key -= 1
