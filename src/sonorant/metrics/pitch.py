"""How far two pitch contours are apart."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["F0Errors", "f0_errors"]

_SEMITONES = 12 / math.log(2)  # an octave has twelve


class F0Errors(NamedTuple):
    """``rmse`` in semitones, over frames that are voiced in both; ``voicing_error``, the share of all frames that are
    voiced in one only; and how many frames there are of either kind. NaN where there are none.
    """

    rmse: float
    voicing_error: float
    num_voiced: int
    num_frames: int


def f0_errors(predicted: Sequence[Float[Tensor, " _"]], reference: Sequence[Float[Tensor, " _"]]) -> F0Errors:
    r"""Errors of pitch and of voicing, summed over all frames of a corpus.

    .. math::
        \sqrt{\frac{1}{|V|} \sum_{t \in V} \Bigl(12 \log_2 \frac{f_t}{f'_t}\Bigr)^2}, \quad V = \{t : f_t, f'_t > 0\},
        \qquad \frac{|\{t : [f_t > 0] \neq [f'_t > 0]\}|}{T}

    Args:
        predicted: for each utterance ``(frames,)`` in Hz, 0 in unvoiced frames.
        reference: likewise, frame by frame; the path of :func:`~sonorant.metrics.mel_cepstral_distance` aligns
            recordings of different lengths.

    Returns:
        ``F0Errors``.

    Raises:
        ValueError: different numbers of utterances or frames, or a frequency that is negative or not finite.

    References:
        Hermes 1998, "Measuring the perceptual similarity of pitch contours" (root mean square difference, in
        semitones, over frames voiced in both).

    Example:
        >>> import torch
        >>> from sonorant.metrics import f0_errors
        >>> found = f0_errors([torch.tensor([100.0, 200.0, 0.0, 0.0])], [torch.tensor([100.0, 100.0, 90.0, 0.0])])
        >>> round(found.rmse, 4), found.voicing_error
        (8.4853, 0.25)
    """
    if len(predicted) != len(reference):
        raise ValueError(f"{len(predicted)} predicted and {len(reference)} reference contours; as many are needed")
    squares, num_voiced, num_wrong, num_frames = 0.0, 0, 0, 0
    for index, (contour, wanted) in enumerate(zip(predicted, reference, strict=True)):
        if contour.dim() != 1 or contour.shape != wanted.shape:
            raise ValueError(f"contours {index} have shapes {tuple(contour.shape)} and {tuple(wanted.shape)}")
        both = torch.stack([contour.double(), wanted.double()])
        if not (torch.isfinite(both) & (both >= 0)).all():
            bad = both[~(torch.isfinite(both) & (both >= 0))][0].item()
            raise ValueError(f"contours {index}: a frequency is {bad}; unvoiced frames have 0")
        voiced = both > 0
        logs = both[:, voiced.all(0)].log()
        squares += float(((logs[0] - logs[1]) * _SEMITONES).square().sum())
        num_voiced += logs.shape[1]
        num_wrong += int((voiced[0] != voiced[1]).sum())
        num_frames += len(contour)
    return F0Errors(
        rmse=math.sqrt(squares / num_voiced) if num_voiced else math.nan,
        voicing_error=num_wrong / num_frames if num_frames else math.nan,
        num_voiced=num_voiced,
        num_frames=num_frames,
    )
