"""Words and the symbols they are made of."""

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Lexicon"]


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
            ValueError: words that are not in the lexicon (all of them named).
        """
        between = [] if separator is None else [separator]
        unknown = [word for word in dict.fromkeys(words) if word not in self.entries]
        if unknown:
            names = ", ".join(map(repr, unknown))
            raise ValueError(
                f"word {names} is not in the lexicon" if len(unknown) == 1 else f"words {names} are not in the lexicon"
            )
        symbols = list(between)
        for word in words:
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
            FileNotFoundError: no such file.
            ValueError: a word without symbols (naming the line), or a file that is not UTF-8 or holds no word.
        """
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        entries: dict[str, list[list[str]]] = {}
        try:
            text = unicodedata.normalize("NFC", path.read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 (byte {error.start})") from error
        for number, line in enumerate(text.split("\n"), start=1):
            fields = [field for field in line.rstrip("\r").replace("\t", " ").split(" ") if field]
            if not fields:
                continue
            word, *symbols = fields
            if not symbols:
                raise ValueError(f"{path}:{number}: {word!r} has no pronunciation")
            entries.setdefault(word, []).append(symbols)
        if not entries:
            raise ValueError(f"{path}: holds no word")
        return cls(entries)
