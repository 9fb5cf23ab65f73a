"""Texts of any length in passages."""

import pytest

from sonorant.text import split_text

LONG = "the quick brown fox jumps over the lazy dog"


def texts(text: str, longest: int = 300) -> list[str]:
    return [passage.text for passage in split_text(text, longest)]


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ("", []),
        (" \n\t ", []),
        ("seven", ["seven"]),
        ("seven  three\r\nnine", ["seven three nine"]),
        ("Seven. Three! Nine? Yes… no", ["Seven.", "Three!", "Nine?", "Yes… no"]),
        ('He said "Seven." Then he left.', ['He said "Seven."', "Then he left."]),
        ("It costs 3.50 here, i.e. nothing. Good.", ["It costs 3.50 here, i.e. nothing.", "Good."]),
        ("J. R. Smith and approx. five others.", ["J. R. Smith and approx. five others."]),
        ("三。九！七", ["三。", "九！", "七"]),
        ("Да. Нет.", ["Да.", "Нет."]),
        ("a\u00a0b", ["a\u00a0b"]),
    ],
)
def test_short_texts_are_split_at_sentence_ends(text: str, passages: list[str]) -> None:
    assert texts(text) == passages


def test_long_sentences_are_split_at_clauses_then_at_spaces_then_anywhere() -> None:
    text = f"{LONG}, and {LONG}; {LONG}"
    assert texts(text, 60) == [f"{LONG},", f"and {LONG};", LONG]
    assert texts(LONG, 20) == ["the quick brown fox", "jumps over the lazy", "dog"]
    assert texts("x" * 45, 20) == ["x" * 20, "x" * 20, "x" * 5]


def test_nothing_is_lost_of_5000_characters() -> None:
    text = " ".join(f"{LONG}{mark}" for mark in ("", ",", ".", "", "!", ";") * 20)[:5000]
    passages = split_text(text)
    assert len(text) == 5000
    assert all(0 < len(passage.text) <= 300 for passage in passages)
    assert " ".join(passage.text for passage in passages).replace(" ", "") == text.replace(" ", "")


def test_pauses_are_those_of_what_ends() -> None:
    assert [passage.pause for passage in split_text("One. Two.")] == [0.3, 0.0]
    pauses = [passage.pause for passage in split_text(f"{LONG}, {LONG}. {LONG.upper()}", 50)]
    assert pauses == [0.15, 0.3, 0.0]
    assert [passage.pause for passage in split_text(LONG, 20)] == [0.0, 0.0, 0.0]


def test_no_passage_of_nothing() -> None:
    with pytest.raises(ValueError, match="longest must be at least 1; got 0"):
        split_text("a", 0)
