"""The model card of a recognizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonorant.data.features import FbankConfig
from sonorant.export.card import CardFacts, card, data_section, interval, limits_section, origin, settings_section

__all__ = ["RecognizerFacts", "recognizer_card"]

_MANY_WORDS = 20


@dataclass(frozen=True)
class RecognizerFacts(CardFacts):
    """What the card of a recognizer is written from.

    Args:
        words: all that it can recognise, or for an open vocabulary those that it was trained on.
        open_vocabulary: it spells words with characters, known or not.
        features: what it listens to.
        shortest_frames: frames of the shortest recording that it takes, edges included.
        edge_seconds: of low noise that is put before and after each recording.
    """

    words: Sequence[str]
    open_vocabulary: bool
    features: FbankConfig
    shortest_frames: int
    edge_seconds: float


def recognizer_card(facts: RecognizerFacts) -> str:
    """The card, in Markdown.

    Args:
        facts: see :class:`RecognizerFacts`.
    """
    return card(
        _summary(facts), data_section(facts), _metrics(facts), _limits(facts), _use(facts), settings_section(facts)
    )


def _summary(facts: RecognizerFacts) -> str:
    words = ", ".join(facts.words[:_MANY_WORDS]) + (", ..." if len(facts.words) > _MANY_WORDS else "")
    return (
        f"# {facts.title}\n\n"
        f"A speech recognizer of {len(facts.words)} words ({words}): a TDNN with {facts.num_parameters:,} parameters, "
        f"trained with CTC ({origin(facts)})."
    )


def _metrics(facts: RecognizerFacts) -> str:
    rates = (facts.metrics or {}).get("test")
    if not rates:
        return "## Metrics\n\nNone were recorded with this model; `sonorant evaluate` computes them."
    rows = "\n".join(f"| {decoder} | {_rate(rate)} |" for decoder, rate in rates.items())
    return (
        "## Metrics\n\nWord error rates on the test set, with 95 % bootstrap intervals over its recordings:\n\n"
        f"| decoder | WER | 95 % interval | errors | words |\n|---|---|---|---|---|\n{rows}"
    )


def _rate(rate: Mapping[str, Any]) -> str:
    return f"{rate['wer']:.2%} | {interval(rate['wer_interval'])} | {rate['errors']} | {rate['words']}"


def _limits(facts: RecognizerFacts) -> str:
    features = facts.features
    seconds = max(0.0, facts.shortest_frames * features.frame_shift_ms / 1000 - 2 * facts.edge_seconds)
    limits = [
        "It spells what it hears, with the characters of the words above; decoding with the WFST keeps to these words."
        if facts.open_vocabulary
        else "It knows the words above and no others: whatever else is said comes out as some of them, or as nothing.",
        f"Recordings have one channel at {features.sample_rate} Hz and last at least {seconds:.2f} s; "
        "others are refused.",
    ]
    return limits_section(facts, limits)


def _use(facts: RecognizerFacts) -> str:
    return f"""## Use

In Python (`pip install 'sonorant[audio,decode]'`), from the folder above this one:

```python
import sonorant

print(sonorant.load("{facts.title}").transcribe("recording.wav"))
```

On the command line:

```sh
sonorant transcribe {facts.title} recording.wav
sonorant evaluate {facts.title} --data table.tsv
```

In onnxruntime or sherpa-onnx, without torch (`pip install 'sonorant[export]'` for this one step):

```sh
sonorant export {facts.title} onnx/model.onnx
```

writes the model and its `tokens.txt`. The input `x` is `(batch, time, {facts.features.n_mels})`: log energies of
Kaldi's filterbanks without dither and with mirrored edges (`snip_edges=False`), the shorter utterances of a batch
filled up with -23.03.{_edges(facts)}
The outputs are `log_probs` and `log_probs_lengths`. sonorant's page "Deployment" shows both in a few lines."""


def _edges(facts: RecognizerFacts) -> str:
    if facts.edge_seconds == 0:
        return ""
    return f" Recordings are first padded with {facts.edge_seconds:g} s of low noise on each side (`edge_seconds`)."
