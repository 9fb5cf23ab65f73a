"""A flow of spectra and the aligner that lays the text out in time, learned together from nothing else."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sonorant.data.tts import TtsBatch
from sonorant.functional import (
    covariance_loss,
    cross_covariance_loss,
    flow_nll,
    monotonic_alignment_search,
    variance_loss,
)
from sonorant.losses import FlowTtsLoss, FlowTtsLossWeights
from sonorant.models import AlignmentPrior, FlowTts
from sonorant.models.aligner import AlignmentOutput
from sonorant.models.flow_decoder import FlowOutput
from sonorant.models.flow_tts import Attributes
from sonorant.tasks.batches import MakeLoader
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.tts_predictors import (
    PREDICTED,
    predictor_counts,
    predictor_losses,
    refuse_nonfinite_predictions,
)
from sonorant.tasks.tts_task import Terms, TtsTask

__all__ = ["FlowTtsLossConfig", "FlowTtsTask"]


@dataclass(frozen=True)
class FlowTtsLossConfig:
    """What is minimised beside the flow's negative log likelihood, and when.

    Args:
        blank_logprob: the aligner's score, in each frame, of belonging to no token.
        forward_sum: the weight of the aligner's forward-sum loss.
        binarization: the weight of the pull of its attention towards the path through it.
        hard_from: the share of the regression's steps after which the flow hears the text along that path, as it does
            in synthesis, and no longer the attention, from which the aligner learns too.
        binarization_from: the share of these steps after which that pull begins.
        cross_covariance: the weight of what speakers' and accents' vectors tell about each other.
        variance: the weight of the hinge that keeps the vectors of speakers, and those of accents, apart.
        covariance: the weight of the correlations between the dimensions of these vectors.
    """

    blank_logprob: float = 1.0
    forward_sum: float = 0.1
    binarization: float = 0.1
    hard_from: float = 0.1
    binarization_from: float = 0.2
    cross_covariance: float = 1.0
    variance: float = 0.1
    covariance: float = 0.1

    def __post_init__(self) -> None:
        for name in ("forward_sum", "binarization", "cross_covariance", "variance", "covariance"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative; got {getattr(self, name)}")
        if not 0 <= self.hard_from <= self.binarization_from <= 1:
            given = f"{self.hard_from} and {self.binarization_from}"
            raise ValueError(f"0 <= hard_from <= binarization_from <= 1 is needed; got {given}")

    def weights(self, binarization_start: int) -> FlowTtsLossWeights:
        """The weights of the flow's and the aligner's terms, with binarization from some step on."""
        return FlowTtsLossWeights(
            forward_sum=self.forward_sum, binarization=self.binarization, binarization_start=binarization_start
        )


class FlowTtsTask(TtsTask):
    """Trains everything but the predictors, or them as well; of the dev set the flow's negative log likelihood counts.

    Args:
        model: all of it.
        optimizer: as in :class:`~sonorant.tasks.tts_task.TtsTask`, like the others.
        loss: see :class:`FlowTtsLossConfig`.
        regression: train the first flow only, see :class:`~sonorant.models.FlowDecoder`, and the aligner from nothing.
            Without, the aligner is trusted from the start.
        joint: train the predictors too.
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
        loss: FlowTtsLossConfig,
        regression: bool = False,
        joint: bool = False,
        make_dev_loader: MakeLoader | None = None,
    ) -> None:
        super().__init__(
            model,
            optimizer,
            make_loader,
            total_steps=total_steps,
            boundary=boundary,
            prior=prior,
            dev_terms=("flow_nll", *PREDICTED) if joint else ("flow_nll",),
            dev_loss=("flow_nll",),
            make_dev_loader=make_dev_loader,
        )
        self.joint = joint
        self.loss = FlowTtsLoss(group_size=model.config.decoder.group_size, blank_logprob=loss.blank_logprob)
        self._num_flows = 1 if regression else None
        self._config = loss
        soft_steps = total_steps if regression else 0
        self._weights = loss.weights(round(loss.binarization_from * soft_steps))
        self._hard_from = round(loss.hard_from * soft_steps)
        for later in (*model.decoder.linears, *model.decoder.couplings[1:]):
            later.requires_grad_(not regression)
        for predictor in model.predictors:
            predictor.requires_grad_(joint)

    def training_step(self, batch: TtsBatch, batch_index: int) -> Tensor:
        """The weighted sum of all terms, each a mean over the global batch.

        Raises:
            FloatingPointError: a term is not finite (naming the step, the term and the utterances).
        """
        counts = self._counts(batch)
        means = self.mean_counts(counts)
        regularizers = self._regularizers(batch)
        weights = self._all_weights()
        total = torch.stack([weights[name] * loss for name, loss in regularizers.items()]).sum()
        if not batch.ids:
            return total + self.zero_loss()
        losses = self._losses(batch)
        for name, loss in regularizers.items():
            self.refuse_nonfinite(_spoken(name), loss.expand(len(batch.ids)), batch.ids)
        self.log_terms({**losses, **regularizers})
        groups = batch.mel_lengths // self.loss.group_size
        self.log_loss(losses["flow_nll"].expand(len(batch.ids)), "flow-nll", batch.ids, groups)
        used = [name for name in losses if weights[name] != 0]
        return total + torch.stack([weights[name] * losses[name] * counts[name] / means[name] for name in used]).sum()

    def dev_losses(self, batch: TtsBatch) -> Terms:
        """The flow's negative log likelihood with the text along the path; if the predictors are trained, theirs."""
        hard = self.align_hard(batch)
        text = self.model.encode(batch.tokens, batch.token_lengths, batch.accents)
        flow = self._flow(batch, text, hard)
        losses = {"flow_nll": flow_nll(*flow, batch.mel_lengths // self.loss.group_size).nll}
        if self.joint:
            losses |= predictor_losses(self.model, hard, batch)
        return Terms(losses, self._counts(batch))

    def _all_weights(self) -> dict[str, float]:
        weights = self._weights.at(self.trainer.global_step)
        named = {name: getattr(weights, name) for name in ("flow_nll", "prior_nll", "forward_sum", "binarization")}
        named |= {name: getattr(self._config, name) for name in ("cross_covariance", "variance", "covariance")}
        return named | dict.fromkeys(PREDICTED, 1.0)

    def _counts(self, batch: TtsBatch) -> dict[str, Tensor]:
        """How many elements each term is a mean over."""
        groups, frames = (batch.mel_lengths // self.loss.group_size).sum(), batch.mel_lengths.sum()
        utterances = batch.mel_lengths.new_tensor(len(batch.ids))
        counts = {"flow_nll": groups, "prior_nll": groups, "forward_sum": utterances, "binarization": frames}
        return {**counts, **predictor_counts(batch)} if self.joint else counts

    def _losses(self, batch: TtsBatch) -> dict[str, Tensor]:
        step = self.trainer.global_step
        is_hard, binarize = step >= self._hard_from, self._weights.at(step).binarization != 0
        aligned = self.align(batch)
        alignment = aligned.attention
        if is_hard or binarize or self.joint:
            hard = monotonic_alignment_search(aligned.log_attention, batch.mel_lengths, batch.token_lengths)
            alignment = hard if is_hard else alignment
        text = self.model.encode(batch.tokens, batch.token_lengths, batch.accents, batch.seeds)
        flow = self._flow(batch, text, alignment)
        losses = self._terms(batch, flow, alignment, aligned)
        if self.joint:
            predicted = predictor_losses(self.model, hard, batch)
            refuse_nonfinite_predictions(self, predicted, batch)
            losses |= predicted
        return losses

    def _flow(self, batch: TtsBatch, text: Tensor, alignment: Tensor) -> FlowOutput:
        attributes = Attributes(batch.f0, batch.energy, batch.voiced)
        voice = batch.speakers, batch.accents
        return self.model.flow(batch.log_mel, batch.mel_lengths, alignment @ text, attributes, *voice, self._num_flows)

    def _terms(
        self, batch: TtsBatch, flow: FlowOutput, alignment: Tensor, aligned: AlignmentOutput
    ) -> dict[str, Tensor]:
        lengths = batch.mel_lengths, batch.token_lengths
        terms = self.loss(*flow, alignment, aligned.attention, aligned.log_attention, *lengths)._asdict()
        for name, value in terms.items():
            if value.isfinite():
                continue
            each = [
                getattr(
                    self.loss(
                        flow.z[one],
                        [log_scale[one] for log_scale in flow.log_scales],
                        flow.log_dets,
                        alignment[one],
                        aligned.attention[one],
                        aligned.log_attention[one],
                        *(length[one] for length in lengths),
                    ),
                    name,
                )
                for one in (slice(index, index + 1) for index in range(len(batch.ids)))
            ]
            self.refuse_nonfinite(_spoken(name), torch.stack(each), batch.ids)
        return dict(terms)

    def _regularizers(self, batch: TtsBatch) -> dict[str, Tensor]:
        speakers, accents = self.model.speakers.weight, self.model.accents.weight
        number = torch.zeros(len(speakers), len(accents), device=speakers.device)
        number.index_put_((batch.speakers, batch.accents), number.new_ones(len(batch.speakers)), accumulate=True)
        # of the global batch: the same on every rank
        number = (self.mean_over_ranks(number) * self.trainer.world_size).round().long()
        pairs = number.nonzero().repeat_interleave(number[number > 0], 0)
        means = {"mean_a": speakers.mean(0), "mean_b": accents.mean(0)}
        return {
            "cross_covariance": cross_covariance_loss(speakers[pairs[:, 0]], accents[pairs[:, 1]], **means),
            "variance": variance_loss(speakers) + variance_loss(accents),
            "covariance": covariance_loss(speakers) + covariance_loss(accents),
        }


def _spoken(name: str) -> str:
    return name.replace("_", "-")
