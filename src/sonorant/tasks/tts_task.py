"""What the tasks of speech synthesis do alike: they align their batches, and log each term of their losses."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torchmetrics import MeanMetric

from sonorant.data.tts import TtsBatch
from sonorant.functional import monotonic_alignment_search
from sonorant.models import AlignmentPrior, FlowTts
from sonorant.models.aligner import AlignmentOutput
from sonorant.tasks.batches import BatchTask, MakeLoader
from sonorant.tasks.optimization import OptimizerConfig

__all__ = ["Terms", "TtsTask", "mean_terms"]


class Terms(NamedTuple):
    """Terms of a loss by name, scalars, and over how many elements of the batch each is a mean."""

    losses: dict[str, Tensor]
    counts: dict[str, Tensor]


class TtsTask(BatchTask):
    """A task that trains parts of a :class:`~sonorant.models.FlowTts`.

    Args:
        model: all of it.
        optimizer: as in :class:`~sonorant.tasks.batches.BatchTask`, like ``make_loader``, ``total_steps`` and
            ``make_dev_loader``.
        boundary: the id of the token that stands for silence.
        prior: of the aligner's attention.
        dev_terms: the terms that :meth:`dev_losses` gives.
        dev_loss: those of them whose sum is the dev set's loss.
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
        dev_terms: Sequence[str],
        dev_loss: Sequence[str],
        make_dev_loader: MakeLoader | None = None,
    ) -> None:
        super().__init__(optimizer, make_loader, total_steps=total_steps, make_dev_loader=make_dev_loader)
        self.model = model
        self.dev_terms = tuple(dev_terms)
        self.dev_means = nn.ModuleList(MeanMetric(nan_strategy="error") for _ in dev_terms)
        self._dev_loss = tuple(dev_loss)
        self._boundary = boundary
        self._prior = prior

    @abstractmethod
    def dev_losses(self, batch: TtsBatch) -> Terms:
        """What is looked at of the dev set."""

    def validation_step(self, batch: TtsBatch, batch_index: int) -> None:
        """Add a batch to the means over the dev set.

        Raises:
            FloatingPointError: a term that is not finite (naming the step, the term and the utterances).
        """
        if not batch.ids:
            return
        losses, counts = self.dev_losses(batch)
        for name, loss in losses.items():
            self.refuse_nonfinite(f"dev set's {name}", loss.expand(len(batch.ids)), batch.ids)
            mean = cast(MeanMetric, self.dev_means[self.dev_terms.index(name)])
            mean.update(loss.detach(), counts[name])

    def on_validation_epoch_end(self) -> None:
        """Log the terms, and the loss."""
        means = {}
        for name, mean in zip(self.dev_terms, cast(list[MeanMetric], self.dev_means), strict=True):
            means[name] = mean.compute()
            mean.reset()
        self.log_dict({f"dev/{name}": value for name, value in means.items()})
        self.log("dev_loss", torch.stack([means[name] for name in self._dev_loss]).sum(), prog_bar=True)

    def log_terms(self, losses: dict[str, Tensor]) -> None:
        """Log the terms of a training step, each by itself, as the first rank has them."""
        for name, loss in losses.items():
            self.log(f"train/{name}", loss.detach(), on_step=True, on_epoch=False)

    def mean_counts(self, counts: dict[str, Tensor]) -> dict[str, Tensor]:
        """How many elements each rank has on average, see :meth:`mean_over_ranks`; at least a tiny part of one."""
        means = self.mean_over_ranks(torch.stack(list(counts.values())).float())
        return dict(zip(counts, means.clamp(min=torch.finfo(means.dtype).tiny).unbind(), strict=True))

    def align(self, batch: TtsBatch) -> AlignmentOutput:
        """Score each token of a batch in each frame, with the prior."""
        boundaries = batch.tokens == self._boundary
        powers = self.model.log_powers(batch.log_mel)
        log_prior = self._prior.log_prior(powers, batch.mel_lengths, boundaries, batch.token_lengths)
        return self.model.align(batch.log_mel, batch.mel_lengths, batch.tokens, batch.token_lengths, log_prior)

    def align_hard(self, batch: TtsBatch) -> Tensor:
        """The path through the scores, ``(batch, time, token)`` of 0 and 1."""
        return monotonic_alignment_search(self.align(batch).log_attention, batch.mel_lengths, batch.token_lengths)


@torch.no_grad()
def mean_terms(task: TtsTask, batches: Iterable[TtsBatch]) -> dict[str, float]:
    """The means of :meth:`TtsTask.dev_losses` over a whole set, with the model as it is.

    Args:
        task: its model is put into evaluation mode.
        batches: of the set.
    """
    task.eval()
    sums, numbers = defaultdict[str, float](float), defaultdict[str, float](float)
    for batch in batches:
        losses, counts = task.dev_losses(batch)
        for name, loss in losses.items():
            sums[name] += float(loss) * float(counts[name])
            numbers[name] += float(counts[name])
    return {name: total / max(numbers[name], 1.0) for name, total in sums.items()}
