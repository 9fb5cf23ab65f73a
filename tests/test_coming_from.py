"""The conversions of docs/coming-from.md give the numbers that were recorded from the originals."""

import functools
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from sonorant import sequence_mask
from sonorant.functional import invariance_loss
from sonorant.lengths import ratio_lengths
from sonorant.nn import Tdnn
from tests.cases.case import GOLDEN
from tests.documentation import all_blocks


@functools.cache
def conversions() -> dict[str, Any]:
    """The functions of the page."""
    torch.manual_seed(0)
    found: dict[str, Any] = {}
    for block in all_blocks():
        if block.page.endswith("coming-from.md"):
            found |= {name: thing for name, thing in block.run().items() if "_as_in_" in name}
    return found


def recorded(component: str) -> Iterator[tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]]]:
    """(inputs, outputs, arguments) of each case."""
    tensors = load_file(GOLDEN / f"{component}.safetensors")
    for key, arguments in json.loads((GOLDEN / "cases.json").read_text())[component].items():
        groups: dict[str, dict[str, Tensor]] = {"input": {}, "output": {}, "state": {}}
        for name, tensor in tensors.items():
            case, group, label = name.split("/", 2)
            if case == key:
                groups[group][label] = tensor
        yield groups["input"], groups["output"], {**arguments, "state": groups["state"]}


def equal(actual: Tensor, expected: Tensor | float) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), rtol=1e-9, atol=1e-9)


def double(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# SpeechBrain


def test_guided_attention_over_the_padded_grid() -> None:
    for inputs, outputs, arguments in recorded("guided_attention"):
        sizes = inputs["key_lengths"], inputs["query_lengths"]
        old = conversions()["guided_attention_as_in_speechbrain"]
        equal(old(inputs["attention"], *sizes, arguments["sigma"]), outputs["mean_over_padded_grid"])
        weights = conversions()["guided_attentions_as_in_speechbrain"](*sizes, arguments["sigma"])
        expected = outputs["weights"].transpose(1, 2)
        torch.testing.assert_close(weights.double(), expected, rtol=0, atol=1e-6)  # weights alone are float32
        each = old(inputs["attention"], *sizes, arguments["sigma"], reduction="batch")
        equal(each, (outputs["weights"] * inputs["attention"]).mean((1, 2)))


# WeNet


def test_label_smoothing_by_utterance_and_by_token() -> None:
    for inputs, outputs, arguments in recorded("label_smoothing"):
        for normalize_length, name in ((False, "batchmean"), (True, "mean")):
            old = conversions()["label_smoothing_as_in_wenet"](
                inputs["logits"],
                inputs["targets"],
                arguments["ignore_index"],
                arguments["smoothing"],
                normalize_length,
            )
            equal(old, outputs[name])


# icefall


def test_tdnn_that_counts_padding_in_its_statistics() -> None:
    original: list[nn.Module] = []
    for channels, kernel_size, dilation in ((23, 3, 1), (32, 5, 2), (32, 5, 4)):
        original += [
            nn.Conv1d(channels, 32, kernel_size, dilation=dilation),
            nn.ReLU(),
            nn.BatchNorm1d(32, affine=False),
        ]
    layers = nn.ModuleDict({"tdnn": nn.Sequential(*original), "output_linear": nn.Linear(32, 4)}).double()
    for inputs, _, arguments in recorded("tdnn"):
        layers.load_state_dict(arguments["state"], strict=True)
        model = Tdnn(23, 4).double()
        model.load_state_dict(layers.state_dict(), strict=True)
        mask = sequence_mask(inputs["x_lengths"], inputs["x"].shape[1]).unsqueeze(2)
        x = torch.where(mask, inputs["x"], math.log(1e-10))
        old = conversions()["tdnn_as_in_icefall"](model.train(), x)
        expected = layers["output_linear"](layers["tdnn"].train()(x.transpose(1, 2)).transpose(1, 2)).log_softmax(-1)
        equal(old.detach(), expected.detach())


# fairseq


def test_location_attention_of_one_step() -> None:
    for inputs, outputs, arguments in recorded("location_attention"):
        state = arguments.pop("state")
        attention = conversions()["location_attention_as_in_fairseq"](**arguments).double()
        attention.load_state_dict(state, strict=True)
        padding_mask = ~sequence_mask(inputs["memory_lengths"], inputs["memory"].shape[1])
        attend = functools.partial(conversions()["attend_as_in_fairseq"], attention, inputs["memory"], padding_mask)
        for query, suffix in ((inputs["query"], ""), (None, "_without_query")):
            context, weights = attend(query, inputs["attention_state"])
            equal(context.detach(), outputs[f"context{suffix}"])
            equal(weights.detach(), outputs[f"weights{suffix}"])


# RAD-TTS and RAD-MMM: alignment


def test_forward_sum_means() -> None:
    old = conversions()["attention_ctc_as_in_radtts"]
    for inputs, outputs, arguments in recorded("forward_sum"):
        lengths = inputs["key_lengths"], inputs["query_lengths"]
        mean, costs = old(inputs["log_attention"].unsqueeze(1), *lengths, arguments["blank_logprob"], return_all=True)
        equal(mean, outputs["mean"])
        equal(torch.stack(costs), outputs["nll"] / inputs["key_lengths"])


def test_forward_sum_counts_infeasible_utterances_in_the_divisor() -> None:
    scores, in_lens, out_lens = double(3, 1, 5, 4), torch.tensor([3, 4, 2]), torch.tensor([5, 3, 4])
    total = torch.zeros((), dtype=torch.float64)
    for utterance, num_keys, num_queries in zip(scores, in_lens.tolist(), out_lens.tolist(), strict=True):
        with_blank = F.pad(utterance[0, :num_queries, :num_keys], (1, 0), value=-1.0).log_softmax(1)
        targets, sizes = torch.arange(1, num_keys + 1).unsqueeze(0), ([num_queries], [num_keys])
        total += F.ctc_loss(with_blank.unsqueeze(1), targets, *sizes, zero_infinity=True)
    equal(conversions()["attention_ctc_as_in_radtts"](scores, in_lens, out_lens), total / 3)


def test_binarization_with_the_floor_of_binary_cross_entropy() -> None:
    old = conversions()["attention_binarization_as_in_radmmm"]
    for inputs, outputs, _ in recorded("attention_binarization"):
        equal(old(inputs["hard"], inputs["soft"]), outputs["mean"])
    hard, soft = torch.ones(1, 1, 3), torch.tensor([[[0.0, 1.0, 0.3]]], dtype=torch.float64, requires_grad=True)
    theirs = F.binary_cross_entropy(soft[hard == 1], torch.ones(3, dtype=torch.float64))
    equal(old(hard, soft).detach(), theirs.detach())
    # as the page says of the gradients
    (their_gradient,) = torch.autograd.grad(theirs, soft)
    (our_gradient,) = torch.autograd.grad(old(hard, soft), soft)
    expected = torch.tensor([-1e12 / 3, 0.0, -1 / 0.9], dtype=torch.float64)
    torch.testing.assert_close(their_gradient.flatten(), expected, rtol=1e-6, atol=0)
    expected = torch.tensor([0.0, -1 / 3, -1 / 0.9], dtype=torch.float64)
    equal(our_gradient.flatten(), expected)


def test_attention_loss_before_and_after_binarization_starts() -> None:
    for inputs, outputs, arguments in recorded("flow_tts_composite"):
        for step in (10, 5000, 5001, 9000):
            old = conversions()["attention_loss_as_in_radmmm"](
                *(inputs[name].unsqueeze(1) for name in ("hard", "soft", "log_attention")),
                step,
                inputs["key_lengths"],
                inputs["query_lengths"],
                arguments["blank_logprob"],
            )
            binarization = outputs["step9000_binarization"] if step > 5000 else 0.0
            equal(old, 0.1 * outputs["step9000_forward_sum"] + binarization)


def test_alignment_search_of_probabilities() -> None:
    for inputs, outputs, _ in recorded("monotonic_alignment_search"):
        attention = inputs["log_attention"].exp().unsqueeze(1)
        hard = conversions()["binarize_attention_as_in_radtts"](
            attention, inputs["key_lengths"], inputs["query_lengths"]
        )
        assert torch.equal(hard, outputs["alignment"].unsqueeze(1))


def test_priors_of_one_utterance() -> None:
    for inputs, outputs, arguments in recorded("beta_binomial_prior"):
        sizes = zip(inputs["key_lengths"].tolist(), inputs["query_lengths"].tolist(), strict=True)
        for (num_keys, num_queries), expected in zip(sizes, outputs["prior"], strict=True):
            old = conversions()["prior_as_in_radtts"](num_keys, num_queries, arguments["scaling"])
            equal(old, expected[:num_queries, :num_keys])


def test_prior_with_one_more_outcome() -> None:
    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def probability(key: int, a: int, b: int) -> float:
        return math.comb(4, key) * math.exp(log_beta(key + a, 4 - key + b) - log_beta(a, b))

    rows = [[probability(key, row, 6 - row) for key in range(4)] for row in range(1, 6)]
    equal(conversions()["prior_as_in_fastpitch"](4, 5), torch.tensor(rows, dtype=torch.float64))


# RAD-TTS and RAD-MMM: flows and attributes


def test_flow_loss_where_lengths_are_in_groups() -> None:
    for inputs, outputs, arguments in recorded("flow_nll"):
        z = inputs["z"].transpose(1, 2)
        log_s = [inputs[f"log_s{step}"].transpose(1, 2) for step in range(arguments["n_steps"])]
        log_det_w = [inputs[f"log_det_w{step}"] for step in range(arguments["n_steps"])]
        losses = conversions()["flow_loss_as_in_radtts"](z, log_det_w, log_s, inputs["lengths"], 1, arguments["sigma"])
        for loss, name in zip(losses, ("nll", "prior_nll"), strict=True):
            equal(loss, outputs[name])


def test_flow_loss_counts_elements_of_the_sum_of_lengths() -> None:
    z, log_s, log_det_w = double(2, 6, 4), [double(2, 3, 4, seed=1), double(2, 2, 4, seed=2)], list(double(2, seed=3))
    out_lens, sigma = torch.tensor([7, 5]), 0.7
    n_elements, mask = 12 // 2, sequence_mask(out_lens // 2, 4).unsqueeze(1)
    assert n_elements > (out_lens // 2).sum()
    prior = (z * mask).square().sum() / (2 * sigma**2)
    volume = sum((each * mask).sum() for each in log_s) + n_elements * sum(log_det_w)
    loss, prior_loss = conversions()["flow_loss_as_in_radtts"](z, log_det_w, log_s, out_lens, 2, sigma)
    equal(loss, (prior - volume) / (n_elements * 6))
    equal(prior_loss, prior / (n_elements * 6))


def test_attribute_losses() -> None:
    for inputs, outputs, _ in recorded("masked_regression"):
        x_hat, x, binary = (inputs[name].transpose(1, 2) for name in ("prediction", "target", "binary_target"))
        equal(conversions()["attribute_regression_as_in_radmmm"](x_hat, x, inputs["lengths"]), outputs["mse"])
        equal(conversions()["attribute_bce_as_in_radmmm"](x_hat, binary, inputs["lengths"]), outputs["bce_with_logits"])


@pytest.mark.parametrize("name", ["f0", "vpred"])
def test_regression_per_frame_with_padded_logits(name: str) -> None:
    x_hat, x, out_lens = double(2, 3, 5), double(2, 3, 5, seed=1).sigmoid(), torch.tensor([5, 2])
    mask = sequence_mask(out_lens, 5).unsqueeze(1)
    function = F.binary_cross_entropy_with_logits if name == "vpred" else F.mse_loss
    expected = function(x_hat * mask, x * mask, reduction="sum") / mask.sum()
    equal(conversions()["regression_loss_as_in_radtts"](x_hat, x, out_lens, name), expected)


# RAD-MMM: embeddings, adversarial, spectral, composites


def test_embedding_regularizers() -> None:
    for inputs, outputs, arguments in recorded("embedding_regularization"):
        tables = [nn.Embedding.from_pretrained(inputs[f"table_{side}"]) for side in "ab"]
        rows = [table(inputs[f"index_{side}"]) for table, side in zip(tables, "ab", strict=True)]
        cross_covariance = conversions()["cross_covariance_as_in_radmmm"]
        equal(cross_covariance(*rows, *tables), outputs["cross_covariance_about_tables"])
        equal(cross_covariance(*rows), outputs["cross_covariance_about_batch"])
        variance, covariance = conversions()["variance_covariance_as_in_radmmm"](tables[0], arguments["gamma"])
        equal(variance, outputs["variance"])
        equal(covariance, outputs["covariance"])
        equal(invariance_loss(rows[0], rows[0].roll(1, 0)), outputs["invariance_to_rolled_batch"])


def test_adversarial_losses_and_their_lists() -> None:
    for inputs, outputs, arguments in recorded("adversarial"):
        counts = range(arguments["n_discriminators"]), range(arguments["n_maps"])
        real, fake = ([inputs[f"{kind}_score{index}"] for index in counts[0]] for kind in ("real", "fake"))
        maps = (
            [[inputs[f"{kind}_map{outer}_{inner}"] for inner in counts[1]] for outer in counts[0]]
            for kind in ("real", "fake")
        )
        real_maps, fake_maps = maps
        for suffix, ratios in (("", None), ("_masked", inputs["length_ratios"])):
            loss, r_losses, g_losses = conversions()["discriminator_loss_as_in_radmmm"](real, fake, ratios)
            equal(loss, outputs[f"discriminator{suffix}"])
            for index in counts[0]:
                equal(_mean((1 - real[index]).square(), ratios), r_losses[index])
                equal(_mean(fake[index].square(), ratios), g_losses[index])
            loss, losses = conversions()["generator_loss_as_in_radmmm"](fake, ratios)
            equal(loss, outputs[f"generator{suffix}"])
            equal(losses[1], _mean((1 - fake[1]).square(), ratios))
            value = conversions()["feature_loss_as_in_radmmm"](real_maps, fake_maps, ratios)
            equal(value, outputs[f"feature_matching{suffix}"])


def _mean(values: Tensor, ratios: Tensor | None) -> Tensor:
    if ratios is None:
        return values.mean()
    return values[sequence_mask(ratio_lengths(ratios, values.shape[1]), values.shape[1])].mean()


def test_spectral_losses_with_and_without_lengths() -> None:
    for inputs, outputs, arguments in recorded("multi_resolution_stft"):
        waves = [inputs[name].unsqueeze(1) for name in ("prediction", "target")]
        sizes = {
            "fft_sizes": arguments["n_ffts"],
            "hop_sizes": arguments["hop_lengths"],
            "win_lengths": arguments["win_lengths"],
        }
        for suffix, ratios in (("", None), ("_masked", inputs["length_ratios"])):
            for a_weighting, name in ((False, "log"), (True, "log1p")):
                losses = conversions()["stft_loss_as_in_radmmm"](*waves, ratios, **sizes, a_weighting=a_weighting)
                equal(losses[0], outputs[f"spectral_convergence{suffix}"])
                equal(losses[1], outputs[f"{name}_magnitude{suffix}"])


def test_composites() -> None:
    for inputs, outputs, arguments in recorded("flow_tts_composite"):
        names = sorted(inputs)
        model_output = {
            "z_mel": inputs["z"].transpose(1, 2),
            "log_s_list": [inputs[name].transpose(1, 2) for name in names if name.startswith("log_s")],
            "log_det_W_list": [inputs[name] for name in names if name.startswith("log_det_w")],
            "attn": inputs["hard"].unsqueeze(1),
            "attn_soft": inputs["soft"].unsqueeze(1),
            "attn_logprob": inputs["log_attention"].unsqueeze(1),
        }
        sizes = inputs["key_lengths"], inputs["query_lengths"]
        for step in (10, 9000):
            total, _ = conversions()["flow_tts_as_in_radmmm"](
                model_output, *sizes, step, arguments["sigma"], arguments["n_group_size"]
            )
            equal(total, outputs[f"step{step}_total"])
    for inputs, outputs, _ in recorded("mel_tts_composites"):
        scores = double(len(inputs["lengths"]), 1, 12, 2)
        model_output = dict.fromkeys(("attn", "attn_soft", "attn_logprob"), scores)
        for name in ("mel_hat", "noise_hat"):
            model_output[name] = inputs["prediction"].transpose(1, 2)
        for name in ("mel", "noise"):
            model_output[name] = inputs["target"].transpose(1, 2)
        sizes = inputs["lengths"].clamp(max=2), inputs["lengths"]
        equal(
            conversions()["deterministic_terms_as_in_radmmm"](model_output, *sizes).mel_l1, outputs["deterministic_mae"]
        )
        equal(conversions()["diffusion_terms_as_in_radmmm"](model_output, *sizes).noise_mse, outputs["diffusion_mse"])
