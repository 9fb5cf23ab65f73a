"""What is known about a corpus; it goes with the models that were trained on it."""

from dataclasses import dataclass

__all__ = ["CorpusFacts"]


@dataclass(frozen=True)
class CorpusFacts:
    """Facts of a corpus, each a sentence or two of Markdown.

    Args:
        name: what it is called.
        source: where it comes from, a link.
        licence: under what terms.
        description: what was recorded.
        split: what a recipe trains on, and what it tests on.
        limits: what a model that was trained on it cannot be expected to do.
    """

    name: str
    source: str
    licence: str
    description: str
    split: str
    limits: str
