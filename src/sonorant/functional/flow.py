"""The likelihood of normalizing flows over padded batches."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.functional.masked import sum_of_squares
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["FlowNll", "flow_nll"]


class FlowNll(NamedTuple):
    """Scalars: the flow's negative log likelihood an element, and the prior's part of it."""

    nll: Tensor
    prior_nll: Tensor


def flow_nll(
    z: Float[Tensor, "batch time dim"],
    log_scales: Sequence[Tensor],
    log_dets: Sequence[Tensor],
    lengths: Int[Tensor, " batch"],
    *,
    sigma: float = 1.0,
    include_constant: bool = False,
) -> FlowNll:
    r"""Negative log likelihood of a flow with affine couplings and invertible linear maps, per element.

    .. math:: \frac{1}{nD} \left( \frac{\sum z^2}{2 \sigma^2} - \sum \log s - n \sum_k \log |\det W_k| \right)

    It departs from RAD-TTS in that ``n`` is the number of frames that are really summed over (there, floor(sum of
    the lengths / group size), which can be more), and that the caller's lists are left alone (there, a second call
    sees corrupted determinants).

    Args:
        z: ``(batch, time, dim)``, the latent variables of grouped frames; dim is mel bins x group size.
        log_scales: of each coupling, ``(batch, time, channels)``.
        log_dets: of each linear map, the scalar ``log |det W|`` of one frame; ``[]`` means none.
        lengths: ``(batch,)``, GROUPED frames: floor(length / group size) of each utterance.
        sigma: the standard deviation of the prior.
        include_constant: add ``log(sqrt(2 pi) sigma)`` to both, so that they are true likelihoods.

    Returns:
        ``FlowNll(nll, prior_nll)``, scalars in float32 for half precision, else in the dtype of ``z``.

    Raises:
        ValueError: no log_scales, lists of different lengths, mismatched shapes, lengths beyond ``z``, sigma <= 0.

    References:
        Shih et al. 2021, "RAD-TTS: parallel flow-based TTS with robust alignment learning and diverse synthesis";
        Kingma and Dhariwal 2018, "Glow", arXiv 1807.03039.

    Example:
        >>> import torch
        >>> from sonorant.functional import flow_nll
        >>> flow_nll(torch.ones(1, 3, 4), [torch.full((1, 3, 2), 0.5)], [], torch.tensor([2]))
        FlowNll(nll=tensor(0.2500), prior_nll=tensor(0.5000))
    """
    _check(z, log_scales, log_dets, lengths, sigma)
    mask = sequence_mask(lengths, z.shape[1])
    dtype = compute_dtype(z)
    num_frames = lengths.sum()
    num_elements = num_frames.clamp(min=1) * z.shape[2]

    # the channels are summed before the mask: a gradient of 0 spreads over them, whatever they are
    frames = sum(log_scale.sum(2, dtype=dtype) for log_scale in log_scales)
    volume = torch.where(mask, frames, 0.0).sum()
    if log_dets:
        volume = volume + num_frames * torch.stack([log_det.to(dtype) for log_det in log_dets]).sum()
    # last, so that the backward pass begins with it and frees what it saved
    prior = sum_of_squares(z.to(dtype), None, mask.unsqueeze(2)) / (2 * sigma**2)
    constant = math.log(math.sqrt(2 * math.pi) * sigma) if include_constant else 0.0
    return FlowNll((prior - volume) / num_elements + constant, prior / num_elements + constant)


def _check(z: Tensor, log_scales: Sequence[Tensor], log_dets: Sequence[Tensor], lengths: Tensor, sigma: float) -> None:
    if z.dim() != 3:
        raise ValueError(f"z must have shape (batch, time, dim); got {tuple(z.shape)}")
    if not log_scales:
        raise ValueError("log_scales is empty")
    if log_dets and len(log_dets) != len(log_scales):
        raise ValueError(f"log_scales and log_dets differ in length: {len(log_scales)} and {len(log_dets)}")
    for index, log_scale in enumerate(log_scales):
        if log_scale.dim() != 3 or log_scale.shape[:2] != z.shape[:2]:
            expected = f"({z.shape[0]}, {z.shape[1]}, channels)"
            raise ValueError(f"log_scales[{index}] must have shape {expected}; got {tuple(log_scale.shape)}")
    for index, log_det in enumerate(log_dets):
        if log_det.dim() != 0:
            raise ValueError(f"log_dets[{index}] must be a scalar; got shape {tuple(log_det.shape)}")
    check_lengths(lengths, "lengths", batch_size=z.shape[0], max_length=z.shape[1])
    if not sigma > 0:
        raise ValueError(f"sigma must be positive; got {sigma}")
