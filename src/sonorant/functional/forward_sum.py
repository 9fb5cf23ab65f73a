"""The forward-sum loss: the likelihood of a text over all monotonic alignments."""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.functional import kernels
from sonorant.functional.reduction import Reduction, check_reduction, compute_dtype, reduce_utterances
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["forward_sum_loss"]


def forward_sum_loss(
    log_attention: Float[Tensor, "batch *heads query key"],
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
    *,
    blank_logprob: float = -1.0,
    band: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Negative log likelihood that the frames emit all keys in order, summed over all monotonic alignments.

    .. math::
        -\log \sum_{\pi} \prod_{q=1}^{Q} p_q(\pi_q), \qquad
        p_q = \mathrm{softmax}(\text{blank}, a_{q,1}, \dots, a_{q,K})

    where the paths :math:`\pi` visit the keys 1 to K in order, stay on a key as long as they like, and may pause on
    the blank before, between and after them: CTC with the target 1, 2, ..., K.

    It departs from the original where users get hurt: an utterance with fewer frames than keys (or whose every path
    runs through a score of -inf) has loss and gradient 0 and is counted in no mean, so that the rest of the batch
    gets the update it would have got alone; scores of -inf leave no NaN in the gradient; nothing loops over the
    batch; and it compiles with ``fullgraph=True``. Value and gradient are computed together, in float64 inside.

    With a band, cells further than ``band`` keys from the diagonal k = q K / Q (both counted from 0) are as if their
    score were -inf. The diagonal itself is always within it, so that it never makes an utterance infeasible.

    Args:
        log_attention: ``(batch, query, key)`` or ``(batch, heads, query, key)``, scores of any scale: they are
            normalised over the valid keys and the blank.
        query_lengths: ``(batch,)``, frames.
        key_lengths: ``(batch,)``, tokens.
        blank_logprob: the score of the blank in every frame.
        band: the half width of the band in keys, at least 1; None: no band. It is for long inputs: one utterance of
            10,000 frames and 2,000 keys takes 0.14 s (CPU, forward and backward) and 101 MiB beside its scores, 76 of
            them the gradient, with a band of 100; up to 10 s and 1.4 GiB without.
        reduction: ``"none"`` gives one value an utterance (the mean over its heads), ``"sum"`` their sum, ``"mean"``
            the mean of value / key length, ``"batchmean"`` the mean of the values, both over feasible utterances.

    Returns:
        ``(batch,)`` or a scalar, in float32 for half precision, else in the dtype of ``log_attention``.

    Raises:
        ValueError: lengths beyond the tensor or below 1, a band below 1, a blank that is not finite.

    References:
        Badlani, Łańcucki, Shih, Valle, Ping and Catanzaro 2021, "One TTS alignment to rule them all",
        arXiv 2108.10447; Graves et al. 2006 for the recursion.

    Example:
        >>> import torch
        >>> from sonorant.functional import forward_sum_loss
        >>> scores = torch.zeros(1, 3, 2)  # 3 frames, 2 tokens
        >>> forward_sum_loss(scores, torch.tensor([3]), torch.tensor([2]))
        tensor(0.7267)
    """
    check_reduction(reduction)
    if band is not None and band < 1:
        raise ValueError(f"band is {band}; the smallest half width is 1 key")
    if not math.isfinite(blank_logprob):
        raise ValueError(f"blank_logprob is {blank_logprob}; it must be finite")
    batch_size, (max_queries, max_keys) = log_attention.shape[0], log_attention.shape[-2:]
    check_lengths(query_lengths, "query_lengths", batch_size=batch_size, max_length=max_queries)
    check_lengths(key_lengths, "key_lengths", batch_size=batch_size, max_length=max_keys)
    num_heads = log_attention.shape[1] if log_attention.dim() == 4 else 1
    scores = log_attention.to(compute_dtype(log_attention)).reshape(-1, max_queries, max_keys)
    lengths = [
        n.to(device=scores.device, dtype=torch.int64).repeat_interleave(num_heads) for n in (query_lengths, key_lengths)
    ]
    nll, _ = torch.ops.sonorant.forward_sum(
        scores,
        *lengths,
        float(blank_logprob),
        max_keys if band is None else min(band, max_keys),
        torch.is_grad_enabled() and scores.requires_grad,
    )
    feasible = nll != torch.inf
    nll = torch.where(feasible, nll, 0.0).view(batch_size, num_heads).sum(1)
    num_feasible = feasible.view(batch_size, num_heads).sum(1)
    nll = nll / num_feasible.clamp(min=1)
    return reduce_utterances(nll, reduction, divisors=lengths[1].view(batch_size, -1)[:, 0], counted=num_feasible > 0)


@torch.library.custom_op("sonorant::forward_sum", mutates_args=())
def _forward_sum(
    scores: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    blank_logprob: float,
    band: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """The NLL an utterance, inf where infeasible, and its gradient (empty when it is not needed)."""
    if scores.device.type == "cpu" and kernels.available():
        return _by_kernel(scores.contiguous(), query_lengths, key_lengths, blank_logprob, band, needs_gradient)
    return _by_frame(scores, query_lengths, key_lengths, blank_logprob, band, needs_gradient)


def _by_kernel(
    scores: Tensor, query_lengths: Tensor, key_lengths: Tensor, blank_logprob: float, band: int, needs_gradient: bool
) -> tuple[Tensor, Tensor]:
    from sonorant.functional.kernels.forward_sum import forward_sum

    # a compiled graph comes here without checks, and the kernel would read out of bounds
    check_lengths(query_lengths, "query_lengths", max_length=scores.shape[1])
    check_lengths(key_lengths, "key_lengths", max_length=scores.shape[2])
    batch_size, _, max_keys = scores.shape
    nll = torch.empty(batch_size, dtype=torch.float64)
    # the recursion is run to its end for a value alone too: only then is it known whether the numbers' range did
    gradient = scores.new_empty(scores.shape if needs_gradient else (batch_size, 1, max_keys))
    pending = torch.ones(batch_size, dtype=torch.bool)
    inputs = [t.detach().numpy() for t in (scores, query_lengths, key_lengths)]
    results = [t.numpy() for t in (pending, nll, gradient)]
    for dtype in (np.float32, np.float64) if scores.dtype == torch.float32 else (np.float64,):
        if pending.any():
            arguments = (*inputs, dtype(blank_logprob), band, np.empty(0, dtype), *results)
            kernels.run_over_batch(forward_sum, batch_size, *arguments)
    if pending.any():
        rows = pending.nonzero().squeeze(1)
        nll_rows, gradient_rows = _by_frame(
            scores[rows], query_lengths[rows], key_lengths[rows], blank_logprob, band, needs_gradient
        )
        nll[rows] = nll_rows.double()
        if needs_gradient:
            gradient[rows] = gradient_rows
    return nll.to(scores.dtype), gradient if needs_gradient else scores.new_empty(0)


def _by_frame(
    scores: Tensor, query_lengths: Tensor, key_lengths: Tensor, blank_logprob: float, band: int, needs_gradient: bool
) -> tuple[Tensor, Tensor]:
    """The recursion for the whole batch at once, on log probabilities in float64.

    Frames beyond a length have nothing but the blank, with probability 1. They change nothing: what had ended on the
    last key moves to the blank behind it. One such frame is added at the end, so that all paths end there.
    """
    batch_size, max_queries, max_keys = scores.shape
    allowed = _allowed_cells(query_lengths, key_lengths, max_queries, max_keys, band)
    padded = torch.where(allowed, scores.double(), -torch.inf)
    padded = torch.nn.functional.pad(padded, (0, 0, 0, 1), value=-torch.inf)
    padded = torch.nn.functional.pad(padded, (1, 0), value=blank_logprob)
    # (time, batch, ...), so that a frame is contiguous
    log_probs = padded.log_softmax(2).transpose(0, 1)
    blank, emission = log_probs[:, :, :1].contiguous(), log_probs[:, :, 1:].contiguous()

    log_forward = torch.empty_like(emission)
    keys = scores.new_full((batch_size, max_keys + 1), -torch.inf, dtype=torch.float64)  # from the key before key 0 on
    blanks = keys.clone()
    blanks[:, 0] = 0.0
    for t in range(max_queries + 1):
        entering = torch.logaddexp(blanks, keys)
        blanks = entering + blank[t]
        keys[:, 1:] = torch.logaddexp(keys[:, 1:], entering[:, :-1]) + emission[t]
        log_forward[t] = keys[:, 1:]
    log_likelihood = blanks.gather(1, key_lengths.unsqueeze(1))
    nll = -log_likelihood.squeeze(1).to(scores.dtype)
    if not needs_gradient:
        return nll, scores.new_empty(0)

    keys = scores.new_full((batch_size, max_keys + 1), -torch.inf, dtype=torch.float64)  # to the key after the last
    blanks = keys.clone().scatter_(1, key_lengths.unsqueeze(1), 0.0)
    for t in range(max_queries, -1, -1):
        log_forward[t] += keys[:, :-1]
        keys[:, :-1] += emission[t]
        blanks = torch.logaddexp(blanks + blank[t], keys)
        keys[:, :-1] = torch.logaddexp(keys[:, :-1], blanks[:, 1:])
    occupancy = torch.exp(log_forward - log_likelihood)
    gradient = (emission.exp() - occupancy)[:-1].transpose(0, 1)
    feasible = (log_likelihood != -torch.inf).unsqueeze(2)
    return nll, torch.where(allowed & feasible, gradient, 0.0).to(scores.dtype).contiguous()


def _allowed_cells(query_lengths: Tensor, key_lengths: Tensor, max_queries: int, max_keys: int, band: int) -> Tensor:
    """bool ``(batch, query, key)``: the valid cells within the band about the diagonal."""
    cells = sequence_mask(query_lengths, max_queries).unsqueeze(2) & sequence_mask(key_lengths, max_keys).unsqueeze(1)
    if band >= max_keys:
        return cells
    queries = torch.arange(max_queries, device=cells.device).view(-1, 1)
    keys = torch.arange(max_keys, device=cells.device)
    lengths_q, lengths_k = query_lengths.view(-1, 1, 1), key_lengths.view(-1, 1, 1)
    return cells & ((keys * lengths_q - queries * lengths_k).abs() <= band * lengths_q)


@_forward_sum.register_fake
def _(
    scores: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    blank_logprob: float,
    band: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor]:
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    return scores.new_empty(scores.shape[0]), gradient if needs_gradient else scores.new_empty(0)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)  # else the gradient's own gradient would be made, as zeros of its size
    gradient = output[1]
    # In eager mode the stored gradient is scaled in place and given away, which halves the peak memory; a second
    # backward through a retained graph computes it anew. A traced graph keeps it as every other saved tensor.
    is_traced = type(gradient) is not Tensor or torch.compiler.is_compiling()
    ctx.save_for_backward(*inputs[:3], *[gradient] * is_traced)
    ctx.options = inputs[3:5]
    ctx.gradient = None if is_traced else gradient.detach()


def _backward(ctx: Any, grad_nll: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad_nll is None:
        return (None,) * 6
    inputs, traced_gradient = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
    if traced_gradient:
        return grad_nll.view(-1, 1, 1) * traced_gradient[0], None, None, None, None, None
    gradient, ctx.gradient = ctx.gradient, None
    if gradient is None:
        _, gradient = torch.ops.sonorant.forward_sum(*inputs, *ctx.options, True)
    with torch.no_grad():
        _scale(gradient, inputs[1], inputs[2], grad_nll)
    return gradient, None, None, None, None, None


def _scale(gradient: Tensor, query_lengths: Tensor, key_lengths: Tensor, factors: Tensor) -> None:
    """In place, one factor an utterance."""
    if gradient.device.type == "cpu" and kernels.available():
        from sonorant.functional.kernels.forward_sum import scale_valid

        arrays = [t.numpy() for t in (gradient, query_lengths, key_lengths, factors.detach().contiguous())]
        kernels.run_over_batch(scale_valid, gradient.shape[0], *arrays)
    else:
        gradient.mul_(factors.view(-1, 1, 1))


_forward_sum.register_autograd(_backward, setup_context=_setup_context)
