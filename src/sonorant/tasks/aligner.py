"""Alignment of texts and recordings, learned from nothing else."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sonorant.data.alignment import AlignmentBatch
from sonorant.functional import forward_sum_loss, monotonic_alignment_search
from sonorant.losses import AlignmentLoss, AlignmentLosses, AlignmentLossWeights, weighted_total
from sonorant.models import AlignmentEncoder, AlignmentPrior
from sonorant.models.aligner import AlignmentOutput
from sonorant.tasks.batches import BatchTask, MakeLoader
from sonorant.tasks.optimization import OptimizerConfig

__all__ = ["AlignerLossConfig", "AlignerTask"]


@dataclass(frozen=True)
class AlignerLossConfig:
    """What is minimised.

    Args:
        blank_logprob: the score, in each frame, of belonging to no token. Where it is high, frames that nothing fits
            well teach nothing.
        binarization: the weight of the binarization beside the forward-sum loss.
        binarization_from: the share of the steps after which it begins, when alignments have formed.
    """

    blank_logprob: float = 1.0
    binarization: float = 0.1
    binarization_from: float = 0.5

    def __post_init__(self) -> None:
        if self.binarization < 0 or not 0 < self.binarization_from <= 1:
            given = f"{self.binarization} and {self.binarization_from}"
            raise ValueError(f"binarization must not be negative, and binarization_from in (0, 1]; got {given}")

    def weights(self, total_steps: int) -> AlignmentLossWeights:
        """The weights of the terms in a run of so many steps."""
        return AlignmentLossWeights(
            forward_sum=1.0,
            binarization=self.binarization,
            binarization_start=round(self.binarization_from * total_steps),
        )


class AlignerTask(BatchTask):
    """Trains an aligner; of the dev set the forward-sum loss is logged.

    Args:
        model: the aligner.
        optimizer: as in :class:`~sonorant.tasks.batches.BatchTask`, like ``make_loader``, ``total_steps`` and
            ``make_dev_loader``.
        boundary: the id of the token that stands for silence.
        prior: of the attention.
        loss: see :class:`AlignerLossConfig`.
    """

    def __init__(
        self,
        model: AlignmentEncoder,
        optimizer: OptimizerConfig,
        make_loader: MakeLoader,
        *,
        total_steps: int,
        boundary: int,
        prior: AlignmentPrior,
        loss: AlignerLossConfig,
        make_dev_loader: MakeLoader | None = None,
    ) -> None:
        super().__init__(optimizer, make_loader, total_steps=total_steps, make_dev_loader=make_dev_loader)
        self.model = model
        self.loss = AlignmentLoss(loss.blank_logprob)
        self._weights = loss.weights(total_steps)
        self._boundary = boundary
        self._prior = prior

    def training_step(self, batch: AlignmentBatch, batch_index: int) -> Tensor:
        """Forward-sum a token, and later binarization a frame, over the global batch.

        Raises:
            FloatingPointError: the loss is not finite (naming the step, the term and the utterances).
        """
        utterances = self.mean_over_ranks(batch.feature_lengths.new_tensor(len(batch.ids), dtype=torch.float32))
        frames = self.mean_over_ranks(batch.feature_lengths.sum().float())
        if not batch.ids:  # a rank without a part in the batch takes part in the step
            return self.zero_loss()
        output = self._align(batch)
        weights = self._weights.at(self.trainer.global_step)
        losses = self._losses(output, batch, binarize=weights.binarization != 0)
        self._log(losses, output, batch)
        shares = len(batch.ids) / utterances, batch.feature_lengths.sum() / frames
        return weighted_total(AlignmentLosses(losses.forward_sum * shares[0], losses.binarization * shares[1]), weights)

    def validation_step(self, batch: AlignmentBatch, batch_index: int) -> None:
        """Log the forward-sum loss a token."""
        if batch.ids:
            losses = self._forward_sum(self._align(batch), batch) / batch.token_lengths
            self.log_dev("dev_loss", losses)

    def _align(self, batch: AlignmentBatch) -> AlignmentOutput:
        boundaries = batch.tokens == self._boundary
        log_prior = self._prior.log_prior(batch.features, batch.feature_lengths, boundaries, batch.token_lengths)
        output: AlignmentOutput = self.model(
            batch.features,
            batch.feature_lengths,
            batch.tokens,
            batch.token_lengths,
            log_prior=log_prior,
            speakers=batch.speakers,
        )
        return output

    def _losses(self, output: AlignmentOutput, batch: AlignmentBatch, *, binarize: bool) -> AlignmentLosses:
        lengths = batch.feature_lengths, batch.token_lengths
        if binarize:
            hard = monotonic_alignment_search(output.log_attention, *lengths)
        else:
            hard = torch.zeros_like(output.attention)
        losses: AlignmentLosses = self.loss(hard, output.attention, output.log_attention, *lengths)
        return losses

    def _log(self, losses: AlignmentLosses, output: AlignmentOutput, batch: AlignmentBatch) -> None:
        for name, value in zip(losses._fields, losses, strict=True):
            if not value.isfinite():
                each = self._forward_sum(output, batch) if name == "forward_sum" else value.expand(len(batch.ids))
                self.log_loss(each, name.replace("_", "-"), batch.ids)
        self.log_loss(losses.forward_sum.expand(len(batch.ids)), "forward-sum", batch.ids)

    def _forward_sum(self, output: AlignmentOutput, batch: AlignmentBatch) -> Tensor:
        return forward_sum_loss(
            output.log_attention.detach(),
            batch.feature_lengths,
            batch.token_lengths,
            blank_logprob=self.loss.blank_logprob,
            reduction="none",
        )
