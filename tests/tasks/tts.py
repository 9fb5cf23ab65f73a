"""A small model and a batch for the tasks of speech synthesis."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torchmetrics import MeanMetric

from sonorant.data.batching import StatefulLoader
from sonorant.data.tts import TtsBatch, TtsExample, collate_tts
from sonorant.models import (
    AlignmentEncoderConfig,
    AlignmentPrior,
    FlowDecoderConfig,
    FlowTts,
    FlowTtsConfig,
    TextEncoderConfig,
)
from sonorant.nn.predictors import AttributePredictorConfig
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.tts_task import TtsTask

N_MELS = 6
CONFIG = FlowTtsConfig(
    speaker_dim=3,
    accent_dim=2,
    text=TextEncoderConfig(hidden_channels=6, lstm_dim=4, dropout=0.2),
    aligner=AlignmentEncoderConfig(hidden_channels=6, attention_dim=4),
    decoder=FlowDecoderConfig(num_flows=2, hidden_channels=6, num_layers=2, encoder_dim=4),
    predictors=AttributePredictorConfig(hidden_channels=6, lstm_dim=4, dropout=0.2),
)


def make_model() -> FlowTts:
    torch.manual_seed(0)
    model = FlowTts(CONFIG, N_MELS, num_tokens=6, num_speakers=3, num_accents=2)
    model.decoder.fit_whitening([torch.randn(60, N_MELS)])
    for parameter in model.decoder.parameters():  # its ends begin as zero
        parameter.data += 0.05 * torch.randn_like(parameter)
    return model


def make_examples() -> list[TtsExample]:
    generator = torch.Generator().manual_seed(1)

    def example(name: str, frames: int, tokens: list[int], speaker: int, accent: int) -> TtsExample:
        mel = torch.randn(frames, N_MELS, generator=generator)
        f0, energy, speaker_f0, speaker_energy = torch.randn(4, frames, generator=generator)
        voiced = (torch.rand(frames, generator=generator) > 0.4).float()
        numbers = torch.tensor(tokens), speaker, accent, frames
        return TtsExample(name, mel, f0 * voiced, energy, voiced, speaker_f0 * voiced, speaker_energy, *numbers)

    return [
        example("a.wav", 21, [1, 2, 3, 1], 0, 0),
        example("b.wav", 9, [1, 4, 1], 1, 1),
        example("c.wav", 14, [1, 5, 2, 1], 0, 1),
    ]


def make_batch() -> TtsBatch:
    return collate_tts(make_examples())


def make_task(kind: type[TtsTask], model: FlowTts, **options: Any) -> Any:
    def make_loader(rank: int, num_ranks: int) -> StatefulLoader:
        raise AssertionError

    return kind(model, OptimizerConfig(), make_loader, total_steps=10, boundary=1, prior=AlignmentPrior(), **options)


def record_logs(monkeypatch: pytest.MonkeyPatch, means: dict[str, float] | None = None) -> dict[str, float]:
    """What is logged, by name, with a trainer of one rank."""
    values: dict[str, float] = {}

    def log(self: TtsTask, name: str, value: MeanMetric | torch.Tensor, **_: object) -> None:
        values[name] = float(value.compute() if isinstance(value, MeanMetric) else value)

    def log_dict(self: TtsTask, several: dict[str, torch.Tensor]) -> None:
        values.update({name: float(value) for name, value in several.items()})

    strategy = SimpleNamespace(reduce=lambda count, reduce_op: count)
    monkeypatch.setattr(TtsTask, "log", log)
    monkeypatch.setattr(TtsTask, "log_dict", log_dict)
    monkeypatch.setattr(TtsTask, "trainer", SimpleNamespace(global_step=0, world_size=1, strategy=strategy))
    return values


def part(batch: TtsBatch, *indices: int) -> TtsBatch:
    """Some utterances of a batch; padding stays."""
    ids = [batch.ids[index] for index in indices]
    return TtsBatch(ids, *(field[list(indices)] for field in batch[1:]))  # type: ignore[arg-type]


def on_two_ranks(task: TtsTask, parts: list[TtsBatch]) -> list[torch.Tensor]:
    """The losses of the parts of a batch, each on a rank of its own, whose mean is what is minimised."""
    trainer, sums, reduced, losses = task.trainer, [], [], []

    def collect(count: torch.Tensor, reduce_op: str) -> torch.Tensor:
        sums.append(count)
        return count

    trainer.world_size = len(parts)  # type: ignore[misc]
    trainer.strategy.reduce = collect
    for each in parts:  # once to see what each rank has
        sums.clear()
        task.training_step(each, 0)
        reduced.append(list(sums))
    means = [torch.stack(values).mean(0) for values in zip(*reduced, strict=True)]
    for each in parts:
        queue = iter(means)
        trainer.strategy.reduce = lambda count, reduce_op, queue=queue: next(queue)
        losses.append(task.training_step(each, 0))
    return losses
