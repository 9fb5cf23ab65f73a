"""Speech recognition with CTC."""

from collections.abc import Callable

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torchmetrics import MeanMetric

from sonorant.data.batching import StatefulLoader
from sonorant.data.ctc import CtcBatch
from sonorant.lengths import Padded
from sonorant.losses import CtcLoss
from sonorant.models import TdnnCtc
from sonorant.tasks.optimization import OptimizerConfig, one_cycle
from sonorant.tasks.silence_guide import SilenceGuideConfig, silence_guide_loss

__all__ = ["CtcAsr"]


class CtcAsr(LightningModule):
    """Trains a CTC model.

    Args:
        model: features to log probabilities.
        optimizer: see :class:`~sonorant.tasks.optimization.OptimizerConfig`.
        make_loader: the batches of a rank, from (rank, number of ranks).
        total_steps: of the whole run. Lightning's own estimate is not asked for: it makes the loader before a
            checkpoint's loader state is there, and the state is then lost.
        blank: the id of the blank.
        make_dev_loader: the same for the dev set, whose loss is logged after each epoch; None if there is none.
        silence: the id of the silence symbol, if there is one and it is to be guided.
        silence_guide: see :class:`~sonorant.tasks.silence_guide.SilenceGuideConfig`.
    """

    def __init__(
        self,
        model: TdnnCtc,
        optimizer: OptimizerConfig,
        make_loader: Callable[[int, int], StatefulLoader],
        *,
        total_steps: int,
        blank: int = 0,
        make_dev_loader: Callable[[int, int], StatefulLoader] | None = None,
        silence: int | None = None,
        silence_guide: SilenceGuideConfig | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.loss = CtcLoss(blank, reduction="none")
        self.mean_loss = MeanMetric(nan_strategy="disable")
        self.mean_dev_loss = MeanMetric(nan_strategy="disable")
        self._optimizer = optimizer
        self._make_loader = make_loader
        self._make_dev_loader = make_dev_loader
        self._total_steps = total_steps
        self._silence = silence
        self._silence_guide = silence_guide or SilenceGuideConfig()

    def train_dataloader(self) -> StatefulLoader:
        """This rank's batches."""
        return self._make_loader(self.trainer.global_rank, self.trainer.world_size)

    def val_dataloader(self) -> StatefulLoader | list[StatefulLoader]:
        """This rank's batches of the dev set, if there is one."""
        if self._make_dev_loader is None:
            return []
        return self._make_dev_loader(self.trainer.global_rank, self.trainer.world_size)

    def validation_step(self, batch: CtcBatch, batch_index: int) -> None:
        """Log the CTC loss of a batch of the dev set, in nats an utterance."""
        _, losses = self._ctc(batch)
        self._log_mean("dev_loss", self.mean_dev_loss, losses)

    def training_step(self, batch: CtcBatch, batch_index: int) -> Tensor:
        """The CTC loss, in nats an utterance of the global batch, and in the beginning the guide of the silence symbol.

        Raises:
            FloatingPointError: the loss is not finite (naming the step and the utterances).
        """
        log_probs, losses = self._ctc(batch)
        if not torch.isfinite(losses).all():
            named = [f"{id} ({float(loss)})" for id, loss in zip(batch.ids, losses, strict=True) if not loss.isfinite()]
            raise FloatingPointError(f"step {self.trainer.global_step}: the CTC loss is not finite: {', '.join(named)}")
        self._log_mean("loss", self.mean_loss, losses)
        # the mean over ranks of these is the mean over all utterances, however many of them a rank has
        utterances_per_rank = self.trainer.strategy.reduce(losses.new_tensor(len(losses)), reduce_op="mean")
        return (losses + self._guide(log_probs, batch)).sum() / utterances_per_rank

    def _ctc(self, batch: CtcBatch) -> tuple[Padded, Tensor]:
        log_probs: Padded = self.model(batch.features, batch.feature_lengths, batch.seeds)
        return log_probs, self.loss(log_probs.values, batch.targets, log_probs.lengths, batch.target_lengths)

    def _log_mean(self, name: str, mean: MeanMetric, losses: Tensor) -> None:
        """Log the mean over all utterances of an epoch, and of all ranks.

        Lightning's own mean over ranks divides the number of utterances as an integer.
        """
        mean.update(losses.detach())
        self.log(name, mean, on_step=False, on_epoch=True, prog_bar=True)

    def _guide(self, log_probs: Padded, batch: CtcBatch) -> Tensor | float:
        weight = self._silence_guide.weight_at(self.trainer.global_step, self._total_steps)
        if self._silence is None or weight == 0:
            return 0.0
        features, lengths = batch.features, batch.feature_lengths
        return weight * silence_guide_loss(log_probs, features, lengths, self.model, self._silence, self._silence_guide)

    def configure_optimizers(self) -> dict[str, object]:  # type: ignore[override]
        """AdamW with a one-cycle schedule over the whole run."""
        return one_cycle(self.parameters(), self._optimizer, self._total_steps)
