"""Random numbers that belong to an utterance, not to the batch it happens to be in."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["UtteranceRandomness", "dropout_masks"]


class UtteranceRandomness:
    """Draws for the utterances of a batch, each from a seed of its own.

    An utterance gets the same numbers whatever it is batched with, however far it is padded, and on whichever process.

    Args:
        seeds: int64 ``(batch,)``; None takes them from torch's global generator.
        batch_size: utterances.
        device: where the numbers are made. Those of different kinds of devices differ.

    Example:
        >>> import torch
        >>> from sonorant.nn.randomness import UtteranceRandomness
        >>> both = UtteranceRandomness(torch.tensor([4, 5]), 2, torch.device("cpu")).uniform(3)
        >>> second = UtteranceRandomness(torch.tensor([5]), 1, torch.device("cpu")).uniform(3)
        >>> torch.equal(both[1:], second)
        True
    """

    def __init__(self, seeds: Int[Tensor, " batch"] | None, batch_size: int, device: torch.device) -> None:
        if seeds is None:
            seeds = torch.randint(2**32, (batch_size,))
        elif seeds.shape != (batch_size,):
            raise ValueError(f"seeds must have shape ({batch_size},); got {tuple(seeds.shape)}")
        self._device = device
        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds.tolist()]

    def uniform(self, count: int) -> Float[Tensor, "batch count"]:
        """Numbers in [0, 1), so many an utterance."""
        numbers = torch.empty(len(self._generators), count, device=self._device)
        for row, generator in zip(numbers, self._generators, strict=True):
            row.uniform_(generator=generator)
        return numbers

    def normal(self, lengths: Int[Tensor, " batch"], like: Float[Tensor, "batch time features"]) -> Tensor:
        """Standard normal numbers for the valid frames.

        Args:
            lengths: ``(batch,)``, frames.
            like: of whose shape and dtype the result is.

        Returns:
            ``(batch, time, features)``, 0 beyond the lengths.
        """
        numbers = torch.zeros_like(like)
        for row, length, generator in zip(numbers, lengths.tolist(), self._generators, strict=True):
            row[:length].normal_(generator=generator)
        return numbers


def dropout_masks(
    seeds: Int[Tensor, " batch"] | None, batch_size: int, widths: Sequence[int], rate: float, device: torch.device
) -> list[Tensor]:
    """What layers are multiplied with in training, the same at all steps of an utterance.

    Args:
        seeds: as for :class:`UtteranceRandomness`, like ``batch_size`` and ``device``.
        batch_size: utterances.
        widths: channels of each layer.
        rate: the share of channels that are taken away.
        device: where the masks are made.

    Returns:
        For each layer ``(batch, 1, width)``, 0 or ``1 / (1 - rate)``.

    References:
        Gal and Ghahramani 2016, arXiv 1512.05287.

    Example:
        >>> import torch
        >>> from sonorant.nn.randomness import dropout_masks
        >>> dropout_masks(torch.tensor([1]), 1, [3, 2], 0.0, torch.device("cpu"))[1]
        tensor([[[1., 1.]]])
    """
    # one draw for all, since drawing for each utterance by itself is what takes time
    draws = UtteranceRandomness(seeds, batch_size, device).uniform(sum(widths))
    scaled = ((draws >= rate) / (1 - rate)).unsqueeze(1)
    return list(torch.split(scaled, list(widths), 2))
