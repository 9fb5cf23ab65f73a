"""How many of how many: shares with confidence intervals, and tables of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Share", "markdown", "table"]

_NORMAL_95 = 1.959964  # what 95 % of a normal distribution lie within, in standard deviations
ALL = "all"


@dataclass(frozen=True)
class Share:
    """So many of so many. ``share += True`` counts one more that is right, ``share += False`` one that is not."""

    right: int = 0
    number: int = 0

    @classmethod
    def of(cls, found: Iterable[bool]) -> "Share":
        """Count those that are right."""
        return sum((cls(int(right), 1) for right in found), cls())

    def __add__(self, other: "Share | bool") -> "Share":
        more = other if isinstance(other, Share) else Share(int(other), 1)
        return Share(self.right + more.right, self.number + more.number)

    @property
    def rate(self) -> float:
        """A fraction; NaN of nothing."""
        return self.right / self.number if self.number else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the rate by Wilson (1927), which also holds where all or none are right."""
        if not self.number:
            return math.nan, math.nan
        weight = _NORMAL_95**2 / self.number
        middle = (self.rate + weight / 2) / (1 + weight)
        half = math.sqrt(weight * (self.rate * (1 - self.rate) + weight / 4)) / (1 + weight)
        return max(0.0, middle - half), min(1.0, middle + half)

    def to_json(self) -> dict[str, Any]:
        return {"right": self.right, "number": self.number, "rate": self.rate, "interval": list(self.interval)}

    def __str__(self) -> str:
        if not self.number:
            return "-"
        low, high = self.interval
        return f"{self.right}/{self.number} = {self.rate:.1%} ({low:.1%} to {high:.1%})"


def table(first: str, columns: Mapping[str, Mapping[str, Share]]) -> str:
    """A row for each name, and one for all of them together.

    Args:
        first: what the names are.
        columns: by heading, shares by name: the same names in each column.
    """
    names = list(next(iter(columns.values())))
    rows = [[name, *(str(shares[name]) for shares in columns.values())] for name in names]
    rows.append([ALL, *(str(sum(shares.values(), Share())) for shares in columns.values())])
    return markdown([first, *columns], rows)


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
