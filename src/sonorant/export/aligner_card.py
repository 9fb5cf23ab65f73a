"""The model card of an aligner."""

from collections.abc import Sequence
from dataclasses import dataclass

from sonorant.data.features import FbankConfig
from sonorant.export.card import CardFacts, card, data_section, limits_section, origin, settings_section

__all__ = ["AlignerFacts", "aligner_card"]


@dataclass(frozen=True)
class AlignerFacts(CardFacts):
    """What the card of an aligner is written from.

    Args:
        tokens: what it places in time, boundaries excepted.
        num_words: of its lexicon; None spells words with their letters.
        features: what it listens to.
        speakers: whom it knows; empty makes no difference between speakers.
    """

    tokens: Sequence[str]
    num_words: int | None
    features: FbankConfig
    speakers: Sequence[str]


def aligner_card(facts: AlignerFacts) -> str:
    """The card, in Markdown.

    Args:
        facts: see :class:`AlignerFacts`.
    """
    spelled = (
        "Words are spelled with their letters; others than these are refused: "
        if facts.num_words is None
        else f"Words that its lexicon ({facts.num_words:,} words) lacks are refused; its symbols are: "
    )
    limits = [
        "It finds a text that is known; it does not recognise what is said.",
        spelled + " ".join(facts.tokens) + ".",
        f"Times are multiples of {facts.features.frame_shift_ms:g} ms.",
    ]
    return card(
        _summary(facts), data_section(facts), _metrics(facts), limits_section(facts, limits), _use(facts),
        settings_section(facts),
    )  # fmt: skip


def _summary(facts: AlignerFacts) -> str:
    speakers = f", {len(facts.speakers)} speakers" if facts.speakers else ""
    return (
        f"# {facts.title}\n\n"
        f"Times of words and tokens in recordings whose text is known, at {facts.features.sample_rate} Hz: two "
        f"convolutional encoders, {facts.num_parameters:,} parameters{speakers}, trained with the forward-sum loss "
        f"({origin(facts)})."
    )


def _metrics(facts: AlignerFacts) -> str:
    if not facts.metrics:
        return "## Metrics\n\nNone were recorded with this model."
    score, counts = facts.metrics["score"], facts.metrics["utterances"]
    return (
        f"## Metrics\n\nTrained on {counts['train']} utterances. A recording that fits its text has a score of about "
        f"{score['median']:.2f} a frame, with a deviation of {score['deviation']:.2f}. How exact its times are was not "
        "measured: there was no truth to compare them with."
    )


def _use(facts: AlignerFacts) -> str:
    return f"""## Use

In Python (`pip install 'sonorant[audio]'`), from the folder above this one:

```python
import sonorant

alignment = sonorant.load("{facts.title}").align("recording.wav", "its text")
for word in alignment.words:
    print(word.start, word.end, word.word)
```

On the command line:

```sh
sonorant align {facts.title} --data table.tsv --textgrid grids
```"""
