"""What predicts durations, pitch, energy and voicing."""

import pytest
import torch

from sonorant.nn.predictors import AttributePredictor, AttributePredictorConfig

CONFIG = AttributePredictorConfig(hidden_channels=6, lstm_dim=4, dropout=0.5)


@pytest.fixture
def predictor() -> AttributePredictor:
    torch.manual_seed(0)
    return AttributePredictor(CONFIG, 3, 2, out_dim=2).double()


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(2, 8, 3, generator=generator, dtype=torch.float64)
    return values, torch.tensor([8, 5]), torch.randn(2, 2, generator=generator, dtype=torch.float64)


def test_padding_changes_nothing(predictor: AttributePredictor) -> None:
    predictor.eval()
    values, lengths, condition = inputs()
    values[1, 5:] = torch.inf
    together = predictor(values, lengths, condition)
    assert together.shape == (2, 8, 2)
    assert not together[1, 5:].any()
    torch.testing.assert_close(together[1:, :5], predictor(values[1:, :5], lengths[1:], condition[1:]))


def test_the_condition_counts_in_every_step(predictor: AttributePredictor) -> None:
    predictor.eval()
    values, lengths, condition = inputs()
    changed = predictor(values, lengths, condition + 1) - predictor(values, lengths, condition)
    assert (changed[0].abs().sum(1) > 0).all()


def test_the_size_of_the_text_does_not_matter(predictor: AttributePredictor) -> None:
    predictor.eval()
    values, lengths, condition = inputs()
    expected = predictor(values, lengths, condition)
    torch.testing.assert_close(predictor(20 * values + 5, lengths, condition), expected, rtol=1e-3, atol=1e-3)


def test_steps_of_the_same_text_differ(predictor: AttributePredictor) -> None:
    predictor.eval()
    values, lengths, condition = inputs()
    same = values[:, :1].expand(-1, 8, -1)
    assert len(predictor(same, lengths, condition)[0].unique(dim=0)) == 8


def test_dropout_belongs_to_the_utterance(predictor: AttributePredictor) -> None:
    values, lengths, condition = inputs()
    seeds = torch.tensor([5, 6])
    together = predictor(values, lengths, condition, seeds)
    alone = predictor(values[1:, :5], lengths[1:], condition[1:], seeds[1:])
    torch.testing.assert_close(together[1:, :5], alone)
    assert not torch.equal(together, predictor(values, lengths, condition, seeds + 10))


def test_settings_that_cannot_be(predictor: AttributePredictor) -> None:
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\); got 1"):
        AttributePredictorConfig(dropout=1.0)
    values, _, condition = inputs()
    with pytest.raises(ValueError, match=r"lengths\[0\] is 9"):
        predictor(values, torch.tensor([9, 1]), condition)
