"""Where the tokens of a text can be in its recording, before anything is learned."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional import beta_binomial_prior
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["AlignmentPrior", "sound_probability"]

_SMALLEST = 1e-8  # of a prior, so that nothing is impossible
_DECIBELS = 10 / math.log(10)  # of a nat of power


@dataclass(frozen=True)
class AlignmentPrior:
    """The diagonal of the sound, and boundary tokens where it is quiet.

    Frames of a text's recording are taken for sound if they are louder than its background. The beta-binomial prior
    runs over these alone: silence, at the edges or in the middle, does not take part in the diagonal.

    Args:
        steps: into which the sound is cut at most: the fewer, the wider the prior about the diagonal.
        penalty: how many nats a boundary token is less likely in a loud frame; 0 leaves energy out.
        margin: decibels above the background from which on a frame is loud.
        softness: decibels over which that comes about.
        quantile: of the frames' levels which is the background.
        largest_range: decibels below the loudest frame at which the background is at least, so that digital silence is
            no different from a quiet room.
    """

    steps: int = 100
    penalty: float = 12.0
    margin: float = 10.0
    softness: float = 1.5
    quantile: float = 0.03
    largest_range: float = 50.0
    smooth: int = 3

    def __post_init__(self) -> None:
        if self.steps < 1 or self.penalty < 0 or self.softness <= 0 or not 0 <= self.quantile < 1:
            raise ValueError(
                f"steps and softness must be positive, penalty not negative, quantile in [0, 1); got {self}"
            )

    def log_prior(
        self,
        features: Float[Tensor, "batch query features"],
        feature_lengths: Int[Tensor, " batch"],
        is_boundary: Bool[Tensor, "batch key"],
        token_lengths: Int[Tensor, " batch"],
    ) -> Float[Tensor, "batch query key"]:
        """The logarithm of the prior of each token in each frame.

        Args:
            features: ``(batch, query, features)``, log energies.
            feature_lengths: ``(batch,)``, frames.
            is_boundary: ``(batch, key)``, which tokens stand for silence.
            token_lengths: ``(batch,)``.

        Returns:
            ``(batch, query, key)``; of no use beyond the lengths.
        """
        sound = sound_probability(features, feature_lengths, self)
        log_prior = (self._diagonal(sound > 0.5, feature_lengths, token_lengths, is_boundary.shape[1]) + _SMALLEST).log()
        penalty = -self.penalty * sound.unsqueeze(2)
        return log_prior + torch.where(is_boundary.unsqueeze(1), penalty, 0.0)

    def _diagonal(self, sound: Tensor, lengths: Tensor, token_lengths: Tensor, num_keys: int) -> Tensor:
        valid = sequence_mask(lengths, sound.shape[1])
        sound = torch.where(sound.any(1, keepdim=True), sound, valid)  # without any, all frames take part
        done = sound.cumsum(1)
        total = done[:, -1:]
        steps = total.clamp(max=self.steps)
        prior = beta_binomial_prior(
            steps.squeeze(1), token_lengths, max_query_length=self.steps, max_key_length=num_keys, dtype=torch.float32
        )
        rows = -(-done * steps // total) - 1  # rounded up: the first sound is step 0
        spread = prior.gather(1, rows.clamp(min=0).unsqueeze(2).expand(-1, -1, num_keys))
        first = F.one_hot(torch.zeros_like(token_lengths), num_keys).unsqueeze(1).to(spread.dtype)
        last = F.one_hot(token_lengths - 1, num_keys).unsqueeze(1).to(spread.dtype)
        before, after = (done == 0).unsqueeze(2), ((done == total) & ~sound).unsqueeze(2)
        return torch.where(before, first, torch.where(after, last, spread))


def sound_probability(
    features: Float[Tensor, "batch time features"], lengths: Int[Tensor, " batch"], prior: AlignmentPrior
) -> Float[Tensor, "batch time"]:
    """How sure it is that a frame is more than background, by its level alone.

    Args:
        features: ``(batch, time, features)``, log energies.
        lengths: ``(batch,)``, frames.
        prior: says what the background is.

    Returns:
        ``(batch, time)`` in [0, 1], 0 beyond the lengths; 0 everywhere in a recording whose level never changes.
    """
    check_lengths(lengths, "lengths", batch_size=len(features), max_length=features.shape[1])
    valid = sequence_mask(lengths, features.shape[1])
    levels = torch.where(valid, features.float().logsumexp(2) * _DECIBELS, 0.0)
    if prior.smooth > 1:
        window = F.avg_pool1d(torch.stack([levels, valid.float()], 1), prior.smooth, 1, prior.smooth // 2)
        levels = window[:, 0] / window[:, 1].clamp(min=0.1)
    ordered = torch.where(valid, levels, torch.inf).sort(1).values
    place = ((lengths - 1) * prior.quantile).long().unsqueeze(1)
    loudest = torch.where(valid, levels, -torch.inf).amax(1, keepdim=True)
    floor = torch.maximum(ordered.gather(1, place), loudest - prior.largest_range)
    return torch.where(valid, torch.sigmoid((levels - floor - prior.margin) / prior.softness), 0.0)
