"""Regression and binary classification of frames, over valid elements only."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional.masked import sum_of_absolutes, sum_of_bce_with_logits, sum_of_squares
from sonorant.functional.reduction import Reduction, check_reduction, compute_dtype
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["masked_bce_with_logits_loss", "masked_l1_loss", "masked_mse_loss"]

Mask = Bool[Tensor, "batch time"] | Bool[Tensor, "batch time features"]


def masked_l1_loss(
    prediction: Float[Tensor, "batch time features"],
    target: Float[Tensor, "batch time features"],
    *,
    lengths: Int[Tensor, " batch"] | None = None,
    mask: Mask | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Absolute difference over valid elements.

    .. math:: \frac{1}{|M|} \sum_{i \in M} |x_i - y_i|

    Whatever stands outside the mask, NaN included, changes nothing. Where nothing is valid (the pitch of a wholly
    unvoiced batch) the loss is 0.

    Args:
        prediction: ``(batch, time, features)``.
        target: ``(batch, time, features)``.
        lengths: ``(batch,)``, frames; give either these or ``mask``.
        mask: bool ``(batch, time)`` or ``(batch, time, features)``, True = valid.
        reduction: ``"none"`` gives one value an element (0 where not valid), ``"sum"`` their sum, ``"mean"`` the sum
            / valid elements (frames x features), ``"batchmean"`` the sum / batch size.

    Returns:
        ``(batch, time, features)`` or a scalar, in float32 for half precision.

    Raises:
        ValueError: both or neither of lengths and mask, lengths beyond the tensors, mismatched shapes.

    References:
        Shih et al. 2021, "RAD-TTS: parallel flow-based TTS with robust alignment learning and diverse synthesis".

    Example:
        >>> import torch
        >>> from sonorant.functional import masked_l1_loss
        >>> prediction = torch.tensor([[1.0, 1.0, 1.0, 9.0], [1.0, 9.0, 9.0, 9.0]]).unsqueeze(2)
        >>> masked_l1_loss(prediction, torch.zeros(2, 4, 1), lengths=torch.tensor([3, 1]))
        tensor(1.)
    """
    valid = _valid(prediction, target, lengths, mask, reduction)
    prediction, target = _in_common_dtype(prediction, target)
    if reduction == "none":
        return torch.where(valid, prediction - target, 0.0).abs()
    return _divide(sum_of_absolutes(prediction, target, valid), prediction, valid, reduction)


def masked_mse_loss(
    prediction: Float[Tensor, "batch time features"],
    target: Float[Tensor, "batch time features"],
    *,
    lengths: Int[Tensor, " batch"] | None = None,
    mask: Mask | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Squared difference over valid elements.

    .. math:: \frac{1}{|M|} \sum_{i \in M} (x_i - y_i)^2

    See :func:`masked_l1_loss` for what masks do; the same holds here.

    Args:
        prediction: ``(batch, time, features)``.
        target: ``(batch, time, features)``.
        lengths: ``(batch,)``, frames; give either these or ``mask``.
        mask: bool ``(batch, time)`` or ``(batch, time, features)``, True = valid.
        reduction: as in :func:`masked_l1_loss`.

    Returns:
        ``(batch, time, features)`` or a scalar, in float32 for half precision.

    Raises:
        ValueError: both or neither of lengths and mask, lengths beyond the tensors, mismatched shapes.

    References:
        Shih et al. 2021, "RAD-TTS: parallel flow-based TTS with robust alignment learning and diverse synthesis".

    Example:
        >>> import torch
        >>> from sonorant.functional import masked_mse_loss
        >>> prediction = torch.tensor([[[1.0], [3.0], [torch.nan]]])
        >>> masked_mse_loss(prediction, torch.zeros(1, 3, 1), mask=torch.tensor([[True, True, False]]))
        tensor(5.)
    """
    valid = _valid(prediction, target, lengths, mask, reduction)
    prediction, target = _in_common_dtype(prediction, target)
    if reduction == "none":
        return torch.where(valid, prediction - target, 0.0).square()
    return _divide(sum_of_squares(prediction, target, valid), prediction, valid, reduction)


def masked_bce_with_logits_loss(
    prediction: Float[Tensor, "batch time features"],
    target: Float[Tensor, "batch time features"],
    *,
    lengths: Int[Tensor, " batch"] | None = None,
    mask: Mask | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Binary cross entropy of logits over valid elements, such as those of the voiced flag.

    .. math:: -\frac{1}{|M|} \sum_{i \in M} y_i \ln \sigma(x_i) + (1 - y_i) \ln (1 - \sigma(x_i))

    See :func:`masked_l1_loss` for what masks do; the same holds here. RAD-MMM's configuration trains the voiced flag
    with a squared error and then thresholds its sigmoid: a logit wants this loss.

    Args:
        prediction: ``(batch, time, features)``, logits.
        target: ``(batch, time, features)``, probabilities in [0, 1].
        lengths: ``(batch,)``, frames; give either these or ``mask``.
        mask: bool ``(batch, time)`` or ``(batch, time, features)``, True = valid.
        reduction: as in :func:`masked_l1_loss`.

    Returns:
        ``(batch, time, features)`` or a scalar, in float32 for half precision.

    Raises:
        ValueError: both or neither of lengths and mask, lengths beyond the tensors, mismatched shapes.

    References:
        Shih et al. 2021, "RAD-TTS: parallel flow-based TTS with robust alignment learning and diverse synthesis".

    Example:
        >>> import torch
        >>> from sonorant.functional import masked_bce_with_logits_loss
        >>> masked_bce_with_logits_loss(torch.zeros(1, 3, 1), torch.ones(1, 3, 1), lengths=torch.tensor([2]))
        tensor(0.6931)
    """
    valid = _valid(prediction, target, lengths, mask, reduction)
    logits, labels = _in_common_dtype(prediction, target)
    if reduction == "none":
        logits, labels = torch.where(valid, logits, 0.0), torch.where(valid, labels, 0.0)
        values = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        return torch.where(valid, values, 0.0)
    return _divide(sum_of_bce_with_logits(logits, labels, valid), prediction, valid, reduction)


def _valid(prediction: Tensor, target: Tensor, lengths: Tensor | None, mask: Tensor | None, reduction: str) -> Tensor:
    """The checked mask, ``(batch, time, 1)`` or ``(batch, time, features)``."""
    check_reduction(reduction)
    if prediction.dim() != 3 or prediction.shape != target.shape:
        shapes = f"{tuple(prediction.shape)} and {tuple(target.shape)}"
        raise ValueError(f"prediction and target must have one shape (batch, time, features); got {shapes}")
    if (lengths is None) == (mask is None):
        raise ValueError("give exactly one of lengths and mask")
    if lengths is not None:
        check_lengths(lengths, "lengths", batch_size=prediction.shape[0], max_length=prediction.shape[1])
        mask = sequence_mask(lengths, prediction.shape[1])
    assert mask is not None
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool, True = valid; got {mask.dtype}")
    if mask.shape not in (prediction.shape, prediction.shape[:2]):
        raise ValueError(f"mask must be (batch, time) or (batch, time, features); got {tuple(mask.shape)}")
    return mask if mask.dim() == 3 else mask.unsqueeze(2)


def _in_common_dtype(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.promote_types(compute_dtype(prediction), compute_dtype(target))
    return prediction.to(dtype), target.to(dtype)


def _divide(total: Tensor, prediction: Tensor, valid: Tensor, reduction: Reduction) -> Tensor:
    if reduction == "mean":
        repeats = 1 if valid.shape[2] == prediction.shape[2] else prediction.shape[2]
        return total / (valid.count_nonzero() * repeats).clamp(min=1)
    return total / max(len(prediction), 1) if reduction == "batchmean" else total
