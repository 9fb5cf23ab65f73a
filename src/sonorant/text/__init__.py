"""Symbols and lexicons."""

from sonorant.text.lexicon import Lexicon
from sonorant.text.symbols import SymbolTable
from sonorant.text.units import Units, make_units

__all__ = ["Lexicon", "SymbolTable", "Units", "make_units"]
