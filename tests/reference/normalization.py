"""Normalisation written with the valid frames cut out."""

import torch
from torch import Tensor


def batch_norm_by_frames(
    x: Tensor,
    lengths: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor,
    bias: Tensor,
    training: bool,
) -> Tensor:
    frames = torch.cat([row[:, : int(n)] for row, n in zip(x, lengths, strict=True)], 1)
    out = torch.nn.functional.batch_norm(
        frames.unsqueeze(0), running_mean, running_var, weight, bias, training=training
    ).squeeze(0)
    result = torch.zeros_like(x)
    for row, part in enumerate(out.split(lengths.tolist(), 1)):
        result[row, :, : part.shape[1]] = part
    return result


def cmvn_by_utterance(
    features: Tensor,
    lengths: Tensor,
    normalize_variance: bool,
    eps: float,
) -> Tensor:
    result = torch.zeros_like(features)
    for row, n in enumerate(lengths.tolist()):
        valid = features[row, :n]
        mean = valid.mean(0) if n else valid.new_zeros(valid.shape[1])
        var = valid.var(0, correction=0) if n else torch.zeros_like(mean)
        result[row, :n] = (valid - mean) / ((var + eps).sqrt() if normalize_variance else 1.0)
    return result


def floor_by_utterance(features: Tensor, lengths: Tensor, dynamic_range: float) -> Tensor:
    result = torch.zeros_like(features)
    for row, n in enumerate(lengths.tolist()):
        if n:
            valid = features[row, :n]
            floor = valid.max() - dynamic_range
            result[row, :n] = torch.maximum(valid, floor) - floor
    return result
