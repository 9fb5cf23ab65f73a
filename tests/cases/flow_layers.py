"""The layers of flows."""

from functools import partial

from torch import Tensor, nn

from sonorant.nn import AffineCoupling, InvertibleLinear, WaveNet, Whitening
from tests.cases.case import Case, Inputs, Rng
from tests.reference import flow_layers as reference

CHANNELS, CONTEXT = 5, 3
NETWORK = {"context_dim": CONTEXT, "hidden_channels": 4, "num_layers": 3}


def _make_frames(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return {"x": rng.randn(2, 3, CHANNELS)}


def _make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    size = len(lengths["lengths"]), int(lengths["lengths"].max())
    return {"x": rng.randn(*size, CHANNELS), "context": rng.randn(*size, CONTEXT), **lengths}


def _linear() -> nn.Module:
    model = InvertibleLinear(CHANNELS)
    _disturb(model, 0.1)
    return model


def _whitening() -> nn.Module:
    model, data = Whitening(CHANNELS), Rng(3).randn(40, CHANNELS)
    data[:, 2] += data[:, 0] - 2 * data[:, 1]
    model.fit(data.mean(0) + 1, data.T.cov())
    return model


def _wavenet(**options: int) -> nn.Module:
    model = WaveNet(CHANNELS, 2, **options)
    _disturb(model.end, 0.5)
    return model


def _coupling(**options: int) -> nn.Module:
    model = AffineCoupling(CHANNELS, **options)
    _disturb(model.wavenet.end, 0.5)
    return model


def _disturb(module: nn.Module, deviation: float) -> None:
    for parameter in module.parameters():
        parameter.data.add_(parameter.data.new_empty(parameter.shape).normal_(std=deviation))


def _over_time(name: str, **fields: object) -> Case:
    return Case(
        name=name,
        make=_make,
        lengths={"lengths": (1, 9)},
        options=dict(NETWORK),
        differentiable=("x", "context"),
        padding={"x": {1: "lengths"}, "context": {1: "lengths"}},
        per_utterance={},
        computes_in_float32=False,
        tolerance=3e-5,
        half_tolerance=5e-2,
        **fields,  # type: ignore[arg-type]
    )


CASES = [
    Case(
        name="InvertibleLinear",
        make=_make_frames,
        lengths={},
        reference=reference.invertible_linear_by_frame,
        module=_linear,
        differentiable=("x",),
        outputs=({}, {}),
        half_tolerance=3e-2,  # of the weights
    ),
    Case(
        name="Whitening",
        make=_make_frames,
        lengths={},
        reference=reference.whitening_by_frame,
        module=_whitening,
        differentiable=("x",),
        outputs=({}, {}),
        half_tolerance=3e-2,
    ),
    _over_time("WaveNet", reference=reference.wavenet_by_utterance, module=_wavenet, outputs=({1: "lengths"},)),
    _over_time(
        "AffineCoupling",
        reference=reference.affine_coupling_by_utterance,
        module=_coupling,
        outputs=({1: "lengths"}, {1: "lengths"}),
    ),
    _over_time(
        "AffineCoupling of the context",
        reference=reference.affine_coupling_by_utterance,
        module=partial(_coupling, num_kept=0),
        outputs=({1: "lengths"}, {1: "lengths"}),
    ),
]
