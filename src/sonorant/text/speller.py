"""Words to the tokens that an aligner places in time."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sonorant.text.graphemes import encode_word, is_punctuation, split_graphemes
from sonorant.text.lexicon import Lexicon
from sonorant.text.symbols import SymbolTable
from sonorant.text.units import SILENCE

__all__ = ["SpelledWord", "Speller", "bare_word", "find_word"]


class SpelledWord(NamedTuple):
    """A word of a text, and the token ids of each of its pronunciations; none where nothing of it is spoken."""

    word: str
    pronunciations: list[list[int]]


class Speller:
    """Spells words with letters, or with what a lexicon says.

    Punctuation is not spoken: words are spelled without it, and one that is nothing else has no tokens. The case of
    letters makes no difference, except that a lexicon may tell words apart by it.

    Args:
        symbols: the tokens; the boundary is among them.
        lexicon: how words are pronounced; None spells them with their letters.
        boundary: the token at both ends of a text and between its words.

    Example:
        >>> from sonorant.text import Speller
        >>> speller = Speller.of_letters(["Yes", "no"])
        >>> speller.symbols.decode(speller.tokens(speller.spell(["No,", "yes!"])))
        ['SIL', 'n', 'o', 'SIL', 'y', 'e', 's', 'SIL']
    """

    def __init__(self, symbols: SymbolTable, lexicon: Lexicon | None = None, boundary: str = SILENCE) -> None:
        self.symbols = symbols
        self.lexicon = lexicon
        self.boundary = boundary
        (self.boundary_id,) = symbols.encode([boundary])

    @classmethod
    def of_letters(cls, words: Iterable[str]) -> "Speller":
        """With the letters of these words.

        Raises:
            ValueError: there are none.
        """
        letters = {letter for word in words for letter in split_graphemes(_letters(word).lower())}
        if not letters:
            raise ValueError("units: there is no letter in any word")
        return cls(SymbolTable([SILENCE, *sorted(letters)]))

    @classmethod
    def of_lexicon(cls, lexicon: Lexicon) -> "Speller":
        """With the symbols of a lexicon."""
        symbols = {symbol for prons in lexicon.entries.values() for pron in prons for symbol in pron}
        return cls(SymbolTable([SILENCE, *sorted(symbols - {SILENCE})]), lexicon)

    @classmethod
    def read(cls, folder: Path, boundary: str) -> "Speller":
        """What :meth:`files` gave, out of a model folder.

        Raises:
            OSError: a file is missing.
            ValueError: a file is damaged.
        """
        lexicon = folder / "lexicon.txt"
        symbols = SymbolTable.read(folder / "tokens.txt")
        return cls(symbols, Lexicon.read(lexicon) if lexicon.is_file() else None, boundary)

    def files(self) -> dict[str, str | bytes]:
        """Symbols and lexicon for a model folder, content by name."""
        files: dict[str, str | bytes] = {"tokens.txt": self.symbols.to_text()}
        return files if self.lexicon is None else {**files, "lexicon.txt": self.lexicon.to_text()}

    def spell(self, words: Sequence[str]) -> list[SpelledWord]:
        """All ways to spell each word.

        Raises:
            ValueError: words that cannot be spelled (all of them named), or nothing to be spoken at all.
        """
        spelled, wrong = [], []
        for word in words:
            try:
                spelled.append(SpelledWord(word, self._spell(word)))
            except ValueError as error:
                wrong.append(str(error))
        if wrong:
            raise ValueError("; ".join(dict.fromkeys(wrong)))
        if not any(word.pronunciations for word in spelled):
            raise ValueError("there is nothing in it that is spoken")
        return spelled

    def missing(self, words: Iterable[str]) -> list[str]:
        """Those of some words that cannot be spelled, as often as they come."""
        cannot: dict[str, bool] = {}
        found = []
        for word in words:
            if word not in cannot:
                try:
                    self._spell(word)
                except ValueError:
                    cannot[word] = True
                else:
                    cannot[word] = False
            if cannot[word]:
                found.append(word)
        return found

    def with_words(self, lexicon: Lexicon) -> "Speller":
        """The same tokens with further words; of those that were there already the pronunciations are replaced.

        Raises:
            ValueError: this one spells words with their letters; or pronunciations with unknown symbols.
        """
        if self.lexicon is None:
            raise ValueError("the model spells words with their letters; it takes no lexicon")
        for word, prons in lexicon.entries.items():
            unknown = [symbol for pron in prons for symbol in pron if symbol not in self.symbols]
            if unknown:
                raise ValueError(
                    f"{word!r} has symbols that the model does not know: {' '.join(dict.fromkeys(unknown))}"
                )
        return Speller(self.symbols, Lexicon({**self.lexicon.entries, **lexicon.entries}), self.boundary)

    def tokens(self, words: Sequence[SpelledWord], chosen: Mapping[int, int] | None = None) -> list[int]:
        """The token ids of a text: boundaries at both ends and between words.

        Args:
            words: of :meth:`spell`.
            chosen: which pronunciation words take, by the word's index; the first by default.
        """
        ids = [self.boundary_id]
        for index, word in enumerate(words):
            if word.pronunciations:
                ids += [*word.pronunciations[(chosen or {}).get(index, 0)], self.boundary_id]
        return ids

    def _spell(self, word: str) -> list[list[int]]:
        if self.lexicon is None:
            letters = _letters(word)
            return [encode_word(letters, self.symbols)] if letters else []
        found = find_word(word, self.lexicon)
        if found is None:
            if is_punctuation(word):
                return []
            raise ValueError(f"the lexicon lacks {word!r}")
        return [self.symbols.encode(pron) for pron in self.lexicon.entries[found]]


def find_word(word: str, lexicon: Lexicon) -> str | None:
    """Under which spelling a lexicon has a word: as it is, without punctuation around it, in lower or upper case."""
    bare = bare_word(word)
    forms = (word, bare, word.lower(), bare.lower(), word.upper(), bare.upper())
    return next((form for form in forms if form in lexicon.entries), None)


def bare_word(word: str) -> str:
    """A word without the punctuation before and after it."""
    start, end = 0, len(word)
    while start < end and is_punctuation(word[start]):
        start += 1
    while end > start and is_punctuation(word[end - 1]):
        end -= 1
    return word[start:end]


def _letters(word: str) -> str:
    """A word without punctuation, and without the signs that are not seen."""
    composed = unicodedata.normalize("NFC", word)
    return "".join(sign for sign in composed if unicodedata.category(sign)[0] not in "PZC")
