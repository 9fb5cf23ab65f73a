"""The alignment losses one utterance at a time, and by counting all paths."""

from itertools import combinations, product
from math import comb

import torch
from torch import Tensor
from torch.nn import functional as F


def forward_sum_by_item(
    log_attention: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    blank_logprob: float = -1.0,
    band: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The form in common use: a loop over the batch, log-softmax and CTC for each utterance."""
    padded = F.pad(log_attention, (1, 0), value=blank_logprob)
    losses, feasible = [], []
    for row, frames, tokens in zip(padded, query_lengths.tolist(), key_lengths.tolist(), strict=True):
        scores = row[:frames, : tokens + 1]
        if band is not None:
            scores = scores.masked_fill(~_band(frames, tokens, band), -1e4)
        loss = F.ctc_loss(
            scores.log_softmax(1),
            torch.arange(1, tokens + 1).unsqueeze(0),
            torch.tensor([frames]),
            torch.tensor([tokens]),
            reduction="sum",
        )
        feasible.append(frames >= tokens)
        losses.append(loss if feasible[-1] else scores.sum() * 0)
    values = torch.stack(losses)
    if reduction == "none":
        return values
    if reduction == "mean":
        values = values / key_lengths
    return values.sum() if reduction == "sum" else values.sum() / max(sum(feasible), 1)


def _band(frames: int, tokens: int, band: int) -> Tensor:
    """Which of blank and keys are allowed in each frame."""
    return torch.tensor(
        [[True] + [abs(k - q * tokens / frames) <= band + 1e-12 for k in range(tokens)] for q in range(frames)]
    )


def forward_sum_by_enumeration(scores: Tensor, blank_logprob: float) -> Tensor:
    """NLL of one utterance ``(query, key)``: every sequence of blanks and keys whose keys read 1, 2, ..., K."""
    frames, tokens = scores.shape
    log_probs = F.pad(scores, (1, 0), value=blank_logprob).log_softmax(1)
    totals = []
    for path in product(range(tokens + 1), repeat=frames):
        merged = [s for i, s in enumerate(path) if s and (i == 0 or s != path[i - 1])]
        if merged == list(range(1, tokens + 1)):
            totals.append(sum(log_probs[q, s] for q, s in enumerate(path)))
    return -torch.stack(totals).logsumexp(0)


def monotonic_paths(frames: int, tokens: int) -> list[list[int]]:
    """The key of each frame, for all paths that start at key 0, end at the last and advance by 0 or 1."""
    paths = []
    for starts in combinations(range(1, frames), tokens - 1):
        bounds = [0, *starts, frames]
        paths.append([key for key in range(tokens) for _ in range(bounds[key], bounds[key + 1])])
    return paths


def search_by_enumeration(log_attention: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    """Of the best paths, the one that advances wherever it can, looking back from the end."""
    result = torch.zeros_like(log_attention)
    for b, (frames, tokens) in enumerate(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True)):
        scores = log_attention[b, :frames, :tokens].tolist()

        def total(path: list[int], scores: list[list[float]] = scores) -> float:
            value = 0.0
            for q, k in enumerate(path):  # added up in the order of the recursion, so that ties are ties
                value = value + scores[q][k]
            return value

        best = max(monotonic_paths(frames, tokens), key=lambda path: (total(path), [-k for k in reversed(path)]))
        for q, k in enumerate(best):
            result[b, q, k] = 1
    return result


def durations_by_enumeration(log_attention: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    return search_by_enumeration(log_attention, query_lengths, key_lengths).sum(1).long()


def binarization_by_cell(alignment: Tensor, attention: Tensor, eps: float = 1e-12, reduction: str = "mean") -> Tensor:
    sums, count = [], 0
    for hard, soft in zip(alignment, attention, strict=True):
        cells = [soft[q, k].clamp(min=eps) for q, k in (hard == 1).nonzero().tolist()]
        sums.append(-torch.stack(cells).log().sum() if cells else soft[:0].sum())
        count += len(cells)
    values = torch.stack(sums)
    if reduction == "none":
        return values
    divisor = {"sum": 1, "mean": max(count, 1), "batchmean": len(sums)}[reduction]
    return values.sum() / divisor


def durations_by_counting(alignment: Tensor) -> Tensor:
    return torch.tensor([[int((row[:, k] == 1).sum()) for k in range(row.shape[1])] for row in alignment])


def prior_by_row(
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float,
    max_query_length: int,
    max_key_length: int,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Each probability as the product of its factors, in plain Python."""
    result = torch.zeros(len(query_lengths), max_query_length, max_key_length, dtype=torch.float64)
    for b, (frames, tokens) in enumerate(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True)):
        n = tokens - 1
        for i in range(frames):
            alpha, beta = scaling * (i + 1), scaling * (frames - i)
            for k in range(tokens):
                value = float(comb(n, k))
                for j in range(k):
                    value *= (alpha + j) / (alpha + beta + j)
                for j in range(n - k):
                    value *= (beta + j) / (alpha + beta + k + j)
                result[b, i, k] = value
    return result.to(dtype)
