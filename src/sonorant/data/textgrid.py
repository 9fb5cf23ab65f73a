"""TextGrid files, Praat's format for labelled stretches of a recording."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Interval", "IntervalTier", "TextGrid", "filled_tier", "read_textgrid", "write_textgrid"]

_VALUE = re.compile(r'"((?:[^"]|"")*)"|(?<![\w\[])(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w\]])|(<exists>)')


class Interval(NamedTuple):
    """A stretch of a recording, in seconds, and its label (empty: nothing)."""

    start: float
    end: float
    text: str


class IntervalTier(NamedTuple):
    """Intervals one after the other, without gaps, from 0 to the end of the recording."""

    name: str
    intervals: list[Interval]


class TextGrid(NamedTuple):
    """A recording's duration in seconds, and its tiers."""

    duration: float
    tiers: list[IntervalTier]


def filled_tier(name: str, intervals: Iterable[Interval], duration: float) -> IntervalTier:
    """A tier of labelled intervals, with empty ones where they leave gaps.

    Args:
        name: of the tier.
        intervals: in order, without overlaps; those without a length are left out.
        duration: of the recording, in seconds.

    Raises:
        ValueError: intervals that overlap, run backwards, or lie outside the recording.

    Example:
        >>> from sonorant.data.textgrid import Interval, filled_tier
        >>> [tuple(interval) for interval in filled_tier("words", [Interval(0.5, 0.75, "no")], 1.0).intervals]
        [(0.0, 0.5, ''), (0.5, 0.75, 'no'), (0.75, 1.0, '')]
    """
    filled: list[Interval] = []
    position = 0.0
    for interval in intervals:
        if not position <= interval.start <= interval.end <= duration:
            raise ValueError(
                f"tier {name!r}: {interval} does not lie between {position:g} s, where the one before ends, "
                f"and {duration:g} s"
            )
        if interval.start > position:
            filled.append(Interval(position, interval.start, ""))
        if interval.end > interval.start:
            filled.append(interval)
        position = interval.end
    if position < duration:
        filled.append(Interval(position, duration, ""))
    return IntervalTier(name, filled)


def write_textgrid(path: Path, grid: TextGrid, *, overwrite: bool = False) -> None:
    """Write a TextGrid in Praat's long text format, in UTF-8.

    Args:
        path: the file.
        grid: its tiers must be without gaps (see :func:`filled_tier`).
        overwrite: replace a file that is there.

    Raises:
        FileExistsError: there is a file already.
        ValueError: a duration that is not positive, or a tier that does not reach from 0 to it without gaps.
    """
    _check(grid)
    with path.open("w" if overwrite else "x", encoding="utf-8", newline="\n") as file:
        file.write(_to_text(grid))


def read_textgrid(path: Path) -> TextGrid:
    """Read a TextGrid of interval tiers, in Praat's long or short text format (UTF-8 or UTF-16).

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a TextGrid, or one with other than interval tiers.
    """
    content = path.read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        values = _values(content.decode(encoding))
        return _from_values(values)
    except (UnicodeDecodeError, IndexError, ValueError) as error:
        raise ValueError(f"{path}: not a TextGrid of interval tiers ({error})") from error


def _check(grid: TextGrid) -> None:
    if not grid.duration > 0:
        raise ValueError(f"duration must be positive; got {grid.duration}")
    for tier in grid.tiers:
        ends = [0.0] + [interval.end for interval in tier.intervals]
        starts = [interval.start for interval in tier.intervals] + [grid.duration]
        if ends != starts or any(interval.end <= interval.start for interval in tier.intervals):
            raise ValueError(
                f"tier {tier.name!r}: its intervals do not reach from 0 to {grid.duration:g} s without gaps"
            )


def _to_text(grid: TextGrid) -> str:
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', ""]
    lines += [
        "xmin = 0",
        f"xmax = {_number(grid.duration)}",
        "tiers? <exists>",
        f"size = {len(grid.tiers)}",
        "item []:",
    ]
    for tier_number, tier in enumerate(grid.tiers, start=1):
        lines += [
            f"    item [{tier_number}]:",
            '        class = "IntervalTier"',
            f"        name = {_quoted(tier.name)}",
        ]
        lines += ["        xmin = 0", f"        xmax = {_number(grid.duration)}"]
        lines += [f"        intervals: size = {len(tier.intervals)}"]
        for number, interval in enumerate(tier.intervals, start=1):
            lines += [f"        intervals [{number}]:", f"            xmin = {_number(interval.start)}"]
            lines += [f"            xmax = {_number(interval.end)}", f"            text = {_quoted(interval.text)}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _values(text: str) -> Sequence[str | float]:
    """What Praat reads: quoted strings, free-standing numbers and flags; everything else is comment."""
    values: list[str | float] = []
    for match in _VALUE.finditer(text):
        if match.group(2) is not None:
            values.append(float(match.group(2)))
        elif match.group(3) is None:
            values.append(match.group(1).replace('""', '"'))
    return values


def _from_values(values: Sequence[str | float]) -> TextGrid:
    if list(values[:2]) != ["ooTextFile", "TextGrid"]:
        raise ValueError(f"it begins with {values[:2]}")
    position = 5
    tiers = []
    for _ in range(_count(values[4])):
        kind, name, _start, _end, size = values[position : position + 5]
        if kind != "IntervalTier":
            raise ValueError(f"a tier of class {kind!r}")
        position += 5
        intervals = []
        for _ in range(_count(size)):
            start, end, text = values[position : position + 3]
            intervals.append(Interval(float(start), float(end), str(text)))
            position += 3
        tiers.append(IntervalTier(str(name), intervals))
    return TextGrid(float(values[3]), tiers)


def _count(value: str | float) -> int:
    if not isinstance(value, float):
        raise ValueError(f"a number is expected; got {value!r}")
    return int(value)
