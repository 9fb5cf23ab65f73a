"""The symbols that a model emits, and their ids."""

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["SymbolTable"]

_MANY = 50


class SymbolTable:
    """Symbols in the order of their ids. The blank comes first: loss, decoders and export all read ``blank``.

    Args:
        symbols: without the blank; distinct, not empty, without white space.

    Example:
        >>> from sonorant.text import SymbolTable
        >>> table = SymbolTable(["SIL", "N", "Y"])
        >>> table.encode(["SIL", "Y"]), table.blank
        ([1, 3], 0)
    """

    BLANK = "<blk>"
    blank = 0

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = (self.BLANK, *symbols)
        self._ids = {symbol: index for index, symbol in enumerate(self.symbols)}
        if len(self._ids) != len(self.symbols):
            twice = sorted({s for s in self.symbols if self.symbols.count(s) > 1})
            raise ValueError(f"symbols: {', '.join(twice)} more than once")
        odd = [symbol for symbol in self.symbols if not symbol or len(symbol.split()) != 1]
        if odd:
            raise ValueError(f"symbols: {odd[0]!r} is empty or holds white space")

    def __len__(self) -> int:
        """The number of symbols, blank included: the classes of the model."""
        return len(self.symbols)

    def __contains__(self, symbol: str) -> bool:
        """Whether it is one of the symbols."""
        return symbol in self._ids

    def __eq__(self, other: object) -> bool:
        """The same symbols with the same ids."""
        return isinstance(other, SymbolTable) and self.symbols == other.symbols

    def __hash__(self) -> int:
        """Of the symbols."""
        return hash(self.symbols)

    def encode(self, symbols: Sequence[str]) -> list[int]:
        """Symbols to ids.

        Raises:
            ValueError: a symbol that is not in the table.
        """
        try:
            return [self._ids[symbol] for symbol in symbols]
        except KeyError as error:
            known = ", ".join(self.symbols[:_MANY]) + (", ..." if len(self) > _MANY else "")
            raise ValueError(f"unknown symbol {error.args[0]!r}; known are {known}") from None

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Ids to symbols."""
        return [self.symbols[index] for index in ids]

    def to_text(self) -> str:
        """Lines of ``symbol id``: the ``tokens.txt`` of Kaldi and sherpa-onnx."""
        return "".join(f"{symbol} {index}\n" for index, symbol in enumerate(self.symbols))

    @classmethod
    def read(cls, path: Path) -> "SymbolTable":
        """Read a file of :meth:`to_text` lines.

        Raises:
            ValueError: a line that is not ``symbol id``, ids out of order, or a first symbol that is not the blank.
        """
        symbols = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            fields = line.split()
            if len(fields) != 2 or fields[1] != str(number - 1):
                raise ValueError(f"{path}:{number}: expected 'symbol {number - 1}'; got {line!r}")
            symbols.append(fields[0])
        if symbols[:1] != [cls.BLANK]:
            raise ValueError(f"{path}:1: the first symbol must be {cls.BLANK}; got {symbols[:1]}")
        return cls(symbols[1:])
