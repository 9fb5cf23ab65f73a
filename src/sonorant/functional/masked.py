"""Sums over valid elements whose gradient is one pass over one saved tensor.

Left to autograd, ``where`` costs a second pass backwards that changes nothing (the gradient of a masked square is 0
where the square is), and the sum's gradient is spread over all elements. Only a backward pass that is itself to be
differentiated takes the long way. Masks broadcast; NaN outside of them is harmless.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["sum_of_absolutes", "sum_of_bce_with_logits", "sum_of_squares"]


def sum_of_squares(x: Tensor, y: Tensor | None, valid: Tensor) -> Tensor:
    """Sum of ``(x - y) ** 2`` over valid elements; without ``y``, of ``x ** 2``."""
    return _apply(_SumOfSquares, x, y, valid)


def sum_of_absolutes(x: Tensor, y: Tensor, valid: Tensor) -> Tensor:
    """Sum of ``|x - y|`` over valid elements."""
    return _apply(_SumOfAbsolutes, x, y, valid)


def sum_of_bce_with_logits(logits: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
    """Sum of the binary cross entropies of valid elements."""
    return _apply(_SumOfBceWithLogits, logits, labels, valid)


def _apply(function: type[torch.autograd.Function], *arguments: Tensor | None) -> Tensor:
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


def _masked_difference(x: Tensor, y: Tensor | None, valid: Tensor) -> Tensor:
    if y is None:
        return torch.where(valid, x, 0.0)
    return (x - y).masked_fill_(~valid, 0.0)  # in place: no second temporary


class _SumOfSquares(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor | None, valid: Tensor) -> Tensor:
        difference = _masked_difference(x, y, valid)
        ctx.save_for_backward(x, y, valid, difference)
        return difference.square().sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        x, y, valid, difference = ctx.saved_tensors
        if torch.is_grad_enabled():
            difference = _masked_difference(x, y, valid)
        gradient = difference * (2 * grad)
        return gradient, -gradient if ctx.needs_input_grad[1] else None, None


class _SumOfAbsolutes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, valid: Tensor) -> Tensor:
        difference = _masked_difference(x, y, valid)
        ctx.save_for_backward(x, y, valid, difference)
        return difference.abs().sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        x, y, valid, difference = ctx.saved_tensors
        if torch.is_grad_enabled():
            difference = _masked_difference(x, y, valid)
        gradient = difference.sign().mul_(grad)
        return gradient, -gradient if ctx.needs_input_grad[1] else None, None


class _SumOfBceWithLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
        ctx.save_for_backward(logits, labels, valid)
        values = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        if valid.shape[-1] == 1:  # whole frames: their sums are masked
            values = values.sum(-1, keepdim=True)
        return torch.where(valid, values, 0.0).sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        logits, labels, valid = ctx.saved_tensors
        if torch.is_grad_enabled():
            logits, labels = torch.where(valid, logits, 0.0), torch.where(valid, labels, 0.0)
            return torch.where(valid, (logits.sigmoid() - labels) * grad, 0.0), logits * -grad, None
        d_logits = d_labels = None
        if ctx.needs_input_grad[0]:
            d_logits = logits.sigmoid().sub_(labels).mul_(grad).masked_fill_(~valid, 0.0)
        if ctx.needs_input_grad[1]:
            d_labels = (logits * -grad).masked_fill_(~valid, 0.0)
        return d_logits, d_labels, None
