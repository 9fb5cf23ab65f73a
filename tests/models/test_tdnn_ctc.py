"""The CTC model around the TDNN."""

import pytest
import torch

from sonorant.models import TdnnCtc, TdnnCtcConfig


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


@pytest.mark.parametrize("options", [{"noise": 0.0, "channel_noise": 0.5}, {"noise": 0.5, "channel_noise": 0.0}])
def test_each_kind_of_noise_can_be_left_out(options: dict[str, float]) -> None:
    features, lengths = torch.randn(2, 60, 5), torch.tensor([60, 40])
    config = TdnnCtcConfig(hidden_channels=8, **options)
    noisy = TdnnCtc(config, num_features=5, num_classes=4).train()
    assert not torch.equal(noisy(features, lengths).values, noisy(features, lengths).values)
    silent = TdnnCtc(TdnnCtcConfig(hidden_channels=8, noise=0.0, channel_noise=0.0), 5, 4).train()
    assert torch.equal(silent(features, lengths).values, silent(features, lengths).values)
