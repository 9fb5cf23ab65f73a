"""How well a recognizer does on a table of recordings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sonorant.data.manifest import Utterance
from sonorant.functional import ctc_loss
from sonorant.inference.recognizer import DecoderName, Recognizer
from sonorant.lengths import pad_sequences
from sonorant.metrics import ErrorRate, error_rate

__all__ = ["Evaluation", "evaluate", "rates_table"]


@dataclass(frozen=True)
class Evaluation:
    """The result of :func:`evaluate`.

    Args:
        error_rates: by decoder, over the whole corpus.
        transcripts: by decoder, the words of each utterance in order.
        losses: the CTC loss of each utterance in order; 0 where the target does not fit its frames.
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

    The batch size changes the speed and nothing else.

    Raises:
        ValueError: a recording that cannot be used, or a word that the lexicon lacks (each named).
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}")
    transcripts: dict[DecoderName, list[list[str]]] = {decoder: [] for decoder in recognizer.DECODERS}
    losses: list[float] = []
    for start in range(0, len(utterances), batch_size):
        batch = utterances[start : start + batch_size]
        targets = pad_sequences([_target(recognizer, utterance) for utterance in batch])
        log_probs = recognizer.log_probs([recognizer.extract(utterance) for utterance in batch])
        blank = recognizer.symbols.blank
        with torch.inference_mode():
            loss = ctc_loss(
                log_probs.values, targets.values, log_probs.lengths, targets.lengths, blank=blank, reduction="none"
            )
        losses += loss.tolist()
        for decoder, words in transcripts.items():
            words += recognizer.decode(log_probs, decoder)
    references = [utterance.words for utterance in utterances]
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


def _target(recognizer: Recognizer, utterance: Utterance) -> torch.Tensor:
    try:
        return recognizer.target(utterance.words)
    except ValueError as error:
        raise ValueError(f"{utterance.source or utterance.path}: {error}") from error
