"""Statistics over valid frames."""

import pytest
import torch
from torch.nn import functional as F

from sonorant.functional import limit_dynamic_range, masked_batch_norm
from sonorant.nn import MaskedBatchNorm1d


def test_running_statistics_are_those_of_the_valid_frames() -> None:
    torch.manual_seed(0)
    x, lengths = torch.randn(3, 4, 9, dtype=torch.float64), torch.tensor([9, 5, 2])
    frames = torch.cat([row[:, :n] for row, n in zip(x, lengths.tolist(), strict=True)], 1).unsqueeze(0)
    mean, var = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    expected_mean, expected_var = mean.clone(), var.clone()
    masked_batch_norm(x, lengths, mean, var, training=True)
    F.batch_norm(frames, expected_mean, expected_var, training=True)
    torch.testing.assert_close(mean, expected_mean)
    torch.testing.assert_close(var, expected_var)


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}])
def test_with_equal_lengths_the_module_is_torch_s(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    ours, theirs = MaskedBatchNorm1d(4, **options).double(), torch.nn.BatchNorm1d(4, **options).double()
    lengths = torch.tensor([7, 7, 7])
    for _ in range(3):
        x = torch.randn(3, 4, 7, dtype=torch.float64) * 2 + 1
        torch.testing.assert_close(ours(x, lengths), theirs(x))
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value)
    torch.testing.assert_close(ours.eval()(x, lengths), theirs.eval()(x))


def test_one_frame_has_no_variance() -> None:
    with pytest.raises(ValueError, match="1 valid frames"):
        masked_batch_norm(torch.randn(1, 2, 5), torch.tensor([1]), None, None, training=True)


def test_inference_needs_statistics() -> None:
    with pytest.raises(ValueError, match="running_mean"):
        masked_batch_norm(torch.randn(1, 2, 5), torch.tensor([3]), None, None)


def test_wrong_channels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(batch, 3, time\)"):
        MaskedBatchNorm1d(3)(torch.randn(2, 4, 5), torch.tensor([5, 5]))


def test_dynamic_range_must_be_positive() -> None:
    with pytest.raises(ValueError, match="dynamic_range must be positive; got 0"):
        limit_dynamic_range(torch.randn(1, 2, 3), torch.tensor([2]), 0.0)
