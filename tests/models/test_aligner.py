"""The aligner's network: its score, its padding, its speakers."""

import pytest
import torch
from torch import Tensor

from sonorant.lengths import pad_sequences
from sonorant.models import AlignmentEncoder, AlignmentEncoderConfig
from sonorant.models.aligner import AlignmentOutput

CONFIG = AlignmentEncoderConfig(hidden_channels=10, attention_dim=6, speaker_dim=3)
NUM_FEATURES, NUM_TOKENS = 5, 7
FRAMES, TOKENS = (12, 7, 3), ([1, 2, 1, 3, 1], [1, 6, 1], [4])


@pytest.fixture
def model() -> AlignmentEncoder:
    torch.manual_seed(0)
    return AlignmentEncoder(CONFIG, NUM_FEATURES, NUM_TOKENS, num_speakers=2).double()


def recordings() -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(frames, NUM_FEATURES, generator=generator, dtype=torch.float64) for frames in FRAMES]


def align(
    model: AlignmentEncoder, features: list[Tensor], tokens: list[list[int]], **options: Tensor
) -> AlignmentOutput:
    texts = pad_sequences([torch.tensor(row) for row in tokens])
    output: AlignmentOutput = model(*pad_sequences(features), *texts, **options)
    return output


def test_the_score_is_the_distance(model: AlignmentEncoder) -> None:
    embedded: dict[str, Tensor] = {}
    for name in ("mel", "text"):
        getattr(model, name).register_forward_hook(lambda *args, name=name: embedded.__setitem__(name, args[2]))
    output = align(model, recordings()[:1], list(TOKENS[:1]))
    differences = embedded["mel"].unsqueeze(2) - embedded["text"].unsqueeze(1)
    expected = (-CONFIG.temperature * differences.square().sum(3)).log_softmax(2)
    torch.testing.assert_close(output.log_attention, expected)
    torch.testing.assert_close(output.attention, expected.exp())


def test_a_batch_equals_its_utterances_whatever_the_padding(model: AlignmentEncoder) -> None:
    features, lengths = pad_sequences(recordings())
    tokens, token_lengths = pad_sequences([torch.tensor(row) for row in TOKENS])
    for index, frames in enumerate(FRAMES):
        features[index, frames:] = torch.nan
        tokens[index, len(TOKENS[index]) :] = 5
    speakers = torch.tensor([2, 0, 1])
    together = model(features, lengths, tokens, token_lengths, speakers=speakers)
    assert together.attention.isfinite().all()
    for index, (frames, row) in enumerate(zip(FRAMES, TOKENS, strict=True)):
        alone = align(model, [recordings()[index]], [row], speakers=speakers[index : index + 1])
        torch.testing.assert_close(together.attention[index, :frames, : len(row)], alone.attention[0])
        torch.testing.assert_close(together.log_attention[index, :frames, : len(row)], alone.log_attention[0])
        assert together.attention[index, frames:].sum() == together.attention[index, :, len(row) :].sum() == 0


def test_padding_leaves_no_trace_in_gradients(model: AlignmentEncoder) -> None:
    def gradients(output: AlignmentOutput) -> list[Tensor]:
        model.zero_grad()
        output.attention[:1, : FRAMES[0], : len(TOKENS[0])].square().sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]

    features, lengths = pad_sequences(recordings())
    features[1, FRAMES[1] :] = torch.inf
    texts = pad_sequences([torch.tensor(row) for row in TOKENS])
    expected = gradients(align(model, recordings()[:1], list(TOKENS[:1])))
    torch.testing.assert_close(gradients(model(features, lengths, *texts)), expected)


def test_the_prior_is_added_after_the_softmax(model: AlignmentEncoder) -> None:
    plain = align(model, recordings(), list(TOKENS))
    prior = torch.linspace(-3, 0, 12 * 5, dtype=torch.float64).view(1, 12, 5).expand(3, -1, -1)
    shifted = align(model, recordings(), list(TOKENS), log_prior=prior)
    torch.testing.assert_close(shifted.log_attention[0], plain.log_attention[0] + prior[0])
    torch.testing.assert_close(shifted.attention[0], (plain.log_attention[0] + prior[0]).softmax(1))


def test_an_unknown_speaker_is_the_mean_of_the_known(model: AlignmentEncoder) -> None:
    assert model.speakers is not None
    known = [align(model, recordings(), list(TOKENS), speakers=torch.full((3,), n)).attention for n in (1, 2)]
    assert (known[0] - known[1]).abs().max() > 1e-4
    unknown = align(model, recordings(), list(TOKENS)).attention
    torch.testing.assert_close(
        align(model, recordings(), list(TOKENS), speakers=torch.zeros(3).long()).attention, unknown
    )
    with torch.no_grad():
        model.speakers.weight[:] = model.speakers.weight.mean(0)
    torch.testing.assert_close(
        align(model, recordings(), list(TOKENS), speakers=torch.ones(3).long()).attention, unknown
    )


def test_every_parameter_learns(model: AlignmentEncoder) -> None:
    align(model, recordings(), list(TOKENS), speakers=torch.tensor([1, 2, 0])).attention.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_the_level_of_a_recording_does_not_matter(model: AlignmentEncoder) -> None:
    quieter = [features - 5 for features in recordings()]
    torch.testing.assert_close(align(model, quieter, list(TOKENS)), align(model, recordings(), list(TOKENS)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mel_kernels": (3, 2)}, r"mel_kernels must be odd numbers, and at least one; got \[3, 2\]"),
        ({"text_kernels": ()}, "text_kernels must be odd"),
        ({"temperature": 0.0}, "temperature must be positive; got 0.0"),
    ],
)
def test_impossible_settings(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AlignmentEncoderConfig(**options)
