"""What a recognizer is built of: the symbols that a corpus needs, and how its words are spelled with them."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from sonorant.text.lexicon import Lexicon
from sonorant.text.symbols import SymbolTable

__all__ = ["SILENCE", "WORD_BOUNDARY", "UnitName", "Units", "make_units"]

UnitName = Literal["words", "characters", "lexicon"]
SILENCE = "SIL"
WORD_BOUNDARY = "\u2581"  # SentencePiece's, which sherpa-onnx shows as a space
_RESERVED = frozenset({"<eps>", "#0", "<s>", "</s>", SymbolTable.BLANK})


class Units(NamedTuple):
    """Symbols, words, and the symbol before, between and after words (None: there is none)."""

    symbols: SymbolTable
    lexicon: Lexicon
    separator: str | None


def make_units(
    kind: UnitName, words: Iterable[str], *, separator: str | None = "auto", lexicon: Lexicon | None = None
) -> Units:
    """The units for the words of a corpus.

    Words that hold white space (a no-break space, say), and those that mean something else in a decoding graph, are
    left out: they cannot be recognised.

    Args:
        kind: ``"words"``, each a symbol of its own; ``"characters"`` (code points) of the words; ``"lexicon"``, what a
            lexicon spells them with.
        words: of the corpus, in any order and number.
        separator: the symbol before, between and after words. ``"auto"`` is ``SIL``, or ``▁`` for characters.
        lexicon: for ``"lexicon"``.

    Raises:
        ValueError: no word to build units of; a separator that is also a symbol of a word; a lexicon where none is
            taken, or none where one is.
    """
    if (lexicon is None) == (kind == "lexicon"):
        raise ValueError(f"units {kind!r}: a lexicon is {'needed' if lexicon is None else 'not used'}")
    if separator == "auto":
        separator = WORD_BOUNDARY if kind == "characters" else SILENCE
    if lexicon is None:
        usable = sorted({word for word in words if word.split() == [word] and word not in _RESERVED})
        if not usable:
            raise ValueError("units: there is no word to build them of")
        lexicon = Lexicon({word: [[word] if kind == "words" else list(word)] for word in usable})
    spelled = sorted({symbol for prons in lexicon.entries.values() for pron in prons for symbol in pron} - {separator})
    if separator is not None and kind != "lexicon":
        clash = [word for word, prons in lexicon.entries.items() if separator in prons[0]]
        if clash:
            raise ValueError(f"units: the separator {separator!r} is also in the word {clash[0]!r}; choose another")
    return Units(SymbolTable([*([] if separator is None else [separator]), *spelled]), lexicon, separator)
