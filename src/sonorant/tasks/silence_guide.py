"""A guide for the silence symbol while CTC training begins.

From a flat start CTC has several places to settle in. Mostly words are emitted where they are spoken; but from some
initialisations they are emitted in the pauses and silence in the words, and training never gets out of it. So in the
first part of the training the silence symbol is shown where silence is: in the quiet frames.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sonorant.functional import limit_dynamic_range
from sonorant.lengths import Padded, sequence_mask
from sonorant.models import TdnnCtc

__all__ = ["SilenceGuideConfig", "quiet_frames", "silence_guide_loss"]


@dataclass(frozen=True)
class SilenceGuideConfig:
    """How the silence symbol is guided.

    Args:
        weight: of the guide at the first step, beside the CTC loss; 0 leaves it out.
        until: the share of the steps after which the weight, falling linearly, is 0.
        quiet_share: frames count as quiet in this lowest share of an utterance's range of levels.
    """

    weight: float = 0.1
    until: float = 0.25
    quiet_share: float = 0.35

    def __post_init__(self) -> None:
        if self.weight < 0 or not 0 < self.until <= 1 or not 0 < self.quiet_share < 1:
            raise ValueError(f"weight must not be negative, until in (0, 1], quiet_share in (0, 1); got {self}")

    def weight_at(self, step: int, total_steps: int) -> float:
        """The weight at a step, counted from 0."""
        return self.weight * max(0.0, 1 - step / (self.until * total_steps))


def silence_guide_loss(
    log_probs: Padded,
    features: Float[Tensor, "batch time features"],
    lengths: Int[Tensor, " batch"],
    model: TdnnCtc,
    *,
    silence: int,
    quiet_share: float,
) -> Tensor:
    """The cross entropy of silence over the quiet frames, summed over frames and averaged over utterances.

    Args:
        log_probs: the model's output.
        features: its input ``(batch, time, features)``.
        lengths: ``(batch,)``, frames of the input.
        model: says which input frame an output frame is about.
        silence: the id of the silence symbol.
        quiet_share: see :func:`quiet_frames`.
    """
    levels = limit_dynamic_range(features, lengths, model.config.dynamic_range).mean(2)
    quiet = quiet_frames(levels, lengths, quiet_share)[:, model.first_center :][:, : log_probs.values.shape[1]]
    quiet = quiet & sequence_mask(log_probs.lengths, quiet.shape[1])
    return -torch.where(quiet, log_probs.values[:, : quiet.shape[1], silence], 0.0).sum(1).mean()


def quiet_frames(
    levels: Float[Tensor, "batch time"], lengths: Int[Tensor, " batch"], share: float
) -> Bool[Tensor, "batch time"]:
    """The valid frames in the lowest share of their utterance's range of levels.

    Args:
        levels: ``(batch, time)``, log energies.
        lengths: ``(batch,)``, frames.
        share: between 0 and 1; 0.5 is halfway between the softest frame and the loudest.

    Returns:
        bool ``(batch, time)``; none in an utterance whose level never changes.
    """
    valid = sequence_mask(lengths, levels.shape[1])
    softest = torch.where(valid, levels, torch.inf).amin(1, keepdim=True)
    loudest = torch.where(valid, levels, -torch.inf).amax(1, keepdim=True)
    return valid & (levels < softest + share * (loudest - softest))
