"""Durations, pitch, energy and voicing, learned from the alignments of a trained model and from its recordings."""

from typing import Self

import torch
from torch import Tensor

from sonorant.data.tts import TtsBatch
from sonorant.functional import alignment_durations, masked_bce_with_logits_loss, masked_mse_loss
from sonorant.lengths import sequence_mask
from sonorant.models import AlignmentPrior, FlowTts
from sonorant.tasks.batches import MakeLoader
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.tts_task import Terms, TtsTask

__all__ = [
    "PREDICTED",
    "PredictorsTask",
    "predictor_counts",
    "predictor_losses",
    "refuse_nonfinite_predictions",
]

PREDICTED = ("duration", "f0", "energy", "voicing")


def predictor_counts(batch: TtsBatch) -> dict[str, Tensor]:
    """How many elements each term of :func:`predictor_losses` is a mean over."""
    tokens, frames = batch.token_lengths.sum(), batch.mel_lengths.sum()
    return dict(zip(PREDICTED, (tokens, batch.voiced.sum(), frames, frames), strict=True))


def predictor_losses(model: FlowTts, alignment: Tensor, batch: TtsBatch) -> dict[str, Tensor]:
    """The squared errors of log(duration + 1) a token, of f0 a voiced frame and of energy a frame, and the cross
    entropy of voicing a frame.

    Args:
        model: nothing of it but the predictors gets a gradient.
        alignment: hard, ``(batch, time, token)``.
        batch: the utterances.
    """
    voice = batch.speakers, batch.accents, batch.seeds
    embedded = model.embed(batch.tokens, batch.accents)
    durations = model.predict_durations(embedded, batch.token_lengths, *voice)
    attributes = model.predict_attributes(alignment @ embedded, batch.mel_lengths, *voice)
    log_durations = (alignment_durations(alignment) + 1).to(durations.dtype).log()
    is_voiced = sequence_mask(batch.mel_lengths, batch.voiced.shape[1]) & (batch.voiced > 0)

    def columns(*values: Tensor) -> list[Tensor]:
        return [value.unsqueeze(2) for value in values]

    losses = (
        masked_mse_loss(*columns(durations, log_durations), lengths=batch.token_lengths),
        masked_mse_loss(*columns(attributes.f0, batch.speaker_f0), mask=is_voiced),
        masked_mse_loss(*columns(attributes.energy, batch.speaker_energy), lengths=batch.mel_lengths),
        masked_bce_with_logits_loss(*columns(attributes.voiced, batch.voiced), lengths=batch.mel_lengths),
    )
    return dict(zip(PREDICTED, losses, strict=True))


def refuse_nonfinite_predictions(task: TtsTask, losses: dict[str, Tensor], batch: TtsBatch) -> None:
    """Stop where a term of :func:`predictor_losses` is not finite.

    Raises:
        FloatingPointError: naming the step, the term and the utterances of the batch.
    """
    for name, loss in losses.items():
        task.refuse_nonfinite(f"{name} predictor's", loss.expand(len(batch.ids)), batch.ids)


class PredictorsTask(TtsTask):
    """Trains the predictors of a model that is otherwise trained.

    Args:
        model: all but its predictors stays as it is.
        optimizer: as in :class:`~sonorant.tasks.tts_task.TtsTask`, like all others.
    """

    def __init__(
        self,
        model: FlowTts,
        optimizer: OptimizerConfig,
        make_loader: MakeLoader,
        *,
        total_steps: int,
        boundary: int,
        prior: AlignmentPrior,
        make_dev_loader: MakeLoader | None = None,
    ) -> None:
        super().__init__(
            model,
            optimizer,
            make_loader,
            total_steps=total_steps,
            boundary=boundary,
            prior=prior,
            dev_terms=PREDICTED,
            dev_loss=PREDICTED,
            make_dev_loader=make_dev_loader,
        )
        model.requires_grad_(False)
        for predictor in model.predictors:
            predictor.requires_grad_(True)

    def train(self, mode: bool = True) -> Self:
        """Without dropout in what is not trained."""
        super().train(mode)
        for part in (self.model.aligner, self.model.encoder, self.model.decoder):
            part.eval()
        return self

    def training_step(self, batch: TtsBatch, batch_index: int) -> Tensor:
        """The sum of the predictors' losses, each a mean over the global batch.

        Raises:
            FloatingPointError: a loss is not finite (naming the step, the term and the utterances).
        """
        counts = predictor_counts(batch)
        means = self.mean_counts(counts)
        if batch.ids:
            losses = self._losses(batch)
            refuse_nonfinite_predictions(self, losses, batch)
            self.log_terms(losses)
            total = torch.stack([loss * counts[name] / means[name] for name, loss in losses.items()]).sum()
        else:
            total = self.zero_loss()
        # the mean of the ranks' parts is the loss of the global batch
        self.log_loss(total.detach().unsqueeze(0), "predictors'", batch.ids[:1])
        return total

    def dev_losses(self, batch: TtsBatch) -> Terms:
        """The predictors' losses."""
        return Terms(self._losses(batch), predictor_counts(batch))

    def _losses(self, batch: TtsBatch) -> dict[str, Tensor]:
        with torch.no_grad():
            alignment = self.align_hard(batch)
        return predictor_losses(self.model, alignment, batch)
