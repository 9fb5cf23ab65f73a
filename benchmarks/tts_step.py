"""A training step of the flow decoder against the same step in the form in common use.

    python -m benchmarks.tts_step [--batch N] [--frames N] [--hidden N] [--flows N] [--layers N] [--kernel N] [--bf16]

A step is forward, likelihood and backward. The other form is benchmarks/flow_originals.py, with the same weights; it is
measured with weight normalisation, as its models are trained, and without, which is exactly what ours computes. The
loss and its gradients with respect to mel, context and the linear maps must agree in float32 before time is taken;
--bf16 then takes the time under autocast for both.
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.flow_originals import CommonFlow, common_nll
from benchmarks.inputs import rng, varied
from sonorant.functional import flow_nll
from sonorant.models import FlowDecoder, FlowDecoderConfig

N_MELS, CONTEXT_DIM = 80, 100
TOLERANCE = 1e-3


class FlowBatch(NamedTuple):
    mel: Tensor
    lengths: Tensor
    context: Tensor


def make_batch(batch: int, frames: int) -> FlowBatch:
    random = rng()
    mel, context = 2 * random.randn(batch, frames, N_MELS) - 5, random.randn(batch, frames, CONTEXT_DIM)
    return FlowBatch(mel.requires_grad_(), varied(batch, frames, random), context.requires_grad_())


def make_model(config: FlowDecoderConfig) -> FlowDecoder:
    """One that has been trained a little: its couplings do something."""
    torch.manual_seed(0)
    model = FlowDecoder(config, N_MELS, CONTEXT_DIM)
    model.fit_whitening([2 * rng().randn(2000, N_MELS) - 5])
    for coupling in model.couplings:
        nn.init.normal_(coupling.wavenet.end.weight, std=0.02)
    return model


def ours(model: FlowDecoder, batch: FlowBatch) -> Tensor:
    return flow_nll(*model(*batch), batch.lengths // model.config.group_size).nll


def theirs(model: CommonFlow, batch: FlowBatch) -> Tensor:
    output = model(batch.mel.transpose(1, 2), batch.lengths, batch.context.transpose(1, 2))
    return common_nll(*output, batch.lengths // model.group_size)


def step(loss: Callable[[], Tensor], batch: FlowBatch, model: FlowDecoder, bf16: bool = False) -> list[Tensor]:
    """The loss and the gradients with respect to mel, context and the linear maps, which both forms share."""
    sources = [batch.mel, batch.context, *model.linears.parameters()]
    for source in sources:
        source.grad = None
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        value = loss()
    value.backward()
    return [value.detach(), *(source.grad for source in sources if source.grad is not None)]


def compare(
    config: FlowDecoderConfig, sizes: tuple[int, int], repeats: int = 7, bf16: bool = False
) -> dict[str, float]:
    """CPU seconds of a step, the best of some in turn, by form."""
    model, batch = make_model(config), make_batch(*sizes)
    normed, plain = CommonFlow(model), CommonFlow(model, normed=False)
    forms: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {
        "in common use": (normed, lambda: theirs(normed, batch)),
        "without weight normalisation": (plain, lambda: theirs(plain, batch)),
        "sonorant": (model, lambda: ours(model, batch)),
    }
    expected = step(forms["sonorant"][1], batch, model)
    for name, (_, loss) in forms.items():
        for found, wanted in zip(step(loss, batch, model), expected, strict=True):
            error = float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6))
            if not error < TOLERANCE:
                raise SystemExit(f"sonorant and {name} differ by {error:.1e}; there is nothing to compare")
    best = dict.fromkeys(forms, float("inf"))
    for _ in range(repeats):
        for name, (module, loss) in forms.items():
            module.zero_grad()
            start = time.process_time()
            step(loss, batch, model, bf16)
            best[name] = min(best[name], time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("batch", 32), ("frames", 100), ("hidden", 96), ("flows", 6), ("layers", 3), ("kernel", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = FlowDecoderConfig(
        num_flows=options.flows,
        hidden_channels=options.hidden,
        num_layers=options.layers,
        kernel_size=options.kernel,
        encoder_dim=64,
    )
    seconds = compare(config, (options.batch, options.frames), bf16=options.bf16)
    fast = seconds["sonorant"]
    for name, value in seconds.items():
        print(f"{name}: {value * 1000:.0f} ms, {value / fast:.2f} times sonorant's")


if __name__ == "__main__":
    main()
