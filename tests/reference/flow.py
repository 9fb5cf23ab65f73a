"""The flow likelihood, one frame at a time."""

import math
from collections.abc import Sequence

from torch import Tensor


def flow_nll_by_frames(
    z: Tensor,
    log_scales: Sequence[Tensor],
    log_dets: Sequence[Tensor],
    lengths: Tensor,
    sigma: float = 1.0,
    include_constant: bool = False,
) -> tuple[Tensor, Tensor]:
    prior = log_volume = z.new_zeros(())
    num_elements = 0
    for row, length in enumerate(lengths.tolist()):
        for frame in range(length):
            prior = prior + (z[row, frame] ** 2 / (2 * sigma**2)).sum()
            log_volume = log_volume + sum(log_scale[row, frame].sum() for log_scale in log_scales) + sum(log_dets)
            num_elements += z.shape[2]
    constant = 0.5 * math.log(2 * math.pi * sigma**2) if include_constant else 0.0
    return (prior - log_volume) / num_elements + constant, prior / num_elements + constant
