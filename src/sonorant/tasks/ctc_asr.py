"""Speech recognition with CTC."""

from torch import Tensor

from sonorant.data.ctc import CtcBatch
from sonorant.lengths import Padded
from sonorant.losses import CtcLoss
from sonorant.models import TdnnCtc
from sonorant.tasks.batches import BatchTask, MakeLoader
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.silence_guide import SilenceGuideConfig, silence_guide_loss

__all__ = ["CtcAsr"]


class CtcAsr(BatchTask):
    """Trains a CTC model.

    Args:
        model: features to log probabilities.
        optimizer: as in :class:`~sonorant.tasks.batches.BatchTask`, like ``make_loader``, ``total_steps`` and
            ``make_dev_loader``; of the dev set the loss is logged.
        blank: the id of the blank.
        silence: the id of the silence symbol, if there is one and it is to be guided.
        silence_guide: see :class:`~sonorant.tasks.silence_guide.SilenceGuideConfig`.
    """

    def __init__(
        self,
        model: TdnnCtc,
        optimizer: OptimizerConfig,
        make_loader: MakeLoader,
        *,
        total_steps: int,
        blank: int = 0,
        make_dev_loader: MakeLoader | None = None,
        silence: int | None = None,
        silence_guide: SilenceGuideConfig | None = None,
    ) -> None:
        super().__init__(optimizer, make_loader, total_steps=total_steps, make_dev_loader=make_dev_loader)
        self.model = model
        self.loss = CtcLoss(blank, reduction="none")
        self._silence = silence
        self._silence_guide = silence_guide or SilenceGuideConfig()

    def validation_step(self, batch: CtcBatch, batch_index: int) -> None:
        """Log the CTC loss of a batch of the dev set, in nats an utterance."""
        _, losses = self._ctc(batch)
        self.log_dev("dev_loss", losses)

    def training_step(self, batch: CtcBatch, batch_index: int) -> Tensor:
        """The CTC loss, in nats an utterance of the global batch, and in the beginning the guide of the silence symbol.

        Raises:
            FloatingPointError: the loss is not finite (naming the step and the utterances).
        """
        log_probs, losses = self._ctc(batch)
        self.log_loss(losses, "CTC", batch.ids)
        utterances_per_rank = self.mean_over_ranks(losses.new_tensor(len(losses)))
        return (losses + self._guide(log_probs, batch)).sum() / utterances_per_rank

    def _ctc(self, batch: CtcBatch) -> tuple[Padded, Tensor]:
        log_probs: Padded = self.model(batch.features, batch.feature_lengths, batch.seeds)
        return log_probs, self.loss(log_probs.values, batch.targets, log_probs.lengths, batch.target_lengths)

    def _guide(self, log_probs: Padded, batch: CtcBatch) -> Tensor | float:
        weight = self._silence_guide.weight_at(self.trainer.global_step, self.total_steps)
        if self._silence is None or weight == 0:
            return 0.0
        features, lengths = batch.features, batch.feature_lengths
        return weight * silence_guide_loss(log_probs, features, lengths, self.model, self._silence, self._silence_guide)
