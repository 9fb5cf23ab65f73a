"""The CTC model around the TDNN."""

import pytest
import torch

from sonorant.models import TdnnCtc, TdnnCtcConfig
from sonorant.nn import MaskedBatchNorm1d


@pytest.fixture
def model() -> TdnnCtc:
    torch.manual_seed(0)
    return TdnnCtc(TdnnCtcConfig(hidden_channels=8), num_features=5, num_classes=4).eval()


def test_gives_log_probabilities_and_zeros_in_padding(model: TdnnCtc) -> None:
    log_probs, lengths = model(torch.randn(2, 60, 5), torch.tensor([60, 40]))
    assert lengths.tolist() == [60, 40]
    torch.testing.assert_close(log_probs[0].exp().sum(-1), torch.ones(60))
    assert not log_probs[1, 40:].any()


def test_the_level_of_a_recording_does_not_matter(model: TdnnCtc) -> None:
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


def test_an_utterance_is_disturbed_the_same_way_in_any_batch(model: TdnnCtc) -> None:
    model.train()
    for layer in model.encoder.tdnn:
        if isinstance(layer, MaskedBatchNorm1d):
            layer.eval()  # the statistics of the batch are another matter
    features, lengths, seeds = torch.randn(2, 60, 5), torch.tensor([60, 40]), torch.tensor([11, 12])
    both = model(features, lengths, seeds).values
    alone = model(features[1:, :40], lengths[1:], seeds[1:]).values
    torch.testing.assert_close(both[1, :40], alone[0])
    assert not torch.allclose(both[1, :40], model(features[1:, :40], lengths[1:], seeds[:1]).values[0])


NONE = {"noise": 0.0, "channel_noise": 0.0}


@pytest.mark.parametrize("only", [{"noise": 0.3}, {"channel_noise": 0.3}, {}])
def test_each_disturbance_can_be_left_out(only: dict[str, float]) -> None:
    features, lengths = torch.randn(2, 60, 5), torch.tensor([60, 40])
    model = TdnnCtc(TdnnCtcConfig(hidden_channels=8, **{**NONE, **only}), num_features=5, num_classes=4).train()
    changes = not torch.equal(model(features, lengths).values, model(features, lengths).values)
    assert changes == bool(only)


def test_with_padded_edges_every_input_frame_has_an_output_frame() -> None:
    model = TdnnCtc(TdnnCtcConfig(hidden_channels=8), num_features=5, num_classes=4).eval()
    lengths = torch.tensor([60, 27])
    assert model.output_lengths(lengths).tolist() == [60, 27]
    assert (model.min_frames, model.first_center) == (27, 0)
    features = torch.randn(2, 60, 5)
    log_probs, output_lengths = model(features, lengths)
    assert (log_probs.shape[1], output_lengths.tolist()) == (60, [60, 27])
    torch.testing.assert_close(log_probs[1, :27], model(features[1:, :27], lengths[1:]).values[0])


def test_without_padding_outputs_are_the_middle_ones() -> None:
    """Far from the edges padding changes nothing: frame i of one is frame i + 13 of the other."""
    torch.manual_seed(0)
    padded = TdnnCtc(TdnnCtcConfig(hidden_channels=8), num_features=5, num_classes=4).eval()
    bare = TdnnCtc(TdnnCtcConfig(hidden_channels=8, pad_edges=False), num_features=5, num_classes=4).eval()
    bare.load_state_dict(padded.state_dict())
    assert bare.first_center == 13
    features, lengths = torch.randn(1, 90, 5), torch.tensor([90])
    assert bare.output_lengths(lengths).tolist() == [64]
    torch.testing.assert_close(bare(features, lengths).values, padded(features, lengths).values[:, 13:-13])


def test_an_utterance_shorter_than_the_context_is_refused_although_it_is_padded(model: TdnnCtc) -> None:
    assert model.output_lengths(torch.tensor([26, 27])).tolist() == [0, 27]
    with pytest.raises(ValueError, match=r"lengths\[1\] is 26; the smallest length allowed is 27"):
        model(torch.randn(2, 60, 5), torch.tensor([60, 26]))
