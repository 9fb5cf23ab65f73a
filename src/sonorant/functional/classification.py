"""Classification of tokens against smoothed targets."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.functional.classification_operators import rows_at_a_time
from sonorant.functional.reduction import Reduction, check_reduction
from sonorant.lengths import values_are_checkable

__all__ = ["label_smoothing_loss", "linear_label_smoothing_loss"]


def label_smoothing_loss(
    logits: Float[Tensor, "batch length classes"],
    targets: Int[Tensor, "batch length"],
    smoothing: float = 0.1,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    kl: bool = True,
) -> Tensor:
    r"""Divergence of the predicted distribution from a target that leaves some mass to the other classes.

    .. math:: \mathrm{KL}(q \| p) = \sum_v q_v \ln \frac{q_v}{p_v}, \qquad
        q_v = 1 - s \text{ at the target, } \frac{s}{V - 1} \text{ elsewhere}

    It departs from WeNet's and ESPnet's module in that the ``(tokens, V)`` target distribution and the log
    probabilities are never built, that ignored positions may hold anything, NaN included, and that a batch without
    any token gives 0. For :math:`sV/(V-1) \le 1` it equals :func:`torch.nn.functional.cross_entropy` with that
    ``label_smoothing`` (there the smoothed mass falls on the target too), up to the constant that ``kl`` adds.

    Args:
        logits: ``(batch, length, classes)``, at least 2 classes.
        targets: ``(batch, length)``, class ids or ``ignore_index``.
        smoothing: ``s`` in [0, 1], the mass given to the wrong classes.
        ignore_index: the target of positions that do not count.
        reduction: ``"none"`` gives one value a token (0 where ignored), ``"sum"`` their sum, ``"mean"`` the sum /
            counted tokens, ``"batchmean"`` the sum / batch size.
        kl: add the negative entropy of the target, which is constant; False leaves the cross entropy.

    Returns:
        ``(batch, length)`` or a scalar, in float32 for half precision, else in the dtype of ``logits``.

    Raises:
        ValueError: fewer than 2 classes, smoothing outside [0, 1], target ids out of range, mismatched shapes.

    References:
        Szegedy et al. 2016, "Rethinking the Inception architecture for computer vision", arXiv 1512.00567.

    Example:
        >>> import torch
        >>> from sonorant.functional import label_smoothing_loss
        >>> logits = torch.tensor([[[2.0, 1.0, 0.0, -1.0, 0.5]]])
        >>> label_smoothing_loss(logits, torch.tensor([[0]]), 0.1)
        tensor(0.2982)
    """
    _check(logits, "logits", targets, logits.shape[-1], smoothing, ignore_index)
    check_reduction(reduction)
    flat = targets.flatten().long()
    losses: Tensor = torch.ops.sonorant.label_smoothing(logits.flatten(0, 1), flat, smoothing, ignore_index)[0]
    if kl:
        losses = torch.where(flat == ignore_index, losses, losses + _negative_entropy(smoothing, logits.shape[-1]))
    if reduction == "none":
        return losses.view(targets.shape)
    return losses.sum() / _divisor(targets, ignore_index, reduction)


def linear_label_smoothing_loss(
    hidden: Float[Tensor, "batch length hidden"],
    weight: Float[Tensor, "classes hidden"],
    targets: Int[Tensor, "batch length"],
    smoothing: float = 0.1,
    *,
    bias: Float[Tensor, " classes"] | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    kl: bool = True,
    chunk_size: int | None = None,
) -> Tensor:
    r"""A linear output layer and :func:`label_smoothing_loss` in one, without ever holding all logits.

    .. math:: \mathrm{KL}(q \| \mathrm{softmax}(W h + b))

    Value and gradients are those of ``label_smoothing_loss(F.linear(hidden, weight, bias), targets, ...)``. The
    logits are made, used and dropped a chunk of tokens at a time. On a CPU ignored tokens are not multiplied at all.
    The gradients are made in the forward pass, except under ``"none"``, where the backward pass computes the logits
    again. There is no Module of it: the output layer belongs to the model, which decodes with it.

    Args:
        hidden: ``(batch, length, hidden)``, what the output layer reads.
        weight: ``(classes, hidden)``, as in :class:`torch.nn.Linear`.
        targets: ``(batch, length)``, class ids or ``ignore_index``.
        smoothing: as in :func:`label_smoothing_loss`, like ``ignore_index``, ``reduction`` and ``kl``.
        bias: ``(classes,)`` or None.
        ignore_index: the target of positions that do not count.
        reduction: ``"none"``, ``"sum"``, ``"mean"`` or ``"batchmean"``.
        kl: add the negative entropy of the target.
        chunk_size: tokens whose logits are held at a time; None chooses by the number of classes and the device.

    Returns:
        ``(batch, length)`` or a scalar, in float32 for half precision, else in the wider dtype of the two.

    Raises:
        ValueError: as :func:`label_smoothing_loss`; a chunk size below 1.

    References:
        Szegedy et al. 2016, arXiv 1512.00567; the chunks as in Wijmans et al. 2024, "Cut your losses in
        large-vocabulary language models", arXiv 2411.09009.

    Example:
        >>> import torch
        >>> from sonorant.functional import label_smoothing_loss, linear_label_smoothing_loss
        >>> output, hidden, targets = torch.nn.Linear(8, 50), torch.randn(2, 3, 8), torch.randint(50, (2, 3))
        >>> fused = linear_label_smoothing_loss(hidden, output.weight, targets, bias=output.bias)
        >>> torch.allclose(fused, label_smoothing_loss(output(hidden), targets), rtol=1e-4)
        True
    """
    num_classes, width = weight.shape
    if hidden.shape[-1] != width or (bias is not None and bias.shape != (num_classes,)):
        shapes = f"{tuple(hidden.shape)}, {tuple(weight.shape)}, {None if bias is None else tuple(bias.shape)}"
        raise ValueError(f"hidden, weight and bias do not fit together: {shapes}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1; got {chunk_size}")
    _check(hidden, "hidden", targets, num_classes, smoothing, ignore_index)
    check_reduction(reduction)
    flat = targets.flatten().long()
    arguments = (hidden.flatten(0, 1), weight, bias, flat)
    options = (smoothing, ignore_index, chunk_size or rows_at_a_time(num_classes, hidden.device, 1 << 22))
    constant = _negative_entropy(smoothing, num_classes) if kl else 0.0
    if reduction == "none":
        losses: Tensor = torch.ops.sonorant.linear_label_smoothing(*arguments, *options)
        losses = torch.where(flat == ignore_index, losses, losses + constant)
        return losses.view(targets.shape)
    needs_gradient = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in arguments)
    total: Tensor = torch.ops.sonorant.linear_label_smoothing_total(*arguments, None, *options, needs_gradient)[0]
    total = total + constant * (flat != ignore_index).sum().to(total.dtype)
    return total / _divisor(targets, ignore_index, reduction)


def _check(inputs: Tensor, name: str, targets: Tensor, num_classes: int, smoothing: float, ignore_index: int) -> None:
    if not inputs.is_floating_point() or targets.is_floating_point() or targets.dtype == torch.bool:
        raise ValueError(f"{name} must be floats and targets integers; got {inputs.dtype} and {targets.dtype}")
    if inputs.dim() != 3 or inputs.shape[:2] != targets.shape:
        shapes = f"{tuple(inputs.shape)} and {tuple(targets.shape)}"
        raise ValueError(f"{name} must be (batch, length, features) and targets (batch, length); got {shapes}")
    if num_classes < 2:
        raise ValueError(f"label smoothing needs at least 2 classes; got {num_classes}")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing must be in [0, 1]; got {smoothing}")
    if not values_are_checkable(targets):
        return
    wrong = (targets != ignore_index) & ((targets < 0) | (targets >= num_classes))
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        raise ValueError(f"targets[{row}, {column}] is {int(targets[row, column])}: outside the {num_classes} classes")


def _negative_entropy(smoothing: float, num_classes: int) -> float:
    terms = (1 - smoothing, 1 - smoothing), (smoothing, smoothing / (num_classes - 1))
    return sum(mass * math.log(each) for mass, each in terms if mass > 0)


def _divisor(targets: Tensor, ignore_index: int, reduction: Reduction) -> Tensor | int:
    if reduction == "mean":
        return (targets != ignore_index).sum().clamp(min=1)
    return max(targets.shape[0], 1) if reduction == "batchmean" else 1
