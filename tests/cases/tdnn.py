"""Time-delay neural networks."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from sonorant.nn import Tdnn
from tests.cases.case import Case, Inputs, Rng
from tests.reference.tdnn import tdnn_by_utterance

FEATURES = 5


def _make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    x = rng.randn(len(lengths["x_lengths"]), int(lengths["x_lengths"].max()), FEATURES)
    return {"x": x, **lengths}


def _module(**options: Any) -> nn.Module:
    return Tdnn(FEATURES, 4, **options)


def _output_lengths(inputs: Inputs) -> Tensor:
    return inputs["x_lengths"] - 26


def _golden(tensors: dict[str, Tensor], arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor, Tensor]]:
    state = {k.removeprefix("state/"): v for k, v in tensors.items() if k.startswith("state/")}
    model = Tdnn(**arguments).double()
    model.load_state_dict(state, strict=True)
    for mode, training in (("eval", False), ("train", True)):
        output = model.train(training)(tensors["input/x"], tensors["input/x_lengths"])
        yield mode, output.values, tensors[f"output/{mode}"]
        yield "lengths", output.lengths, tensors["output/lengths"]


def _tdnn(name: str, training: bool) -> Case:
    return Case(
        name=name,
        make=_make,
        lengths={"x_lengths": (28 if training else 27, 40)},  # one frame has no variance
        reference=tdnn_by_utterance,
        module=_module,
        options={"hidden_channels": 6},
        differentiable=("x",),
        padding={"x": {1: "x_lengths"}},
        outputs=({1: _output_lengths}, {}),
        per_utterance=None if training else {},
        training=training,
        golden=_golden if training else None,
        golden_file="tdnn",
        computes_in_float32=False,
        tolerance=3e-5,
        half_tolerance=5e-2,
    )


CASES = [_tdnn("Tdnn, training", training=True), _tdnn("Tdnn, inference", training=False)]
