"""Mel filters."""

import math

import pytest
import torch

from sonorant.functional import mel_filterbank
from sonorant.functional.mel import mel_edges


def test_weights_are_those_of_the_common_tools() -> None:
    # librosa.filters.mel(sr=22050, n_fft=1024, n_mels=80, fmax=8000), version 0.11, transposed
    filters = mel_filterbank(1024, 22050, 80, f_max=8000.0, dtype=torch.float64)
    assert float(filters[6, 3]) == pytest.approx(0.012606076985161063, rel=1e-12)
    assert float(filters[360, 79]) == pytest.approx(0.0027828318605377083, rel=1e-12)


def test_landmarks_of_the_scales() -> None:
    slaney = mel_edges(29, 0.0, 6400.0)  # 15 + 27 mels over 30 steps of 1.4
    assert slaney[:2] == pytest.approx([0.0, 1.4 * 200 / 3])
    assert slaney[-1] == 6400.0
    assert slaney[-2] == pytest.approx(6400 / 6.4 ** (1.4 / 27))
    middle = mel_edges(1, 0.0, 700.0, "htk")[1]  # half of 2595 log10(2) mels
    assert middle == pytest.approx(700 * (math.sqrt(2) - 1))


@pytest.mark.parametrize("mel_scale", ["slaney", "htk"])
def test_triangles_have_an_area_of_1_or_add_up_to_1(mel_scale: str) -> None:
    n_fft, sample_rate = 2**15, 16000  # finely sampled
    filters = mel_filterbank(n_fft, sample_rate, 10, mel_scale=mel_scale, dtype=torch.float64)  # type: ignore[arg-type]
    torch.testing.assert_close(filters.sum(0) * sample_rate / n_fft, torch.ones(10).double(), rtol=1e-4, atol=0)
    filters = mel_filterbank(n_fft, sample_rate, 10, mel_scale=mel_scale, norm=None)  # type: ignore[arg-type]
    edges = mel_edges(10, 0.0, 8000.0, mel_scale)  # type: ignore[arg-type]
    first, last = (math.ceil(edge * n_fft / sample_rate) for edge in (edges[1], edges[-2]))
    torch.testing.assert_close(filters[first:last].sum(1), torch.ones(last - first))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_mels": 0}, "n_mels 0"),
        ({"n_fft": 0}, "n_fft is 0"),
        ({"f_min": -1.0}, "f_min -1"),
        ({"f_min": 4000.0}, r"0 <= f_min < f_max <= 4000 Hz; got f_min 4000, f_max 4000"),
        ({"f_max": 4001.0}, "f_max 4001"),
        ({"mel_scale": "bark"}, "mel_scale must be one of slaney, htk; got 'bark'"),
        ({"norm": "l2"}, "norm must be 'slaney' or None; got 'l2'"),
        ({"n_mels": 200}, r"mel bin 0 \(0.0 to 23.3 Hz\) lies between two bins of the transform, which are 31.2 Hz"),
    ],
)
def test_impossible_filters_are_named(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mel_filterbank(**{"n_fft": 256, "sample_rate": 8000, "n_mels": 40, **changes})
