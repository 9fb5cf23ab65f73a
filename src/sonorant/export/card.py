"""Model cards: what a model is, what it was trained on, how good it is, and what it cannot do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonorant.data.facts import CorpusFacts

__all__ = ["CardFacts", "card", "data_section", "interval", "limits_section", "origin", "settings_section"]


@dataclass(frozen=True)
class CardFacts:
    """What every card is written from; all of it comes out of a model folder and its run.

    Args:
        title: the name of the model.
        version: of sonorant when the model was trained.
        recipe: the recipe that trained it, or None.
        num_parameters: learned numbers.
        corpus: what it was trained on, or None where that is not known.
        metrics: the run's ``metrics.json``, or None.
        settings: the run's ``config.yaml``, or None.
    """

    title: str
    version: str
    recipe: str | None
    num_parameters: int
    corpus: CorpusFacts | None
    metrics: Mapping[str, Any] | None
    settings: str | None


def card(*sections: str) -> str:
    """The card, as the ``README.md`` of a model folder, of the sections that are not empty."""
    return "\n\n".join(section for section in sections if section) + "\n"


def origin(facts: CardFacts) -> str:
    """Which recipe and release trained the model."""
    recipe = f"recipe `{facts.recipe}`, " if facts.recipe else ""
    return f"{recipe}[sonorant](https://github.com/sonorant/sonorant) {facts.version}"


def data_section(facts: CardFacts) -> str:
    """What the model was trained on."""
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


def limits_section(facts: CardFacts, limits: Sequence[str]) -> str:
    """What the model cannot do, with what is known of its corpus."""
    known = [] if facts.corpus is None else [facts.corpus.limits]
    return "## Limits\n\n" + "\n".join(f"- {limit}" for limit in (*limits, *known))


def settings_section(facts: CardFacts) -> str:
    """The settings of the run, if they were recorded."""
    return "" if facts.settings is None else f"## Settings\n\n```yaml\n{facts.settings.strip()}\n```"


def interval(bounds: Sequence[float] | None) -> str:
    """A confidence interval in percent."""
    return "{:.2%} to {:.2%}".format(*bounds) if bounds else "unknown"
