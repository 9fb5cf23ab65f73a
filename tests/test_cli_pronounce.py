"""The verb pronounce."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sonorant.cli import main
from sonorant.inference import Pronouncer, Recognizer

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def model(pronouncer: Pronouncer, tmp_path: Path) -> str:
    pronouncer.save(tmp_path / "run" / "model")
    return str(tmp_path / "run")


def test_words_phones_and_scores(model: str, pronouncer: Pronouncer, capsys: Capture) -> None:
    assert main(["pronounce", model, "abc", "ba"]) == 0
    found = pronouncer.pronounce_all(["abc", "ba"])
    expected = [
        f"{w}\t{' '.join(best.phones)}\t{best.score:.4f}" for w, (best,) in zip(["abc", "ba"], found, strict=True)
    ]
    assert capsys.readouterr().out.splitlines() == expected


def test_n_best(model: str, pronouncer: Pronouncer, capsys: Capture) -> None:
    assert main(["pronounce", model, "abc", "--nbest", "3"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["abc"] * 3
    assert len({line[1] for line in lines}) == 3


def test_words_from_stdin(model: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("abc\r\n\n  b\n"))
    assert main(["pronounce", model, "--beam-size", "1"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["abc", "b"]


@pytest.mark.parametrize("words", [["ab"], ["ab"] * 3000])
def test_a_reader_that_has_seen_enough_is_no_error(model: str, words: list[str]) -> None:
    """Whether it is found out while writing or at the end."""
    command = [sys.executable, "-m", "sonorant.cli", "pronounce", model, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_json(model: str, pronouncer: Pronouncer, capsys: Capture) -> None:
    assert main(["pronounce", model, "é", "--json", "--nbest", "2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith('{"word": "é"')
    data = json.loads(text)
    (found,) = pronouncer.pronounce_all(["é"], n_best=2)
    assert [entry["phones"] for entry in data["pronunciations"]] == [best.phones for best in found]
    assert [entry["score"] for entry in data["pronunciations"]] == [round(best.score, 4) for best in found]


def test_bad_words_are_named_and_the_others_go_on(model: str, capsys: Capture) -> None:
    assert main(["pronounce", model, "ab", "xa", "...", "", "ba"]) == 2
    captured = capsys.readouterr()
    assert [line.split("\t")[0] for line in captured.out.splitlines()] == ["ab", "ba"]
    errors = captured.err.splitlines()
    assert [error.startswith("sonorant: error: ") for error in errors] == [True] * 3
    assert "'x' at position 1" in errors[0]
    assert "nothing but punctuation" in errors[1]
    assert "the word is empty" in errors[2]


def test_a_recognizer_does_not_pronounce_and_a_pronouncer_does_not_transcribe(
    recognizer: Recognizer, model: str, tmp_path: Path, capsys: Capture
) -> None:
    recognizer.save(tmp_path / "other" / "model")
    assert main(["pronounce", str(tmp_path / "other"), "a"]) == 2
    assert "kind 'recognizer', which does not pronounce words" in capsys.readouterr().err
    assert main(["transcribe", model, "a.wav"]) == 2
    assert "kind 'pronouncer', which does not transcribe" in capsys.readouterr().err
