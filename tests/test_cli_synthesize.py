"""`sonorant synthesize`: one text, texts from standard input, tables; and all that cannot be spoken."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from sonorant.cli import main
from sonorant.inference import Recognizer, Sentence, Synthesizer
from tests.untrained_speech import untrained_synthesizer

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def model(synthesizer: Synthesizer, tmp_path: Path) -> str:
    synthesizer.save(tmp_path / "run" / "model")
    return str(tmp_path / "run")


def speak(monkeypatch: pytest.MonkeyPatch, model: str, stdin: str | None, *options: str) -> int:
    """Without text on standard input it is a terminal."""
    stream = io.StringIO(stdin or "")
    monkeypatch.setattr(stream, "isatty", lambda: stdin is None)
    monkeypatch.setattr("sys.stdin", stream)
    return main(["synthesize", model, *options])


def said(path: Path) -> np.ndarray:
    samples, rate = soundfile.read(path)
    assert rate == 8000
    return samples


def expected(synthesizer: Synthesizer, sentence: Sentence) -> np.ndarray:
    (speech,) = synthesizer.synthesize_all([sentence])
    return speech.samples


def close(path: Path, samples: np.ndarray) -> None:
    found = said(path)
    assert found.shape == samples.shape
    assert np.abs(found - samples).mean() < 1e-4


def test_a_text_and_all_controls(
    model: str, synthesizer: Synthesizer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new" / "a.wav"
    controls = ["--duration-speaker", "ben", "--f0-speaker", "cem", "--energy-speaker", "ben", "--pace", "1.2"]
    controls += ["--pitch-shift", "2", "--temperature", "0.5", "--seed", "3", "--accent", "south"]
    arguments = ["--text", "seven three", "--speaker", "ann", *controls, "-o", str(out)]
    assert speak(monkeypatch, model, None, *arguments) == 0
    sentence = Sentence("seven three", "ann", "south", "ben", "cem", "ben", 1.2, 2.0, 0.5, 3)
    close(out, expected(synthesizer, sentence))
    assert capsys.readouterr().out == f"{out}\t{len(said(out)) / 8000:.2f}\n"
    assert speak(monkeypatch, model, None, *arguments) == 2
    assert f"sonorant: error: {out} is there already" in capsys.readouterr().err


def test_lines_of_standard_input_become_files(
    model: str, synthesizer: Synthesizer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "seven\tben\r\n\nthree nine\tcem\tnorth\nzero \n"
    assert speak(monkeypatch, model, lines, "-o", str(tmp_path / "out"), "--json") == 2
    captured = capsys.readouterr()
    assert captured.err == "sonorant: error: line 4: speaker: none was given; known are ann, ben, cem\n"
    first, second = map(json.loads, captured.out.splitlines())
    assert first["path"] == str(tmp_path / "out" / "001.wav")
    assert (first["text"], first["speaker"], first["accent"]) == ("seven", "ben", "south")
    assert (second["text"], second["speaker"], second["accent"]) == ("three nine", "cem", "north")
    assert [token["token"] for token in first["tokens"]] == ["SIL", *"seven", "SIL"]
    assert first["duration"] == len(said(tmp_path / "out" / "001.wav")) / 8000
    close(tmp_path / "out" / "003.wav", expected(synthesizer, Sentence("three nine", "cem", "north")))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"001.wav", "003.wav"}


def test_a_text_of_several_lines_becomes_one_file(
    model: str, synthesizer: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--text", "-", "--speaker", "ann", "-o", str(tmp_path / "a.flac")]
    assert speak(monkeypatch, model, "Seven\nthree. Nine!\n", *options) == 0
    close(tmp_path / "a.flac", expected(synthesizer, Sentence("Seven three. Nine!", "ann")))


def test_a_table(
    model: str, synthesizer: Synthesizer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("a/x.wav\tseven\tben\nb/x.wav\tthree\tcem\tnorth\nc.wav\tfive\tben\nd.wav\n", encoding="utf-8")
    out = tmp_path / "out"
    assert speak(monkeypatch, model, None, "--data", str(table), "-o", str(out)) == 2
    captured = capsys.readouterr()
    errors = captured.err.splitlines()
    assert len(errors) == 2
    assert f"{table}:4: expected path<TAB>text" in errors[0]
    assert f"{table}:3: 'five' has graphemes that the model does not know: 'f' at position 1" in errors[1]
    assert [line.split("\t")[0] for line in captured.out.splitlines()] == [str(out / "x.wav"), str(out / "x-2.wav")]
    close(out / "x-2.wav", expected(synthesizer, Sentence("three", "cem", "north")))
    # another voice comes with its own accent, and not with that of the one whom the table names
    assert speak(monkeypatch, model, None, "--data", str(table), "--speaker", "ben", "-o", str(tmp_path / "ben")) == 2
    close(tmp_path / "ben" / "x-2.wav", expected(synthesizer, Sentence("three", "ben", "south")))


def test_the_speakers_are_listed(model: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert speak(monkeypatch, model, None, "--list") == 0
    assert capsys.readouterr().out == "ann\tnorth\nben\tsouth\ncem\tsouth\n"


@pytest.mark.parametrize(
    ("stdin", "options", "message"),
    [
        (None, ["--text", "seven", "--speaker", "bob", "-o", "a.wav"], "'bob' is not known; known are ann, ben, cem"),
        (None, ["--text", "seven", "--speaker", "ann", "--accent", "x", "-o", "a.wav"], "known are north, south"),
        (None, ["--text", "five", "--speaker", "ann", "-o", "a.wav"], "'f' at position 1"),
        (None, ["--text", "", "--speaker", "ann", "-o", "a.wav"], "nothing in it that is spoken"),
        (None, ["--text", "seven", "--speaker", "ann", "--pace", "0", "-o", "a.wav"], "pace must lie in [0.1, 10]"),
        (None, ["--text", "seven", "--speaker", "ann"], "where to? Give -o"),
        (None, ["-o", "a.wav"], "what shall be said? Give --text TEXT"),
        (None, ["--data", "t.tsv", "-o", "a.wav"], "a.wav: a table becomes a folder of files"),
        (None, ["--data", "t.tsv", "-o", "out"], "t.tsv: no such table"),
        ("", ["-o", "out"], "standard input: holds no text"),
        ("", ["--speaker", "ann", "-o", "a.wav"], "nothing in it that is spoken"),
        ("a\tb\tc\td\n", ["-o", "out"], "line 1: expected text[<TAB>speaker[<TAB>accent]]; got 'a\\tb\\tc\\td'"),
    ],
)
def test_what_cannot_be_is_said(
    model: str,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    stdin: str | None,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert speak(monkeypatch, model, stdin, *options) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""
    assert not (tmp_path / "a.wav").exists()


def test_a_model_without_predictors_says_so_once(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    untrained_synthesizer(predictors_trained=False).save(tmp_path / "model")
    assert speak(monkeypatch, str(tmp_path / "model"), "seven\nnine\n", "-o", str(tmp_path / "out")) == 2
    errors = capsys.readouterr().err
    assert errors.count("train its predictors") == 1
    assert not (tmp_path / "out").exists()


def test_other_models_and_verbs_refuse(
    model: str, recognizer: Recognizer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognizer.save(tmp_path / "other")
    assert speak(monkeypatch, str(tmp_path / "other"), None, "--text", "a", "-o", "a.wav") == 2
    assert "a model of kind 'recognizer', which does not speak" in capsys.readouterr().err
    assert main(["transcribe", model, "a.wav"]) == 2
    assert "a model of kind 'synthesizer', which does not transcribe" in capsys.readouterr().err
    assert main(["evaluate", model]) == 2
    assert "a synthesizer makes no errors that could be counted" in capsys.readouterr().err
    assert main(["export", model, str(tmp_path / "model.onnx")]) == 2
    assert "synthesizers are not exported to ONNX; give a folder" in capsys.readouterr().err


def test_an_exported_folder_speaks_and_has_a_card(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = {"utterances": {"train": 57, "dev": 3}, "dev": {"nll": -1.234567, "duration": 0.25}}
    (Path(model) / "metrics.json").write_text(json.dumps(metrics))
    assert main(["export", model, str(tmp_path / "voices")]) == 0
    card = (tmp_path / "voices" / "README.md").read_text()
    for part in (
        "# voices\n",
        "Speech from text at 8000 Hz",
        "16 mel bins every 10 ms",
        "ann (north), ben (south), cem (south).",
        "Accents: north, south.",
        "accent and speaker are confounded",
        "others than these are refused: e h i n o r s t v z.",
        "Trained on 57 utterances, on the held-out ones:",
        "| nll | -1.235 |",
        'sonorant.load("voices").synthesize("your text", speaker="ann")',
        'sonorant synthesize voices --text "your text" --speaker ann -o out.wav',
    ):
        assert part in card
    assert "cannot speak yet" not in card
    arguments = ["--text", "seven", "--speaker", "ann", "-o", str(tmp_path / "a.wav")]
    assert speak(monkeypatch, str(tmp_path / "voices"), None, *arguments) == 0


def test_the_card_of_a_model_that_cannot_speak_says_so(tmp_path: Path) -> None:
    untrained_synthesizer(predictors_trained=False).save(tmp_path / "model")
    assert main(["export", str(tmp_path / "model"), str(tmp_path / "half")]) == 0
    card = (tmp_path / "half" / "README.md").read_text()
    assert "it cannot speak yet" in card
    assert "None were recorded with this model." in card
