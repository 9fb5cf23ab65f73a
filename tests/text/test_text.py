"""Symbols and lexicons."""

from pathlib import Path

import pytest

from sonorant.text import Lexicon, SymbolTable


def test_symbols_survive_the_file(tmp_path: Path) -> None:
    table = SymbolTable(["SIL", "N", "é"])
    path = tmp_path / "tokens.txt"
    path.write_text(table.to_text(), encoding="utf-8")
    assert SymbolTable.read(path) == table
    assert path.read_text(encoding="utf-8").splitlines()[:2] == ["<blk> 0", "SIL 1"]
    assert table.decode(table.encode(["é", "N"])) == ["é", "N"]
    assert (len(table), "N" in table, "X" in table) == (4, True, False)


def test_unknown_symbols_are_named() -> None:
    with pytest.raises(ValueError, match="unknown symbol 'X'; known are <blk>, N"):
        SymbolTable(["N"]).encode(["N", "X"])


@pytest.mark.parametrize(
    ("symbols", "message"), [(["a", "a"], "a more than once"), ([""], "'' is empty"), (["a b"], "'a b'")]
)
def test_impossible_symbols_are_named(symbols: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SymbolTable(symbols)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<blk> 0\nN 2\n", r"tokens\.txt:2: expected 'symbol 1'"),
        ("N 0\n", "must be <blk>"),
        ("", "must be <blk>"),
        ("<blk>\n", r"tokens\.txt:1"),
    ],
)
def test_damaged_symbol_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        SymbolTable.read(path)


def test_lexicon_survives_the_file_and_spells(tmp_path: Path) -> None:
    lexicon = Lexicon({"tomato": [["t", "ah"], ["t", "ey"]], "a": [["ah"]]})
    path = tmp_path / "lexicon.txt"
    path.write_text(lexicon.to_text())
    again = Lexicon.read(path)
    assert again.entries == lexicon.entries
    assert (len(again), again.words) == (2, ["a", "tomato"])
    assert again.spell(["tomato", "a"]) == ["t", "ah", "ah"]
    assert again.spell([], separator="SIL") == ["SIL"]


def test_a_pronunciation_that_comes_twice_counts_once() -> None:
    assert Lexicon({"a": [["x"], ["y"], ["x"]]}).entries == {"a": [["x"], ["y"]]}


def test_lexicon_files_of_any_origin(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.txt"
    path.write_bytes("\ufeffcafe\u0301 k  a\tf e\r\n\r\nne\u00a0pas n p\n".encode())
    assert Lexicon.read(path).entries == {"caf\u00e9": [["k", "a", "f", "e"]], "ne\u00a0pas": [["n", "p"]]}


def test_lexicon_faults_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'b' has no pronunciation"):
        Lexicon({"a": [["x"]], "b": []})
    with pytest.raises(ValueError, match="words 'c', 'd' are not in the lexicon"):
        Lexicon({"a": [["x"]]}).spell(["a", "c", "d", "c"])
    path = tmp_path / "lexicon.txt"
    path.write_text("a x\nb\n")
    with pytest.raises(ValueError, match=r"lexicon\.txt:2: 'b' has no pronunciation"):
        Lexicon.read(path)
