"""The recipes that bring their corpus along: what they train on, and what they never do."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import soundfile
import torch

import sonorant
from sonorant.cli import main
from sonorant.data.asterisk import load_asterisk
from sonorant.data.cmudict import DICTIONARY
from sonorant.data.fsdd import DIGITS, FsddCorpus
from sonorant.data.pronunciations import read_pronunciations
from sonorant.inference import Synthesizer
from sonorant.recipes import tts_digits, tts_prompts
from sonorant.text import Speller
from tests.conftest import TINY_TTS
from tests.voices import VoiceCorpus

TINY = [option for option in TINY_TTS if not re.match("--(units|features|data)", option)]
SHORT = [*TINY, "--trainer.max_epochs=1", "--predictors.max_epochs=1"]


def test_digits(fsdd: FsddCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = FsddCorpus(fsdd.train[::45], fsdd.test)
    monkeypatch.setattr(tts_digits, "load_fsdd", lambda: some)
    run = tmp_path / "run"
    assert main(["train", "tts-digits", "--output", str(run), "--data.cache=false", *SHORT]) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["utterances"] == {"train": 57, "dev": 3}
    synthesizer = sonorant.load(run)
    assert isinstance(synthesizer, Synthesizer)
    assert synthesizer.speakers == ["george", "jackson", "lucas", "nicolas", "theo", "yweweler"]
    assert synthesizer.accents == ["american", "french", "german", "greek"]
    assert synthesizer.speaker_accents["yweweler"] == "german"
    assert synthesizer.recipe == "tts-digits"
    assert synthesizer.corpus == tts_digits.FACTS
    assert synthesizer.speller.missing(DIGITS) == []
    spoken = synthesizer.synthesize("seven three", speaker="theo", accent="greek")
    assert spoken.sample_rate == 8000
    tokens = ["SIL", "S", "EH", "V", "AH", "N", "SIL", "TH", "R", "IY", "SIL"]
    assert [token.token for token in spoken.tokens] == tokens


def test_test_recordings_of_digits_are_no_training_recordings(fsdd: FsddCorpus) -> None:
    tested = {utterance.id for utterance in tts_digits.test_set()}
    assert len(tested) == 300
    assert not tested & {utterance.id for utterance in fsdd.train}


def prompts(folder: Path, voices: VoiceCorpus, texts: Sequence[str]) -> Path:
    """The prompts' package with these texts, and recordings that do not fit them."""
    sounds = folder / "sounds" / "en_US_f_Allison"
    (sounds / "digits").mkdir(parents=True)
    lines = [f"digits/{number}: {text}\n" for number, text in enumerate(texts, start=1)]
    (folder / "core-sounds-en.txt").write_text("".join(lines))
    samples, rate = soundfile.read(voices.table.parent / "0.wav")
    for number in range(1, len(texts) + 1):
        own = torch.randn(8 * len(samples), generator=torch.Generator().manual_seed(number)).numpy() * 1e-3
        own[: len(samples)] += samples
        soundfile.write(sounds / "digits" / f"{number}.wav", own, rate)
    return folder


def test_prompts(voices: VoiceCorpus, tmp_path: Path) -> None:
    texts = ["please unmute", "press one", "Waldo's way", "zzyzx", "two", "for the operator press two"]
    folder, run = prompts(tmp_path / "prompts", voices, texts), tmp_path / "run"
    features = [option for option in TINY_TTS if option.startswith("--features")]
    options = [f"--folder={folder}", "--features.win_length=null", "--data.dev_share=0", "--data.cache=false"]
    assert main(["train", "tts-prompts", "--output", str(run), *options, *features, *SHORT]) == 0
    held_out = [utterance.text for utterance in load_asterisk(folder=folder).test]
    assert held_out == ["for the operator press two"]
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["utterances"] == {"train": 4, "dev": 0}  # without a word that the lexicon lacks
    synthesizer = sonorant.load(run)
    assert isinstance(synthesizer, Synthesizer)
    assert synthesizer.speakers == ["allison"]
    assert "OY" not in synthesizer.speller.symbols  # never heard
    assert synthesizer.speller.missing(["unmute", "waldo's", "boy"]) == ["boy"]


def test_words_that_cmudict_lacks_have_its_phones() -> None:
    dictionary = read_pronunciations(DICTIONARY)
    speller = Speller.of_lexicon(dictionary)
    for word, (phones,) in tts_prompts.WORDS.entries.items():
        assert word not in dictionary.entries
        assert all(phone in speller.symbols for phone in phones)
