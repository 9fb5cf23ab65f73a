"""CMUdict, the pronunciations of 126,000 English words, as it comes with this library (``tools/pack_cmudict.py``)."""

from pathlib import Path
from typing import NamedTuple

from sonorant.data.facts import CorpusFacts
from sonorant.data.pronunciations import read_pronunciations
from sonorant.data.splitting import hold_out_words
from sonorant.text import Lexicon

__all__ = ["DICTIONARY", "FACTS", "NEW_WORDS", "NOTICE", "CmudictCorpus", "load_cmudict"]

DICTIONARY = Path(__file__).with_name("cmudict.tsv.gz")
NOTICE = Path(__file__).with_name("cmudict.LICENSE")
NEW_WORDS = ("sonorant", "grapheme", "jabberwocky", "kubernetes", "quokka", "photobomb", "zibbledoo")  # not in it
_TEST_SHARE, _DEV_SHARE = 0.1, 0.05
FACTS = CorpusFacts(
    name="CMUdict",
    source="http://www.speech.cs.cmu.edu/cgi-bin/cmudict",
    licence="BSD style, Carnegie Mellon University",
    description="Pronunciations of 126,000 words and names of North American English, without stress, as CMU Sphinx "
    "ships them.",
    split="Split by word: 10 % test, 5 % of the others are the dev set, the rest trains.",
    limits="North American English in 39 phones of the ARPAbet, without stress. A word is pronounced by itself: "
    "nothing tells the verb from the noun.",
)


class CmudictCorpus(NamedTuple):
    """The three parts of the dictionary; no word is in two of them."""

    train: Lexicon
    dev: Lexicon
    test: Lexicon


def load_cmudict() -> CmudictCorpus:
    """The dictionary, split by word in the same way in every run.

    This is not the split that published results are compared on: for that, give its files to the recipe.
    """
    rest, test = hold_out_words(read_pronunciations(DICTIONARY), _TEST_SHARE)
    train, dev = hold_out_words(rest, _DEV_SHARE)
    return CmudictCorpus(train, dev, test)
