"""Errors of pitch contours."""

import math

import pytest
import torch

from sonorant.metrics import f0_errors


def contour(*values: float) -> torch.Tensor:
    return torch.tensor(values)


def test_only_frames_voiced_in_both_have_a_pitch_error() -> None:
    semitone = 2 ** (1 / 12)
    found = f0_errors([contour(100 * semitone, 0, 80, 0)], [contour(100, 70, 0, 0)])
    assert found.rmse == pytest.approx(1, rel=1e-5)
    assert found.voicing_error == 0.5
    assert (found.num_voiced, found.num_frames) == (1, 4)


def test_frames_count_and_not_utterances() -> None:
    predicted, reference = [contour(100, 100, 100), contour(200)], [contour(100, 100, 100), contour(100)]
    assert f0_errors(predicted, reference).rmse == pytest.approx(6)  # an octave in one frame of four
    assert f0_errors(reference, predicted).rmse == pytest.approx(6)


def test_without_voice_there_is_no_pitch_error() -> None:
    found = f0_errors([contour(0, 90)], [contour(0, 0)])
    assert math.isnan(found.rmse)
    assert found.voicing_error == 0.5
    assert math.isnan(f0_errors([], []).voicing_error)


def test_contours_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="1 predicted and 0 reference"):
        f0_errors([contour(1)], [])
    with pytest.raises(ValueError, match=r"contours 1 have shapes \(1,\) and \(2,\)"):
        f0_errors([contour(1)] * 2, [contour(1), contour(1, 2)])
    for value in (math.nan, -1.0, math.inf):
        with pytest.raises(ValueError, match=f"contours 0: a frequency is {value}"):
            f0_errors([contour(1, value)], [contour(1, 1)])
