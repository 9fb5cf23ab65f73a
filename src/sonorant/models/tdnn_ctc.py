"""A TDNN acoustic model for CTC."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sonorant.functional import subtract_floor
from sonorant.lengths import Padded, check_lengths, sequence_mask
from sonorant.nn import Tdnn
from sonorant.nn.randomness import UtteranceRandomness

__all__ = ["TdnnCtc", "TdnnCtcConfig"]

_DEVIATION = 4.0  # nats, about that of speech: the network's input is of the order of 1


@dataclass(frozen=True)
class TdnnCtcConfig:
    """What can be chosen about :class:`TdnnCtc`.

    Args:
        hidden_channels: the width of the convolutions.
        dynamic_range: log energies count from a floor so many nats below the utterance's loudest.
        noise: the standard deviation of the Gaussian noise that training adds to the features, in nats.
        channel_noise: the standard deviation of an offset that training draws for each utterance and feature, as
            another microphone would give; in nats.
        pad_edges: put frames at the floor before and after the utterance, half the frames that the network takes away
            on each side. There is then an output frame for every input frame, and the network sees where a recording
            begins and ends: silence there is told from silence between words.
    """

    hidden_channels: int = 32
    dynamic_range: float = 8.0
    noise: float = 1.6
    channel_noise: float = 1.2
    pad_edges: bool = True


class TdnnCtc(nn.Module):
    """Log energies to log probabilities: :func:`sonorant.functional.subtract_floor`, then :class:`sonorant.nn.Tdnn`.

    The floor, and with it the level, is part of the model, so that who runs an exported one need not know of it. Mean
    and variance are left as they are: what is said decides them too, and a model that has them removed takes eight
    times the same word for something else.

    Args:
        config: see :class:`TdnnCtcConfig`.
        num_features: features of an input frame.
        num_classes: symbols, blank included.
    """

    def __init__(self, config: TdnnCtcConfig, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.config = config
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
        features = subtract_floor(features, lengths, self.config.dynamic_range)
        features = nn.functional.pad(features, (0, 0, self._padding, self._padding))
        padded_lengths = lengths + 2 * self._padding
        if self.training:
            features = features + self._disturbance(features, padded_lengths, seeds)
        logits, _ = self.encoder(features / _DEVIATION, padded_lengths)
        output_lengths = self.output_lengths(lengths)
        # near 0 a log probability keeps its digits only in float64; the loss of a sure model is the sum of such
        exact = logits.float() if self.training else logits.double()
        log_probs = exact.log_softmax(-1).float()
        mask = sequence_mask(output_lengths, log_probs.shape[1]).unsqueeze(2)
        return Padded(torch.where(mask, log_probs, 0.0), output_lengths)

    def _disturbance(self, features: Tensor, lengths: Tensor, seeds: Tensor | None) -> Tensor:
        """What training adds to the features."""
        randomness = UtteranceRandomness(seeds, len(features), features.device)
        channel = randomness.normal(torch.ones_like(lengths), features[:, :1])
        frames = randomness.normal(lengths, features)
        return self.config.channel_noise * channel + self.config.noise * frames
