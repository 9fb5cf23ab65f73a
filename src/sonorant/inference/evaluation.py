"""How well a recognizer does on a corpus."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sonorant.data.check import check_corpus, without_faults
from sonorant.data.manifest import Corpus, Utterance
from sonorant.functional import ctc_loss
from sonorant.inference.recognizer import DecoderName, Recognizer
from sonorant.inference.requirements import requirements
from sonorant.lengths import pad_sequences
from sonorant.metrics import ErrorRate, error_rate

__all__ = ["Evaluation", "evaluate", "rates_table", "usable"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """The result of :func:`evaluate`.

    Args:
        error_rates: by decoder, over the whole corpus.
        transcripts: by decoder, the words of each utterance in order.
        losses: the CTC loss of each utterance in order; 0 where the target does not fit its frames, NaN where the
            lexicon lacks a word of it.
    """

    error_rates: dict[DecoderName, ErrorRate]
    transcripts: dict[DecoderName, list[list[str]]]
    losses: list[float]

    def summary(self) -> dict[str, dict[str, Any]]:
        """Error rates by decoder as plain data; rates are fractions."""
        return {
            decoder: {
                "errors": rate.errors,
                "words": rate.words,
                "wer": rate.rate,
                "insertions": rate.insertions,
                "deletions": rate.deletions,
                "substitutions": rate.substitutions,
                "wer_interval": rate.interval,
            }
            for decoder, rate in self.error_rates.items()
        }


def evaluate(recognizer: Recognizer, utterances: Sequence[Utterance], *, batch_size: int = 16) -> Evaluation:
    """Transcribe every utterance with every decoder and count the errors.

    The batch size changes the speed and nothing else. Words that the lexicon lacks are errors.

    Raises:
        ValueError: a recording that cannot be used; :func:`usable` finds all of them.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}")
    transcripts: dict[DecoderName, list[list[str]]] = {decoder: [] for decoder in recognizer.DECODERS}
    losses: list[float] = []
    for start in range(0, len(utterances), batch_size):
        batch = utterances[start : start + batch_size]
        known = [_target(recognizer, utterance.words) for utterance in batch]
        targets = pad_sequences([torch.tensor([], dtype=torch.int64) if target is None else target for target in known])
        log_probs = recognizer.log_probs([recognizer.extract(utterance) for utterance in batch])
        blank = recognizer.symbols.blank
        with torch.inference_mode():
            loss = ctc_loss(
                log_probs.values, targets.values, log_probs.lengths, targets.lengths, blank=blank, reduction="none"
            )
        losses += [
            value if target is not None else math.nan for value, target in zip(loss.tolist(), known, strict=True)
        ]
        for decoder, words in transcripts.items():
            words += recognizer.decode(log_probs, decoder)
    references = [utterance.words for utterance in utterances]
    _report_unknown(recognizer, references)
    rates = {decoder: error_rate(references, words) for decoder, words in transcripts.items()}
    return Evaluation(rates, transcripts, losses)


def rates_table(rates: Mapping[str, Mapping[str, Any]]) -> str:
    """Error rates as text, a line for each decoder.

    Args:
        rates: of :meth:`Evaluation.summary`.
    """
    lines = [
        f"{'decoder':8} {'WER':>7}  {'95 % interval':17} {'errors':>6} {'words':>6} {'ins':>4} {'del':>4} {'sub':>4}"
    ]
    for decoder, rate in rates.items():
        interval = "{:.2%} to {:.2%}".format(*(rate["wer_interval"] or (math.nan, math.nan)))
        lines.append(
            f"{decoder:8} {rate['wer']:7.2%}  {interval:17} {rate['errors']:6} {rate['words']:6} "
            f"{rate['insertions']:4} {rate['deletions']:4} {rate['substitutions']:4}"
        )
    return "\n".join(lines)


def usable(recognizer: Recognizer, corpus: Corpus, *, skip_bad: bool = False) -> list[Utterance]:
    """The utterances of a corpus that a recognizer can be evaluated on.

    Args:
        recognizer: says what it needs.
        corpus: as it was read, with the faults of its table.
        skip_bad: leave out what is faulty, and log it; it is refused otherwise.

    Raises:
        ValueError: faults, all of them listed with file and line.
    """
    needed = requirements(recognizer, any_words=True, max_duration=math.inf)
    faults = corpus.faults + check_corpus(corpus.utterances, needed)
    return without_faults(corpus.utterances, faults, skip_bad=skip_bad)


def _target(recognizer: Recognizer, words: Sequence[str]) -> torch.Tensor | None:
    try:
        return recognizer.target(words)
    except ValueError:
        return None


def _report_unknown(recognizer: Recognizer, references: Sequence[Sequence[str]]) -> None:
    counts = Counter(word for words in references for word in words)
    unknown = [word for word in counts if _target(recognizer, [word]) is None]
    if unknown:
        total = sum(counts[word] for word in unknown)
        named = ", ".join(unknown[:20]) + " ..." * (len(unknown) > 20)
        logger.warning(
            "%d words of the references cannot be recognised, since the lexicon lacks them: %s", total, named
        )
