"""CTC by the forward recursion over one utterance at a time, in plain Python."""

import torch
from torch import Tensor


def ctc_loss_by_recursion(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
) -> Tensor:
    losses, feasible = [], []
    for row, labels, frames, length in zip(log_probs, targets, input_lengths, target_lengths, strict=True):
        nll = _nll(row[: int(frames)], labels[: int(length)].tolist(), blank)
        feasible.append(bool(torch.isfinite(nll)))
        losses.append(nll if feasible[-1] else torch.zeros_like(nll))
    values = torch.stack(losses)
    if reduction == "none":
        return values
    if reduction == "mean":
        values = values / target_lengths.clamp(min=1)
    total = values.sum()
    return total if reduction == "sum" else total / max(sum(feasible), 1)


def _nll(log_probs: Tensor, labels: list[int], blank: int) -> Tensor:
    states = [blank]
    for label in labels:
        states += [label, blank]
    minus_infinity = log_probs.new_tensor(-torch.inf)
    if len(log_probs) == 0:
        return log_probs.sum() if not labels else -minus_infinity
    alpha = [log_probs[0, s] if i < 2 else minus_infinity for i, s in enumerate(states)]
    for frame in log_probs[1:]:
        new = []
        for i, state in enumerate(states):
            terms = [alpha[i]] + ([alpha[i - 1]] if i > 0 else [])
            if i > 1 and state != blank and state != states[i - 2]:
                terms.append(alpha[i - 2])
            terms = [term for term in terms if term > -torch.inf]
            new.append(frame[state] + torch.stack(terms).logsumexp(0) if terms else minus_infinity)
        alpha = new
    ends = [a for a in alpha[-2:] if a > -torch.inf]
    return -torch.stack(ends).logsumexp(0) if ends else -minus_infinity
