"""The guide of the silence symbol."""

import math

import pytest
import torch

from sonorant.lengths import Padded
from sonorant.models import TdnnCtc, TdnnCtcConfig
from sonorant.tasks.silence_guide import SilenceGuideConfig, relative_levels, silence_guide_loss

CONFIG = SilenceGuideConfig(quiet=0.3, loud=0.6)


def features_of(levels: list[float]) -> torch.Tensor:
    return torch.tensor(levels).view(1, -1, 1).expand(1, len(levels), 2)


def test_levels_lie_between_the_softest_frame_and_the_loudest() -> None:
    features = torch.cat([features_of([-4.0, -2.0, 0.0, 9.0]), features_of([1.0, 3.0, 2.0, 2.0])])
    levels = relative_levels(features, torch.tensor([3, 4]), 100.0)
    torch.testing.assert_close(levels[0, :3], torch.tensor([0.0, 0.5, 1.0]))
    torch.testing.assert_close(levels[1], torch.tensor([0.0, 1.0, 0.5, 0.5]))


def test_digital_silence_counts_as_the_floor() -> None:
    levels = relative_levels(features_of([-100.0, -5.0, 0.0]), torch.tensor([3]), 10.0)
    torch.testing.assert_close(levels[0], torch.tensor([0.0, 0.5, 1.0]))


def test_a_constant_level_is_neither_quiet_nor_loud() -> None:
    loss = guide(torch.full((1, 40, 2), 0.5).log(), features_of([1.0] * 40), [40])
    assert loss == 0


def guide(log_probs: torch.Tensor, features: torch.Tensor, lengths: list[int], *, pad_edges: bool = True) -> float:
    model = TdnnCtc(TdnnCtcConfig(hidden_channels=4, pad_edges=pad_edges), features.shape[2], log_probs.shape[2])
    frames = torch.tensor(lengths)
    output = Padded(log_probs, model.output_lengths(frames))
    return float(silence_guide_loss(output, features, frames, model, 1, CONFIG))


@pytest.mark.parametrize("pad_edges", [True, False])
def test_quiet_frames_are_silence_and_loud_ones_are_not(pad_edges: bool) -> None:
    """Of 40 frames the first 20 are soft, then 10 between, then 10 loud; without padding 13 drop out at each edge."""
    features = features_of([0.0] * 20 + [0.5] * 10 + [1.0] * 10)
    probability = 0.2
    num_frames, quiet, loud = (40, 20, 10) if pad_edges else (14, 7, 0)
    log_probs = torch.tensor([1 - probability, probability]).log().expand(1, num_frames, 2)
    expected = -quiet * math.log(probability) - loud * math.log(1 - probability)
    assert guide(log_probs, features, [40], pad_edges=pad_edges) == pytest.approx(expected)


def test_padding_and_certain_silence_leave_a_finite_gradient() -> None:
    features = torch.cat([features_of([0.0] * 20 + [1.0] * 20), features_of([1.0] * 20 + [0.0] * 20)])
    features[1, 30:] = torch.nan
    log_probs = torch.zeros(2, 40, 2)
    log_probs[:, :, 0] = -torch.inf
    log_probs = log_probs.requires_grad_()
    model = TdnnCtc(TdnnCtcConfig(hidden_channels=4), 2, 2)
    lengths = torch.tensor([40, 30])
    loss = silence_guide_loss(Padded(log_probs, lengths), features, lengths, model, 1, CONFIG).sum()
    loss.backward()
    assert loss.isfinite()
    assert log_probs.grad is not None
    assert log_probs.grad.isfinite().all()
    assert not log_probs.grad[1, 30:].any()


def test_the_weight_falls_to_nothing() -> None:
    config = SilenceGuideConfig(weight=0.4, until=0.5)
    assert [config.weight_at(step, 100) for step in (0, 25, 50, 99)] == pytest.approx([0.4, 0.2, 0.0, 0.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": -1.0}, "weight must not be negative"),
        ({"until": 0.0}, r"until in \(0, 1\]"),
        ({"quiet": 0.6, "loud": 0.5}, "quiet < loud"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SilenceGuideConfig(**settings)
