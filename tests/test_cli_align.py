"""`sonorant align`: lines, JSON, TextGrids, pictures, wrong transcripts, and corpora with faults of all kinds."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from praatio import textgrid

from sonorant.cli import main
from tests.tones import WORDS, ToneCorpus, say

Capture = pytest.CaptureFixture[str]


def align(run: Path, table: Path, *options: str) -> int:
    return main(["align", str(run), "--data", str(table), *options])


def test_lines_of_words_and_tokens(aligner_run: Path, tones: dict[str, ToneCorpus], capsys: Capture) -> None:
    corpus = tones["test"]
    assert align(aligner_run, corpus.table) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = [line.split("\t") for line in captured.out.splitlines()]
    truth = [(name, *word) for name, words in corpus.truth.items() for word in words]
    assert [(name, word) for name, _, _, word, _ in lines] == [(name, word) for name, word, _, _ in truth]
    errors = []
    for (_, start, end, word, tokens), (_, _, *times) in zip(lines, truth, strict=True):
        errors += [abs(float(start) - times[0]), abs(float(end) - times[1])]
        assert "".join(token.partition("@")[0] for token in tokens.split(" ")) == word.upper()
        assert tokens.split(" ")[0].partition("@")[2] == start
    assert np.quantile(errors, 0.95) < 0.02


def test_json_textgrids_and_pictures(
    aligner_run: Path, tones: dict[str, ToneCorpus], tmp_path: Path, capsys: Capture
) -> None:
    table = tmp_path / "table.tsv"
    rows = tones["test"].table.read_text().splitlines()[:2]
    table.write_text("".join(f"{tones['test'].table.parent}/{row}\n" for row in rows))
    options = ["--json", "--textgrid", str(tmp_path / "grids"), "--pictures", str(tmp_path / "pictures")]
    assert align(aligner_run, table, *options) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert [word["word"] for word in first["words"]] == rows[0].split("\t")[1].split(" ")
    assert first["words"][0].keys() == {"word", "start", "end", "score", "tokens"}
    grid = textgrid.openTextgrid(str(tmp_path / "grids" / "0.TextGrid"), includeEmptyIntervals=False)
    entries = grid.getTier("words").entries
    assert [entry.label for entry in entries] == [word["word"] for word in first["words"]]
    assert entries[0].start == pytest.approx(first["words"][0]["start"], abs=1e-3)
    assert grid.getTier("tokens").entries[0].label == first["words"][0]["tokens"][0]["token"]
    assert {path.read_bytes()[:4] for path in (tmp_path / "pictures").iterdir()} == {b"\x89PNG"}

    assert align(aligner_run, table, *options) == 2  # files are not overwritten
    captured = capsys.readouterr()
    assert "0.TextGrid is there already" in captured.err
    assert len(captured.out.splitlines()) == 2


def test_planted_wrong_transcripts_are_found(
    aligner_run: Path, tones: dict[str, ToneCorpus], tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "corpus"
    shutil.copytree(tones["test"].table.parent, folder)
    rows = [row.split("\t") for row in (folder / "table.tsv").read_text().splitlines()]
    random, planted = np.random.default_rng(0), []
    for index in (3, 8, 14, 20, 27):
        text = rows[index][1].split(" ")
        place = int(random.integers(len(text)))
        others = [word for word in WORDS if not set(word) & set(text[place])]
        if index == 8:
            text.insert(place, others[0])
        elif index == 14:
            text = text[:-1]
        else:
            text[place] = others[0]
        rows[index][1] = " ".join(text)
        planted.append(rows[index][0])
    (folder / "table.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    assert align(aligner_run, folder / "table.tsv") == 0
    errors = capsys.readouterr().err.splitlines()
    named = [line.split(": ")[3] for line in errors if line.startswith("sonorant: suspicious: ")]
    assert set(named) >= set(planted)
    assert len(named) <= len(planted) + 2
    assert f"table.tsv:{rows.index(next(row for row in rows if row[0] == named[0])) + 1}: " in errors[0]


def test_all_that_cannot_be_aligned_is_listed_and_the_rest_is_aligned(
    aligner_run: Path, tmp_path: Path, capsys: Capture
) -> None:
    random, rate = np.random.default_rng(0), 8000
    recordings = {
        "good": say(["su", "mi"], random)[0],
        "short": say(["su"], random)[0],
        "silent": np.zeros(rate),
        "unknown": say(["su", "mi"], random)[0],
        "russian": say(["su", "mi"], random)[0],
        "one": say(["dia"], random)[0],
        "minute": say(random.choice(WORDS, 150).tolist(), np.random.default_rng(5))[0],
    }
    minute = np.random.default_rng(5)
    text = minute.choice(WORDS, 150).tolist()
    recordings["minute"] = say(text, minute)[0]
    for name, samples in recordings.items():
        soundfile.write(tmp_path / f"{name}.wav", samples, rate)
    soundfile.write(tmp_path / "fast.wav", say(["su"], random, rate=16000)[0], 16000)
    (tmp_path / "noise.wav").write_text("no audio")
    texts = {
        "good": "su mi", "short": " ".join(["sam"] * 30), "silent": "su", "unknown": "su blue red", "russian": "это",
        "one": "dia", "minute": " ".join(text), "fast": "su", "noise": "su", "gone": "su", "empty": "",
    }  # fmt: skip
    table = tmp_path / "table.tsv"
    table.write_text("".join(f"{name}.wav\t{text}\n" for name, text in texts.items()), encoding="utf-8")
    assert align(aligner_run, table) == 2
    captured = capsys.readouterr()
    assert list(dict.fromkeys(line.partition("\t")[0] for line in captured.out.splitlines())) == [
        "good.wav", "one.wav", "minute.wav",
    ]  # fmt: skip
    assert "sonorant: words that cannot be spelled, and how often they come: blue (1), red (1), это (1)" in captured.err
    for line, wanted in {
        2: "short.wav: ",
        3: "silent.wav: holds nothing but silence",
        4: "the lexicon lacks 'blue'; the lexicon lacks 'red'",
        5: "the lexicon lacks 'это'",
        8: "the sample rate is 16000 Hz",
        9: "noise.wav: not a recording",
        10: "no such file",
    }.items():
        assert any(f"table.tsv:{line}: " in error and wanted in error for error in captured.err.splitlines()), wanted
    assert "table.tsv:11" in captured.err


def test_further_words_from_a_lexicon(aligner_run: Path, tmp_path: Path, capsys: Capture) -> None:
    soundfile.write(tmp_path / "a.wav", say(["su", "mi"], np.random.default_rng(0))[0], 8000)
    (tmp_path / "table.tsv").write_text("a.wav\tSue me\n")
    assert align(aligner_run, tmp_path / "table.tsv") == 2
    (tmp_path / "words.tsv").write_text("Sue\tS U\nme\tM I\n")
    assert align(aligner_run, tmp_path / "table.tsv", "--lexicon", str(tmp_path / "words.tsv")) == 0
    assert capsys.readouterr().out.count("\t") == 8
    (tmp_path / "words.tsv").write_text("Sue\tS UW\n")
    assert align(aligner_run, tmp_path / "table.tsv", "--lexicon", str(tmp_path / "words.tsv")) == 2
    assert "'Sue' has symbols that the model does not know: UW" in capsys.readouterr().err


def test_other_models_and_verbs_refuse(aligner_run: Path, g2p_run: Path, tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("a.wav\tsu\n")
    assert align(g2p_run, table) == 2
    assert "a model of kind 'pronouncer', which does not align recordings" in capsys.readouterr().err
    for verb in (["evaluate"], ["transcribe", "a.wav"], ["export", "model.onnx"]):
        assert main([verb[0], str(aligner_run), *verb[1:]]) == 2
    assert "aligners are not exported to ONNX" in capsys.readouterr().err


def test_an_exported_folder_has_a_card(aligner_run: Path, tmp_path: Path) -> None:
    assert main(["export", str(aligner_run), str(tmp_path / "tones")]) == 0
    card = (tmp_path / "tones" / "README.md").read_text()
    assert "# tones\n" in card
    assert "its lexicon (7 words) lacks are refused; its symbols are: A D I M S U." in card
    assert 'sonorant.load("tones").align("recording.wav", "its text")' in card
    assert "Trained on 57 utterances" in card
