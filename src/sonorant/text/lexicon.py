"""Words and the symbols they are made of."""

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Lexicon"]

_SPACES = str.maketrans("\t\r", "  ")


class Lexicon:
    """Pronunciations of words; a word may have several.

    Args:
        entries: for each word its pronunciations, each a sequence of symbols; one that comes twice counts once.

    Example:
        >>> from sonorant.text import Lexicon
        >>> lexicon = Lexicon({"YES": [["Y"]], "NO": [["N"]]})
        >>> lexicon.spell(["NO", "YES"], separator="SIL")
        ['SIL', 'N', 'SIL', 'Y', 'SIL']
    """

    def __init__(self, entries: Mapping[str, Sequence[Sequence[str]]]) -> None:
        ordered = sorted(entries.items())
        for word, pronunciations in ordered:
            if not pronunciations or not all(pronunciations):
                raise ValueError(f"lexicon: {word!r} has no pronunciation, or an empty one")
        self.entries = {word: [list(pron) for pron in dict.fromkeys(map(tuple, prons))] for word, prons in ordered}

    def __len__(self) -> int:
        """The number of words."""
        return len(self.entries)

    @property
    def words(self) -> list[str]:
        """All words, sorted."""
        return list(self.entries)

    def spell(self, words: Sequence[str], separator: str | None = None) -> list[str]:
        """The symbols of a text, each word by its first pronunciation.

        Args:
            words: the text.
            separator: a symbol put before, between and after the words, such as silence.

        Raises:
            ValueError: a word that is not in the lexicon.
        """
        between = [] if separator is None else [separator]
        symbols = list(between)
        for word in words:
            if word not in self.entries:
                raise ValueError(f"word {word!r} is not in the lexicon")
            symbols += self.entries[word][0] + between
        return symbols

    def to_text(self) -> str:
        """Lines of ``word symbol symbol ...``, one a pronunciation."""
        return "".join(f"{word} {' '.join(pron)}\n" for word, prons in self.entries.items() for pron in prons)

    @classmethod
    def read(cls, path: Path) -> "Lexicon":
        """Read a file of :meth:`to_text` lines.

        UTF-8 with or without byte order mark, brought to Unicode NFC. Spaces and tabs separate: a no-break space
        belongs to its word. Empty lines are passed over.

        Raises:
            ValueError: a word without symbols (naming the line), or a file that is not UTF-8 or holds no word.
        """
        entries: dict[str, list[list[str]]] = {}
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 (byte {error.start})") from error
        for number, line in enumerate(unicodedata.normalize("NFC", text).split("\n"), start=1):
            word, *symbols = line.translate(_SPACES).strip(" ").split(" ") if line.strip() else [""]
            symbols = [symbol for symbol in symbols if symbol]
            if not word:
                continue
            if not symbols:
                raise ValueError(f"{path}:{number}: {word!r} has no pronunciation")
            entries.setdefault(word, []).append(symbols)
        if not entries:
            raise ValueError(f"{path}: holds no word")
        return cls(entries)
