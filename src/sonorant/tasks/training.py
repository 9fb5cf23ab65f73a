"""How a training run is carried out."""

import logging
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.plugins import LayerSync
from torch import nn

from sonorant.nn import MaskedBatchNorm1d
from sonorant.tasks.batches import BatchTask
from sonorant.tasks.checkpointing import DurableCheckpointIO, RandomState, latest_checkpoint, periodic_checkpoint
from sonorant.tasks.optimization import TailAveraging

__all__ = ["PlainProgress", "TrainerConfig", "fit"]

_DEV_METRICS = {"dev_loss": "  dev loss {:.3f}", "dev_per": "  dev PER {:.2%}"}


@dataclass(frozen=True)
class TrainerConfig:
    """Where and how long a model is trained; passed on to Lightning's Trainer.

    Args:
        max_epochs: passes over the training set.
        accelerator: "cpu", "gpu", "auto", ...
        devices: devices of a machine.
        num_nodes: machines.
        precision: "32-true", "bf16-mixed", "16-mixed", ...; "auto" is "bf16-mixed" on a CPU that multiplies bfloat16
            matrices in hardware (AMX), else "32-true".
        num_threads: of torch in each process, on the CPU; by default as many as torch chooses. More than one slow a
            small network down, greatly where other programs want the cores too, and what is learned depends on them in
            the last digits.
        gradient_clip: the largest norm of the gradient.
        checkpoint_every: steps between checkpoints.
    """

    max_epochs: int = 20
    accelerator: str = "auto"
    devices: int = 1
    num_nodes: int = 1
    precision: str = "32-true"
    num_threads: int | None = None
    gradient_clip: float = 5.0
    checkpoint_every: int = 50

    def __post_init__(self) -> None:
        if self.num_threads is not None and self.num_threads < 1:
            raise ValueError(f"num_threads must be at least 1; got {self.num_threads}")


class PlainProgress(Callback):
    """A line an epoch, for logs and pipes.

    Args:
        label: what each line begins with.
    """

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._started = 0.0

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Start the clock."""
        self._started = time.monotonic()

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Print the epoch, the loss, what the dev set says, and the time."""
        if trainer.is_global_zero:
            metrics = trainer.callback_metrics
            loss = float(metrics.get("loss", float("nan")))
            dev = "".join(form.format(float(metrics[name])) for name, form in _DEV_METRICS.items() if name in metrics)
            seconds = time.monotonic() - self._started
            epoch = f"{self._label}epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
            print(f"{epoch}  loss {loss:.3f}{dev}  {seconds:.1f} s", flush=True)


class SynchronizedBatchNorm(LayerSync):
    """Lets the batches of all ranks be one for batch normalisation, as they are for the loss."""

    def apply(self, model: nn.Module) -> nn.Module:
        """Before training."""
        return self._set(model, synchronized=True)

    def revert(self, model: nn.Module) -> nn.Module:
        """After training."""
        return self._set(model, synchronized=False)

    def _set(self, model: nn.Module, *, synchronized: bool) -> nn.Module:
        for layer in model.modules():
            if isinstance(layer, MaskedBatchNorm1d):
                layer.synchronized = synchronized
        return model


def fit(
    task: BatchTask,
    config: TrainerConfig,
    run: Path,
    *,
    seed: int,
    select_by: str | None = None,
    callbacks: Sequence[Callback] = (),
    label: str | None = None,
) -> bool:
    """Train a task, going on from the run's newest checkpoint if it has one.

    Args:
        task: brings its own training batches, and says from which step on the weights are averaged.
        config: see :class:`TrainerConfig`.
        run: the run directory; gets ``checkpoints/`` and ``logs/``.
        seed: of all random generators.
        select_by: the metric of the dev set that decides which average is taken; None takes the last one.
        callbacks: further ones. After an epoch they see the average, once there is one.
        label: what the lines about its progress begin with, if others are trained at the same time; by default there
            may be a progress bar.

    Returns:
        Whether this process is the one that writes results; ``task``, on the CPU and in evaluation mode, holds the
        averaged weights.
    """
    _quiet_lightning()
    seed_everything(seed, workers=True, verbose=False)
    on_terminal = label is None and sys.stdout.isatty()
    checkpoints = run / "checkpoints"
    trainer = Trainer(
        max_epochs=config.max_epochs,
        accelerator=config.accelerator,
        devices=config.devices,
        num_nodes=config.num_nodes,
        precision=_precision(config),  # type: ignore[arg-type]
        gradient_clip_val=config.gradient_clip,
        callbacks=[
            *callbacks,
            TailAveraging(task.first_averaged_step, select_by),
            RandomState(),
            RichProgressBar() if on_terminal else PlainProgress(label or ""),
            periodic_checkpoint(checkpoints, config.checkpoint_every),
        ],
        plugins=[DurableCheckpointIO(), SynchronizedBatchNorm()],
        logger=TensorBoardLogger(run, name="", version="logs"),
        log_every_n_steps=10,
        enable_progress_bar=on_terminal,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,  # the sampler knows the ranks
    )
    task.train()  # Lightning keeps whichever mode it finds
    with _threads(config.num_threads):
        trainer.fit(task, ckpt_path=latest_checkpoint(checkpoints), weights_only=True)
    task.cpu().eval()
    return trainer.is_global_zero


def _precision(config: TrainerConfig) -> str:
    if config.precision != "auto":
        return config.precision
    on_cpu = config.accelerator == "cpu" or (config.accelerator == "auto" and not torch.accelerator.is_available())
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bf16-mixed" if on_cpu and capabilities.get("amx_bf16") else "32-true"


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _quiet_lightning() -> None:
    """Keep what it says about hardware, workers and tips out of the way of the run's own lines."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"lightning\..*")
