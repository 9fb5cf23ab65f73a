"""Which average of the weights a run ends with."""

from pathlib import Path

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader

from sonorant.tasks.optimization import TailAveraging


class Counter(LightningModule):
    """After step n its weight is n; the dev metric of each epoch is given."""

    def __init__(self, metrics: list[float]) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.metrics = metrics
        self.validated: list[float] = []

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        return -self.weight

    def on_train_epoch_end(self) -> None:
        self.trainer.save_checkpoint(f"{self.trainer.default_root_dir}/{self.current_epoch}.ckpt")

    def validation_step(self, batch: torch.Tensor, index: int) -> None:
        self.validated.append(float(self.weight))
        self.log("dev_per", self.metrics[self.current_epoch], on_epoch=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1.0)

    def train_dataloader(self) -> DataLoader:
        return DataLoader([torch.zeros(1)] * 2)

    def val_dataloader(self) -> DataLoader:
        return DataLoader([torch.zeros(1)])


def run(metrics: list[float], select_by: str | None, folder: Path, **options: object) -> Counter:
    task = Counter(metrics)
    trainer = Trainer(
        max_epochs=len(metrics),
        callbacks=[TailAveraging(2, select_by)],
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=folder,
    )
    trainer.fit(task, **options)
    return task


@pytest.mark.parametrize(
    ("metrics", "select_by", "weight"),
    [
        # epochs end after steps 2, 4, 6, 8; the averages are those of steps 3-4, 3-6 and 3-8
        ([0.1, 0.5, 0.4, 0.6], None, 5.5),
        ([0.1, 0.5, 0.4, 0.6], "dev_per", 4.5),
        ([0.1, 0.4, 0.4, 0.6], "dev_per", 4.5),
        ([0.1, 0.4, 0.5, 0.6], "dev_per", 3.5),
    ],
)
def test_the_best_average_is_chosen(metrics: list[float], select_by: str | None, weight: float, tmp_path: Path) -> None:
    task = run(metrics, select_by, tmp_path)
    assert task.validated == [2, 3.5, 4.5, 5.5]
    assert task.weight == weight


def test_the_best_average_survives_an_interruption(tmp_path: Path) -> None:
    run([0.5, 0.2], "dev_per", tmp_path)
    task = run([0.5, 0.2, 0.3, 0.6], "dev_per", tmp_path, ckpt_path=tmp_path / "1.ckpt", weights_only=True)
    assert task.validated == [4.5, 5.5]
    assert task.weight == 3.5
