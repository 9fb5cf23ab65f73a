"""Normalisation by the statistics of valid elements, with little more memory than its result.

Left to autograd, each step of it keeps a tensor of the size of the input. Only a backward pass that is itself to be
differentiated takes that way, and a compiler, which fuses the steps.
"""

from typing import Any

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

__all__ = ["normalize_valid"]


def normalize_valid(
    x: Tensor,
    mask: Tensor,
    count: Tensor,
    dims: tuple[int, ...],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    process_group: ProcessGroup | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` where the mask is True, 0 elsewhere.

    Args:
        x: floats, not in half precision.
        mask: bool, broadcastable to ``x``; NaN outside of it is harmless.
        count: how many elements each mean is taken over; at least 1.
        dims: the axes that the statistics run over.
        weight: of the shape of the statistics (but for leading axes), or None.
        bias: likewise.
        eps: added to the variance.
        process_group: processes whose elements belong together; ``count`` is then over all of them, and each has to
            make this call.

    Returns:
        The result, and mean and (biased) variance with axes of size 1 for ``dims``, which get no gradient.
    """
    if torch.compiler.is_compiling() or process_group is not None:
        y, mean, var = _differentiably(x, mask, count, dims, weight, bias, eps, process_group)
        return y, mean.detach(), var.detach()
    result: tuple[Tensor, Tensor, Tensor] = _NormalizeValid.apply(  # type: ignore[no-untyped-call]
        x, mask, count, dims, weight, bias, eps
    )
    return result


def _differentiably(
    x: Tensor,
    mask: Tensor,
    count: Tensor,
    dims: tuple[int, ...],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    process_group: ProcessGroup | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    def total(values: Tensor) -> Tensor:
        local = values.sum(dims, keepdim=True)
        if process_group is None:
            return local
        result: Tensor = _SumOverProcesses.apply(local, process_group)  # type: ignore[no-untyped-call]
        return result

    mean = total(torch.where(mask, x, 0.0)) / count
    centred = torch.where(mask, x - mean, 0.0)
    var = total(centred.square()) / count
    y = centred * _scale(torch.rsqrt(var + eps), weight)
    return (y if bias is None else torch.where(mask, y + bias, 0.0)), mean, var


def _scale(inverse_deviation: Tensor, weight: Tensor | None) -> Tensor:
    return inverse_deviation if weight is None else inverse_deviation * weight


class _SumOverProcesses(torch.autograd.Function):
    """An all-reduce; what follows from the sum in any process is in the gradient of each."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, process_group: ProcessGroup) -> Tensor:
        ctx.process_group = process_group
        result = local.clone()
        torch.distributed.all_reduce(result, group=process_group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _SumOverProcesses.apply(grad, ctx.process_group), None  # type: ignore[no-untyped-call]


class _NormalizeValid(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        mask: Tensor,
        count: Tensor,
        dims: tuple[int, ...],
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        padding = ~mask
        y = torch.where(mask, x, 0.0)
        mean = y.sum(dims, keepdim=True) / count
        y.sub_(mean).masked_fill_(padding, 0.0)
        var = y.square().sum(dims, keepdim=True) / count
        inverse_deviation = torch.rsqrt(var + eps)
        y.mul_(_scale(inverse_deviation, weight))
        if bias is not None:
            y.add_(bias).masked_fill_(padding, 0.0)
        ctx.save_for_backward(x, mask, count, weight, bias, mean, inverse_deviation)
        ctx.dims, ctx.eps = dims, eps
        ctx.mark_non_differentiable(mean, var)
        return y, mean, var

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, mask, count, weight, bias, mean, inverse_deviation = ctx.saved_tensors
        if torch.is_grad_enabled():  # this pass is to be differentiated
            y = _differentiably(x, mask, count, ctx.dims, weight, bias, ctx.eps)[0]
            sources = [t for t, needed in zip((x, weight, bias), _needed(ctx), strict=True) if needed]
            gradients = iter(torch.autograd.grad(y, sources, grad_y, create_graph=True))
            d_x, d_weight, d_bias = (next(gradients) if needed else None for needed in _needed(ctx))
            return d_x, None, None, None, d_weight, d_bias, None

        padding = ~mask
        d_x = torch.where(mask, grad_y, 0.0)
        centred = (x - mean).masked_fill_(padding, 0.0)
        d_bias = d_x.sum(ctx.dims, keepdim=True)
        d_weight = (d_x * centred).sum(ctx.dims, keepdim=True) * inverse_deviation
        # what a change of x does by way of the variance and by way of the mean
        d_x.sub_(centred.mul_(d_weight * inverse_deviation / count)).sub_(d_bias / count)
        d_x.mul_(_scale(inverse_deviation, weight)).masked_fill_(padding, 0.0)
        d_weight = None if weight is None else d_weight.sum_to_size(weight.shape)
        d_bias = None if bias is None else d_bias.sum_to_size(bias.shape)
        return d_x, None, None, None, d_weight, d_bias, None


def _needed(ctx: Any) -> tuple[bool, bool, bool]:
    """Whether x, weight and bias need gradients."""
    needed = ctx.needs_input_grad
    return needed[0], needed[4], needed[5]
