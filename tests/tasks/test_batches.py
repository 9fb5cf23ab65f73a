"""What all tasks do alike."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from lightning.pytorch import Trainer
from torch.utils.data import DataLoader

from sonorant.tasks.batches import BatchTask
from sonorant.tasks.optimization import OptimizerConfig


class Batch(NamedTuple):
    """What tasks are given."""

    values: torch.Tensor


class Steep(BatchTask):
    """Its gradient is (30, 40); what is left of it after each step is kept."""

    def __init__(self) -> None:
        loader = DataLoader([Batch(torch.zeros(1))] * 2)
        super().__init__(OptimizerConfig(), lambda rank, num_ranks: loader, total_steps=2)  # type: ignore[arg-type,return-value]
        self.weight = torch.nn.Parameter(torch.zeros(2))
        self.gradients: list[list[float]] = []

    def training_step(self, batch: Batch, index: int) -> torch.Tensor:
        return (self.weight * torch.tensor([30.0, 40.0])).sum()

    def on_train_batch_end(self, *arguments: object) -> None:
        assert self.weight.grad is not None
        self.gradients.append(self.weight.grad.tolist())


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize(("limit", "gradient"), [(None, [30.0, 40.0]), (5.0, [3.0, 4.0]), (100.0, [30.0, 40.0])])
def test_gradients_are_clipped_for_the_fused_optimizer(
    limit: float | None, gradient: list[float], precision: str, tmp_path: Path
) -> None:
    task = Steep()
    trainer = Trainer(
        max_epochs=1,
        accelerator="cpu",
        precision=precision,  # type: ignore[arg-type]
        gradient_clip_val=limit,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(task)
    assert trainer.optimizers[0].defaults["fused"]
    assert task.gradients == [pytest.approx(gradient, rel=1e-5)] * 2
