"""The STFT loss: what the contracts do not cover."""

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from sonorant.functional import StftLosses, a_weighting_curve, kernels, multi_resolution_stft_loss
from sonorant.losses import MultiResolutionStftLoss
from tests.cases.case import GOLDEN, cast, run
from tests.cases.spectral import CASES, RESOLUTIONS, golden_losses

STFT_CASES = [case for case in CASES if case.function is multi_resolution_stft_loss]
FORMS = pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "batched"])


@pytest.fixture
def form(kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel and not kernels.available():
        pytest.skip("numba is not installed")
    monkeypatch.setattr(kernels, "available", lambda: kernel)


@pytest.mark.parametrize("case", STFT_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_batched_form_equals_the_reference(case, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "available", lambda: False)
    tolerance = {"rtol": 0, "atol": 1e-10 if dtype == torch.float64 else case.tolerance}
    for seed in range(3):
        inputs = case.inputs(seed)
        slow = run(case, inputs, subject=lambda **leaves: case.reference(**leaves, **case.options))
        fast = run(case, cast(inputs, dtype))
        for mine, theirs in zip(fast.outputs, slow.outputs, strict=True):
            torch.testing.assert_close(mine.double(), theirs, **tolerance)
        gradients = fast.gradients["prediction"].double(), slow.gradients["prediction"]
        torch.testing.assert_close(*gradients, **tolerance)


@FORMS
@pytest.mark.usefixtures("form")
def test_golden_numbers_in_float32() -> None:
    arguments = json.loads((GOLDEN / "cases.json").read_text())["multi_resolution_stft"]
    for label, actual, expected in golden_losses(arguments, torch.float32):
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-5, msg=label)


@FORMS
@pytest.mark.parametrize("norm", ["utterance", "frame", "batch"])
@pytest.mark.usefixtures("form")
def test_silence_is_finite(norm: str) -> None:
    silence = torch.zeros(2, 4096)
    speech = torch.sin(torch.arange(4096) / 7).expand(2, -1)
    for prediction, target in ((silence, silence), (silence, speech), (speech, silence), (speech, speech)):
        leaf = prediction.clone().requires_grad_()
        losses = multi_resolution_stft_loss(leaf, target, resolutions=[(512, 128, 512), (64, 10, 50)], norm=norm)
        sum(losses).backward()
        assert all(loss.isfinite() for loss in losses)
        assert leaf.grad.isfinite().all()
        if prediction is target:
            assert not any(losses)
            assert not leaf.grad.any()


@FORMS
@pytest.mark.usefixtures("form")
def test_a_batch_is_the_mean_of_its_utterances() -> None:
    case = STFT_CASES[0]
    inputs = case.inputs(batch_size=4)
    whole = run(case, inputs)
    singles = []
    for row, length in enumerate(inputs["lengths"].tolist()):
        alone = {name: inputs[name][row : row + 1, :length] for name in ("prediction", "target")}
        singles.append(run(case, {**alone, "lengths": torch.tensor([length])}))
        gradient = singles[-1].gradients["prediction"] / 4
        torch.testing.assert_close(whole.gradients["prediction"][row : row + 1, :length], gradient, rtol=0, atol=1e-12)
    for index, value in enumerate(whole.outputs):
        mean = torch.stack([single.outputs[index] for single in singles]).mean()
        torch.testing.assert_close(value, mean, rtol=0, atol=1e-12)


@FORMS
@pytest.mark.parametrize("size", [1, 7, 8, 9])
@pytest.mark.usefixtures("form")
def test_clips_of_half_a_transform_are_padded_with_silence(size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    target, prediction = torch.randn(2, 1, size, generator=generator, dtype=torch.float64)
    short = multi_resolution_stft_loss(prediction, target, resolutions=[(16, 4, 16)])
    pad = (0, max(9 - size, 0))
    padded = [torch.nn.functional.pad(wave, pad) for wave in (prediction, target)]
    torch.testing.assert_close(short, multi_resolution_stft_loss(*padded, resolutions=[(16, 4, 16)]))


@FORMS
@pytest.mark.usefixtures("form")
def test_many_frames_are_cut_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block boundary inside an utterance changes nothing."""
    case = STFT_CASES[0]
    whole = run(case, case.inputs())
    monkeypatch.setattr("sonorant.functional.stft.ROW_BLOCK", 80)
    blocks = run(case, case.inputs())
    torch.testing.assert_close(blocks.outputs, whole.outputs, rtol=0, atol=1e-12)
    torch.testing.assert_close(blocks.gradients, whole.gradients, rtol=0, atol=1e-12)


def test_an_utterance_counts_the_same_however_long() -> None:
    """norm="utterance" takes one ratio an utterance; norm="batch" lets a long or loud one dominate."""
    target = torch.sin(torch.arange(600, dtype=torch.float64) / 3).repeat(2, 1)
    prediction = target * torch.tensor([[0.5], [1.0]], dtype=torch.float64)
    target[1, 100:] = torch.nan
    losses = multi_resolution_stft_loss(
        prediction, target, resolutions=[(64, 16, 64)], lengths=torch.tensor([600, 100])
    )
    torch.testing.assert_close(losses.spectral_convergence, torch.tensor(0.25, dtype=torch.float64))


def test_only_the_prediction_gets_a_gradient() -> None:
    prediction, target = torch.randn(2, 1, 100, generator=torch.Generator().manual_seed(0)).unbind()
    leaves = prediction.requires_grad_(), target.requires_grad_()
    sum(multi_resolution_stft_loss(*leaves, resolutions=RESOLUTIONS)).backward()
    assert prediction.grad is not None
    assert target.grad is None
    with torch.no_grad():
        assert not multi_resolution_stft_loss(*leaves, resolutions=RESOLUTIONS).log_magnitude.requires_grad


def test_each_term_has_its_own_gradient() -> None:
    prediction, target = torch.randn(2, 1, 100, generator=torch.Generator().manual_seed(0)).unbind()
    prediction.requires_grad_()
    losses = multi_resolution_stft_loss(prediction, target, resolutions=RESOLUTIONS)
    first, second = (torch.autograd.grad(term, prediction, retain_graph=True)[0] for term in losses)
    (both,) = torch.autograd.grad(3 * losses[0] - 2 * losses[1], prediction)
    torch.testing.assert_close(both, 3 * first - 2 * second)
    assert not torch.allclose(first, second)


@FORMS
@pytest.mark.usefixtures("form")
def test_nan_is_not_hidden() -> None:
    wave = torch.ones(1, 100)
    bad = wave.clone()
    bad[0, 50] = torch.nan
    losses = multi_resolution_stft_loss(bad, wave, resolutions=[(16, 4, 16)])
    assert losses.spectral_convergence.isnan()
    assert losses.log_magnitude.isnan()


def test_a_weighting_silences_rumble() -> None:
    time = torch.arange(8000) / 8000
    rumble, tone = (torch.sin(2 * torch.pi * f * time).unsqueeze(0) for f in (20, 1000))
    options = {"resolutions": [(1024, 256, 1024)], "sample_rate": 8000}
    plain = multi_resolution_stft_loss(tone + rumble, tone, **options)
    weighed = multi_resolution_stft_loss(tone + rumble, tone, a_weighting=True, **options)
    assert weighed.spectral_convergence < 0.05 * plain.spectral_convergence


def test_a_weighting_is_one_at_a_kilohertz() -> None:
    curve = a_weighting_curve(16, 16000)
    assert curve.dtype == torch.float32
    assert curve[0] == 0
    assert abs(20 * curve[1].log10() + 2.0) < 0.01  # the standard adds 2 dB
    with pytest.raises(ValueError, match="sample_rate"):
        a_weighting_curve(16, 0)


WAVE = torch.zeros(2, 50)
FINE: dict[str, Any] = {"resolutions": [(16, 4, 16)]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"resolutions": []}, "resolutions is empty"),
        ({"resolutions": [(16, 4, 16), (16, 4, 17)]}, r"resolutions\[1\] is \(16, 4, 17\)"),
        ({"resolutions": [(16, 0, 16)]}, r"resolutions\[0\]"),
        ({"magnitude": "linear"}, "magnitude must be one of log, log1p; got 'linear'"),
        ({"norm": "mean"}, "norm must be one of"),
        ({"a_weighting": True}, "sample_rate"),
        ({"lengths": torch.tensor([0, 50])}, r"lengths\[0\] is 0"),
        ({"lengths": torch.tensor([50, 51])}, r"lengths\[1\] is 51"),
        ({"lengths": torch.tensor([0.5, 1.0])}, "lengths must be integers"),
        ({"length_ratios": torch.tensor([0.5, 1.5])}, r"length_ratios\[1\] is 1.5"),
        ({"length_ratios": torch.tensor([0.5])}, "length_ratios has shape"),
        ({"length_ratios": torch.tensor([1, 1])}, "length_ratios must be floats"),
        ({"length_ratios": torch.ones(2), "lengths": torch.tensor([5, 5])}, "give one of them"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        multi_resolution_stft_loss(WAVE, WAVE, **{**FINE, **arguments})
    if not any(isinstance(value, Tensor) for value in arguments.values()):
        with pytest.raises(ValueError, match=message):
            MultiResolutionStftLoss(**{**FINE, **arguments})


def test_waveforms_of_other_shapes_are_refused() -> None:
    for prediction, target in ((WAVE, WAVE[:, :49]), (WAVE[0], WAVE[0]), (WAVE, WAVE[:1])):
        with pytest.raises(ValueError, match="prediction is"):
            multi_resolution_stft_loss(prediction, target, **FINE)


def test_the_terms_have_names() -> None:
    losses = multi_resolution_stft_loss(WAVE, WAVE, **FINE)
    assert isinstance(losses, StftLosses)
    assert losses._fields == ("spectral_convergence", "log_magnitude")
