"""Attention by loops over utterances, cells and steps."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from sonorant.nn import LocationAttention


def softmax_by_row(scores: Tensor, mask: Tensor) -> Tensor:
    rows = []
    for row, keep in zip(scores.flatten(0, -2), mask.expand(scores.shape).flatten(0, -2), strict=True):
        exponentials = torch.stack([s.exp() if k else s.new_zeros(()) for s, k in zip(row, keep, strict=True)])
        rows.append(exponentials / exponentials.sum() if keep.any() else exponentials)
    return torch.stack(rows).view(scores.shape)


def guided_weights_by_cell(
    query_lengths: Tensor,
    key_lengths: Tensor,
    sigma: float,
    max_query_length: int,
    max_key_length: int,
    dtype: torch.dtype,
) -> Tensor:
    weights = torch.zeros(len(query_lengths), max_query_length, max_key_length, dtype=dtype)
    for index, (num_queries, num_keys) in enumerate(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True)):
        for q in range(num_queries):
            for k in range(num_keys):
                distance = k / num_keys - q / num_queries
                weights[index, q, k] = 1 - math.exp(-(distance**2) / (2 * sigma**2))
    return weights


def guided_loss_by_utterance(
    attention: Tensor, query_lengths: Tensor, key_lengths: Tensor, sigma: float, reduction: str
) -> Tensor:
    if attention.dim() == 4:
        by_head = [
            guided_loss_by_utterance(a, query_lengths, key_lengths, sigma, reduction) for a in attention.unbind(1)
        ]
        return torch.stack(by_head).mean(0)
    weights = guided_weights_by_cell(query_lengths, key_lengths, sigma, *attention.shape[1:], attention.dtype)
    sums = torch.stack(
        [
            (w[:q, :k] * a[:q, :k]).sum()
            for w, a, q, k in zip(weights, attention, query_lengths, key_lengths, strict=True)
        ]
    )
    if reduction == "none":
        return sums
    divisor = {
        "sum": 1,
        "mean": int((query_lengths * key_lengths).sum()),
        "query_mean": int(query_lengths.sum()),
        "batchmean": len(sums),
    }
    return sums.sum() / divisor[reduction]


def location_weights_by_step(
    queries: Tensor,
    keys: Tensor,
    location_filters: Tensor,
    energy_weight: Tensor,
    state: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float = 2.0,
) -> Tensor:
    rows = []
    for index, (num_queries, num_keys) in enumerate(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True)):
        steps, seen = [], state[index, :, :num_keys]
        for query in queries[index, :num_queries]:
            if num_keys == 0:
                steps.append(keys.new_zeros(keys.shape[1]))
                continue
            location = F.conv1d(seen, location_filters, padding=location_filters.shape[2] // 2).T
            scores = (location + keys[index, :num_keys] + query).tanh() @ energy_weight
            weights = (scaling * scores).softmax(0)
            seen = torch.stack([weights, seen[-1] + weights])[: len(seen)]
            steps.append(F.pad(weights, (0, keys.shape[1] - num_keys)))
        steps += [keys.new_zeros(keys.shape[1])] * (queries.shape[1] - num_queries)
        rows.append(torch.stack(steps) if steps else keys.new_zeros(0, keys.shape[1]))
    return torch.stack(rows)


def attend_by_hand(
    module: LocationAttention, memory: Tensor, memory_lengths: Tensor, query: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """One step, utterance by utterance, written as in the paper."""
    contexts, rows = [], []
    for values, length, s, seen in zip(memory, memory_lengths.tolist(), query, state, strict=True):
        values, weights = values[:length], values.new_zeros(0)
        if length:
            location = module.proj_attn(module.conv(seen[:, :length]).T)
            energies = module.proj_out(module.proj_enc(values) + module.proj_dec(s) + location).squeeze(1)
            weights = (module.scaling * energies).softmax(0)
        contexts.append(weights @ values)
        rows.append(F.pad(weights, (0, memory.shape[1] - length)))
    return torch.stack(contexts), torch.stack(rows)


def attend_sequence_by_hand(
    module: LocationAttention,
    memory: Tensor,
    memory_lengths: Tensor,
    queries: Tensor,
    query_lengths: Tensor,
    state: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Single steps; an utterance that has ended keeps its state."""
    contexts, rows = [], []
    inside = torch.arange(memory.shape[1]) < memory_lengths.view(-1, 1, 1)
    state = torch.where(inside, state, 0.0)
    for step, query in enumerate(queries.unbind(1)):
        running = (query_lengths > step).view(-1, 1)
        context, weights = attend_by_hand(module, memory, memory_lengths, query, state)
        after = torch.stack([weights, state[:, -1] + weights], 1)[:, : state.shape[1]]
        state = torch.where(running.unsqueeze(2), after, state)
        contexts.append(torch.where(running, context, 0.0))
        rows.append(torch.where(running, weights, 0.0))
    if not contexts:
        return (
            memory.new_zeros(len(memory), 0, memory.shape[2]),
            memory.new_zeros(len(memory), 0, memory.shape[1]),
            state,
        )
    return torch.stack(contexts, 1), torch.stack(rows, 1), state
