"""The best hypotheses of each utterance."""

import logging
import math
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

__all__ = ["Hypothesis", "NBest", "largest"]

logger = logging.getLogger(__name__)

_NAMED = 5  # utterances in a warning


class Hypothesis(NamedTuple):
    """One transcript of an utterance.

    ``tokens``, without start and end marks; ``log_prob``, that of the tokens with what follows them: the end mark if
    ``ended``, else anything but the end mark, since the search was cut off at its maximum length; ``score``, by which
    it is ranked; ``coverage``, the part of the input that was attended to, None where it is not known.
    """

    tokens: list[int]
    log_prob: float
    score: float
    ended: bool
    coverage: float | None


class NBest(NamedTuple):
    """The hypotheses of a batch, those of each utterance from the best on.

    ``tokens`` int64 ``(batch, n_best, length)``, end marks beyond ``lengths``; ``lengths``, ``log_probs``, ``scores``,
    ``ended`` and ``coverage`` ``(batch, n_best)``, as in :class:`Hypothesis`, with NaN for a coverage that is not
    known. Where an utterance has fewer hypotheses, the others have a score of minus infinity and a length of 0.
    """

    tokens: Tensor
    lengths: Tensor
    log_probs: Tensor
    scores: Tensor
    ended: Tensor
    coverage: Tensor

    def hypotheses(self) -> list[list[Hypothesis]]:
        """As lists: for each utterance those that it has."""
        columns = zip(*(field.tolist() for field in self), strict=True)
        return [
            [
                Hypothesis(tokens[:length], log_prob, score, ended, None if math.isnan(coverage) else coverage)
                for tokens, length, log_prob, score, ended, coverage in zip(*utterance, strict=True)
                if score > -math.inf
            ]
            for utterance in columns
        ]

    @classmethod
    def none(cls, batch_size: int, n_best: int, device: torch.device) -> "NBest":
        """Room for so many, and none yet."""
        counts = torch.zeros(batch_size, n_best, dtype=torch.int64, device=device)
        nothing = torch.full((batch_size, n_best), -torch.inf, device=device)
        return cls(counts.unsqueeze(2)[:, :, :0], counts, nothing, nothing, counts.bool(), nothing * torch.nan)

    def index_select(self, utterances: Int[Tensor, " utterances"]) -> "NBest":
        """The hypotheses of other utterances of the batch."""
        return NBest(*(field[utterances] for field in self))

    def merge(self, others: "NBest") -> "NBest":
        """The best of these and of ``others``, as many as these are; of equal scores these, then in their order.

        Args:
            others: hypotheses of the same utterances, any number.
        """
        both = _concatenate([self, others], 1)
        order = both.scores.argsort(dim=1, descending=True, stable=True)[:, : self.scores.shape[1]]
        rows = torch.arange(len(order), device=order.device).unsqueeze(1)
        return NBest(*(field[rows, order] for field in both))

    @staticmethod
    def join(parts: list["NBest"], eos: int) -> "NBest":
        """One batch after the other, with ``eos`` beyond the lengths.

        Args:
            parts: at least one.
            eos: the end mark.
        """
        joined = _concatenate(parts, 0)
        longest = int(joined.lengths.max()) if joined.lengths.numel() else 0
        beyond = torch.arange(longest, device=joined.lengths.device) >= joined.lengths.unsqueeze(2)
        return joined._replace(tokens=joined.tokens[:, :, :longest].masked_fill(beyond, eos))

    def warn_of_unended(self) -> None:
        """Name the utterances whose best hypothesis did not end in a warning."""
        cut = ~self.ended[:, 0] & (self.scores[:, 0] > -torch.inf)
        indices = cut.nonzero().squeeze(1).tolist()
        if not indices:
            return
        named = []
        for index in indices[:_NAMED]:
            covered = float(self.coverage[index, 0])
            known = "" if math.isnan(covered) else f" (attention coverage {covered:.0%})"
            named.append(f"{index} after {int(self.lengths[index, 0])} tokens{known}")
        more = ", ..." if len(indices) > _NAMED else ""
        message = "%d of %d utterances reached max_length without an end: %s%s"
        logger.warning(message, len(indices), len(cut), ", ".join(named), more)


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` largest of each row in falling order, and where they are; of equal ones the first.

    ``torch.topk`` does not say which of equal ones it takes.

    Args:
        values: ``(rows, columns)``, without NaN.
        count: at most the number of columns.
    """
    smallest = values.topk(count, dim=1).values[:, -1:]
    above, level = values > smallest, values == smallest
    room = count - above.sum(1, keepdim=True)
    index = (above | (level & (level.cumsum(1) <= room))).nonzero()[:, 1].view(-1, count)
    order = values.gather(1, index).sort(dim=1, descending=True, stable=True)
    return order.values, index.gather(1, order.indices)


def _concatenate(parts: list[NBest], dim: int) -> NBest:
    longest = max(part.tokens.shape[2] for part in parts)
    tokens = [F.pad(part.tokens, (0, longest - part.tokens.shape[2])) for part in parts]
    padded = [part._replace(tokens=rows) for part, rows in zip(parts, tokens, strict=True)]
    return NBest(*(torch.cat(fields, dim) for fields in zip(*padded, strict=True)))
