"""Systems that train with one command. Each recipe is a module with

- ``Config``, a dataclass of its settings, and, where there are several good choices, ``PRESETS``;
- ``train(config, run)``, which returns what ``metrics.json`` holds, and ``report(metrics, run)``, the text of the end;
- ``test_set()``, what a model of the recipe is evaluated on when nothing else is given.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["RECIPES", "load_recipe"]

# what `sonorant train --help` shows without importing any of them
RECIPES = {
    "yesno": "a recognizer of two Hebrew words: TDNN and CTC on 30 recordings, in seconds on a laptop",
    "ctc-asr": "a recognizer from your own recordings and transcripts: TDNN and CTC, words, characters or a lexicon",
    "g2p": "pronunciations of words from a dictionary, English by default: LSTMs with location-aware attention",
    "aligner": "times of words and phones in recordings whose text is known, from such recordings alone",
    "tts": "a voice, or many with several accents, from your own recordings and transcripts: RAD-MMM",
    "tts-digits": "six voices that say digits in four accents, from the Free Spoken Digit Dataset, on a laptop",
    "tts-prompts": "one voice that says any English sentence, from Asterisk's prompts, on a laptop",
}


def load_recipe(name: str) -> ModuleType:
    """The module of a recipe.

    Raises:
        ValueError: no such recipe.
    """
    if name not in RECIPES:
        raise ValueError(f"no recipe {name!r}; known are {', '.join(RECIPES)}")
    return import_module(f"sonorant.recipes.{name.replace('-', '_')}")
