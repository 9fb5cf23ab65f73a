"""Random numbers that belong to an utterance, not to the batch it happens to be in."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["UtteranceRandomness"]


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
