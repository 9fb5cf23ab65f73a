"""Word, character and phone error rates of a whole corpus, with confidence intervals."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Confusion", "ErrorRate", "confusions", "error_rate"]


@dataclass(frozen=True)
class ErrorRate:
    """Errors summed over a corpus.

    Args:
        insertions: tokens of the hypotheses that no reference has.
        deletions: tokens of the references that are missing.
        substitutions: tokens that came out as another.
        words: tokens of the references.
        interval: the 95 % bootstrap interval of the rate; None where it was not computed.
    """

    insertions: int
    deletions: int
    substitutions: int
    words: int
    interval: tuple[float, float] | None = None

    @property
    def errors(self) -> int:
        """All errors together."""
        return self.insertions + self.deletions + self.substitutions

    @property
    def rate(self) -> float:
        """Errors / reference tokens, a fraction that can exceed 1; infinite for errors without any reference."""
        if self.words:
            return self.errors / self.words
        return math.inf if self.errors else 0.0


def error_rate(
    references: Sequence[Sequence[Hashable]],
    hypotheses: Sequence[Sequence[Hashable] | None],
    *,
    replications: int = 1000,
    seed: int = 0,
) -> ErrorRate:
    r"""Total errors over total tokens: never a mean of rates of utterances.

    .. math:: \frac{\sum_u I_u + D_u + S_u}{\sum_u N_u}

    Args:
        references: a sequence of tokens (words, characters, phones) for each utterance.
        hypotheses: likewise; None is a missing hypothesis, and counts all its tokens as deleted.
        replications: bootstrap samples for the interval (utterances drawn with replacement); 0 leaves it out.
        seed: of the bootstrap.

    Returns:
        ``ErrorRate``: the counts, their rate (a fraction), and its interval.

    Raises:
        ValueError: different numbers of references and hypotheses, or none.

    References:
        Bisani and Ney 2004, "Bootstrap estimates for confidence intervals in ASR performance evaluation".

    Example:
        >>> from sonorant.metrics import error_rate
        >>> result = error_rate([["a"], ["b"] * 20], [["x"], ["b"] * 20], replications=0)
        >>> result.errors, round(result.rate, 4)
        (1, 0.0476)
    """
    import kaldialign

    wanted, given = _as_lists(references, hypotheses)
    counts = [kaldialign.edit_distance(ref, hyp) for ref, hyp in zip(wanted, given, strict=True)]
    words = sum(map(len, wanted))
    interval = None
    if replications and words:
        bounds = kaldialign.bootstrap_wer_ci(wanted, given, replications=replications, seed=seed)
        interval = (max(0.0, bounds["ci95min"]), bounds["ci95max"])
    return ErrorRate(
        insertions=sum(count["ins"] for count in counts),
        deletions=sum(count["del"] for count in counts),
        substitutions=sum(count["sub"] for count in counts),
        words=words,
        interval=interval,
    )


class Confusion(NamedTuple):
    """How often ``reference`` came out as ``hypothesis``; None stands for nothing: an insertion or a deletion."""

    reference: Hashable
    hypothesis: Hashable
    errors: int


def confusions(
    references: Sequence[Sequence[Hashable]], hypotheses: Sequence[Sequence[Hashable] | None]
) -> list[Confusion]:
    """Which tokens came out as which others, in an alignment with the fewest errors.

    Args:
        references: as for :func:`error_rate`.
        hypotheses: likewise.

    Returns:
        The confusions, the most frequent first; those that are as frequent, as they come in the corpus. Their counts
        sum to the errors of :func:`error_rate`.

    Raises:
        ValueError: different numbers of references and hypotheses, or none.

    Example:
        >>> from sonorant.metrics import confusions
        >>> confusions([["AE", "T"], ["AE"]], [["EH"], ["EH"]])
        [Confusion(reference='AE', hypothesis='EH', errors=2), Confusion(reference='T', hypothesis=None, errors=1)]
    """
    import kaldialign

    counts: Counter[tuple[Hashable, Hashable]] = Counter()
    for reference, hypothesis in zip(*_as_lists(references, hypotheses), strict=True):
        if reference != hypothesis:
            ids = {token: index for index, token in enumerate(dict.fromkeys(reference + hypothesis))}
            token_of = {index: token for token, index in ids.items()}
            pairs = kaldialign.align([ids[token] for token in reference], [ids[token] for token in hypothesis], -1)
            counts.update((token_of.get(a), token_of.get(b)) for a, b in pairs if a != b)
    return [Confusion(*pair, errors) for pair, errors in counts.most_common()]


def _as_lists(
    references: Sequence[Sequence[Hashable]], hypotheses: Sequence[Sequence[Hashable] | None]
) -> tuple[list[list[Hashable]], list[list[Hashable]]]:
    if len(references) != len(hypotheses) or not references:
        raise ValueError(f"{len(references)} references and {len(hypotheses)} hypotheses; as many are needed, and some")
    return list(map(list, references)), [[] if hypothesis is None else list(hypothesis) for hypothesis in hypotheses]
