"""The CTC model around the TDNN."""

import pytest
import torch

from sonorant.lengths import sequence_mask
from sonorant.models import TdnnCtc, TdnnCtcConfig
from sonorant.models.tdnn_ctc import random_stretches


@pytest.fixture
def model() -> TdnnCtc:
    torch.manual_seed(0)
    return TdnnCtc(TdnnCtcConfig(hidden_channels=8), num_features=5, num_classes=4).eval()


def test_gives_log_probabilities_and_zeros_in_padding(model: TdnnCtc) -> None:
    log_probs, lengths = model(torch.randn(2, 60, 5), torch.tensor([60, 40]))
    assert lengths.tolist() == [34, 14]
    torch.testing.assert_close(log_probs[0].exp().sum(-1), torch.ones(34))
    assert not log_probs[1, 14:].any()


def test_level_and_channel_of_a_recording_do_not_matter(model: TdnnCtc) -> None:
    features, lengths = torch.randn(1, 60, 5), torch.tensor([60])
    louder = model(features + 3.0, lengths).values
    torch.testing.assert_close(louder, model(features, lengths).values, atol=1e-4, rtol=0)


def test_leading_digital_silence_hardly_matters(model: TdnnCtc) -> None:
    """With the floor, silence of -16 nats does as much as silence at the floor itself."""
    features = torch.randn(1, 90, 5)
    features[:, 50:] -= 4.0
    digital, floored = features.clone(), features.clone()
    digital[:, :20] = -40.0
    floored[:, :20] = float(features[:, 20:].max()) - model.config.dynamic_range
    lengths = torch.tensor([90])
    torch.testing.assert_close(model(digital, lengths).values, model(floored, lengths).values)


def test_noise_is_for_training_only_and_from_torch_s_generator(model: TdnnCtc) -> None:
    features, lengths = torch.randn(2, 60, 5), torch.tensor([60, 40])
    assert torch.equal(model(features, lengths).values, model(features, lengths).values)
    model.train()
    torch.manual_seed(3)
    first, second = model(features, lengths).values, model(features, lengths).values
    torch.manual_seed(3)
    assert torch.equal(model(features, lengths).values, first)
    assert not torch.equal(first, second)


NONE = {"noise": 0.0, "channel_noise": 0.0, "statistics_fraction": 1.0}


@pytest.mark.parametrize("only", [{"noise": 0.3}, {"channel_noise": 0.3}, {"statistics_fraction": 0.5}, {}])
def test_each_disturbance_can_be_left_out(only: dict[str, float]) -> None:
    features, lengths = torch.randn(2, 60, 5), torch.tensor([60, 40])
    model = TdnnCtc(TdnnCtcConfig(hidden_channels=8, **{**NONE, **only}), num_features=5, num_classes=4).train()
    changes = not torch.equal(model(features, lengths).values, model(features, lengths).values)
    assert changes == bool(only)


def test_stretches_are_contiguous_inside_and_long_enough() -> None:
    torch.manual_seed(0)
    lengths = torch.tensor([1, 2, 7, 100]).repeat(200)
    stretches = random_stretches(lengths, 100, 0.3)
    sizes = stretches.sum(1)
    assert (sizes >= (lengths * 0.3).ceil()).all()
    assert (sizes <= lengths).all()
    edges = torch.diff(stretches.int(), dim=1).abs().sum(1) + stretches[:, 0].int() + stretches[:, -1].int()
    assert (edges == 2).all()
    last = 100 - stretches.flip(1).int().argmax(1)
    assert (last <= lengths).all()
    assert (last[lengths == 100] == 100).any()
    assert stretches[:, 0][lengths == 100].any()
    assert torch.equal(random_stretches(lengths, 100, 1.0), sequence_mask(lengths, 100))


def test_the_share_must_be_one() -> None:
    with pytest.raises(ValueError, match=r"statistics_fraction must lie in \(0, 1\]; got 0"):
        TdnnCtcConfig(statistics_fraction=0.0)
