"""Decoding of CTC outputs without a graph."""

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from sonorant.lengths import check_lengths

__all__ = ["TokenSpan", "WordSpan", "ctc_greedy_decode", "merge_frames"]


class TokenSpan(NamedTuple):
    """A token and the frames in which it was emitted, ``start`` to ``end`` (exclusive)."""

    token: int
    start: int
    end: int


class WordSpan(NamedTuple):
    """A word, its frames ``start`` to ``end`` (exclusive), and how sure the decoder is of it, in [0, 1]."""

    word: str
    start: int
    end: int
    confidence: float


def ctc_greedy_decode(
    log_probs: Float[Tensor, "batch time classes"], lengths: Int[Tensor, " batch"], *, blank: int = 0
) -> list[list[TokenSpan]]:
    """The best class of every frame, repeats merged and blanks dropped.

    Args:
        log_probs: ``(batch, time, classes)``; logits do as well.
        lengths: ``(batch,)``, frames.
        blank: the id of the blank.

    Returns:
        The tokens of each utterance and where they stand.

    Raises:
        ValueError: lengths that do not fit.

    Example:
        >>> import torch
        >>> from sonorant.decoding.ctc import ctc_greedy_decode
        >>> log_probs = torch.eye(3)[torch.tensor([[0, 1, 1, 0, 2]])]
        >>> ctc_greedy_decode(log_probs, torch.tensor([5]))
        [[TokenSpan(token=1, start=1, end=3), TokenSpan(token=2, start=4, end=5)]]
    """
    check_lengths(lengths, "lengths", batch_size=log_probs.shape[0], max_length=log_probs.shape[1], min_length=0)
    best = log_probs.argmax(-1).cpu()
    return [merge_frames(row[:length].tolist(), blank) for row, length in zip(best, lengths.tolist(), strict=True)]


def merge_frames(classes: list[int], blank: int) -> list[TokenSpan]:
    """The tokens of a path: repeats of a class are one token, blanks none.

    Args:
        classes: the class of every frame.
        blank: the id of the blank.
    """
    spans = []
    start = 0
    for frame in range(1, len(classes) + 1):
        if frame == len(classes) or classes[frame] != classes[start]:
            if classes[start] != blank:
                spans.append(TokenSpan(classes[start], start, frame))
            start = frame
    return spans
