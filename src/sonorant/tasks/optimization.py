"""Optimizer, schedule and weight averaging."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import WeightAveraging
from torch import Tensor

__all__ = ["OptimizerConfig", "TailAveraging", "one_cycle"]


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW with a one-cycle learning rate, and an average of the last weights.

    Args:
        learning_rate: at its peak.
        weight_decay: decoupled, as in AdamW.
        averaged_fraction: the share of the steps, at the end, whose weights are averaged into the final model.
    """

    learning_rate: float = 1e-2
    weight_decay: float = 1e-2
    averaged_fraction: float = 1 / 3

    def __post_init__(self) -> None:
        if not 0 < self.averaged_fraction <= 1:
            raise ValueError(f"averaged_fraction must lie in (0, 1]; got {self.averaged_fraction}")

    def first_averaged_step(self, total_steps: int) -> int:
        """The first of the steps that are averaged; the last step always is."""
        return total_steps - max(1, round(total_steps * self.averaged_fraction))


def one_cycle(
    parameters: Iterable[torch.nn.Parameter], config: OptimizerConfig, total_steps: int, *, fused: bool = False
) -> dict[str, object]:
    """The optimizer and its schedule, in the form that Lightning takes.

    Args:
        parameters: to train.
        config: see :class:`OptimizerConfig`.
        total_steps: of the whole run.
        fused: one kernel for each step, four times as fast on a CPU. It does not go with clipping while a gradient
            scaler (``16-mixed``) is at work.

    References:
        Loshchilov and Hutter 2019, arXiv 1711.05101 (AdamW); Smith and Topin 2018, arXiv 1708.07120 (one cycle).
    """
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=config.weight_decay, fused=fused)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.learning_rate, total_steps=total_steps)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class TailAveraging(WeightAveraging):
    """The mean of the weights, and of the normalisation statistics, after each of the last steps.

    Args:
        first_step: from which step on, counted from 0.
        select_by: a metric of the dev set, the lower the better. Of the averages that were validated after an epoch,
            training then ends with the best, of equal ones the last; None ends with the last one.

    References:
        Izmailov et al. 2018, "Averaging weights leads to wider optima", arXiv 1803.05407.
    """

    def __init__(self, first_step: int, select_by: str | None = None) -> None:
        super().__init__(use_buffers=True)
        self._first_step = first_step
        self._select_by = select_by
        self._best_value = math.inf
        self._best: dict[str, Tensor] | None = None

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        """After every step from the first averaged one on."""
        return step_idx is not None and step_idx >= self._first_step

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Validate the average, once there is one."""
        if trainer.global_step > self._first_step:
            super().on_validation_epoch_start(trainer, pl_module)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Go back to the weights that are trained."""
        if trainer.global_step > self._first_step:
            super().on_validation_epoch_end(trainer, pl_module)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the average that was validated if it is the best."""
        if self._select_by is None or trainer.global_step <= self._first_step or trainer.sanity_checking:
            return
        value = float(trainer.callback_metrics[self._select_by])
        if value <= self._best_value:
            assert self._average_model is not None
            self._best_value = value
            self._best = {name: tensor.clone() for name, tensor in self._average_model.module.state_dict().items()}

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Put the best average in the place of the weights that were trained."""
        super().on_train_end(trainer, pl_module)
        if self._best is not None:
            pl_module.load_state_dict(self._best)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: the best average too."""
        return {**super().state_dict(), "best_value": self._best_value, "best": self._best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there."""
        super().load_state_dict(state_dict)
        self._best_value, self._best = state_dict["best_value"], state_dict["best"]
