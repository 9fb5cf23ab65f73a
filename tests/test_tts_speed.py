"""The benchmark of synthesis measures what it says; nothing here asserts a time."""

import json
import sys
from pathlib import Path

import pytest
from benchmarks.tts_speed import BATCH, Speed, main, measure, sentences

from sonorant.inference import Synthesizer
from sonorant.text import Lexicon
from tests.untrained_speech import untrained_synthesizer


def test_model_and_vocoder_are_measured_by_themselves(
    synthesizer: Synthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    vocoder = synthesizer.vocoder
    monkeypatch.setattr(synthesizer, "vocoder", lambda *features: calls.append(1) or vocoder(*features))
    alone, batch, spoken = measure(synthesizer, rounds=2)
    assert len(calls) == 2
    assert alone.speech == spoken.speech < batch.speech
    assert all(speed.seconds > 0 for speed in (alone, batch, spoken))
    assert Speed("x", 1.0, 2.0, 4.0).factor == 0.25


@pytest.mark.parametrize("lexicon", [None, Lexicon({"seven": [["S", "V"]], "nine": [["N"]]})])
def test_any_model_has_sentences_that_it_can_speak(lexicon: Lexicon | None) -> None:
    model = untrained_synthesizer(lexicon)
    some = sentences(model)
    assert len(some) == BATCH
    assert {sentence.speaker for sentence in some} == {"ann", "ben", "cem"}
    assert all(len(sentence.text.split(" ")) == 8 and model.prepare(sentence) for sentence in some)


def test_a_model_folder_is_measured(
    synthesizer: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    synthesizer.save(tmp_path / "model")
    out = tmp_path / "speeds.json"
    monkeypatch.setattr(
        sys, "argv", ["tts_speed", str(tmp_path), "--rounds", "1", "--threads", "1", "--json", str(out)]
    )
    main()
    printed = capsys.readouterr().out
    assert "8000 Hz, 1 threads" in printed
    assert "| vocoder | " in printed
    assert [entry["name"] for entry in json.loads(out.read_text())] == [
        "model, one sentence", "model, 16 sentences at once", "vocoder",
    ]  # fmt: skip
