"""Distances between spectra."""

from collections.abc import Iterator
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from sonorant.functional import a_weighting_curve, multi_resolution_stft_loss
from sonorant.losses import MultiResolutionStftLoss
from tests.cases.case import GOLDEN, Case, Inputs, Rng
from tests.reference.spectral import a_weighting_by_formula, stft_loss_by_utterance

RESOLUTIONS = [(16, 5, 12), (32, 8, 32), (9, 4, 7)]
LENGTHS = {"lengths": (1, 60)}  # shorter than half a transform, too


def _make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    target = rng.randn(len(lengths["lengths"]), int(lengths["lengths"].max()))
    return {"prediction": target + 0.5 * rng.randn(*target.shape), "target": target, **lengths}


def _make_ratios(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    ratios = lengths["eighths"].double() / 8
    target = rng.randn(len(ratios), 50)
    return {"prediction": target + 0.5 * rng.randn(*target.shape), "target": target, "length_ratios": ratios}


def _golden(
    tensors: dict[str, Tensor], arguments: dict[str, Any], dtype: torch.dtype = torch.float64
) -> Iterator[tuple[str, Tensor, Tensor]]:
    sizes = (arguments[name] for name in ("n_ffts", "hop_lengths", "win_lengths"))
    waves = {name: tensors[f"input/{name}"].to(dtype) for name in ("prediction", "target")}
    masked = {"norm": "frame", "length_ratios": tensors["input/length_ratios"]}
    resolutions = list(zip(*sizes, strict=True))
    for magnitude in ("log", "log1p"):
        for suffix, options in (("", {"norm": "batch"}), ("_masked", masked)):
            losses = multi_resolution_stft_loss(**waves, resolutions=resolutions, magnitude=magnitude, **options)
            for name, value in (
                (f"{magnitude}_magnitude{suffix}", losses.log_magnitude),
                (f"spectral_convergence{suffix}", losses.spectral_convergence),
            ):
                yield name, value, tensors[f"output/{name}"]


def golden_losses(arguments: dict[str, dict[str, Any]], dtype: torch.dtype) -> Iterator[tuple[str, Tensor, Tensor]]:
    """(label, ours, recorded), computed in another precision."""
    tensors = load_file(GOLDEN / "multi_resolution_stft.safetensors")
    for key, options in arguments.items():
        mine = {name.removeprefix(f"{key}/"): t for name, t in tensors.items() if name.startswith(f"{key}/")}
        yield from _golden(mine, options, dtype)


def _golden_weights(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
    if "output/a_weights_512" in tensors:
        curve = a_weighting_curve(512, arguments["sample_rate"], dtype=torch.float64)
        yield "a_weights_512", curve, tensors["output/a_weights_512"]


def _operator(norm: str) -> Any:
    def operator(inputs: Inputs) -> tuple[object, tuple[object, ...]]:
        prediction, lengths = inputs["prediction"].clone().requires_grad_(), inputs["lengths"]
        frame_lengths = 1 + lengths.clamp(min=9) // 5
        weights = prediction.detach().new_ones(9)
        sizes = (16, 5, 12, 0.0, norm, True)
        return torch.ops.sonorant.stft_distance, (prediction, inputs["target"], lengths, frame_lengths, weights, *sizes)

    return operator


def _stft(name: str, **options: Any) -> Case:
    return Case(
        name=f"multi_resolution_stft_loss, {name}",
        make=_make,
        lengths=LENGTHS,
        reference=stft_loss_by_utterance,
        function=multi_resolution_stft_loss,
        module=MultiResolutionStftLoss,
        options={"resolutions": RESOLUTIONS, **options},
        differentiable=("prediction",),
        padding={"prediction": {1: "lengths"}, "target": {1: "lengths"}},
        outputs=({}, {}),
        duplicable=({},),
        golden=_golden if name == "utterance" else None,
        golden_file="multi_resolution_stft",
        operator=_operator(options["norm"]),
        tolerance=1e-4,  # the log's gradient at small magnitudes, by the rounding of the inputs alone
    )


CASES = [
    _stft("utterance", norm="utterance"),
    _stft("frame", norm="frame", magnitude="log1p"),
    _stft("batch", norm="batch", a_weighting=True, sample_rate=8000),
    Case(
        name="multi_resolution_stft_loss, ratios",
        make=_make_ratios,
        lengths={"eighths": (1, 8)},
        reference=stft_loss_by_utterance,
        function=multi_resolution_stft_loss,
        module=MultiResolutionStftLoss,
        options={"resolutions": RESOLUTIONS, "norm": "frame"},
        differentiable=("prediction",),
        outputs=({}, {}),
        duplicable=({},),
    ),
    Case(
        name="a_weighting_curve",
        make=lambda lengths, rng: {},
        lengths={},
        reference=a_weighting_by_formula,
        function=a_weighting_curve,
        options={"n_fft": 64, "sample_rate": 16000, "dtype": torch.float64},
        golden=_golden_weights,
        golden_file="multi_resolution_stft",
    ),
]
