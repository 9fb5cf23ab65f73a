"""The model card of a synthesizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sonorant.data.acoustic import AcousticConfig
from sonorant.export.card import CardFacts, card, data_section, limits_section, origin, settings_section

__all__ = ["SynthesizerFacts", "synthesizer_card"]


@dataclass(frozen=True)
class SynthesizerFacts(CardFacts):
    """What the card of a synthesizer is written from.

    Args:
        tokens: what it speaks, boundaries excepted.
        num_words: of its lexicon; None spells words with their letters.
        features: what it makes samples of.
        speaker_accents: each speaker's own accent; empty names are none.
        accents: all it knows.
        predictors_trained: whether it can speak yet.
        example: a word that it can speak.
    """

    tokens: Sequence[str]
    num_words: int | None
    features: AcousticConfig
    speaker_accents: Mapping[str, str]
    accents: Sequence[str]
    predictors_trained: bool
    example: str


def synthesizer_card(facts: SynthesizerFacts) -> str:
    """The card, in Markdown.

    Args:
        facts: see :class:`SynthesizerFacts`.
    """
    return card(
        _summary(facts), _voices(facts), data_section(facts), _metrics(facts), limits_section(facts, _limits(facts)),
        _use(facts), settings_section(facts),
    )  # fmt: skip


def _summary(facts: SynthesizerFacts) -> str:
    return (
        f"# {facts.title}\n\n"
        f"Speech from text at {facts.features.sample_rate} Hz: a flow of the kind of RAD-MMM, which makes "
        f"{facts.features.n_mels} mel bins every {1000 * facts.features.hop_length / facts.features.sample_rate:.3g} "
        f"ms, {facts.num_parameters:,} parameters ({origin(facts)}); Griffin-Lim makes samples of them."
    )


def _voices(facts: SynthesizerFacts) -> str:
    if not any(facts.speaker_accents):
        return ""
    own = ", ".join(name + (f" ({accent})" if accent else "") for name, accent in facts.speaker_accents.items())
    accents = f"\n\nAccents: {', '.join(facts.accents)}." if len(facts.accents) > 1 else ""
    return f"## Voices\n\nSpeakers, each with the accent that is taken where none is asked for: {own}.{accents}"


def _limits(facts: SynthesizerFacts) -> list[str]:
    spelled = (
        "Words are spelled with their letters; others than these are refused: "
        if facts.num_words is None
        else f"Words that its lexicon ({facts.num_words:,} words) lacks are refused; its symbols are: "
    )
    limits = [
        spelled + " ".join(facts.tokens) + ".",
        "Numbers and abbreviations are not written out, and punctuation makes pauses and nothing else.",
        "Samples made by Griffin-Lim sound less natural than those of a trained vocoder.",
        "It speaks with voices of real people: ask them before it says what they did not.",
    ]
    if len(facts.accents) > 1:
        limits.append(
            "A voice in an accent that is not its own is an extrapolation: where nobody in the corpus speaks with more "
            "than one, accent and speaker are confounded, and what belongs to which cannot be told apart."
        )
    if not facts.predictors_trained:
        limits.append("Its predictors of durations, f0 and energy were not trained: it cannot speak yet.")
    return limits


def _metrics(facts: SynthesizerFacts) -> str:
    metrics = facts.metrics
    if not metrics:
        return "## Metrics\n\nNone were recorded with this model."
    terms = "".join(f"\n| {name.replace('_', ' ')} | {value:.4g} |" for name, value in metrics["dev"].items())
    table = f", on the held-out ones:\n\n| term | loss |\n|---|---|{terms}\n\n" if terms else ". "
    return (
        f"## Metrics\n\nTrained on {metrics['utterances']['train']} utterances{table}"
        "How natural it sounds, and how well it is understood, these do not tell."
    )


def _use(facts: SynthesizerFacts) -> str:
    names = [name for name in facts.speaker_accents if name]
    speaker = names[0] if len(names) > 1 else None
    argument, option = (f', speaker="{speaker}"', f" --speaker {speaker}") if speaker else ("", "")
    return f"""## Use

In Python (`pip install 'sonorant[audio]'`), from the folder above this one:

```python
import sonorant

speech = sonorant.load("{facts.title}").synthesize("{facts.example}"{argument})
speech.write("out.wav")
```

On the command line:

```sh
sonorant synthesize {facts.title} --text "{facts.example}"{option} -o out.wav
```"""
