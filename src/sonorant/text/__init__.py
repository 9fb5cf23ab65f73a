"""Symbols and lexicons."""

from sonorant.text.graphemes import encode_word, is_punctuation, split_graphemes
from sonorant.text.lexicon import Lexicon
from sonorant.text.passages import Passage, split_text
from sonorant.text.speller import SpelledWord, Speller
from sonorant.text.symbols import SymbolTable
from sonorant.text.units import Units, make_units

__all__ = [
    "Lexicon",
    "Passage",
    "SpelledWord",
    "Speller",
    "SymbolTable",
    "Units",
    "encode_word",
    "is_punctuation",
    "make_units",
    "split_graphemes",
    "split_text",
]
