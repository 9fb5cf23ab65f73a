"""A guide for the silence symbol while CTC training begins.

From a flat start CTC has several places to settle in. Mostly words are emitted where they are spoken; but from some
initialisations they are emitted in the pauses, or silence in the words, and training never gets out of it. So in its
first part the silence symbol is shown where silence is: in the quiet frames, and not in the loud ones.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional import subtract_floor
from sonorant.lengths import Padded, sequence_mask
from sonorant.models import TdnnCtc

__all__ = ["SilenceGuideConfig", "relative_levels", "silence_guide_loss"]

_SMALLEST = 1e-6  # of the probability that a loud frame is not silence


@dataclass(frozen=True)
class SilenceGuideConfig:
    """How the silence symbol is guided.

    Args:
        weight: of the guide at the first step, beside the CTC loss; 0 leaves it out.
        until: the share of the steps after which the weight, falling linearly, is 0.
        quiet: frames are silence up to this level, between 0 (the utterance's softest frame) and 1 (its loudest).
        loud: frames are not silence from this level on.
    """

    weight: float = 1.0
    until: float = 0.4
    quiet: float = 0.25
    loud: float = 0.5

    def __post_init__(self) -> None:
        if self.weight < 0 or not 0 < self.until <= 1:
            raise ValueError(f"weight must not be negative, and until in (0, 1]; got {self.weight} and {self.until}")
        if not 0 <= self.quiet < self.loud <= 1:
            raise ValueError(f"levels must be 0 <= quiet < loud <= 1; got quiet {self.quiet}, loud {self.loud}")

    def weight_at(self, step: int, total_steps: int) -> float:
        """The weight at a step, counted from 0."""
        return self.weight * max(0.0, 1 - step / (self.until * total_steps))


def silence_guide_loss(
    log_probs: Padded,
    features: Float[Tensor, "batch time features"],
    lengths: Int[Tensor, " batch"],
    model: TdnnCtc,
    silence: int,
    config: SilenceGuideConfig,
) -> Float[Tensor, " batch"]:
    """Cross entropy of silence in quiet and of its absence in loud frames, summed over the frames of an utterance.

    Args:
        log_probs: the model's output.
        features: its input ``(batch, time, features)``, log energies.
        lengths: ``(batch,)``, frames of the input.
        model: says which input frame an output frame is about, and how far below the loudest energies count.
        silence: the id of the silence symbol.
        config: says which frames are quiet, and which are loud.
    """
    levels = relative_levels(features, lengths, model.config.dynamic_range)[:, model.first_center :]
    num_frames = log_probs.values.shape[1]
    levels = F.pad(levels, (0, max(0, num_frames - levels.shape[1])))[:, :num_frames]
    valid = sequence_mask(log_probs.lengths, num_frames)
    is_silence = log_probs.values[:, :, silence]
    is_speech = torch.log1p(-is_silence.exp().clamp(max=1 - _SMALLEST))
    likelihood = torch.where(valid & (levels < config.quiet), is_silence, 0.0)
    likelihood = likelihood + torch.where(valid & (levels > config.loud), is_speech, 0.0)
    return -likelihood.sum(1)


def relative_levels(
    features: Float[Tensor, "batch time features"], lengths: Int[Tensor, " batch"], dynamic_range: float
) -> Float[Tensor, "batch time"]:
    """Each frame's mean log energy between 0, the softest of its utterance, and 1, the loudest.

    Args:
        features: ``(batch, time, features)``, log energies.
        lengths: ``(batch,)``, frames.
        dynamic_range: energies count as no less than so many nats below the utterance's largest.

    Returns:
        ``(batch, time)``; NaN, which is neither quiet nor loud, where an utterance's level never changes.
    """
    levels = subtract_floor(features, lengths, dynamic_range).mean(2)
    valid = sequence_mask(lengths, levels.shape[1])
    softest = torch.where(valid, levels, torch.inf).amin(1, keepdim=True)
    loudest = torch.where(valid, levels, -torch.inf).amax(1, keepdim=True)
    return (levels - softest) / (loudest - softest)
