"""TextGrid files: written, read back, and read by another library."""

from pathlib import Path

import pytest

from sonorant.data.textgrid import Interval, IntervalTier, TextGrid, filled_tier, read_textgrid, write_textgrid

GRID = TextGrid(
    1.3,
    [
        filled_tier(
            "words", [Interval(0.1, 0.30000000000000004, 'say "no" 3 [2]'), Interval(0.5, 1.3, "да\u00a0你")], 1.3
        ),
        filled_tier('"odd" = name', [], 1.3),
    ],
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.TextGrid"
    write_textgrid(path, GRID)
    assert read_textgrid(path) == GRID


def test_the_text_is_praat_s_long_format(tmp_path: Path) -> None:
    path = tmp_path / "a.TextGrid"
    write_textgrid(path, TextGrid(2.0, [filled_tier("words", [Interval(0.0, 0.5, 'a"b')], 2.0)]))
    lines = path.read_bytes().decode("utf-8").split("\n")
    assert lines[:7] == [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        "xmin = 0",
        "xmax = 2",
        "tiers? <exists>",
        "size = 1",
    ]
    assert '            text = "a""b"' in lines
    assert "        intervals: size = 2" in lines


def test_another_library_reads_the_same(tmp_path: Path) -> None:
    textgrid = pytest.importorskip("praatio.textgrid")
    path = tmp_path / "a.TextGrid"
    write_textgrid(path, GRID)
    grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=True)
    assert grid.maxTimestamp == pytest.approx(1.3)
    for tier in GRID.tiers:
        other = grid.getTier(tier.name)
        assert [(entry.start, entry.end, entry.label) for entry in other.entries] == [tuple(i) for i in tier.intervals]


@pytest.mark.parametrize("form", ["long_textgrid", "short_textgrid"])
def test_reads_what_another_library_writes(tmp_path: Path, form: str) -> None:
    textgrid = pytest.importorskip("praatio.textgrid")
    grid = textgrid.Textgrid()
    for tier in GRID.tiers:
        grid.addTier(textgrid.IntervalTier(tier.name, [tuple(i) for i in tier.intervals if i.text], 0, 1.3))
    path = tmp_path / "a.TextGrid"
    grid.save(str(path), format=form, includeBlankSpaces=True)
    assert read_textgrid(path) == GRID
    path.write_bytes(path.read_text(encoding="utf-8").encode("utf-16"))
    assert read_textgrid(path) == GRID


def test_gaps_are_filled_and_empty_intervals_left_out() -> None:
    tier = filled_tier("t", [Interval(0.2, 0.4, "a"), Interval(0.4, 0.4, "none"), Interval(0.4, 0.5, "b")], 1.0)
    assert tier.intervals == [(0.0, 0.2, ""), (0.2, 0.4, "a"), (0.4, 0.5, "b"), (0.5, 1.0, "")]


@pytest.mark.parametrize("interval", [(0.1, 0.3, "x"), (0.5, 0.4, "x"), (0.9, 1.1, "x")])
def test_intervals_that_do_not_follow_each_other_are_refused(interval: tuple[float, float, str]) -> None:
    with pytest.raises(ValueError, match=r"tier 'words': .*does not lie between 0\.2 s"):
        filled_tier("words", [Interval(0.0, 0.2, "a"), Interval(*interval)], 1.0)


def test_files_are_not_overwritten_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        write_textgrid(path, GRID)
    assert path.read_text() == "precious"
    write_textgrid(path, GRID, overwrite=True)
    assert read_textgrid(path) == GRID


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (TextGrid(0.0, []), "duration must be positive"),
        (TextGrid(1.0, [IntervalTier("t", [])]), "tier 't': .*from 0 to 1 s"),
        (TextGrid(1.0, [IntervalTier("t", [Interval(0.0, 0.5, ""), Interval(0.6, 1.0, "")])]), "without gaps"),
    ],
)
def test_faulty_grids_are_not_written(tmp_path: Path, grid: TextGrid, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_textgrid(tmp_path / "a.TextGrid", grid)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content", [b"", b"rubbish", b"\xff\x00", b'"ooTextFile" "TextGrid" 0 1 <exists> 1 "TextTier" "p" 0 1 0']
)
def test_what_is_no_textgrid_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.TextGrid"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.TextGrid: not a TextGrid"):
        read_textgrid(path)
