"""Connectionist temporal classification."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.functional import kernels
from sonorant.functional.reduction import Reduction, check_reduction, compute_dtype, reduce_utterances
from sonorant.lengths import check_lengths, sequence_mask, values_are_checkable

__all__ = ["ctc_loss", "ctc_required_frames"]


def ctc_loss(
    log_probs: Float[Tensor, "batch time classes"],
    targets: Int[Tensor, "batch target"],
    input_lengths: Int[Tensor, " batch"],
    target_lengths: Int[Tensor, " batch"],
    *,
    blank: int = 0,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Negative log likelihood of the targets, summed over all monotonic alignments with blanks.

    .. math:: -\log \sum_{\pi \in \mathcal{B}^{-1}(y)} \prod_t p_t(\pi_t)

    It departs from :func:`torch.nn.functional.ctc_loss` where users get hurt: the layout is batch first; an
    utterance with too few frames (fewer than its labels plus its adjacent repeats) has loss and gradient 0 and is
    counted in no mean, so that the rest of the batch gets exactly the update it would have got alone; whatever
    stands in padding, NaN included, changes nothing; the gradient is the true one with respect to ``log_probs``
    (torch's is right only behind a log-softmax); and it compiles with ``fullgraph=True``.

    Args:
        log_probs: ``(batch, time, classes)``, log probabilities.
        targets: ``(batch, target)``, class ids; what lies beyond a target's length is ignored.
        input_lengths: ``(batch,)``, frames; 0 is allowed.
        target_lengths: ``(batch,)``, labels; 0 is allowed: the loss is then that of blanks alone.
        blank: the id of the blank.
        reduction: ``"none"`` gives one value an utterance, ``"sum"`` their sum, ``"mean"`` the mean of value /
            target length, ``"batchmean"`` the mean of the values, both over feasible utterances.

    Returns:
        ``(batch,)`` or a scalar, in float32 for half precision, else in the dtype of ``log_probs``.

    Raises:
        ValueError: lengths beyond the tensors, blank or target ids out of range, the blank among the targets.

    References:
        Graves, Fernández, Gomez and Schmidhuber 2006, "Connectionist temporal classification".

    Example:
        >>> import torch
        >>> from sonorant.functional import ctc_loss
        >>> log_probs = torch.full((1, 2, 3), 1 / 3).log()
        >>> ctc_loss(log_probs, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([0]), reduction="none")
        tensor([2.1972])
    """
    check_reduction(reduction)
    num_classes = log_probs.shape[2]
    if not 0 <= blank < num_classes:
        raise ValueError(f"blank is {blank}, but log_probs holds {num_classes} classes")
    batch_size, max_frames = log_probs.shape[:2]
    if targets.shape[0] != batch_size:
        raise ValueError(f"targets has {targets.shape[0]} rows for a batch of {batch_size}")
    check_lengths(input_lengths, "input_lengths", batch_size=batch_size, max_length=max_frames, min_length=0)
    check_lengths(target_lengths, "target_lengths", batch_size=batch_size, max_length=targets.shape[1], min_length=0)

    log_probs = log_probs.to(compute_dtype(log_probs))
    nll, _, _ = torch.ops.sonorant.ctc(
        log_probs,
        targets.long(),
        input_lengths.long(),
        target_lengths.long(),
        blank,
        torch.is_grad_enabled() and log_probs.requires_grad,
    )
    feasible = nll != torch.inf
    nll = torch.where(feasible, nll, 0.0)
    return reduce_utterances(nll, reduction, divisors=target_lengths.clamp(min=1), counted=feasible)


def ctc_required_frames(
    targets: Int[Tensor, "batch target"], target_lengths: Int[Tensor, " batch"]
) -> Int[Tensor, " batch"]:
    r"""The fewest frames in which each target can be emitted: its labels plus its adjacent repeats.

    .. math:: L + \left|\{\, i > 1 : y_i = y_{i-1} \,\}\right|

    Args:
        targets: ``(batch, target)``, class ids.
        target_lengths: ``(batch,)``, labels.

    Returns:
        int64 ``(batch,)``.

    Raises:
        ValueError: lengths that do not fit ``targets``.

    References:
        Graves, Fernández, Gomez and Schmidhuber 2006, "Connectionist temporal classification": a blank has to stand
        between repeats.

    Example:
        >>> import torch
        >>> from sonorant.functional import ctc_required_frames
        >>> ctc_required_frames(torch.tensor([[1, 1, 2], [1, 2, 2]]), torch.tensor([3, 2]))
        tensor([4, 2])
    """
    check_lengths(
        target_lengths,
        "target_lengths",
        batch_size=targets.shape[0],
        max_length=targets.shape[1],
        min_length=0,
    )
    pair_mask = sequence_mask((target_lengths - 1).clamp(min=0), max(targets.shape[1] - 1, 0))
    repeats = (targets[:, 1:] == targets[:, :-1]) & pair_mask
    return target_lengths.long() + repeats.sum(1)


def _check_values(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> None:
    """What has not been checked behind a compiled graph, and else would make torch read out of bounds."""
    _, max_frames, num_classes = log_probs.shape
    check_lengths(input_lengths, "input_lengths", max_length=max_frames, min_length=0)
    check_lengths(target_lengths, "target_lengths", max_length=targets.shape[1], min_length=0)
    if not values_are_checkable(targets):
        return
    is_valid = (targets >= 0) & (targets < num_classes) & (targets != blank)
    wrong = sequence_mask(target_lengths, targets.shape[1]) & ~is_valid
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        value = int(targets[row, column])
        reason = "the blank" if value == blank else f"outside the {num_classes} classes"
        raise ValueError(f"targets[{row}, {column}] is {value}: {reason}")


@torch.library.custom_op("sonorant::ctc", mutates_args=())
def _ctc(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The NLL an utterance, inf where infeasible, and its gradient (empty when it is not needed).

    Only the blank and the labels have a gradient: it is ``values``, ``(batch, time, width)``, of the classes
    ``columns``, ``(batch, width)``. A class that stands there several times has the same value in all places.
    """
    arguments = (targets, input_lengths, target_lengths, blank, needs_gradient)
    if log_probs.device.type == "cpu" and kernels.available():
        return _by_kernel(log_probs.contiguous(), *arguments)
    _check_values(log_probs, *arguments[:4])
    nll, gradient = _by_torch(log_probs, *arguments)
    return nll, *_select(gradient, targets, target_lengths, blank)


def _empty_gradient(log_probs: Tensor, targets: Tensor, needs_gradient: bool) -> tuple[Tensor, Tensor]:
    batch_size, max_frames, num_classes = log_probs.shape
    width = min(targets.shape[1] + 1, num_classes)
    columns = targets.new_empty(batch_size, width)
    return columns, log_probs.new_empty(batch_size, max_frames if needs_gradient else 0, width)


def _select(gradient: Tensor, targets: Tensor, target_lengths: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """The columns of a whole gradient, ``(batch, time, classes)``, that are not 0."""
    batch_size, max_frames, num_classes = gradient.shape
    if targets.shape[1] + 1 >= num_classes:
        return torch.arange(num_classes, device=gradient.device).repeat(batch_size, 1), gradient
    labels = torch.where(sequence_mask(target_lengths, targets.shape[1]), targets, blank)
    columns = torch.nn.functional.pad(labels, (1, 0), value=blank)
    return columns, gradient.gather(2, columns.unsqueeze(1).expand(-1, max_frames, -1))


def _by_kernel(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    from sonorant.functional.kernels.ctc import ctc

    batch_size = log_probs.shape[0]
    nll = log_probs.new_empty(batch_size)
    columns, values = _empty_gradient(log_probs, targets, needs_gradient)
    pending = np.ones(batch_size, np.bool_)
    inputs = [t.detach().numpy() for t in (log_probs, targets.contiguous(), input_lengths, target_lengths)]
    results = [t.numpy() for t in (nll, columns, values)]
    kernels.run_over_batch(ctc, batch_size, *inputs, blank, pending, *results)
    if pending.any():
        _check_values(log_probs, targets, input_lengths, target_lengths, blank)
        rows = torch.from_numpy(pending).nonzero().squeeze(1)
        # in float64, since float32 log probabilities of long utterances make a gradient that is off by some 1e-3
        lengths = input_lengths[rows], target_lengths[rows]
        nll_rows, gradient = _by_torch(log_probs[rows].double(), targets[rows], *lengths, blank, needs_gradient)
        nll[rows] = nll_rows.to(nll.dtype)
        if needs_gradient:
            columns[rows], values_rows = _select(gradient, targets[rows], lengths[1], blank)
            values[rows] = values_rows.to(values.dtype)
    return nll, columns, values


def _by_torch(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """The recursion on log probabilities, by torch's own operator: the NLL and the whole gradient."""
    if log_probs.numel() == 0:  # torch refuses it
        nll = torch.where(target_lengths > 0, torch.inf, 0.0).to(log_probs)
        return nll, torch.zeros_like(log_probs)
    mask = sequence_mask(input_lengths, log_probs.shape[1])
    log_probs = torch.where(mask.unsqueeze(2), log_probs, 0.0)
    targets = torch.where(sequence_mask(target_lengths, targets.shape[1]), targets, 0)
    inputs = log_probs.transpose(0, 1)
    nll, log_alpha = torch.ops.aten._ctc_loss.Tensor(inputs, targets, input_lengths, target_lengths, blank)
    if not needs_gradient:
        return nll, log_probs[:, :0]
    gradient = torch.ops.aten._ctc_loss_backward.Tensor(
        torch.ones_like(nll),
        inputs,
        targets,
        input_lengths,
        target_lengths,
        nll,
        log_alpha,
        blank,
        zero_infinity=True,
    ).transpose(0, 1)
    # torch's gradient is exp(log_probs) - occupancy, with a log-softmax before it in mind
    valid = mask & (nll != torch.inf).unsqueeze(1)
    valid = valid.unsqueeze(2) & (log_probs != -torch.inf)  # no path visits a class of probability 0
    gradient = torch.where(valid, gradient - log_probs.exp(), 0.0)
    return nll, gradient.contiguous()


@_ctc.register_fake
def _(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    return log_probs.new_empty(log_probs.shape[0]), *_empty_gradient(log_probs, targets, needs_gradient)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)  # or autograd makes zeros for the gradient of the gradient
    ctx.save_for_backward(*output[1:])
    ctx.num_classes = inputs[0].shape[2]


def _backward(ctx: Any, grad_nll: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad_nll is None:
        return (None,) * 6
    columns, values = ctx.saved_tensors
    # the operator costs 100 us on the CPU, and only a graph needs it
    is_traced = torch.is_grad_enabled() or type(grad_nll) is not Tensor or torch.compiler.is_compiling()
    spread = torch.ops.sonorant.ctc_gradient if is_traced else _spread
    return spread(columns, values, grad_nll, ctx.num_classes), None, None, None, None, None


_ctc.register_autograd(_backward, setup_context=_setup_context)


@torch.library.custom_op("sonorant::ctc_gradient", mutates_args=())
def _ctc_gradient(columns: Tensor, values: Tensor, factors: Tensor, num_classes: int) -> Tensor:
    return _spread(columns, values, factors, num_classes)


@_ctc_gradient.register_fake
def _(columns: Tensor, values: Tensor, factors: Tensor, num_classes: int) -> Tensor:
    return values.new_empty(values.shape[0], values.shape[1], num_classes)


def _spread(columns: Tensor, values: Tensor, factors: Tensor, num_classes: int) -> Tensor:
    """``values`` times one factor an utterance in their ``columns`` of ``num_classes``, 0 elsewhere."""
    batch_size, max_frames, _ = values.shape
    if values.device.type == "cpu" and kernels.available():
        from sonorant.functional.kernels.ctc import scatter

        gradient = values.new_empty(batch_size, max_frames, num_classes)
        arrays = [t.detach().numpy() for t in (columns, values, factors.contiguous(), gradient)]
        kernels.run_over_batch(scatter, batch_size, *arrays)
        return gradient
    index = columns.unsqueeze(1).expand(-1, max_frames, -1)
    gradient = values.new_zeros(batch_size, max_frames, num_classes)
    return gradient.scatter_(2, index, values * factors.view(-1, 1, 1))
