"""From symbols to words and back to where the words stand."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sonorant.decoding.ctc import TokenSpan

__all__ = ["join_words", "place_words", "read_words", "symbol_confidence"]

Spelling = tuple[int, ...]


def place_words(
    spans: Sequence[TokenSpan], spellings: Sequence[Sequence[Spelling]], frames: Sequence[int], silence: int | None
) -> list[list[TokenSpan]]:
    """Which symbols of a path belong to which of its words.

    Args:
        spans: the symbols of the path.
        spellings: for each word of the path its possible spellings.
        frames: for each word a frame of it.
        silence: the symbol that may stand between words, or None.

    Returns:
        The symbols of each word.

    Raises:
        ValueError: the symbols do not spell the words.
    """
    # from right to left: from which places can the rest of the words be read, and how long is the first of them
    lengths: list[dict[int, int]] = [{} for _ in spellings]
    readable = _before_silence({len(spans)}, spans, silence)
    tokens = tuple(span.token for span in spans)
    for word in range(len(spellings) - 1, -1, -1):
        for spelling in spellings[word]:
            size = len(spelling)
            for end in readable:
                start = end - size
                if (
                    start >= 0
                    and tokens[start:end] == spelling
                    and spans[start].start <= frames[word] < spans[end - 1].end
                ):
                    lengths[word][start] = size
        readable = _before_silence(set(lengths[word]), spans, silence)
    if 0 not in readable:
        raise ValueError("the symbols of the path do not spell its words")
    places, position = [], 0
    for choices in lengths:
        while position not in choices:
            position += 1
        end = position + choices[position]
        places.append(list(spans[position:end]))
        position = end
    return places


def _before_silence(positions: set[int], spans: Sequence[TokenSpan], silence: int | None) -> set[int]:
    """The positions, and those from which they are one silence away."""
    return positions | {place - 1 for place in positions if place > 0 and spans[place - 1].token == silence}


def read_words(
    spans: Sequence[TokenSpan], word_of: Mapping[Spelling, str], silence: int | None
) -> list[tuple[str, list[TokenSpan]]]:
    """Cut at silences and read the longest known spellings from the left; what spells nothing is passed over.

    Args:
        spans: the symbols of an utterance.
        word_of: words by their spellings.
        silence: the symbol between words, or None.

    Returns:
        The words, each with its symbols.
    """
    longest = max(map(len, word_of), default=0)
    words, start = [], 0
    while start < len(spans):
        for end in range(min(len(spans), start + longest), start, -1):
            spelling = tuple(span.token for span in spans[start:end])
            if spelling in word_of and silence not in spelling:
                words.append((word_of[spelling], list(spans[start:end])))
                start = end - 1
                break
        start += 1
    return words


def join_words(
    spans: Sequence[TokenSpan], symbols: Sequence[str], separator: int | None
) -> list[tuple[str, list[TokenSpan]]]:
    """Cut at separators and write the symbols between them as words, whether known or not.

    Args:
        spans: the symbols of an utterance.
        symbols: by their ids.
        separator: the symbol between words; None makes one word of all.

    Returns:
        The words, each with its symbols.
    """
    groups: list[list[TokenSpan]] = [[]]
    for span in spans:
        if span.token == separator:
            groups.append([])
        else:
            groups[-1].append(span)
    return [("".join(symbols[span.token] for span in group), group) for group in groups if group]


def symbol_confidence(log_probs: npt.NDArray[np.float32], symbols: Sequence[TokenSpan]) -> float:
    """The probability of a word's least probable symbol, each averaged over the frames in which it stands.

    Args:
        log_probs: ``(frames, classes)``.
        symbols: of the word.
    """
    means = [np.exp(log_probs[span.start : span.end, span.token].astype(np.float64)).mean() for span in symbols]
    return min(1.0, float(min(means)))
