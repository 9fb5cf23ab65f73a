"""Progress on a terminal."""

import io
import sys

import pytest

from sonorant.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("checking", 3) as progress:
        for done in (1, 2, 3):
            progress(done)
    return stream.getvalue()


def test_nothing_is_shown_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(io.StringIO(), monkeypatch) == ""


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "checking" in run(Terminal(), monkeypatch)


def test_without_rich_a_line_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert run(Terminal(), monkeypatch) == "\rchecking 1/3\rchecking 2/3\rchecking 3/3\n"
