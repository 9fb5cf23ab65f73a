"""Symbols and lexicons."""

from sonorant.text.lexicon import Lexicon
from sonorant.text.symbols import SymbolTable

__all__ = ["Lexicon", "SymbolTable"]
