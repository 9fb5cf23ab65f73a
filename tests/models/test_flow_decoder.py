"""The flow decoder: its inverse, its determinant, its padding, its whitening, its samples."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from sonorant.functional import flow_nll
from sonorant.lengths import pad_sequences
from sonorant.models import FlowDecoder, FlowDecoderConfig, FlowOutput

# 15 grouped channels, then 13: odd numbers, and frames that are left over
CONFIG = FlowDecoderConfig(3, num_flows=4, hidden_channels=6, num_layers=2, early_every=2, encoder_dim=4)
N_MELS, CONTEXT_DIM = 5, 4
FRAMES = (14, 9, 3)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def spectra(frames: int, n_mels: int = N_MELS, seed: int = 0) -> Tensor:
    """Frames that are like their neighbours in time, with bins that are like their neighbours."""
    noise = normal(frames + 1, n_mels + 1, seed=seed)
    smooth = noise[1:] + 0.8 * noise[:-1]
    return 2 * (smooth[:, 1:] + 0.7 * smooth[:, :-1]) - 6


def disturb(model: FlowDecoder, deviation: float = 0.1) -> None:
    """No coupling is the identity any more, and no linear map a rotation."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            size = deviation if ".end." in name else 0.05 * deviation if "linears" in name else 0.0
            parameter += size * torch.randn(parameter.shape, generator=generator).to(parameter.dtype)


@pytest.fixture
def model() -> FlowDecoder:
    torch.manual_seed(0)
    decoder = FlowDecoder(CONFIG, N_MELS, CONTEXT_DIM).double()
    decoder.fit_whitening([spectra(200, seed=9)])
    disturb(decoder, 0.5)
    return decoder


def batch() -> tuple[list[Tensor], list[Tensor]]:
    mel = [spectra(frames, seed=index) for index, frames in enumerate(FRAMES)]
    return mel, [normal(frames, CONTEXT_DIM, seed=10 + index) for index, frames in enumerate(FRAMES)]


def nll_of(output: FlowOutput, lengths: Tensor) -> Tensor:
    return flow_nll(*output, lengths // CONFIG.group_size).nll


def test_the_inverse_gives_the_frames_back_at_real_size() -> None:
    torch.manual_seed(0)
    config = FlowDecoderConfig(num_flows=8, hidden_channels=32, encoder_dim=16)
    decoder = FlowDecoder(config, n_mels=80, context_dim=24)
    decoder.fit_whitening(spectra(500, 80, seed=seed) for seed in range(2))
    disturb(decoder)
    mel, lengths = torch.stack([spectra(60, 80, seed=seed).float() for seed in (0, 7)]), torch.tensor([60, 41])
    context = normal(2, 60, 24).float()
    with torch.no_grad():
        output = decoder(mel, lengths, context)
        back = decoder.inverse(output.z, lengths // 2, context)
    assert output.z.dtype == torch.float32
    assert all(log_scale[0].std() > 0.05 for log_scale in output.log_scales)
    assert back.shape == mel.shape
    assert (back[0] - mel[0]).abs().max() < 1e-4
    assert (back[1, :40] - mel[1, :40]).abs().max() < 1e-4
    assert not back[1, 40:].any()


def test_the_log_determinant_is_that_of_the_jacobian(model: FlowDecoder) -> None:
    mel, context, lengths = spectra(13).unsqueeze(0), normal(1, 13, CONTEXT_DIM), torch.tensor([13])

    def flow(frames: Tensor) -> Tensor:
        return model(frames.view(1, 12, N_MELS), torch.tensor([12]), context[:, :12]).z.flatten()

    jacobian = torch.autograd.functional.jacobian(flow, mel[:, :12].flatten())
    output = model(mel, lengths, context)
    assert output.z.shape == (1, 4, 15)
    assert [log_scale.shape[2] for log_scale in output.log_scales] == [15, 8, 7, 7]
    found = sum(log_scale.sum() for log_scale in output.log_scales) + 4 * sum(output.log_dets)
    assert abs(float(found.detach())) > 1
    torch.testing.assert_close(found, torch.linalg.slogdet(jacobian).logabsdet)


def test_a_batch_equals_its_utterances_whatever_the_padding(model: FlowDecoder) -> None:
    mels, contexts = batch()
    mel, lengths = pad_sequences(mels, torch.nan)
    context = pad_sequences(contexts, torch.nan).values
    together = model(mel, lengths, context)
    back = model.inverse(torch.where(together.z == 0, torch.nan, together.z), lengths // 3, context)
    for index, frames in enumerate(FRAMES):
        groups = frames // 3
        alone = model(mels[index][None], torch.tensor([frames]), contexts[index][None])
        torch.testing.assert_close(together.z[index, :groups], alone.z[0])
        assert not together.z[index, groups:].any()
        for ours, its in zip(together.log_scales, alone.log_scales, strict=True):
            torch.testing.assert_close(ours[index, :groups], its[0])
        torch.testing.assert_close(back[index, : 3 * groups], mels[index][: 3 * groups])
        assert not back[index, 3 * groups :].any()


def test_padding_leaves_no_trace_in_gradients(model: FlowDecoder) -> None:
    def gradients(mel: Tensor, context: Tensor, lengths: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        model.zero_grad()
        mel, context = mel.clone().requires_grad_(), context.clone().requires_grad_()
        # a sum over frames: the utterances' gradients add up
        (nll_of(model(mel, lengths, context), lengths) * (lengths // 3).sum()).backward()
        assert mel.grad is not None
        assert context.grad is not None
        return [parameter.grad.clone() for parameter in model.parameters()], mel.grad, context.grad

    mels, contexts = batch()
    mel, lengths = pad_sequences(mels, torch.nan)
    found, of_mel, of_context = gradients(mel, pad_sequences(contexts, torch.inf).values, lengths)
    alone = [
        gradients(frames[None], its_context[None], lengths[index : index + 1])
        for index, (frames, its_context) in enumerate(zip(mels, contexts, strict=True))
    ]
    for index, of_parameter in enumerate(found):
        torch.testing.assert_close(of_parameter, sum(single[0][index] for single in alone))
    for index, frames in enumerate(FRAMES):
        torch.testing.assert_close(of_mel[index, :frames], alone[index][1][0])
        torch.testing.assert_close(of_context[index, :frames], alone[index][2][0])
        assert not of_mel[index, frames:].any()
        assert not of_context[index, frames:].any()


def test_every_parameter_learns(model: FlowDecoder) -> None:
    mels, contexts = batch()
    mel, lengths = pad_sequences(mels)
    nll_of(model(mel, lengths, pad_sequences(contexts).values), lengths).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_the_first_flow_is_a_regression_on_the_context_that_the_others_begin_with_as_it_is() -> None:
    torch.manual_seed(0)
    decoder = FlowDecoder(CONFIG, N_MELS, CONTEXT_DIM).double()
    decoder.fit_whitening([spectra(200, seed=9)])
    torch.nn.init.normal_(decoder.couplings[0].wavenet.end.weight)  # type: ignore[union-attr, arg-type]
    mels, contexts = batch()
    mel, lengths = pad_sequences(mels)
    context = pad_sequences(contexts).values
    first, whole = decoder(mel, lengths, context, num_flows=1), decoder(mel, lengths, context)
    assert len(first.log_scales) == len(first.log_dets) == 1
    torch.testing.assert_close(nll_of(first, lengths), nll_of(whole, lengths), rtol=1e-4, atol=0)
    # scaled and shifted by what the context says, whatever the frames are
    difference = decoder(mel + 1, lengths, context, num_flows=1).z - first.z
    expected = first.log_scales[0].exp() * (torch.ones(15, dtype=torch.float64) @ decoder.whitening.weight)
    torch.testing.assert_close(difference[0], expected[0])
    disturb(decoder, 0.5)
    disturbed = decoder(mel, lengths, context)
    assert abs(float((nll_of(disturbed, lengths) - nll_of(whole, lengths)).detach())) > 1e-3


def test_lengths_are_rounded_down_to_whole_groups(model: FlowDecoder) -> None:
    mel, context = spectra(14).unsqueeze(0), normal(1, 14, CONTEXT_DIM)
    outputs = [model(mel, torch.tensor([length]), context) for length in (12, 14)]
    assert torch.equal(outputs[0].z, outputs[1].z)
    changed = mel.clone()
    changed[0, 12:] = 99
    assert torch.equal(model(changed, torch.tensor([14]), context).z, outputs[0].z)


@pytest.mark.parametrize("constant", [None, 3])
def test_after_whitening_the_prior_term_is_a_half(constant: int | None) -> None:
    torch.manual_seed(0)
    config = FlowDecoderConfig(num_flows=4, hidden_channels=8, encoder_dim=4)
    decoder = FlowDecoder(config, n_mels=40, context_dim=3)
    recordings = [spectra(frames, 40, seed=frames) for frames in range(60, 120)]
    if constant is not None:
        for recording in recordings:
            recording[:, constant] = -11.5
    decoder.fit_whitening(recordings)
    mel, lengths = pad_sequences([recording.float() for recording in recordings])
    output = decoder(mel, lengths, torch.zeros(*mel.shape[:2], 3))
    assert 0.48 < float(flow_nll(*output, lengths // 2).prior_nll) < 0.52
    with torch.no_grad():
        back = decoder.inverse(output.z, lengths // 2, torch.zeros(*mel.shape[:2], 3))
    assert (back[0, :60] - mel[0, :60]).abs().max() < 1e-4


def test_the_statistics_are_those_of_all_groups(model: FlowDecoder) -> None:
    recordings = [spectra(frames, seed=frames) for frames in (30, 2, 3, 50)]
    decoder = FlowDecoder(CONFIG, N_MELS, CONTEXT_DIM).double()
    decoder.fit_whitening(iter(recordings))
    groups = torch.stack(
        [frames[start : start + 3].flatten() for frames in recordings for start in range(len(frames) - 2)]
    )
    torch.testing.assert_close(decoder.whitening.mean, groups.mean(0))
    covariance = groups.T.cov(correction=0)
    ridge = 1e-4 * covariance.diagonal().mean() * torch.eye(15, dtype=torch.float64)
    weight = decoder.whitening.weight
    torch.testing.assert_close(weight.T @ (covariance + ridge) @ weight, torch.eye(15, dtype=torch.float64))


def test_recordings_that_have_no_statistics(model: FlowDecoder) -> None:
    broken = spectra(20)
    broken[4, 2] = torch.nan
    for frames, message in (
        ([spectra(9), spectra(10)], "frames has 15 groups of 3 frames; their covariance needs more than 15"),
        ([], "frames has 0 groups"),
        ([spectra(20), broken], r"frames\[1\]\[4, 2\] is nan"),
        ([spectra(20), spectra(20, 6)], r"frames\[1\] must have shape \(time, 5\); got \(20, 6\)"),
        ([torch.full((40, 5), -11.5)], "no variance"),
    ):
        before = copy.deepcopy(model.state_dict())
        with pytest.raises(ValueError, match=message):
            model.fit_whitening(frames)
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_without_noise_a_sample_is_the_inverse_of_zeros(model: FlowDecoder) -> None:
    context, lengths = normal(2, 12, CONTEXT_DIM), torch.tensor([12, 9])
    expected = model.inverse(torch.zeros(2, 4, 15, dtype=torch.float64), lengths // 3, context)
    torch.testing.assert_close(model.sample(lengths, context, temperature=0.0), expected)


def test_the_last_frame_of_the_context_fills_the_last_group(model: FlowDecoder) -> None:
    context, lengths = normal(2, 11, CONTEXT_DIM), torch.tensor([11, 4])
    seeds = torch.tensor([3, 4])
    poisoned = context.clone()
    poisoned[1, 4:] = torch.nan
    found = model.sample(lengths, poisoned, seeds=seeds)
    assert found.shape == (2, 11, N_MELS)
    assert not found[1, 4:].any()
    for index, (length, filled) in enumerate(((11, 12), (4, 6))):
        longer = torch.cat([context[index, :length], context[index, length - 1 :][:1].expand(filled - length, -1)])
        full = model.sample(torch.tensor([filled]), longer.unsqueeze(0), seeds=seeds[index : index + 1])
        torch.testing.assert_close(found[index, :length], full[0, :length])


def test_samples_come_from_seeds_and_not_from_the_batch(model: FlowDecoder) -> None:
    contexts = batch()[1]
    context, lengths = pad_sequences(contexts, torch.nan)
    seeds = torch.tensor([7, 8, 7])
    together = model.sample(lengths, context, seeds=seeds)
    assert torch.equal(model.sample(lengths, context, seeds=seeds), together)
    assert not torch.allclose(model.sample(lengths, context, seeds=seeds + 1), together)
    for index, frames in enumerate(FRAMES):
        its = torch.tensor([frames]), contexts[index][None]
        alone = model.sample(*its, seeds=seeds[index : index + 1])
        torch.testing.assert_close(together[index, :frames], alone[0])
    torch.manual_seed(1)
    first = model.sample(lengths, context)
    assert not torch.equal(model.sample(lengths, context), first)
    torch.manual_seed(1)
    assert torch.equal(model.sample(lengths, context), first)


def test_the_temperature_is_the_deviation_of_the_noise(model: FlowDecoder) -> None:
    context, lengths = normal(1, 300, CONTEXT_DIM), torch.tensor([300])
    seeds = torch.tensor([0])
    for temperature in (0.5, 1.0):
        mel = model.sample(lengths, context, temperature=temperature, seeds=seeds)
        z = model(mel, lengths, context).z
        assert abs(float(z.std()) - temperature) < 0.05 * temperature
        assert abs(float(z.mean())) < 0.1


def test_autocast_keeps_the_linear_maps_in_float32() -> None:
    torch.manual_seed(0)
    decoder = FlowDecoder(CONFIG, N_MELS, CONTEXT_DIM)
    decoder.fit_whitening([spectra(200)])
    mel, lengths, context = spectra(14)[None].float(), torch.tensor([14]), normal(1, 14, CONTEXT_DIM).float()
    plain = decoder(mel, lengths, context)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = decoder(mel, lengths, context)
    # untrained couplings are the identity, whatever their networks compute in
    assert mixed.z.dtype == torch.float32
    assert torch.equal(mixed.z, plain.z)
    assert torch.equal(torch.stack(mixed.log_dets), torch.stack(plain.log_dets))


def test_autocast_trains_and_inverts(model: FlowDecoder) -> None:
    model.float()
    mels, contexts = batch()
    mel, lengths = pad_sequences([frames.float() for frames in mels])
    context = pad_sequences([frames.float() for frames in contexts]).values
    plain = nll_of(model(mel, lengths, context), lengths)
    with torch.autocast("cpu", torch.bfloat16):
        output = model(mel, lengths, context)
        nll = nll_of(output, lengths)
        back = model.inverse(output.z, lengths // 3, context)
    nll.backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())
    assert 0 < abs(float((nll - plain).detach())) < 0.02
    # the networks give the same numbers both times
    torch.testing.assert_close(back[0, :12], mel[0, :12], rtol=0, atol=1e-3)


def test_a_half_model_keeps_its_linear_maps_in_float32(model: FlowDecoder) -> None:
    model = model.to(torch.bfloat16)
    mel, lengths = spectra(12)[None].to(torch.bfloat16), torch.tensor([12])
    context = normal(1, 12, CONTEXT_DIM).to(torch.bfloat16)
    output = model(mel, lengths, context)
    assert output.z.dtype == output.log_dets[0].dtype == output.log_scales[0].dtype == torch.float32
    torch.testing.assert_close(model.inverse(output.z, lengths // 3, context), mel.float(), rtol=0, atol=1e-2)


def test_copies_and_state_dicts_keep_the_whitening(model: FlowDecoder) -> None:
    mel, lengths, context = spectra(14)[None], torch.tensor([14]), normal(1, 14, CONTEXT_DIM)
    fresh = FlowDecoder(CONFIG, N_MELS, CONTEXT_DIM).double()
    fresh.load_state_dict(model.state_dict())
    expected = model(mel, lengths, context).z
    for twin in (fresh, copy.deepcopy(model)):
        assert torch.equal(twin(mel, lengths, context).z, expected)


@torch._dynamo.config.patch(allow_rnn=True)  # torch 2.13 calls LSTMs in a graph experimental
def test_compiles_in_one_graph(model: FlowDecoder) -> None:
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    mels, contexts = batch()
    mel, lengths = pad_sequences(mels)
    context = pad_sequences(contexts).values
    expected, found = (nll_of(run(mel, lengths, context), lengths) for run in (model, compiled))
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(nll, list(model.parameters())) for nll in (expected, found)]
    torch.testing.assert_close(gradients[1], gradients[0])


def call(model: FlowDecoder, method: str = "forward", **changed: object) -> object:
    lengths = torch.tensor([12, 9])
    given: dict[str, object] = {"lengths": lengths, "context": normal(2, 12, CONTEXT_DIM)}
    if method == "forward":
        given["mel"] = normal(2, 12, N_MELS)
    if method == "inverse":
        given |= {"z": normal(2, 4, 15), "lengths": lengths // 3}
    return getattr(model, method)(**(given | changed))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mel": normal(2, 12, 6)}, r"mel must have shape \(batch, time, 5\); got \(2, 12, 6\)"),
        ({"context": normal(2, 11, 4)}, r"context must have shape \(2, 12, 4\); got \(2, 11, 4\)"),
        ({"lengths": torch.tensor([12, 2])}, r"lengths\[1\] is 2; the smallest length allowed is 3"),
        ({"lengths": torch.tensor([13, 9])}, r"lengths\[0\] is 13, but the tensor holds only 12"),
        ({"lengths": torch.tensor([1.0, 0.5])}, "lengths must be integers"),
        ({"method": "inverse", "z": normal(2, 4, 14)}, r"z must have shape \(batch, time, 15\); got \(2, 4, 14\)"),
        ({"method": "inverse", "lengths": torch.tensor([3, 0])}, r"lengths\[1\] is 0"),
        ({"method": "inverse", "lengths": torch.tensor([5, 3])}, r"lengths\[0\] is 5, but the tensor holds only 4"),
        ({"method": "inverse", "context": normal(2, 11, 4)}, r"context must have shape \(2, at least 12, 4\); got"),
        ({"method": "sample", "context": normal(2, 12, 5)}, r"context must have shape \(batch, time, 4\); got"),
        ({"method": "sample", "lengths": torch.tensor([12, 0])}, r"lengths\[1\] is 0"),
        ({"method": "sample", "temperature": -0.1}, "temperature must be at least 0; got -0.1"),
        ({"method": "sample", "temperature": float("nan")}, "temperature must be at least 0; got nan"),
        ({"method": "sample", "seeds": torch.tensor([1])}, r"seeds must have shape \(2,\); got \(1,\)"),
    ],
)
def test_impossible_arguments(model: FlowDecoder, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(model, **arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FlowDecoderConfig(group_size=0), "group_size must be at least 1; got 0"),
        (lambda: FlowDecoderConfig(num_flows=0), "num_flows must be at least 1; got 0"),
        (lambda: FlowDecoderConfig(early_every=-1), "early_every must be at least 0; got -1"),
        (lambda: FlowDecoderConfig(kernel_size=4), "kernel_size must be an odd number; got 4"),
        (
            lambda: FlowDecoder(FlowDecoderConfig(num_flows=8, early_channels=3), n_mels=5, context_dim=2),
            r"n_mels \* group_size is 10, of which 9 leave early \(early_channels 3, early_every 2\)",
        ),
    ],
)
def test_impossible_settings(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_channels_that_stay_to_the_end() -> None:
    assert FlowDecoderConfig(num_flows=5, early_every=0).channels(8) == [8] * 5
    assert FlowDecoderConfig(num_flows=5, early_every=2, early_channels=3).channels(8) == [8, 8, 5, 5, 2]
