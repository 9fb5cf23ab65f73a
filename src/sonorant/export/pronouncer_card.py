"""The model card of a pronouncer."""

from collections.abc import Sequence
from dataclasses import dataclass

from sonorant.export.card import CardFacts, card, data_section, interval, limits_section, origin, settings_section

__all__ = ["PronouncerFacts", "pronouncer_card"]

_SETS = {"dev": "dev (the weights were chosen with it)", "test": "test"}


@dataclass(frozen=True)
class PronouncerFacts(CardFacts):
    """What the card of a pronouncer is written from.

    Args:
        num_models: that answer together.
        num_words: that they were trained on.
        graphemes: what words may be made of.
        phones: what pronunciations are made of.
        example: a word that it pronounces.
    """

    num_models: int
    num_words: int
    graphemes: Sequence[str]
    phones: Sequence[str]
    example: str


def pronouncer_card(facts: PronouncerFacts) -> str:
    """The card, in Markdown.

    Args:
        facts: see :class:`PronouncerFacts`.
    """
    limits = [
        "It pronounces single words, without their context.",
        f"Words of other graphemes than these are refused: {' '.join(facts.graphemes)}.",
        f"It writes these phones and no others: {' '.join(facts.phones)}.",
    ]
    return card(
        _summary(facts),
        data_section(facts),
        _metrics(facts),
        limits_section(facts, limits),
        _use(facts),
        settings_section(facts),
    )


def _summary(facts: PronouncerFacts) -> str:
    models = "" if facts.num_models == 1 else f"{facts.num_models} models that answer together, each "
    return (
        f"# {facts.title}\n\n"
        f"Pronunciations of words, learned from a dictionary of {facts.num_words:,} words: {models}LSTMs with "
        f"location-aware attention, {facts.num_parameters:,} parameters ({origin(facts)})."
    )


def _metrics(facts: PronouncerFacts) -> str:
    metrics = facts.metrics or {}
    rows = [
        f"| {label} | {rates['wer']:.2%} | {interval(rates['wer_interval'])} | {rates['words']} "
        f"| {rates['per']:.2%} | {interval(rates['per_interval'])} |"
        for name, label in _SETS.items()
        if (rates := metrics.get(name))
    ]
    if not rows:
        return "## Metrics\n\nNone were recorded with this model; `sonorant evaluate` computes them."
    return (
        "## Metrics\n\nWords that are none of their pronunciations (WER) and phone errors against the nearest one "
        "(PER), with 95 % bootstrap intervals over words:\n\n"
        "| set | WER | 95 % interval | words | PER | 95 % interval |\n|---|---|---|---|---|---|\n" + "\n".join(rows)
    )


def _use(facts: PronouncerFacts) -> str:
    return f"""## Use

In Python (`pip install 'sonorant[audio]'`), from the folder above this one:

```python
import sonorant

print(sonorant.load("{facts.title}").pronounce("{facts.example}"))
```

On the command line:

```sh
sonorant pronounce {facts.title} {facts.example} --nbest 3
sonorant evaluate {facts.title} --data dictionary.tsv
```

In onnxruntime, without torch (`pip install 'sonorant[export]'` for this one step):

```sh
sonorant export {facts.title} onnx/g2p.onnx
```

writes an encoder, a decoder step, and the symbols of both. sonorant's page "Deployment" shows how they are run."""
