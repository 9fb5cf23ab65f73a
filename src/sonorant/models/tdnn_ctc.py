"""A TDNN acoustic model for CTC."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sonorant.functional import limit_dynamic_range
from sonorant.lengths import Padded, check_lengths, sequence_mask
from sonorant.nn import Tdnn, UtteranceCmvn
from sonorant.nn.randomness import UtteranceRandomness

__all__ = ["TdnnCtc", "TdnnCtcConfig"]


@dataclass(frozen=True)
class TdnnCtcConfig:
    """What can be chosen about :class:`TdnnCtc`.

    Args:
        hidden_channels: the width of the convolutions.
        dynamic_range: log energies are floored at so many nats below the utterance's loudest.
        normalize_variance: divide each feature by its standard deviation over the utterance, not only centre it.
        noise: the standard deviation of the Gaussian noise that training adds to the normalised features.
        channel_noise: the standard deviation of an offset that training draws for each utterance and feature, as
            another microphone would give.
        statistics_fraction: training normalises by a random stretch of each utterance, at least this share of it
            (1: by all of it). What is said decides mean and variance too; so the model learns not to rely on it.
        pad_edges: put zeros (the mean of each feature) before and after the utterance, half the frames that the
            network takes away on each side. There is then an output frame for every input frame, and the network sees
            where a recording begins and ends: silence there is told from silence between words.
    """

    hidden_channels: int = 32
    dynamic_range: float = 8.0
    normalize_variance: bool = True
    noise: float = 0.3
    channel_noise: float = 0.3
    statistics_fraction: float = 0.3
    pad_edges: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.statistics_fraction <= 1:
            raise ValueError(f"statistics_fraction must lie in (0, 1]; got {self.statistics_fraction}")


class TdnnCtc(nn.Module):
    """Log energies to log probabilities: a floor, mean and variance normalisation, then :class:`sonorant.nn.Tdnn`.

    Floor and normalisation, by utterance, are part of the model, so that who runs an exported one need not know.

    Args:
        config: see :class:`TdnnCtcConfig`.
        num_features: features of an input frame.
        num_classes: symbols, blank included.
    """

    def __init__(self, config: TdnnCtcConfig, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.config = config
        self.normalization: nn.Module = UtteranceCmvn(normalize_variance=config.normalize_variance)
        self.encoder = Tdnn(num_features, num_classes, config.hidden_channels)
        self._padding = self.encoder.shrink // 2 if config.pad_edges else 0

    @property
    def min_frames(self) -> int:
        """The fewest input frames: what one output of the network sees. Fewer would be made out of padding."""
        return self.encoder.shrink + 1

    @property
    def first_center(self) -> int:
        """The input frame in the middle of what the first output frame sees."""
        return self.encoder.shrink // 2 - self._padding

    def output_lengths(self, lengths: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        """Output frames of utterances of these lengths, 0 for those that are too short."""
        frames = self.encoder.output_lengths(lengths + 2 * self._padding)
        return torch.where(lengths < self.min_frames, 0, frames)

    def forward(
        self,
        features: Float[Tensor, "batch time features"],
        lengths: Int[Tensor, " batch"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Padded:
        """Compute log probabilities.

        Args:
            features: ``(batch, time, num_features)``.
            lengths: ``(batch,)``, frames; at least :attr:`min_frames`.
            seeds: int64 ``(batch,)``, of each utterance's disturbances in training, which are then the same in any
                batch; None takes them from torch's global generator.

        Returns:
            ``Padded``: log probabilities ``(batch, frames, num_classes)``, 0 beyond :meth:`output_lengths`.

        Raises:
            ValueError: lengths that do not fit, or utterances too short.
        """
        check_lengths(
            lengths,
            "lengths",
            batch_size=features.shape[0],
            max_length=features.shape[1],
            min_length=self.min_frames,
        )
        features = limit_dynamic_range(features, lengths, self.config.dynamic_range)
        if self.training:
            features = self._disturbed(features, lengths, seeds)
        else:
            features = self._padded(self.normalization(features, lengths))
        logits, _ = self.encoder(features, lengths + 2 * self._padding)
        output_lengths = self.output_lengths(lengths)
        log_probs = logits.float().log_softmax(-1)
        mask = sequence_mask(output_lengths, log_probs.shape[1]).unsqueeze(2)
        return Padded(torch.where(mask, log_probs, 0.0), output_lengths)

    def _padded(self, features: Tensor) -> Tensor:
        return nn.functional.pad(features, (0, 0, self._padding, self._padding))

    def _disturbed(self, features: Tensor, lengths: Tensor, seeds: Tensor | None) -> Tensor:
        """Normalised and padded, with what training adds."""
        randomness = UtteranceRandomness(seeds, len(features), features.device)
        stretches = random_stretches(randomness, lengths, features.shape[1], self.config.statistics_fraction)
        features = self._padded(self.normalization(features, lengths, stretches))
        channel = randomness.normal(torch.ones_like(lengths), features[:, :1])
        frames = randomness.normal(lengths + 2 * self._padding, features)
        return features + self.config.channel_noise * channel + self.config.noise * frames


def random_stretches(
    randomness: UtteranceRandomness, lengths: Int[Tensor, " batch"], max_length: int, min_fraction: float
) -> Bool[Tensor, "batch time"]:
    """A contiguous stretch of each sequence, of a random length and at a random place.

    Args:
        randomness: says where, and how long.
        lengths: ``(batch,)``.
        max_length: the number of columns.
        min_fraction: the smallest share of a sequence; the share is uniform between it and 1.

    Returns:
        bool ``(batch, max_length)``, True inside the stretch; at least one position of each sequence that has any.
    """
    total = lengths.unsqueeze(1)
    draws = randomness.uniform(2)
    share, place = draws[:, :1], draws[:, 1:]
    size = (total * (min_fraction + (1 - min_fraction) * share)).ceil()
    start = (place * (total - size + 1)).floor()
    positions = torch.arange(max_length, device=lengths.device)
    stretches: Tensor = (positions >= start) & (positions < start + size)
    return stretches
