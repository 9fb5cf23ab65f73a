"""How well a pronouncer does on a dictionary."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonorant.inference.pronouncer import Pronouncer, SearchConfig
from sonorant.metrics import (
    Confusion,
    ErrorRate,
    PronunciationErrorRate,
    confusions,
    nearest_pronunciations,
    pronunciation_error_rate,
    pronunciation_error_rate_by_length,
)
from sonorant.text import Lexicon, split_graphemes

__all__ = ["PronunciationEvaluation", "evaluate_pronunciations", "rates_table", "summary_text"]

_MOST_CONFUSIONS, _MOST_NAMED = 20, 20


@dataclass(frozen=True)
class PronunciationEvaluation:
    """The result of :func:`evaluate_pronunciations`.

    Args:
        rate: over the whole dictionary.
        by_length: among words of each number of graphemes.
        confusions: phones that came out as others, the most frequent first.
        pronunciations: the phones of each word, None where it cannot be pronounced.
        refused: words that cannot be pronounced, and why; they count as wrong, and all their phones as missing.
        training_words: those that the model was trained on, so that it may know them by heart.
    """

    rate: PronunciationErrorRate
    by_length: dict[int, PronunciationErrorRate]
    confusions: list[Confusion]
    pronunciations: dict[str, list[str] | None]
    refused: dict[str, str]
    training_words: list[str]

    def summary(self) -> dict[str, Any]:
        """As plain data; rates are fractions."""
        phones = self.rate.phones
        return {
            **_rates(self.rate),
            "insertions": phones.insertions,
            "deletions": phones.deletions,
            "substitutions": phones.substitutions,
            "by_length": {str(length): _rates(rate) for length, rate in self.by_length.items()},
            "confusions": [confusion._asdict() for confusion in self.confusions[:_MOST_CONFUSIONS]],
            "refused": self.refused,
            "num_training_words": len(self.training_words),
            "training_words": self.training_words,
        }


def evaluate_pronunciations(
    pronouncer: Pronouncer, lexicon: Lexicon, *, search: SearchConfig | None = None, batch_size: int = 256
) -> PronunciationEvaluation:
    """Pronounce every word of a dictionary and count the errors.

    A word is right if it has any of its pronunciations; its phones are counted against the nearest. The batch size
    changes the speed and nothing else.

    Args:
        pronouncer: the model.
        lexicon: the dictionary.
        search: instead of the model's own.
        batch_size: words of a batch.

    Raises:
        ValueError: a batch size below 1.
    """
    refused: dict[str, str] = {}
    for word in lexicon.words:
        try:
            pronouncer.encode(word)
        except ValueError as error:
            refused[word] = str(error)
    words = [word for word in lexicon.words if word not in refused]
    found = pronouncer.pronounce_all(words, search=search, batch_size=batch_size)
    phones = {word: best.phones for word, (best, *_) in zip(words, found, strict=True)}
    hypotheses = [phones.get(word) for word in lexicon.words]
    references: list[Sequence[Sequence[str]]] = list(lexicon.entries.values())
    return PronunciationEvaluation(
        rate=pronunciation_error_rate(references, hypotheses),
        by_length=pronunciation_error_rate_by_length(
            [split_graphemes(word) for word in lexicon.words], references, hypotheses, replications=0
        ),
        confusions=confusions(nearest_pronunciations(references, hypotheses), hypotheses),
        pronunciations=dict(zip(lexicon.words, hypotheses, strict=True)),
        refused=refused,
        training_words=[word for word in lexicon.words if word in pronouncer.train_words],
    )


def rates_table(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """Error rates as text, a line for each set.

    Args:
        summaries: of :meth:`PronunciationEvaluation.summary`, by name of the set.
    """
    lines = [f"{'set':6} {'WER':>7}  {'95 % interval':17} {'wrong':>6} {'words':>6} {'PER':>7}  {'95 % interval':17}"]
    for name, rates in summaries.items():
        intervals = [
            "{:.2%} to {:.2%}".format(*(rates[key] or (math.nan, math.nan))) for key in ("wer_interval", "per_interval")
        ]
        lines.append(
            f"{name:6} {rates['wer']:7.2%}  {intervals[0]:17} {rates['word_errors']:6} {rates['words']:6} "
            f"{rates['per']:7.2%}  {intervals[1]:17}"
        )
    return "\n".join(lines)


def summary_text(summary: Mapping[str, Any]) -> str:
    """All of :meth:`PronunciationEvaluation.summary` as text."""
    lines = [rates_table({"all": summary}), "graphemes  words      WER      PER"]
    lines += [
        f"{n:>9} {rates['words']:6} {rates['wer']:8.2%} {rates['per']:8.2%}"
        for n, rates in summary["by_length"].items()
    ]
    lines.append("phone   came out as  times")
    for confusion in summary["confusions"]:
        came, out = (confusion[key] or "nothing" for key in ("reference", "hypothesis"))
        lines.append(f"{came:7} {out:11} {confusion['errors']:6}")
    lines += [f"refused: {reason}" for reason in summary["refused"].values()]
    if summary["num_training_words"]:
        named = ", ".join(summary["training_words"][:_MOST_NAMED])
        more = ", ..." if summary["num_training_words"] > _MOST_NAMED else ""
        lines.append(f"the model was trained on {summary['num_training_words']} of these words: {named}{more}")
    return "\n".join(lines)


def _rates(rate: PronunciationErrorRate) -> dict[str, Any]:
    intervals = {} if rate.words.interval is None else _intervals(rate.words, rate.phones)
    return {
        "wer": rate.words.rate,
        "per": rate.phones.rate,
        **intervals,
        "word_errors": rate.words.errors,
        "words": rate.words.words,
        "phone_errors": rate.phones.errors,
        "phones": rate.phones.words,
    }


def _intervals(words: ErrorRate, phones: ErrorRate) -> dict[str, Any]:
    return {"wer_interval": words.interval, "per_interval": phones.interval}
