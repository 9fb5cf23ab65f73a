"""Pronunciations of words with an attention encoder-decoder."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from sonorant.data.g2p import G2pBatch
from sonorant.decoding.beam_search import beam_search
from sonorant.functional import ctc_loss, guided_attention_loss
from sonorant.lengths import sequence_mask
from sonorant.losses import LabelSmoothingLoss
from sonorant.metrics import pronunciation_error_rate
from sonorant.models import G2p
from sonorant.models.g2p import MARK, G2pOutput
from sonorant.tasks.batches import BatchTask, MakeLoader
from sonorant.tasks.optimization import OptimizerConfig

__all__ = ["G2pLossConfig", "G2pTask"]

_IGNORED = -100


@dataclass(frozen=True)
class G2pLossConfig:
    """What is minimised: the cross entropy of each next phone, and what helps it.

    Args:
        smoothing: of the labels.
        guide_weight: of the guided attention loss at the first step; 0 leaves it out.
        guide_sigma: the width of the band around the diagonal where attention is hardly penalised.
        guide_until: the share of the steps after which the guide's weight, falling linearly, is 0.
        ctc_weight: of the CTC head's loss, a phone, if the model has a head.
    """

    smoothing: float = 0.1
    guide_weight: float = 1.0
    guide_sigma: float = 0.2
    guide_until: float = 0.3
    ctc_weight: float = 0.3

    def __post_init__(self) -> None:
        if self.guide_weight < 0 or not 0 < self.guide_until <= 1:
            given = f"{self.guide_weight} and {self.guide_until}"
            raise ValueError(f"guide_weight must not be negative, and guide_until in (0, 1]; got {given}")

    def guide_weight_at(self, step: int, total_steps: int) -> float:
        """The guide's weight at a step, counted from 0."""
        return self.guide_weight * max(0.0, 1 - step / (self.guide_until * total_steps))


class G2pTask(BatchTask):
    """Trains a pronunciation model; of the dev set the phone error rate of greedy decoding is logged.

    Args:
        model: letters to phones.
        optimizer: as in :class:`~sonorant.tasks.batches.BatchTask`, like ``make_loader``, ``total_steps`` and
            ``make_dev_loader``.
        loss: see :class:`G2pLossConfig`.
    """

    def __init__(
        self,
        model: G2p,
        optimizer: OptimizerConfig,
        make_loader: MakeLoader,
        *,
        total_steps: int,
        loss: G2pLossConfig,
        make_dev_loader: MakeLoader | None = None,
    ) -> None:
        super().__init__(optimizer, make_loader, total_steps=total_steps, make_dev_loader=make_dev_loader)
        self.model = model
        self.cross_entropy = LabelSmoothingLoss(loss.smoothing, _IGNORED, reduction="none")
        self._loss = loss

    def training_step(self, batch: G2pBatch, batch_index: int) -> Tensor:
        """The label smoothing loss, a phone of the global batch, and what helps: the guide, and CTC.

        Raises:
            FloatingPointError: the loss is not finite (naming the step and the words).
        """
        phones_per_rank = self.mean_over_ranks(batch.phone_lengths.sum().float())
        if not batch.words:  # a rank without a part in the batch takes part in the step
            return self.zero_loss()
        output: G2pOutput = self.model(
            batch.graphemes, batch.grapheme_lengths, batch.phones, batch.phone_lengths, batch.seeds
        )
        valid = sequence_mask(batch.phone_lengths, batch.phones.shape[1])
        losses: Tensor = self.cross_entropy(output.logits, batch.phones.masked_fill(~valid, _IGNORED)).sum(1)
        self.log_loss(losses / batch.phone_lengths, "label smoothing", batch.words, batch.phone_lengths)
        return (losses.sum() + self._guide(output, batch) + self._ctc(output, batch)) / phones_per_rank

    def _guide(self, output: G2pOutput, batch: G2pBatch) -> Tensor | float:
        weight = self._loss.guide_weight_at(self.trainer.global_step, self.total_steps)
        if weight == 0:
            return 0.0
        lengths = batch.phone_lengths, batch.grapheme_lengths
        return weight * guided_attention_loss(output.attention, *lengths, self._loss.guide_sigma, reduction="sum")

    def _ctc(self, output: G2pOutput, batch: G2pBatch) -> Tensor | float:
        if output.ctc is None or self._loss.ctc_weight == 0:
            return 0.0
        labels = batch.phone_lengths - 1
        total = ctc_loss(output.ctc.values, batch.phones, output.ctc.lengths, labels, blank=MARK, reduction="sum")
        return self._loss.ctc_weight * total

    def validation_step(self, batch: G2pBatch, batch_index: int) -> None:
        """Log the phone error rate against each word's nearest pronunciation."""
        if not batch.words:
            return
        state, memory = self.model.start(batch.graphemes, batch.grapheme_lengths)
        cap = self.model.max_phones(batch.grapheme_lengths)
        with _without_warnings():
            best = beam_search(self.model.step, state, memory, sos=MARK, eos=MARK, max_length=cap, beam_size=1)
        hypotheses = [hypothesis.tokens for (hypothesis,) in best.hypotheses()]
        phones = pronunciation_error_rate(batch.pronunciations, hypotheses, replications=0).phones
        self.log_dev("dev_per", batch.grapheme_lengths.new_tensor(phones.rate, dtype=torch.float64), phones.words)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Without those of the search: in the beginning a model seldom ends its pronunciations."""
    search = logging.getLogger("sonorant.decoding")
    level = search.level
    search.setLevel(logging.ERROR)
    try:
        yield
    finally:
        search.setLevel(level)
