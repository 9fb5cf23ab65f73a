"""Evaluation of a pronouncer on a dictionary."""

import json
from pathlib import Path

import pytest

import sonorant
from sonorant.cli import main
from sonorant.inference import Pronouncer
from sonorant.inference.pronunciation_evaluation import evaluate_pronunciations
from sonorant.text import Lexicon
from tests.dictionaries import made_up_words, spell_out


@pytest.fixture(scope="module")
def trained(g2p_run: Path) -> Pronouncer:
    loaded = sonorant.load(g2p_run)
    assert isinstance(loaded, Pronouncer)
    return loaded


LEXICON = Lexicon(
    {
        "dakbe": [["X"], ["D", "AA", "K", "B", "EH"]],  # right by the second
        "kabid": [["K", "AA", "B", "IY", "T"]],  # one phone of five wrong
        "zebra": [["Z", "EH", "B"]],  # with letters that the model does not know
    }
)


def test_any_pronunciation_counts_and_phones_against_the_nearest(trained: Pronouncer) -> None:
    result = evaluate_pronunciations(trained, LEXICON)
    assert (result.rate.words.errors, result.rate.words.words) == (2, 3)
    assert (result.rate.phones.errors, result.rate.phones.words) == (1 + 3, 5 + 5 + 3)
    assert [(c.reference, c.hypothesis) for c in result.confusions[:1]] == [("T", "D")]
    assert {length: rate.words.errors for length, rate in result.by_length.items()} == {5: 2}
    assert result.pronunciations["zebra"] is None
    assert "'z' at position 1" in result.refused["zebra"]
    assert result.training_words == []


def test_training_words_are_counted_and_named(trained: Pronouncer) -> None:
    word = sorted(trained.train_words)[0]
    result = evaluate_pronunciations(trained, Lexicon({word: [spell_out(word)], "dakbe": [["D"]]}))
    assert result.training_words == [word]
    summary = result.summary()
    assert (summary["num_training_words"], summary["training_words"]) == (1, [word])


def test_the_batch_size_changes_nothing(trained: Pronouncer) -> None:
    lexicon = Lexicon({word: [spell_out(word)] for word in made_up_words(60, seed=3)})
    results = [evaluate_pronunciations(trained, lexicon, batch_size=size) for size in (1, 7, 60)]
    assert results[0] == results[1] == results[2]


def write(path: Path, lexicon: Lexicon) -> str:
    path.write_text(lexicon.to_text())
    return str(path)


def test_the_command_prints_fractions(g2p_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write(tmp_path / "words.dict", LEXICON)
    assert main(["evaluate", str(g2p_run), "--data", table, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["wer"], summary["per"]) == (2 / 3, 4 / 13)
    assert summary["wer_interval"][0] <= summary["wer"] <= summary["wer_interval"][1]
    assert summary["per_interval"][0] <= summary["per"] <= summary["per_interval"][1]
    assert summary["by_length"]["5"]["words"] == 3
    assert summary["confusions"][0] == {"reference": "T", "hypothesis": "D", "errors": 1}
    assert list(summary["refused"]) == ["zebra"]


def test_the_command_prints_a_table(g2p_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = sorted(sonorant.load(g2p_run).train_words)[0]
    table = write(tmp_path / "words.dict", Lexicon({**LEXICON.entries, known: [spell_out(known)]}))
    assert main(["evaluate", str(g2p_run), "--data", table]) == 0
    shown = capsys.readouterr().out
    assert "50.00%" in shown
    assert "refused: 'zebra' has graphemes that the model does not know" in shown
    assert f"the model was trained on 1 of these words: {known}" in shown


def test_a_dictionary_is_needed_where_no_recipe_has_one(g2p_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(g2p_run)]) == 2
    assert "give --data TABLE" in capsys.readouterr().err
