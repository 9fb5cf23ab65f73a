"""Words that a dictionary lacks, pronounced by a model."""

from collections.abc import Iterable
from pathlib import Path

from sonorant.inference.pronouncer import Pronouncer
from sonorant.text import Lexicon, is_punctuation
from sonorant.text.speller import bare_word, find_word

__all__ = ["pronounce_missing"]


def pronounce_missing(lexicon: Lexicon, words: Iterable[str], pronouncer: str | Path | None) -> Lexicon:
    """A lexicon with what a model makes of the words that it lacks.

    Args:
        lexicon: the dictionary.
        words: of a corpus.
        pronouncer: the folder of a model that :func:`sonorant.load` loads, or None: the lexicon stays as it is.

    Returns:
        The larger lexicon. Words that the model cannot pronounce stay missing.

    Raises:
        ValueError: the folder holds another kind of model, or one of other phones than the lexicon's (all named).
        FileNotFoundError: no such folder.
    """
    from sonorant.inference.loading import load

    if pronouncer is None:
        return lexicon
    model = load(pronouncer)
    if not isinstance(model, Pronouncer):
        raise ValueError(f"{pronouncer}: a model of kind {model.KIND!r}, which does not pronounce words")
    missing = [bare_word(word) for word in dict.fromkeys(words) if not is_punctuation(word)]
    missing = [word for word in dict.fromkeys(missing) if find_word(word, lexicon) is None and _can(model, word)]
    found = {word: [best[0].phones] for word, best in zip(missing, model.pronounce_all(missing), strict=True)}
    known = {phone for prons in lexicon.entries.values() for pron in prons for phone in pron}
    other = sorted({phone for prons in found.values() for pron in prons for phone in pron} - known)
    if other:
        raise ValueError(f"{pronouncer}: writes phones that the lexicon does not have: {' '.join(other)}")
    return Lexicon({**lexicon.entries, **found})


def _can(model: Pronouncer, word: str) -> bool:
    try:
        model.encode(word)
    except ValueError:
        return False
    return True
