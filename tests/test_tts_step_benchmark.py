"""The benchmark of the flow decoder: both forms of a training step agree, and a difference is noticed."""

import pytest
import torch
from benchmarks import tts_step
from benchmarks.flow_originals import CommonFlow, common_nll
from torch import Tensor

from sonorant.models import FlowDecoderConfig

CONFIG = FlowDecoderConfig(num_flows=3, hidden_channels=6, num_layers=2, encoder_dim=4)


@pytest.mark.parametrize("normed", [True, False])
def test_both_forms_of_a_training_step_agree(normed: bool) -> None:
    model, batch = tts_step.make_model(CONFIG), tts_step.make_batch(3, 21)
    common = CommonFlow(model, normed)
    ours = [grad.clone() for grad in tts_step.step(lambda: tts_step.ours(model, batch), batch, model)]
    theirs = tts_step.step(lambda: tts_step.theirs(common, batch), batch, model)
    assert len(ours) == len(theirs) == 1 + 2 + 2 * 2
    for found, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)


def test_without_weight_normalisation_the_gradients_of_the_networks_agree_too() -> None:
    model, batch = tts_step.make_model(CONFIG), tts_step.make_batch(3, 21)
    common = CommonFlow(model, normed=False)
    tts_step.ours(model, batch).backward()
    tts_step.theirs(common, batch).backward()
    network, other = model.couplings[1].wavenet, common.couplings[1].wavenet
    pairs: list[tuple[Tensor, Tensor]] = [
        (network.start.weight, other.start.weight[:, :, 0]),
        (network.start.weight.grad, other.start.weight.grad[:, :, 0]),
        (network.convolutions[1].weight.grad.transpose(1, 2), other.inputs[1].weight.grad),
        (network.contexts[0].bias.grad, other.conditions[0].bias.grad),
        (network.end.bias.grad, other.bias.grad),
        (model.encoder.backwards[0].weight_hh_l0.grad, common.lstm.weight_hh_l0_reverse.grad),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tts_step, "common_nll", lambda *arguments: 1.01 * common_nll(*arguments))
    with pytest.raises(SystemExit, match="sonorant and in common use differ by"):
        tts_step.compare(CONFIG, (2, 20), repeats=1)


def test_every_form_is_timed() -> None:
    seconds = tts_step.compare(CONFIG, (2, 20), repeats=1, bf16=True)
    assert list(seconds) == ["in common use", "without weight normalisation", "sonorant"]
    assert all(0 < value < 60 for value in seconds.values())
