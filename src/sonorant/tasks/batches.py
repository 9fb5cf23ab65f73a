"""What all tasks do alike: they bring their own batches, optimizer and schedule, and stop when a loss is not finite."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torchmetrics import MeanMetric

from sonorant.data.batching import BucketBatchSampler, StatefulLoader
from sonorant.tasks.optimization import OptimizerConfig, one_cycle

__all__ = ["BatchSettings", "BatchTask", "MakeLoader", "loader_maker"]

MakeLoader = Callable[[int, int], StatefulLoader]


class BatchSettings(Protocol):
    """The settings of a recipe that say how it makes batches."""

    @property
    def batch_size(self) -> int:
        """Utterances of a batch, over all devices."""

    @property
    def pool_batches(self) -> int:
        """Batches that are sorted by length together."""

    @property
    def num_workers(self) -> int:
        """Processes that prepare batches."""


def loader_maker(dataset: Any, collate: Callable[..., Any], settings: BatchSettings, seed: int) -> MakeLoader:
    """How each rank makes its loader of a dataset.

    It is a function, and no partial, since weight averaging copies the task with all that it holds, but no functions.

    Args:
        dataset: with the ``lengths`` of its examples.
        collate: from examples to a batch.
        settings: of the recipe.
        seed: of the order.
    """

    def make_loader(rank: int, num_ranks: int) -> StatefulLoader:
        sampler = BucketBatchSampler(
            dataset.lengths,
            settings.batch_size,
            seed=seed,
            pool_batches=settings.pool_batches,
            rank=rank,
            num_ranks=num_ranks,
        )
        return StatefulLoader(dataset, sampler, collate_fn=collate, num_workers=settings.num_workers)

    return make_loader


class BatchTask(LightningModule):
    """A task that is given its batches.

    Args:
        optimizer: see :class:`~sonorant.tasks.optimization.OptimizerConfig`.
        make_loader: the batches of a rank, from (rank, number of ranks).
        total_steps: of the whole run. Lightning's own estimate is not asked for: it makes the loader before a
            checkpoint's loader state is there, and the state is then lost.
        make_dev_loader: the same for the dev set, which is looked at after each epoch; None if there is none.
    """

    def __init__(
        self,
        optimizer: OptimizerConfig,
        make_loader: MakeLoader,
        *,
        total_steps: int,
        make_dev_loader: MakeLoader | None = None,
    ) -> None:
        super().__init__()
        self.total_steps = total_steps
        # Lightning's own mean over ranks divides the number of utterances as an integer; torchmetrics ignores the
        # weights if NaN may pass
        self.mean_loss = MeanMetric(nan_strategy="error")
        self.mean_dev = MeanMetric(nan_strategy="error")
        self._optimizer = optimizer
        self._make_loader = make_loader
        self._make_dev_loader = make_dev_loader

    @property
    def first_averaged_step(self) -> int:
        """From which step on the weights are averaged."""
        return self._optimizer.first_averaged_step(self.total_steps)

    def train_dataloader(self) -> StatefulLoader:
        """This rank's batches."""
        return self._make_loader(self.trainer.global_rank, self.trainer.world_size)

    def val_dataloader(self) -> StatefulLoader | list[StatefulLoader]:
        """This rank's batches of the dev set, if there is one."""
        if self._make_dev_loader is None:
            return []
        return self._make_dev_loader(self.trainer.global_rank, self.trainer.world_size)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Move the tensors of a batch, a named tuple; Lightning would look at each number in its lists too."""
        tensors = {name: value.to(device) for name, value in batch._asdict().items() if isinstance(value, Tensor)}
        return batch._replace(**tensors)

    def configure_optimizers(self) -> dict[str, object]:  # type: ignore[override]
        """AdamW with a one-cycle schedule over the whole run."""
        fused = self.trainer.precision != "16-mixed"
        return one_cycle(self.parameters(), self._optimizer, self.total_steps, fused=fused)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip the norm of all gradients; Lightning's own refuses fused optimizers, scaled gradients or not."""
        if gradient_clip_val:
            torch.nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val)

    def log_loss(self, losses: Tensor, name: str, ids: Sequence[str], weights: Tensor | float = 1.0) -> None:
        """Log the mean loss of an epoch over all utterances and ranks.

        Args:
            losses: ``(batch,)``.
            name: of the loss, for the message.
            ids: of the utterances, or the words.
            weights: of the utterances in the mean, ``(batch,)``.

        Raises:
            FloatingPointError: a loss that is not finite (naming the step and the utterances).
        """
        self.refuse_nonfinite(name, losses, ids)
        self.mean_loss.update(losses.detach(), weights)
        self.log("loss", self.mean_loss, on_step=False, on_epoch=True, prog_bar=True)

    def refuse_nonfinite(self, name: str, losses: Tensor, ids: Sequence[str]) -> None:
        """Stop where a loss is not finite; arguments as for :meth:`log_loss`.

        Raises:
            FloatingPointError: one is not (naming the step and the utterances).
        """
        if torch.isfinite(losses).all():
            return
        named = [f"{id} ({loss})" for id, loss in zip(ids, losses.tolist(), strict=True) if not math.isfinite(loss)]
        raise FloatingPointError(f"step {self.trainer.global_step}: the {name} loss is not finite: {', '.join(named)}")

    def log_dev(self, name: str, values: Tensor, weights: Tensor | float = 1.0) -> None:
        """Log the mean of a value over the dev set; arguments as for :meth:`log_loss`."""
        self.mean_dev.update(values.detach(), weights)
        self.log(name, self.mean_dev, on_step=False, on_epoch=True, prog_bar=True)

    def zero_loss(self) -> Tensor:
        """The loss of a rank without a part in the batch: it takes part in the step, and changes nothing."""
        trained = (parameter for parameter in self.parameters() if parameter.requires_grad)
        return torch.stack([0.0 * parameter.sum() for parameter in trained]).sum()

    def mean_over_ranks(self, count: Tensor) -> Tensor:
        """How many of something a rank has on average.

        The mean over ranks of sums that are divided by it is the mean over all, however many of them each rank has.
        """
        mean: Tensor = self.trainer.strategy.reduce(count, reduce_op="mean")
        return mean
