"""Statistics over valid frames."""

import pytest
import torch
from torch.nn import functional as F

from sonorant.functional import masked_batch_norm, subtract_floor, utterance_cmvn
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


@pytest.mark.parametrize("lengths", [[5, 3, 2], [5, 5, 5]])
def test_gradients_can_be_differentiated(lengths: list[int]) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)
    weight, bias = torch.rand(2, 2, dtype=torch.float64).requires_grad_()

    def normalize(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scaled = masked_batch_norm(x, torch.tensor(lengths), None, None, weight, bias, training=True)
        return scaled, utterance_cmvn(x.transpose(1, 2), torch.tensor(lengths))

    assert torch.autograd.gradgradcheck(normalize, (x, weight, bias))


def test_running_statistics_keep_their_precision_and_momentum() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 7)
    for lengths in ([7, 7], [7, 4]):
        frames = torch.cat([row[:, :n] for row, n in zip(x, lengths, strict=True)], 1).double()
        for dtype in (torch.float64, torch.float32):
            mean, var = torch.ones(2, 3, dtype=dtype)
            masked_batch_norm(x, torch.tensor(lengths), mean, var, training=True, momentum=0.25)
            torch.testing.assert_close(mean.double(), 0.75 + 0.25 * frames.mean(1), atol=1e-6, rtol=0)
            torch.testing.assert_close(var.double(), 0.75 + 0.25 * frames.var(1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("length", [4, 7])
def test_inference_has_gradients_after_a_step_of_training(length: int) -> None:
    x, norm = torch.randn(2, 3, 7, requires_grad=True), MaskedBatchNorm1d(3)
    y = norm.eval()(x, torch.tensor([7, length]))
    norm.train()(x, torch.tensor([7, 7]))
    y.sum().backward()
    torch.testing.assert_close(x.grad[0], torch.full((3, 7), 1 / (1 + norm.eps) ** 0.5))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_trace_of_equal_lengths_holds_for_others() -> None:
    x, lengths = torch.randn(2, 3, 7), torch.tensor([7, 4])
    norm = MaskedBatchNorm1d(3).eval()
    traced = torch.jit.trace(norm, (x, torch.tensor([7, 7])))
    torch.testing.assert_close(traced(x, lengths), norm(x, lengths))


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
        subtract_floor(torch.randn(1, 2, 3), torch.tensor([2]), 0.0)
