"""Normalisation over the valid frames of padded batches."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributed import ProcessGroup
from torch.nn import functional as F

from sonorant.functional.masked_normalization import normalize_valid
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, has_no_padding, sequence_mask, values_are_checkable

__all__ = ["masked_batch_norm", "subtract_floor", "utterance_cmvn"]


def masked_batch_norm(
    x: Float[Tensor, "batch channels time"],
    lengths: Int[Tensor, " batch"],
    running_mean: Float[Tensor, " channels"] | None,
    running_var: Float[Tensor, " channels"] | None,
    weight: Float[Tensor, " channels"] | None = None,
    bias: Float[Tensor, " channels"] | None = None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    process_group: ProcessGroup | None = None,
) -> Float[Tensor, "batch channels time"]:
    r"""Batch normalisation whose statistics are taken over valid frames only.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \cdot w + b

    Mean and (biased) variance run over the valid frames of the whole batch, so that padding changes nothing; with
    equal lengths this is :func:`torch.nn.functional.batch_norm`. Frames beyond a length come out as 0.

    Args:
        x: ``(batch, channels, time)``, channel-first as in a convolution stack.
        lengths: ``(batch,)``, frames; at least 0, at most ``time``.
        running_mean: ``(channels,)``, updated in place when training, used when not; None: not kept.
        running_var: ``(channels,)``, likewise; takes the unbiased variance, as torch's does.
        weight: ``(channels,)`` or None.
        bias: ``(channels,)`` or None.
        training: take the statistics from the batch.
        momentum: the weight of the new statistics in the running ones.
        eps: added to the variance.
        process_group: in training, the processes whose batches make up one; all of them have to make the call, if
            with a batch of no utterance. None: this process alone.

    Returns:
        ``(batch, channels, time)`` in the dtype of ``x``; half precision is computed in float32.

    Raises:
        ValueError: lengths that do not fit ``x``; fewer than two valid frames when training; no running
            statistics when not training.

    References:
        Ioffe and Szegedy 2015, arXiv 1502.03167.

    Example:
        >>> import torch
        >>> from sonorant.functional import masked_batch_norm
        >>> x = torch.tensor([[[1.0, 3.0, 99.0]]])
        >>> masked_batch_norm(x, torch.tensor([2]), None, None, training=True, eps=0.0)
        tensor([[[-1.,  1.,  0.]]])
    """
    check_lengths(lengths, "lengths", batch_size=x.shape[0], max_length=x.shape[2], min_length=0)
    dtype = compute_dtype(x)
    weight, bias = (None if t is None else t.to(dtype) for t in (weight, bias))
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("running_mean and running_var are needed when training=False")
        statistics = running_mean.to(dtype), running_var.to(dtype)
        return _normalize_by(x.to(dtype), lengths, *statistics, weight, bias, eps).to(x.dtype)

    num_frames = _count_frames(lengths, process_group)
    if process_group is None and has_no_padding(lengths, x.shape[2]):
        # with a momentum of 1 torch's running statistics are those of the batch
        mean, unbiased_var = torch.zeros(2, x.shape[1], dtype=dtype, device=x.device)
        y = F.batch_norm(x.to(dtype), mean, unbiased_var, weight, bias, training=True, momentum=1.0, eps=eps)
    else:
        mask = sequence_mask(lengths, x.shape[2]).unsqueeze(1)
        columns = _column(weight), _column(bias)
        y, mean, var = normalize_valid(x.to(dtype), mask, num_frames, (0, 2), *columns, eps, process_group)
        unbiased_var = var.flatten() * num_frames / (num_frames - 1)
    _update(running_mean, mean.flatten(), momentum)
    _update(running_var, unbiased_var, momentum)
    return y.to(x.dtype)


def _normalize_by(
    x: Tensor, lengths: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Batch normalisation by given statistics."""
    if has_no_padding(lengths, x.shape[2]):
        # copies, which the gradient still finds after a step of training has changed the running ones
        return F.batch_norm(x, mean.clone(), var.clone(), weight, bias, eps=eps)
    mask = sequence_mask(lengths, x.shape[2]).unsqueeze(1)
    scale = torch.rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight
    y = torch.where(mask, x - mean.unsqueeze(1), 0.0) * scale.unsqueeze(1)
    return y if bias is None else torch.where(mask, y + bias.unsqueeze(1), 0.0)


def _column(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.unsqueeze(1)


def _count_frames(lengths: Tensor, process_group: ProcessGroup | None) -> Tensor:
    num_frames = lengths.sum()
    if process_group is not None:
        torch.distributed.all_reduce(num_frames, group=process_group)
    if values_are_checkable(lengths) and int(num_frames) < 2:
        raise ValueError(f"lengths: {int(num_frames)} valid frames in the batch; training needs at least 2")
    return num_frames


@torch.no_grad()
def _update(running: Tensor | None, value: Tensor, momentum: float) -> None:
    if running is not None:
        running.lerp_(value.to(running.dtype), momentum)


def utterance_cmvn(
    features: Float[Tensor, "batch time features"],
    lengths: Int[Tensor, " batch"],
    *,
    normalize_variance: bool = True,
    eps: float = 1e-5,
) -> Float[Tensor, "batch time features"]:
    r"""Cepstral mean and variance normalisation of each utterance by its own frames.

    .. math:: y_t = \frac{x_t - \mathrm{E}_t[x]}{\sqrt{\mathrm{Var}_t[x] + \epsilon}}

    It removes the recording's level and channel. The variance is the biased one, over valid frames; frames beyond
    a length come out as 0, which is then also the mean of what is valid.

    Args:
        features: ``(batch, time, features)``, for example log mel energies.
        lengths: ``(batch,)``, frames; at least 0, at most ``time``.
        normalize_variance: divide by the standard deviation as well.
        eps: added to the variance; a constant feature comes out as 0.

    Returns:
        ``(batch, time, features)`` in the dtype of ``features``; half precision is computed in float32.

    Raises:
        ValueError: lengths that do not fit ``features``.

    References:
        Viikki and Laurila 1998, "Cepstral domain segmental feature vector normalization for noise robust speech
        recognition"; here the segment is the utterance.

    Example:
        >>> import torch
        >>> from sonorant.functional import utterance_cmvn
        >>> features = torch.tensor([[[1.0], [3.0], [99.0]]])
        >>> utterance_cmvn(features, torch.tensor([2]), eps=0.0)
        tensor([[[-1.],
                 [ 1.],
                 [ 0.]]])
    """
    check_lengths(lengths, "lengths", batch_size=features.shape[0], max_length=features.shape[1], min_length=0)
    mask = sequence_mask(lengths, features.shape[1]).unsqueeze(2)
    x = features.to(compute_dtype(features))
    num_frames = lengths.clamp(min=1).view(-1, 1, 1)
    if normalize_variance:
        return normalize_valid(x, mask, num_frames, (1,), None, None, eps)[0].to(features.dtype)
    mean = torch.where(mask, x, 0.0).sum(1, keepdim=True) / num_frames
    return torch.where(mask, x - mean, 0.0).to(features.dtype)


def subtract_floor(
    features: Float[Tensor, "batch time features"], lengths: Int[Tensor, " batch"], dynamic_range: float
) -> Float[Tensor, "batch time features"]:
    r"""Log energies above a floor that lies a dynamic range below the utterance's loudest feature.

    .. math:: y_{tf} = \max(x_{tf} - \max_{t'f'} x_{t'f'} + r, 0)

    It removes the recording's level, and digital silence looks like the silence of any other recording. Unlike mean
    and variance, the loudest feature hardly depends on what is said. Frames beyond a length come out as 0, which is
    then the floor.

    Args:
        features: ``(batch, time, features)``, log energies.
        lengths: ``(batch,)``, frames; at least 0, at most ``time``.
        dynamic_range: r, in the unit of the features (nats for Kaldi's filterbanks: 10 are 43 dB); positive.

    Returns:
        ``(batch, time, features)`` between 0 and ``dynamic_range``, in the dtype of ``features``.

    Raises:
        ValueError: lengths that do not fit ``features``, or a range that is not positive.

    References:
        The same floor, 8 decades, is in the input of Radford et al. 2022, "Whisper", arXiv 2212.04356.

    Example:
        >>> import torch
        >>> from sonorant.functional import subtract_floor
        >>> subtract_floor(torch.tensor([[[-1.0], [-23.0], [5.0]]]), torch.tensor([2]), 10.0).flatten()
        tensor([10.,  0.,  0.])
    """
    if not dynamic_range > 0:
        raise ValueError(f"dynamic_range must be positive; got {dynamic_range}")
    check_lengths(lengths, "lengths", batch_size=features.shape[0], max_length=features.shape[1], min_length=0)
    mask = sequence_mask(lengths, features.shape[1]).unsqueeze(2)
    lowest = torch.finfo(features.dtype).min
    loudest = torch.where(mask, features, lowest).amax((1, 2), keepdim=True) if features.shape[1] else 0.0
    above = (features - torch.as_tensor(loudest - dynamic_range)).clamp(min=0)
    return torch.where(mask, above, 0.0)
