"""The model around the flow: what hears what, padding, gradients, and its configuration."""

import json
from dataclasses import asdict, replace

import pytest
import torch
from torch import Tensor

from sonorant.functional import flow_nll, monotonic_alignment_search
from sonorant.models import (
    AlignmentEncoderConfig,
    FlowDecoderConfig,
    FlowTts,
    FlowTtsConfig,
    TextEncoderConfig,
)
from sonorant.models.flow_decoder import FlowOutput
from sonorant.models.flow_tts import Attributes
from sonorant.nn.predictors import AttributePredictorConfig

N_MELS = 6
CONFIG = FlowTtsConfig(
    speaker_dim=3,
    accent_dim=2,
    text=TextEncoderConfig(hidden_channels=6, lstm_dim=4, dropout=0.1),
    aligner=AlignmentEncoderConfig(hidden_channels=6, attention_dim=4),
    decoder=FlowDecoderConfig(num_flows=2, hidden_channels=6, num_layers=2, encoder_dim=4),
    predictors=AttributePredictorConfig(hidden_channels=6, lstm_dim=4, dropout=0.1),
)
LENGTHS, TOKENS, TOKEN_LENGTHS = torch.tensor([12, 7]), torch.tensor([[1, 2, 3, 1], [1, 4, 1, 5]]), torch.tensor([4, 3])
SPEAKERS, ACCENTS = torch.tensor([1, 0]), torch.tensor([0, 2])


def make(config: FlowTtsConfig = CONFIG) -> FlowTts:
    torch.manual_seed(0)
    model = FlowTts(config, N_MELS, num_tokens=6, num_speakers=2, num_accents=3).double()
    for parameter in model.decoder.parameters():  # its ends begin as zero
        parameter.data += 0.05 * torch.randn_like(parameter)
    return model.eval()


@pytest.fixture
def model() -> FlowTts:
    return make()


@pytest.fixture
def mel() -> Tensor:
    return torch.randn(2, 12, N_MELS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def attributes() -> Attributes:
    generator = torch.Generator().manual_seed(2)
    f0, energy = torch.randn(2, 2, 12, generator=generator, dtype=torch.float64)
    return Attributes(f0, energy, (f0 > 0).double())


def text_frames(model: FlowTts, mel: Tensor, accents: Tensor = ACCENTS) -> Tensor:
    scores = model.align(mel, LENGTHS, TOKENS, TOKEN_LENGTHS, None).log_attention
    hard = monotonic_alignment_search(scores, LENGTHS, TOKEN_LENGTHS)
    return hard @ model.encode(TOKENS, TOKEN_LENGTHS, accents)


def flow(model: FlowTts, mel: Tensor, attributes: Attributes, **changes: Tensor) -> FlowOutput:
    frames = text_frames(model, mel)
    return model.flow(mel, LENGTHS, frames, attributes, changes.get("speakers", SPEAKERS), ACCENTS)


def test_the_aligner_hears_powers(model: FlowTts, mel: Tensor) -> None:
    expected = model.aligner(2 * mel, LENGTHS, TOKENS, TOKEN_LENGTHS).log_attention
    torch.testing.assert_close(model.align(mel, LENGTHS, TOKENS, TOKEN_LENGTHS, None).log_attention, expected)


def test_the_decoder_hears_text_speaker_pitch_energy_and_voicing(
    model: FlowTts, mel: Tensor, attributes: Attributes
) -> None:
    plain = flow(model, mel, attributes).z[0]
    assert not torch.allclose(plain, flow(model, mel, attributes, speakers=1 - SPEAKERS).z[0])
    for name in attributes._fields:
        changed = attributes._replace(**{name: getattr(attributes, name) + 1})
        assert not torch.allclose(plain, flow(model, mel, changed).z[0])
    silent = model.flow(mel, LENGTHS, torch.zeros(2, 12, 8).double(), attributes, SPEAKERS, ACCENTS)
    assert not torch.allclose(plain, silent.z[0])


@pytest.mark.parametrize("accent_in_decoder", [False, True])
def test_the_accent_reaches_the_decoder_by_the_text_unless_it_shall_directly(
    mel: Tensor, attributes: Attributes, accent_in_decoder: bool
) -> None:
    model = make(replace(CONFIG, accent_in_decoder=accent_in_decoder))
    frames = text_frames(model, mel)
    assert not torch.allclose(frames, text_frames(model, mel, 2 - ACCENTS))
    plain, other = (
        model.flow(mel, LENGTHS, frames, attributes, SPEAKERS, accents).z for accents in (ACCENTS, 2 - ACCENTS)
    )
    assert torch.allclose(plain, other) != accent_in_decoder


def test_padding_changes_nothing(model: FlowTts, mel: Tensor, attributes: Attributes) -> None:
    mel[1, 7:] = torch.nan
    heard = Attributes(*(value.index_fill(1, torch.arange(7, 12), torch.nan) for value in attributes))
    heard = Attributes(*(torch.stack([a[0], b[1]]) for a, b in zip(attributes, heard, strict=True)))
    together = flow(model, mel, heard)
    alone = model.flow(
        mel[1:, :7],
        LENGTHS[1:],
        text_frames(model, mel)[1:, :7],
        Attributes(*(value[1:, :7] for value in attributes)),
        SPEAKERS[1:],
        ACCENTS[1:],
    )
    torch.testing.assert_close(together.z[1:, :3], alone.z)
    frames = model.embed(TOKENS, ACCENTS).repeat_interleave(3, 1)
    predicted = model.predict_attributes(frames, LENGTHS, SPEAKERS, ACCENTS)
    single = model.predict_attributes(frames[1:, :7], LENGTHS[1:], SPEAKERS[1:], ACCENTS[1:])
    for both, one in zip(predicted, single, strict=True):
        torch.testing.assert_close(both[1:, :7], one)
        assert not both[1, 7:].any()
    embedded = model.embed(TOKENS, ACCENTS)
    durations = model.predict_durations(embedded, TOKEN_LENGTHS, SPEAKERS, ACCENTS)
    alone_durations = model.predict_durations(embedded[1:, :3], TOKEN_LENGTHS[1:], SPEAKERS[1:], ACCENTS[1:])
    torch.testing.assert_close(durations[1:, :3], alone_durations)


def test_what_is_sampled_has_the_likelihood_of_its_noise(model: FlowTts, mel: Tensor, attributes: Attributes) -> None:
    model.decoder.fit_whitening([torch.randn(60, N_MELS, dtype=torch.float64)])
    frames, seeds = text_frames(model, mel), torch.tensor([3, 4])
    voice = SPEAKERS, ACCENTS
    sampled = model.sample(frames, LENGTHS, attributes, *voice, temperature=0.5, seeds=seeds)
    assert sampled.shape == mel.shape
    assert not sampled[1, 7:].any()
    back = model.flow(sampled, LENGTHS, frames, attributes, *voice)
    assert back.z[0].std().item() == pytest.approx(0.5, rel=0.3)
    again = model.sample(frames, LENGTHS, attributes, *voice, temperature=0.5, seeds=seeds)
    assert torch.equal(sampled, again)
    other = model.sample(frames, LENGTHS, attributes, *voice, temperature=0.5, seeds=seeds + 7)
    assert not torch.allclose(sampled, other)


def test_the_embedded_tokens_are_those_of_an_accent_each_by_itself(model: FlowTts) -> None:
    embedded = model.embed(TOKENS, ACCENTS)
    assert embedded.shape == (2, 4, 6)
    assert not embedded.requires_grad
    torch.testing.assert_close(model.embed(TOKENS[:, 1:2], ACCENTS), embedded[:, 1:2])
    expected = model.encoder.tokens.weight[TOKENS[1, 1]] + model.encoder.by_accent.weight @ model.accents.weight[2]
    torch.testing.assert_close(embedded[1, 1], expected)


def test_predictors_teach_nothing_else(model: FlowTts, mel: Tensor) -> None:
    model.train()
    embedded = model.embed(TOKENS, ACCENTS)
    predicted = model.predict_attributes(embedded.repeat_interleave(3, 1), LENGTHS, SPEAKERS, ACCENTS)
    durations = model.predict_durations(embedded, TOKEN_LENGTHS, SPEAKERS, ACCENTS)
    sum((value.square().sum() for value in predicted), durations.square().sum()).backward()
    taught = {name.partition(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert taught == {f"{name}_predictor" for name in ("duration", "f0", "energy", "voiced")}
    assert all(parameter.grad is not None for predictor in model.predictors for parameter in predictor.parameters())


def test_every_other_parameter_learns(model: FlowTts, mel: Tensor, attributes: Attributes) -> None:
    model.train()
    aligned = model.align(mel, LENGTHS, TOKENS, TOKEN_LENGTHS, None)
    frames = aligned.attention @ model.encode(TOKENS, TOKEN_LENGTHS, ACCENTS, torch.tensor([1, 2]))
    output = model.flow(mel, LENGTHS, frames, attributes, SPEAKERS, ACCENTS)
    flow_nll(*output, LENGTHS // 2).nll.backward()
    predictors = {id(parameter) for predictor in model.predictors for parameter in predictor.parameters()}
    lacking = [name for name, value in model.named_parameters() if id(value) not in predictors and value.grad is None]
    assert lacking == []


def test_a_configuration_survives_json() -> None:
    assert FlowTtsConfig.from_json(json.loads(json.dumps(asdict(CONFIG)))) == CONFIG


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"aligner": AlignmentEncoderConfig(speaker_dim=2)}, r"aligner\.speaker_dim must be 0; got 2"),
        ({"speaker_dim": 0}, "speaker_dim must be at least 1; got 0"),
        ({"accent_dim": 0}, "accent_dim must be at least 1; got 0"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **changes)  # type: ignore[arg-type]
