"""Where the tokens of a text can be in its recording, before anything is learned."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional import beta_binomial_prior, subtract_floor
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["AlignmentPrior", "SoundAndSilence", "sound_and_silence"]

_SMALLEST = 1e-8  # of a prior, so that nothing is impossible
_DECIBELS = 10 / math.log(10)  # of a nat of power
_DYNAMIC_RANGE = 20.0  # nats, 87 dB: what is softer is digital silence, or as good as that
_BACKGROUND = 0.03  # a quantile of the levels
_SPEECH, _MOST_SPEECH = 0.95, 15  # another; in a long recording, the level of so many loudest frames, however rare
# how far the background reaches: this quantile of the quiet half of the range, above the 0.03 of all, so many times
_QUIET, _REACH = 0.25, 3.0
_FLAT = 1e-3  # nats: no sound has a spectrum as flat as digital silence has
_CLEAR = 4.0  # times its reach is the range of levels over the background where the two are told apart with certainty


@dataclass(frozen=True)
class AlignmentPrior:
    """The diagonal of the sound, boundary tokens where it is quiet, and the others where it is not.

    Frames of a text's recording are taken for sound if they are louder than its background. The beta-binomial prior
    runs over these alone: silence, at the edges or in the middle, does not take part in the diagonal. In loud frames
    boundary tokens are less likely, or they would eat the ends of words; in long silences all others are, or the last
    token of a word would learn to last as long as the silence after it.

    Args:
        steps: into which the sound is cut at most: the fewer, the wider the prior about the diagonal.
        penalty: how many nats a token is less likely in a frame of the wrong kind; 0 leaves levels out.
        margin: decibels above the background from which on a frame is loud. It grows by itself where the background
            is not steady.
        softness: decibels over which that comes about.
        longest_closure: frames; the parts of a silence that lasts longer are no part of a word.
        largest_range: decibels; what is further below the loudest frames is not loud, whatever the background is.
    """

    steps: int = 100
    penalty: float = 12.0
    margin: float = 4.0
    softness: float = 0.7
    longest_closure: int = 15
    largest_range: float = 40.0

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("penalty", 0), ("longest_closure", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}")
        for name in ("margin", "softness", "largest_range"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive; got {getattr(self, name)}")

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
        found = sound_and_silence(features, feature_lengths, self)
        diagonal = self._diagonal(found.sound > 0.5, feature_lengths, token_lengths, is_boundary.shape[1])
        wrong = torch.where(is_boundary.unsqueeze(1), found.sound.unsqueeze(2), found.silence.unsqueeze(2))
        return (diagonal + _SMALLEST).log() - self.penalty * wrong

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


class SoundAndSilence(NamedTuple):
    """Of each frame ``(batch, time)``: how sure it is that it is no silence, and that it is part of a long silence."""

    sound: Tensor
    silence: Tensor


def sound_and_silence(
    features: Float[Tensor, "batch time features"], lengths: Int[Tensor, " batch"], prior: AlignmentPrior
) -> SoundAndSilence:
    """What frames are, by their level above the background of their recording alone.

    The level is the mean of all features, so that a hum hides no fricative. Digital silence is no background: where
    recordings are filled up with it, their own background is looked for in the rest.

    Args:
        features: ``(batch, time, features)``, log energies.
        lengths: ``(batch,)``, frames.
        prior: its margin, softness and longest closure.

    Returns:
        ``SoundAndSilence``, in [0, 1], 0 beyond the lengths. Where the background is not steady neither is sure.
    """
    check_lengths(lengths, "lengths", batch_size=len(features), max_length=features.shape[1])
    valid = sequence_mask(lengths, features.shape[1])
    levels = subtract_floor(features.float(), lengths, _DYNAMIC_RANGE).mean(2) * _DECIBELS
    alive = valid & (features.amax(2) - features.amin(2) > _FLAT)
    floor, top = _quantile(levels, alive, _BACKGROUND), _quantile(levels, alive, _SPEECH, _MOST_SPEECH)
    quiet = alive & (levels <= (floor + top) / 2)
    reach = (_REACH * (_quantile(levels, quiet, _QUIET) - floor)).clamp(min=prior.margin)
    certainty = (2 * (top - floor) / (_CLEAR * reach) - 1).clamp(0, 1)
    loud = torch.maximum(floor + reach, top - prior.largest_range)
    sound = certainty * torch.sigmoid((levels - loud) / prior.softness)
    soft = floor + reach.clamp(max=2 * prior.margin) + 2 * prior.softness
    hush = torch.where(valid, torch.sigmoid((soft - levels) / prior.softness), 1.0)
    silence = certainty * _opened(hush, prior.longest_closure)
    return SoundAndSilence(torch.where(valid, sound, 0.0), torch.where(valid, silence, 0.0))


def _quantile(values: Tensor, mask: Tensor, share: float, at_most: int | None = None) -> Tensor:
    """Of the values where the mask is True, ``(batch, 1)``, at most so many being above it; 0 where there are none."""
    count = mask.sum(1, keepdim=True)
    place = ((count - 1).clamp(min=0) * share).long()
    if at_most is not None:
        place = torch.maximum(place, count - 1 - at_most)
    found = torch.where(mask, values, torch.inf).sort(1).values.gather(1, place)
    return torch.where(count > 0, found, 0.0)


def _opened(values: Tensor, size: int) -> Tensor:
    """The largest value that is kept for so many frames (at the edges: and beyond them) around each frame."""
    padded = F.pad(values.unsqueeze(1), (size - 1, size - 1), value=1.0)
    lowest = -F.max_pool1d(-padded, size, 1)
    return F.max_pool1d(lowest, size, 1).squeeze(1)
