"""The operators behind the label smoothing losses: rows of logits a chunk at a time.

Only one number a token, or the gradients of a linear layer, outlive a chunk. Loops over chunks and rows that are left
out cannot be traced, so each pass is one operator.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sonorant.functional.reduction import compute_dtype

__all__ = ["rows_at_a_time"]


# ignored rows between counted ones that are cheaper to compute than to step over
_SMALL_GAP = 4


def rows_at_a_time(num_classes: int, device: torch.device, num_bytes: int) -> int:
    """Rows of float32 logits in a chunk of this size on a CPU, and in a larger one elsewhere."""
    return max(16, num_bytes * (1 if device.type == "cpu" else 64) // (4 * num_classes))


def _skips_ignored(device: torch.device) -> bool:
    """Whether rows are left out; anywhere but on a CPU that would wait for the device to count them."""
    return device.type == "cpu"


def _slices(counted: Tensor, logits: Tensor) -> Iterator[slice]:
    """Chunks of rows that fit in a CPU's cache, without the runs of ignored rows if these are skipped."""
    size = rows_at_a_time(logits.shape[1], logits.device, 1 << 20)
    bounds = [(0, len(counted))]
    if _skips_ignored(counted.device):
        kept = counted.nonzero().squeeze(1)
        runs = torch.tensor_split(kept, (kept.diff() > _SMALL_GAP).nonzero().squeeze(1) + 1)
        bounds = [(int(run[0]), int(run[-1]) + 1) for run in runs if len(run)]
    for start, stop in bounds:
        for first in range(start, stop, size):
            yield slice(first, min(first + size, stop))


def _score(shifted: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Cross entropies and normalisers of rows of logits less their peak, which become their exponentials."""
    others = smoothing / (shifted.shape[1] - 1)
    losses = (1 - smoothing - others) * -shifted.gather(1, targets.unsqueeze(1)).squeeze(1)
    if smoothing > 0:  # without smoothing a wrong class may be impossible, and 0 * inf is not 0
        losses -= others * shifted.sum(1)
    normalizers = shifted.exp_().sum(1)
    return losses + normalizers.log(), normalizers


def _differentiate(
    exponentials: Tensor, normalizers: Tensor, targets: Tensor, token_weights: Tensor, smoothing: float
) -> Tensor:
    """Turn the rows of exponentials, in place, into (softmax - target distribution) * weight."""
    others = smoothing / (exponentials.shape[1] - 1)
    gradient = exponentials.mul_((token_weights / normalizers).unsqueeze(1))
    if smoothing > 0:
        gradient.sub_((token_weights * others).unsqueeze(1))
    return gradient.scatter_add_(1, targets.unsqueeze(1), (token_weights * -(1 - smoothing - others)).unsqueeze(1))


@torch.library.custom_op("sonorant::label_smoothing", mutates_args=())
def _label_smoothing(logits: Tensor, targets: Tensor, smoothing: float, ignore_index: int) -> tuple[Tensor, Tensor]:
    """The cross entropy a token, and the peak and the normaliser of its logits."""
    counted = targets != ignore_index
    targets = torch.where(counted, targets, 0)
    losses = logits.new_zeros(len(targets), dtype=compute_dtype(logits))
    peaks, normalizers = statistics = losses.new_zeros(2, len(targets))
    for rows in _slices(counted, logits):
        peaks[rows] = logits[rows].amax(1)
        losses[rows], normalizers[rows] = _score(logits[rows] - peaks[rows].unsqueeze(1), targets[rows], smoothing)
    return torch.where(counted, losses, 0.0), statistics


@torch.library.custom_op("sonorant::label_smoothing_backward", mutates_args=())
def _label_smoothing_backward(
    token_weights: Tensor, logits: Tensor, targets: Tensor, statistics: Tensor, smoothing: float, ignore_index: int
) -> Tensor:
    """The gradient of the weighted sum of the losses."""
    counted = targets != ignore_index
    targets = torch.where(counted, targets, 0)
    peaks, normalizers = statistics
    gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
    for rows in _slices(counted, logits):
        in_place = gradient[rows] if gradient.dtype == peaks.dtype else None
        shifted = torch.sub(logits[rows], peaks[rows].unsqueeze(1), out=in_place)
        chunk = _differentiate(shifted.exp_(), normalizers[rows], targets[rows], token_weights[rows], smoothing)
        if in_place is None:
            gradient[rows] = chunk
    if _skips_ignored(counted.device):
        return gradient.index_fill_(0, (~counted).nonzero().squeeze(1), 0.0)
    return gradient.masked_fill_(~counted.unsqueeze(1), 0.0)


@_label_smoothing.register_fake
def _(logits: Tensor, targets: Tensor, smoothing: float, ignore_index: int) -> tuple[Tensor, Tensor]:
    losses = logits.new_empty(logits.shape[0], dtype=compute_dtype(logits))
    return losses, losses.new_empty(2, logits.shape[0])


@_label_smoothing_backward.register_fake
def _(
    token_weights: Tensor, logits: Tensor, targets: Tensor, statistics: Tensor, smoothing: float, ignore_index: int
) -> Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _save_logits(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)
    logits, targets, *ctx.options = inputs
    ctx.save_for_backward(logits, targets, output[1])


def _from_logits(ctx: Any, grad_losses: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad_losses is None:
        return None, None, None, None
    gradient = torch.ops.sonorant.label_smoothing_backward(grad_losses, *ctx.saved_tensors, *ctx.options)
    return gradient, None, None, None


_label_smoothing.register_autograd(_from_logits, setup_context=_save_logits)


class _Chunk(NamedTuple):
    rows: Tensor  # indices into the tokens
    valid: Tensor
    targets: Tensor
    inputs: Tensor
    shifted: Tensor  # logits less their peak


def _linear_chunks(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, ignore_index: int, chunk_size: int
) -> Iterator[_Chunk]:
    """The tokens a chunk at a time, the ignored ones skipped or made 0."""
    counted = targets != ignore_index
    kept = torch.arange(len(targets), device=hidden.device)
    if _skips_ignored(hidden.device):
        kept = kept[counted]
    offset = weight.new_zeros(()) if bias is None else bias.to(weight.dtype)
    buffer = weight.new_empty(min(chunk_size, len(kept)), len(weight))
    for rows in torch.split(kept, chunk_size):
        valid = counted[rows]
        inputs = torch.where(valid.unsqueeze(1), hidden[rows].to(weight.dtype), 0.0)
        logits = torch.addmm(offset, inputs, weight.T, out=buffer[: len(rows)])
        logits -= logits.amax(1, keepdim=True)
        yield _Chunk(rows, valid, torch.where(valid, targets[rows], 0), inputs, logits)


@torch.library.custom_op("sonorant::linear_label_smoothing", mutates_args=())
def _linear_label_smoothing(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    ignore_index: int,
    chunk_size: int,
) -> Tensor:
    """The cross entropy a token."""
    matrix = weight.to(_linear_dtype(hidden, weight))
    losses = matrix.new_zeros(len(targets))
    with torch.autocast(hidden.device.type, enabled=False):
        for chunk in _linear_chunks(hidden, matrix, bias, targets, ignore_index, chunk_size):
            scores, _ = _score(chunk.shifted, chunk.targets, smoothing)
            losses[chunk.rows] = torch.where(chunk.valid, scores, 0.0)
    return losses


@torch.library.custom_op("sonorant::linear_label_smoothing_total", mutates_args=())
def _linear_label_smoothing_total(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    token_weights: Tensor | None,
    smoothing: float,
    ignore_index: int,
    chunk_size: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weighted sum of the losses and its gradients (empty when they are not needed)."""
    matrix = weight.to(_linear_dtype(hidden, weight))
    total = matrix.new_zeros(())
    d_hidden, d_matrix, d_bias = _zero_gradients(hidden, matrix, needs_gradient)
    with torch.autocast(hidden.device.type, enabled=False):
        for chunk in _linear_chunks(hidden, matrix, bias, targets, ignore_index, chunk_size):
            weights = chunk.valid.to(matrix.dtype)
            if token_weights is not None:
                weights = torch.where(chunk.valid, token_weights[chunk.rows], 0.0)
            losses, normalizers = _score(chunk.shifted, chunk.targets, smoothing)
            total += torch.where(chunk.valid, losses * weights, 0.0).sum()
            if needs_gradient:
                delta = _differentiate(chunk.shifted, normalizers, chunk.targets, weights, smoothing)
                d_hidden[chunk.rows] = delta @ matrix
                d_matrix.addmm_(delta.T, chunk.inputs)
                d_bias += delta.sum(0)
    return total, d_hidden, d_matrix, d_bias


def _linear_dtype(hidden: Tensor, weight: Tensor) -> torch.dtype:
    return torch.promote_types(compute_dtype(hidden), compute_dtype(weight))


def _zero_gradients(hidden: Tensor, matrix: Tensor, needed: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Zeros for hidden, weight and bias, or nothing; never in half, so that small values survive until scaled."""
    if not needed:
        return matrix.new_empty(0), matrix.new_empty(0), matrix.new_empty(0)
    return matrix.new_zeros(hidden.shape), matrix.new_zeros(matrix.shape), matrix.new_zeros(matrix.shape[0])


@_linear_label_smoothing.register_fake
def _(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    ignore_index: int,
    chunk_size: int,
) -> Tensor:
    return hidden.new_empty(hidden.shape[0], dtype=_linear_dtype(hidden, weight))


@_linear_label_smoothing_total.register_fake
def _(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    token_weights: Tensor | None,
    smoothing: float,
    ignore_index: int,
    chunk_size: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    matrix = weight.new_empty(weight.shape, dtype=_linear_dtype(hidden, weight))
    return matrix.new_empty(()), *_zero_gradients(hidden, matrix, needs_gradient)


def _save_linear(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])
    ctx.options = inputs[4:]


def _from_linear(ctx: Any, grad_losses: Tensor) -> tuple[Tensor | None, ...]:
    layer = ctx.saved_tensors[:3]
    _, *gradients = torch.ops.sonorant.linear_label_smoothing_total(*ctx.saved_tensors, grad_losses, *ctx.options, True)
    mine = (None if t is None else gradient.to(t.dtype) for t, gradient in zip(layer, gradients, strict=True))
    return *mine, None, None, None, None


def _save_total(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)  # zeros for the gradients' gradients
    ctx.dtypes = [None if t is None else t.dtype for t in inputs[:3]]
    ctx.save_for_backward(*output[1:])


def _from_total(ctx: Any, grad_total: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    mine = (
        (grad_total * gradient).to(dtype) if needed and grad_total is not None else None
        for gradient, dtype, needed in zip(ctx.saved_tensors, ctx.dtypes, ctx.needs_input_grad, strict=False)
    )
    return *mine, None, None, None, None, None, None


_linear_label_smoothing.register_autograd(_from_linear, setup_context=_save_linear)
_linear_label_smoothing_total.register_autograd(_from_total, setup_context=_save_total)
