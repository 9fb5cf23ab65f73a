"""How far one rendition of an utterance is from another: mel-cepstral distance along the best alignment."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = [
    "MelCepstralDistance",
    "dynamic_time_warping",
    "mean_pairwise_distance",
    "mel_cepstral_distance",
    "mel_cepstrum",
]

_DECIBELS = 10 * math.sqrt(2) / math.log(10)  # for a difference of 1 in one coefficient


class MelCepstralDistance(NamedTuple):
    """The mean over aligned frames, in dB, and the alignment: int64 ``(steps, 2)``, a frame of each."""

    distance: float
    path: Tensor


def mel_cepstrum(
    log_mel: Float[Tensor, "frames mels"], num_coefficients: int = 13
) -> Float[Tensor, "frames coefficients"]:
    r"""The shape of a log mel spectrum, without its level and its fine structure.

    .. math:: c_{t,m} = \frac{2}{K} \sum_{k=0}^{K-1} x_{t,k} \cos\frac{\pi m (k + 1/2)}{K}, \qquad m = 1, \dots, M

    so that :math:`x_{t,k} = c_{t,0} / 2 + \sum_{m=1}^{K-1} c_{t,m} \cos(\pi m (k + 1/2) / K)`: the scale of the
    mel cepstra of vocoders, whose coefficients are those of a minimum-phase filter. It departs from theirs in that
    the mel bins are filters, and no spectral envelope is estimated.

    Args:
        log_mel: ``(frames, mels)``, natural logs of magnitudes (of powers, the distances double).
        num_coefficients: M, fewer than there are mel bins. The coefficient 0, the level, is never there.

    Returns:
        float64 ``(frames, num_coefficients)``.

    Raises:
        ValueError: not two axes, values that are not finite, or too few mel bins.

    References:
        Davis and Mermelstein 1980, "Comparison of parametric representations for monosyllabic word recognition";
        Fukada, Tokuda, Kobayashi and Imai 1992, "An adaptive algorithm for mel-cepstral analysis of speech".

    Example:
        >>> import torch
        >>> from sonorant.metrics import mel_cepstrum
        >>> mel_cepstrum(torch.tensor([[3.0, 2.0, 1.0], [1.0, 0.0, 1.0]]), 2).round(decimals=4) + 0.0
        tensor([[1.1547, 0.0000],
                [0.0000, 0.6667]], dtype=torch.float64)
    """
    if log_mel.dim() != 2 or not torch.isfinite(log_mel).all():
        raise ValueError(f"log_mel must be finite, (frames, mels); got {_described(log_mel)}")
    n_mels = log_mel.shape[1]
    if not 1 <= num_coefficients < n_mels:
        raise ValueError(f"num_coefficients is {num_coefficients}; {n_mels} mel bins give 1 to {n_mels - 1}")
    orders = torch.arange(1, num_coefficients + 1, dtype=torch.float64, device=log_mel.device)
    places = torch.arange(n_mels, dtype=torch.float64, device=log_mel.device) + 0.5
    cosines = (math.pi / n_mels * places.unsqueeze(1) * orders).cos()
    return log_mel.double() @ cosines * (2 / n_mels)


def dynamic_time_warping(costs: Float[Tensor, "first second"]) -> Int[Tensor, "steps 2"]:
    r"""The alignment of two sequences whose summed cost is the least.

    .. math::
        \min_p \sum_{s=1}^{S} d_{p_s}, \qquad p_1 = (1, 1), \; p_S = (N, M), \;
        p_{s+1} - p_s \in \{(1, 1), (1, 0), (0, 1)\}

    All three steps cost the same, and there is no limit to how often a frame is repeated. Of equally good ways the
    path takes the one that comes along both sequences at once, then the one that repeats a frame of the second.

    Args:
        costs: ``(first, second)``: of aligning a frame of the first sequence with one of the second.

    Returns:
        int64 ``(steps, 2)``: the aligned frames, counted from 0, from the first pair to the last.

    Raises:
        ValueError: not two axes, an empty sequence, or costs that are not finite.

    References:
        Sakoe and Chiba 1978, "Dynamic programming algorithm optimization for spoken word recognition" (their form
        P = 0, without the weight of 2 on the diagonal).

    Example:
        >>> import torch
        >>> from sonorant.metrics import dynamic_time_warping
        >>> first, second = torch.tensor([1.0, 2.0, 5.0]), torch.tensor([1.0, 5.0, 5.0])
        >>> dynamic_time_warping((first.unsqueeze(1) - second).abs()).tolist()
        [[0, 0], [1, 0], [2, 1], [2, 2]]
    """
    if costs.dim() != 2 or costs.numel() == 0 or not torch.isfinite(costs).all():
        raise ValueError(f"costs must be finite, (first, second), at least one of each; got {_described(costs)}")
    totals = _accumulated(costs.detach().cpu().double().numpy())
    row, column = totals.shape[0] - 1, totals.shape[1] - 1
    path = []
    while row and column:
        path.append((row - 1, column - 1))
        before = totals[row - 1, column - 1], totals[row - 1, column], totals[row, column - 1]
        step = int(np.argmin(before))
        row -= step != 2
        column -= step != 1
    return torch.tensor(path[::-1], dtype=torch.int64, device=costs.device)


def mel_cepstral_distance(
    first: Float[Tensor, "frames mels"], second: Float[Tensor, "others mels"], *, num_coefficients: int = 13
) -> MelCepstralDistance:
    r"""How much two recordings of the same words differ in their spectra, in dB, along the best alignment.

    .. math::
        \frac{1}{S} \sum_{s=1}^{S} \frac{10}{\ln 10}
        \sqrt{2 \sum_{m=1}^{M} \bigl(c_{p_s(1), m} - c'_{p_s(2), m}\bigr)^2}

    with the cepstra of :func:`mel_cepstrum` and the path of :func:`dynamic_time_warping` over these distances. With
    all coefficients a frame's term is the root mean square difference of the two log mel spectra in dB, their levels
    removed. It departs from the source in its alignment, which lets sequences of any two lengths compare, and in its
    cepstra. Compare it only between equal features: it depends on the mel bins and on how much silence there is.

    Args:
        first: ``(frames, mels)``, natural logs of magnitudes, such as those of
            :class:`~sonorant.data.acoustic.AcousticExtractor`.
        second: ``(others, mels)``, likewise.
        num_coefficients: M.

    Returns:
        ``MelCepstralDistance``: the mean in dB, and the path.

    Raises:
        ValueError: different numbers of mel bins, no frames, values that are not finite, or too few mel bins.

    References:
        Kubichek 1993, "Mel-cepstral distance measure for objective speech quality assessment"; Kominek, Schultz and
        Black 2008, "Synthesizer voice quality of new languages calibrated with mean mel cepstral distortion".

    Example:
        >>> import torch
        >>> from sonorant.metrics import mel_cepstral_distance
        >>> tilted, flat = torch.linspace(1, 0, 20).expand(3, 20), torch.zeros(5, 20)
        >>> found = mel_cepstral_distance(tilted, flat)
        >>> round(found.distance, 3), found.path.shape
        (2.636, torch.Size([5, 2]))
    """
    if first.dim() == second.dim() == 2 and first.shape[1] != second.shape[1]:
        raise ValueError(f"the spectra have {first.shape[1]} and {second.shape[1]} mel bins; they must have as many")
    return _aligned(mel_cepstrum(first, num_coefficients), mel_cepstrum(second, num_coefficients))


def mean_pairwise_distance(renditions: Sequence[Float[Tensor, "_ mels"]], *, num_coefficients: int = 13) -> float:
    r"""How much renditions of the same words differ from each other: their variety.

    .. math:: \frac{2}{R (R - 1)} \sum_{i < j} d(x_i, x_j)

    with the :func:`mel_cepstral_distance` d. A synthesizer that always says the same has 0; one that varies as its
    speaker does has what real recordings of that speaker have.

    Args:
        renditions: log mel spectra ``(frames, mels)``.
        num_coefficients: of the cepstra.

    Returns:
        In dB; NaN for fewer than two renditions.

    Raises:
        ValueError: as for the distance.

    References:
        Shih et al. 2021, "RAD-TTS: Parallel flow-based TTS with robust alignment learning and diverse synthesis", for
        the question; the measure is that of Kubichek 1993.

    Example:
        >>> import torch
        >>> from sonorant.metrics import mean_pairwise_distance
        >>> flat = torch.zeros(4, 20)
        >>> round(mean_pairwise_distance([flat, flat, flat + torch.linspace(1, 0, 20)]), 3)
        1.757
    """
    if len({rendition.shape[-1] for rendition in renditions}) > 1:
        raise ValueError("the spectra have different numbers of mel bins; they must have as many")
    cepstra = [mel_cepstrum(rendition, num_coefficients) for rendition in renditions]
    distances = [_aligned(*pair).distance for pair in combinations(cepstra, 2)]
    return sum(distances) / len(distances) if distances else math.nan


def _aligned(first: Tensor, second: Tensor) -> MelCepstralDistance:
    distances = torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist") * _DECIBELS
    path = dynamic_time_warping(distances)
    return MelCepstralDistance(float(distances[path[:, 0], path[:, 1]].mean()), path)


def _accumulated(
    costs: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The least sums up to each cell ``(first + 1, second + 1)``; row and column 0 stand before the sequences.

    All cells of an anti-diagonal are computed at once: in memory they lie equally far apart.
    """
    num_rows, num_columns = costs.shape
    totals = np.full((num_rows + 1, num_columns + 1), np.inf)
    totals[0, 0] = 0
    totals[1:, 1:] = costs
    flat, width = totals.reshape(-1), num_columns + 1
    for diagonal in range(num_rows + num_columns - 1):
        row = max(0, diagonal - num_columns + 1) + 1
        last = min(num_rows - 1, diagonal) + 1
        start, stop = row * width + diagonal + 2 - row, last * width + diagonal + 2 - last + 1
        cells = slice(start, stop, width - 1)
        before = [flat[start - back : stop - back : width - 1] for back in (width + 1, width, 1)]
        flat[cells] += np.minimum(np.minimum(before[0], before[1]), before[2])
    return totals


def _described(tensor: Tensor) -> str:
    finite = torch.isfinite(tensor)
    values = "" if finite.all() else f" with {tensor[~finite][0].item()}"
    return f"{tuple(tensor.shape)}{values}"
