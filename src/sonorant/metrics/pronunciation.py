"""Errors of pronunciations, where a word may have several right ones."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from sonorant.metrics.error_rate import ErrorRate, error_rate

__all__ = [
    "PronunciationErrorRate",
    "nearest_pronunciations",
    "pronunciation_error_rate",
    "pronunciation_error_rate_by_length",
]

Pronunciation = Sequence[Hashable]


class PronunciationErrorRate(NamedTuple):
    """``words``, of which a wrong one counts as a substitution and a missing one as a deletion; and ``phones``."""

    words: ErrorRate
    phones: ErrorRate


def nearest_pronunciations(
    references: Sequence[Sequence[Pronunciation]], hypotheses: Sequence[Pronunciation | None]
) -> list[Pronunciation]:
    """For each word the reference pronunciation with the fewest errors.

    Args:
        references: for each word its pronunciations, at least one.
        hypotheses: for each word a pronunciation; None where there is none.

    Returns:
        One pronunciation for each word; of several that are as near, the first.

    Raises:
        ValueError: different numbers of references and hypotheses; a word without reference; a pronunciation that is
            a string and not a sequence of phones.

    Example:
        >>> from sonorant.metrics import nearest_pronunciations
        >>> nearest_pronunciations([[["R", "EH", "D"], ["R", "IY", "D"]]], [["R", "IY"]])
        [['R', 'IY', 'D']]
    """
    import kaldialign

    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references and {len(hypotheses)} hypotheses; as many are needed")
    nearest = []
    for index, (choices, hypothesis) in enumerate(zip(references, hypotheses, strict=True)):
        if not choices:
            raise ValueError(f"references[{index}] has no pronunciation")
        for pronunciation in (*choices, hypothesis):
            if isinstance(pronunciation, str):
                raise ValueError(f"word {index}: the pronunciation {pronunciation!r} must be a sequence of phones")
        given = list(hypothesis or ())
        errors = [kaldialign.edit_distance(choice, given)["total"] for choice in choices] if len(choices) > 1 else [0]
        nearest.append(choices[errors.index(min(errors))])
    return nearest


def pronunciation_error_rate(
    references: Sequence[Sequence[Pronunciation]],
    hypotheses: Sequence[Pronunciation | None],
    *,
    replications: int = 1000,
    seed: int = 0,
) -> PronunciationErrorRate:
    r"""How many words are wrong, and how many phones.

    .. math:: \mathrm{WER} = \frac{1}{W} \sum_w \big[y_w \notin R_w\big], \quad
              \mathrm{PER} = \frac{\sum_w d(y_w, r_w)}{\sum_w |r_w|}, \quad
              r_w = \arg\min_{r \in R_w} d(y_w, r)

    A word is right if it is any of its references. Its phones are counted against the nearest of them; of several that
    are as near, the first.

    Args:
        references: for each word its pronunciations, at least one.
        hypotheses: for each word a pronunciation; None where there is none.
        replications: bootstrap samples for the intervals (words drawn with replacement); 0 leaves them out.
        seed: of the bootstrap.

    Returns:
        ``PronunciationErrorRate``: the error rates of words and of phones.

    Raises:
        ValueError: different numbers of references and hypotheses, or none; a word without reference; a pronunciation
            that is a string and not a sequence of phones.

    References:
        Bisani and Ney 2008, "Joint-sequence models for grapheme-to-phoneme conversion" (several
        references); Bisani and Ney 2004, "Bootstrap estimates for confidence intervals in ASR performance evaluation".

    Example:
        >>> from sonorant.metrics import pronunciation_error_rate
        >>> references = [[["R", "EH", "D"], ["R", "IY", "D"]], [["K", "AE", "T"]]]
        >>> rate = pronunciation_error_rate(references, [["R", "IY", "D"], ["K", "AH", "T"]], replications=0)
        >>> rate.words.rate, round(rate.phones.rate, 4)
        (0.5, 0.1667)
    """
    nearest = nearest_pronunciations(references, hypotheses)
    # a word is a sequence of one token
    wanted = [[True]] * len(nearest)
    given = [
        None if hypothesis is None else [list(hypothesis) == list(reference)]
        for hypothesis, reference in zip(hypotheses, nearest, strict=True)
    ]
    return PronunciationErrorRate(
        words=error_rate(wanted, given, replications=replications, seed=seed),
        phones=error_rate(nearest, hypotheses, replications=replications, seed=seed),
    )


def pronunciation_error_rate_by_length(
    words: Sequence[Sequence[Hashable]],
    references: Sequence[Sequence[Pronunciation]],
    hypotheses: Sequence[Pronunciation | None],
    *,
    replications: int = 1000,
    seed: int = 0,
) -> dict[int, PronunciationErrorRate]:
    """How many words and phones are wrong among words of each length.

    Args:
        words: their graphemes, strings or sequences.
        references: as for :func:`pronunciation_error_rate`.
        hypotheses: likewise.
        replications: likewise.
        seed: likewise.

    Returns:
        By the number of graphemes, the shortest words first.

    Raises:
        ValueError: different numbers of words, references and hypotheses, or none; as for
            :func:`pronunciation_error_rate`.

    Example:
        >>> from sonorant.metrics import pronunciation_error_rate_by_length
        >>> words, references = ["cat", "a", "dog"], [[["K", "AE", "T"]], [["AH"]], [["D", "AO", "G"]]]
        >>> hypotheses = [["K", "AE", "T"], ["EY"], ["D", "AA", "G"]]
        >>> by_length = pronunciation_error_rate_by_length(words, references, hypotheses, replications=0)
        >>> {length: rate.words.rate for length, rate in by_length.items()}
        {1: 1.0, 3: 0.5}
    """
    if not len(words) == len(references) == len(hypotheses) or not words:
        counts = f"{len(words)} words, {len(references)} references and {len(hypotheses)} hypotheses"
        raise ValueError(f"{counts}; as many are needed, and some")
    places: dict[int, list[int]] = {}
    for index, word in enumerate(words):
        places.setdefault(len(word), []).append(index)
    return {
        length: pronunciation_error_rate(
            [references[index] for index in indices],
            [hypotheses[index] for index in indices],
            replications=replications,
            seed=seed,
        )
        for length, indices in sorted(places.items())
    }
