"""Model cards: what a model is, what it was trained on, how good it is, and what it cannot do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonorant.data.facts import CorpusFacts
from sonorant.data.features import FbankConfig

__all__ = ["CardFacts", "model_card"]

_MANY_WORDS = 20


@dataclass(frozen=True)
class CardFacts:
    """What a card is written from; all of it comes out of a model folder and its run.

    Args:
        title: the name of the model.
        version: of sonorant when the model was trained.
        recipe: the recipe that trained it, or None.
        words: all that it can recognise, or for an open vocabulary those that it was trained on.
        open_vocabulary: it spells words with characters, known or not.
        num_parameters: learned numbers.
        features: what it listens to.
        shortest_frames: frames of the shortest recording that it takes, edges included.
        edge_seconds: of low noise that is put before and after each recording.
        corpus: what it was trained on, or None where that is not known.
        metrics: the run's ``metrics.json``, or None.
        settings: the run's ``config.yaml``, or None.
    """

    title: str
    version: str
    recipe: str | None
    words: Sequence[str]
    open_vocabulary: bool
    num_parameters: int
    features: FbankConfig
    shortest_frames: int
    edge_seconds: float
    corpus: CorpusFacts | None
    metrics: Mapping[str, Any] | None
    settings: str | None


def model_card(facts: CardFacts) -> str:
    """The card, as the ``README.md`` of a model folder.

    Args:
        facts: see :class:`CardFacts`.

    Returns:
        Markdown.
    """
    sections = (_summary(facts), _data(facts), _metrics(facts), _limits(facts), _use(facts), _settings(facts))
    return "\n\n".join(section for section in sections if section) + "\n"


def _summary(facts: CardFacts) -> str:
    words = ", ".join(facts.words[:_MANY_WORDS]) + (", ..." if len(facts.words) > _MANY_WORDS else "")
    recipe = f"recipe `{facts.recipe}`, " if facts.recipe else ""
    return (
        f"# {facts.title}\n\n"
        f"A speech recognizer of {len(facts.words)} words ({words}): a TDNN with {facts.num_parameters:,} parameters, "
        f"trained with CTC ({recipe}[sonorant](https://github.com/sonorant/sonorant) {facts.version})."
    )


def _data(facts: CardFacts) -> str:
    if facts.corpus is None:
        return (
            "## Data\n\nWhat the model was trained on, and under which licence that is, was not recorded; "
            "whoever passes the model on must say it here."
        )
    corpus = facts.corpus
    return (
        f"## Data\n\n[{corpus.name}]({corpus.source}): {corpus.description} {corpus.split}\n\n"
        f"Licence of the data: {corpus.licence}."
    )


def _metrics(facts: CardFacts) -> str:
    rates = (facts.metrics or {}).get("test")
    if not rates:
        return "## Metrics\n\nNone were recorded with this model; `sonorant evaluate` computes them."
    rows = "\n".join(f"| {decoder} | {_rate(rate)} |" for decoder, rate in rates.items())
    return (
        "## Metrics\n\nWord error rates on the test set, with 95 % bootstrap intervals over its recordings:\n\n"
        f"| decoder | WER | 95 % interval | errors | words |\n|---|---|---|---|---|\n{rows}"
    )


def _rate(rate: Mapping[str, Any]) -> str:
    interval = "unknown" if not rate["wer_interval"] else "{:.2%} to {:.2%}".format(*rate["wer_interval"])
    return f"{rate['wer']:.2%} | {interval} | {rate['errors']} | {rate['words']}"


def _limits(facts: CardFacts) -> str:
    features = facts.features
    seconds = max(0.0, facts.shortest_frames * features.frame_shift_ms / 1000 - 2 * facts.edge_seconds)
    limits = [
        "It spells what it hears, with the characters of the words above; decoding with the WFST keeps to these words."
        if facts.open_vocabulary
        else "It knows the words above and no others: whatever else is said comes out as some of them, or as nothing.",
        f"Recordings have one channel at {features.sample_rate} Hz and last at least {seconds:.2f} s; "
        "others are refused.",
    ]
    if facts.corpus is not None:
        limits.append(facts.corpus.limits)
    return "## Limits\n\n" + "\n".join(f"- {limit}" for limit in limits)


def _use(facts: CardFacts) -> str:
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


def _edges(facts: CardFacts) -> str:
    if facts.edge_seconds == 0:
        return ""
    return f" Recordings are first padded with {facts.edge_seconds:g} s of low noise on each side (`edge_seconds`)."


def _settings(facts: CardFacts) -> str:
    return "" if facts.settings is None else f"## Settings\n\n```yaml\n{facts.settings.strip()}\n```"
