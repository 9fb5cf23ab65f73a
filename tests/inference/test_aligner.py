"""An aligner in use: where words are, whatever the recording, and what it refuses."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

import sonorant
from sonorant.data.audio import AudioError
from sonorant.data.corpus import read_corpus
from sonorant.export.model_folder import ModelFolderError
from sonorant.inference import Aligner, Alignment
from sonorant.inference.spelling import pronounce_missing
from sonorant.text import Lexicon
from tests.tones import WORDS, ToneCorpus, say

RATE = 8000


@pytest.fixture(scope="module")
def aligner(aligner_run: Path) -> Aligner:
    loaded = sonorant.load(aligner_run)
    assert isinstance(loaded, Aligner)
    return loaded


def errors(alignment: Alignment, truth: list[tuple[str, float, float]]) -> list[float]:
    """In milliseconds."""
    assert [word.word for word in alignment.words] == [word for word, _, _ in truth]
    pairs = zip(alignment.words, truth, strict=True)
    return [
        1000 * abs(a - b) for word, (_, *times) in pairs for a, b in zip((word.start, word.end), times, strict=True)
    ]


def recording(*words: str, seed: int = 3, **options: float) -> tuple[np.ndarray, list[tuple[str, float, float]]]:
    return say(words, np.random.default_rng(seed), **options)


def test_words_are_found_where_they_are(aligner: Aligner, tones: dict[str, ToneCorpus]) -> None:
    corpus = tones["test"]
    utterances = read_corpus(corpus.table)
    found = [
        error
        for utterance, alignment in zip(utterances, aligner.align_all(utterances), strict=True)
        for error in errors(alignment, corpus.truth[utterance.id])
    ]
    assert np.mean(found) < 10
    assert np.quantile(found, 0.95) < 20


def test_what_an_alignment_is(aligner: Aligner) -> None:
    samples, truth = recording("sam", "da")
    alignment = aligner.align(samples, "sam da", RATE)
    assert max(errors(alignment, truth)) < 25
    assert [token.token for token in alignment.tokens] == ["SIL", "S", "A", "M", "SIL", "D", "A", "SIL"]
    assert alignment.tokens[0].start == 0
    assert alignment.tokens[-1].end == alignment.duration == len(samples) / RATE
    for before, after in zip(alignment.tokens, alignment.tokens[1:], strict=False):
        assert before.end == after.start > before.start
    assert alignment.words[0].tokens == alignment.tokens[1:4]
    assert -0.5 < alignment.score <= 0
    assert alignment.worst in alignment.words
    grid = alignment.to_textgrid()
    assert [tier.name for tier in grid.tiers] == ["words", "tokens"]
    assert [interval.text for interval in grid.tiers[1].intervals] == ["", "S", "A", "M", "", "D", "A", ""]
    data = alignment.to_json()
    assert data["words"][1]["word"] == "da"
    assert data["words"][1]["tokens"][0]["token"] == "D"
    assert data["words"][1]["start"] == pytest.approx(alignment.words[1].start, abs=1e-3)


def test_the_batch_changes_nothing(aligner: Aligner, tones: dict[str, ToneCorpus]) -> None:
    utterances = read_corpus(tones["test"].table)[:7]
    together = aligner.align_all(utterances, batch_size=5)
    for utterance, alignment in zip(utterances, together, strict=True):
        alone = aligner.align(utterance, utterance.text)
        assert alone.words == [
            word._replace(tokens=[token._replace(score=pytest.approx(token.score, abs=1e-4)) for token in word.tokens])
            for word in alignment.words
        ]
        assert alone.score == pytest.approx(alignment.score, abs=1e-5)
    assert aligner.align_all([]) == []
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        aligner.align_all(utterances, batch_size=0)


@pytest.mark.parametrize("edge", [0.0, 0.03, 5.0])
def test_edges_of_any_length(aligner: Aligner, edge: float) -> None:
    samples, truth = recording("su", "mi", "dia", edge=edge)
    assert max(errors(aligner.align(samples, "su mi dia", RATE), truth)) < 25


def test_loud_and_quiet_recordings(aligner: Aligner) -> None:
    samples, truth = recording("su", "mi", "dia")
    for factor in (0.03, 3.0):
        assert max(errors(aligner.align(factor * samples, "su mi dia", RATE), truth)) < 25


def test_one_word_and_a_minute(aligner: Aligner) -> None:
    samples, truth = recording("mus")
    assert max(errors(aligner.align(samples, "mus", RATE), truth)) < 25
    random = np.random.default_rng(5)
    text = random.choice(WORDS, 150).tolist()
    samples, truth = say(text, random)
    assert 55 < len(samples) / RATE < 75
    found = errors(aligner.align(samples, " ".join(text), RATE), truth)
    assert np.mean(found) < 12
    assert np.quantile(found, 0.98) < 30


def test_the_pronunciation_that_fits_is_taken(aligner: Aligner) -> None:
    several = aligner.with_words(
        Lexicon({"x": [["D", "A"], ["S", "U"]], "y": [["D", "U"], ["S", "A", "M"], ["M", "I"]]})
    )
    samples, truth = recording("su", "mi", "da", "su")
    alignment = several.align(samples, "x y x x", RATE)
    found = [[token.token for token in word.tokens] for word in alignment.words]
    assert found == [["S", "U"], ["M", "I"], ["D", "A"], ["S", "U"]]
    assert max(errors(alignment, [(name, *times) for name, (_, *times) in zip("xyxx", truth, strict=True)])) < 25


def test_pronunciations_are_tried_within_the_memory_there_is(aligner: Aligner, monkeypatch: pytest.MonkeyPatch) -> None:
    several = aligner.with_words(Lexicon({"x": [["D", "A"], ["S", "U"], ["M", "I"]]}))
    samples, _ = recording("su", "mi", "da")
    sizes = []
    hook = several.model.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    found = several.align(samples, "x x x", RATE)
    assert max(sizes) > 1
    sizes.clear()
    monkeypatch.setattr("sonorant.inference.alignment_search._MOST_CELLS", 1)
    one_by_one = several.align(samples, "x x x", RATE)
    hook.remove()
    assert set(sizes) == {1}
    assert [token.token for token in one_by_one.tokens] == [token.token for token in found.tokens]


def test_punctuation_has_no_time(aligner: Aligner) -> None:
    samples, truth = recording("su", "mi")
    alignment = aligner.align(samples, "Su, - mi!", RATE)
    assert max(errors(alignment, [("Su,", *truth[0][1:]), ("mi!", *truth[1][1:])])) < 25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("su red mi blue", "audio: the lexicon lacks 'red'; the lexicon lacks 'blue'"),
        ("", "nothing in it that is spoken"),
        (
            " ".join(["sam"] * 40),
            r"audio: too short for its text: 0\.\d\d s give \d\d frames, and its text has 161 tokens",
        ),
    ],
)
def test_texts_that_cannot_be(aligner: Aligner, text: str, message: str) -> None:
    samples, _ = recording("su", "mi")
    with pytest.raises(ValueError, match=message):
        aligner.align(samples, text, RATE)


def test_recordings_that_cannot_be(aligner: Aligner, tmp_path: Path) -> None:
    with pytest.raises(AudioError, match="audio: holds nothing but silence"):
        aligner.align(np.zeros(RATE), "su", RATE)
    with pytest.raises(AudioError, match="sample_rate is 16000; the model needs 8000 Hz"):
        aligner.align(recording("su")[0], "su", 16000)
    soundfile.write(tmp_path / "a.wav", np.zeros(RATE), RATE)
    with pytest.raises(AudioError, match=r"a\.wav: holds nothing but silence"):
        aligner.align(tmp_path / "a.wav", "su")
    with pytest.raises(FileNotFoundError):
        aligner.align(tmp_path / "b.wav", "su")


def test_a_folder_keeps_everything(aligner: Aligner, tmp_path: Path) -> None:
    aligner.save(tmp_path / "model")
    loaded = sonorant.load(tmp_path / "model")
    assert isinstance(loaded, Aligner)
    samples, _ = recording("sam", "da")
    assert loaded.align(samples, "sam da", RATE) == aligner.align(samples, "sam da", RATE)
    assert loaded.usual == aligner.usual is not None
    assert (loaded.prior, loaded.recipe) == (aligner.prior, "aligner")
    (tmp_path / "model" / "tokens.txt").unlink()
    with pytest.raises(ModelFolderError, match="damaged or incomplete"):
        sonorant.load(tmp_path / "model")


def test_missing_words_are_pronounced_by_a_model(g2p_run: Path) -> None:
    phones = [[phone] for phone in ("AA", "B", "D", "EH", "IY", "K", "S")]
    lexicon = Lexicon({"dak": phones})
    larger = pronounce_missing(lexicon, ["dak", "Kab,", "--", "я"], g2p_run)
    assert larger.words == ["Kab", "dak"]
    assert larger.entries["Kab"] == [["K", "AA", "B"]]
    assert pronounce_missing(lexicon, ["kab"], None) is lexicon
    with pytest.raises(ValueError, match=r"writes phones that the lexicon does not have: AA B K$"):
        pronounce_missing(Lexicon({"a": [["a"]]}), ["kab"], g2p_run)


def test_another_kind_of_model_pronounces_nothing(aligner_run: Path) -> None:
    with pytest.raises(ValueError, match="a model of kind 'aligner', which does not pronounce words"):
        pronounce_missing(Lexicon({"a": [["A"]]}), ["b"], aligner_run)


def test_runs_without_the_training_extras(aligner_run: Path, tones: dict[str, ToneCorpus]) -> None:
    code = (
        "import sys\n"
        "for name in ('lightning', 'jsonargparse', 'rich', 'tensorboard', 'matplotlib'):\n"
        "    sys.modules[name] = None\n"
        "import sonorant\n"
        "print(len(sonorant.load(sys.argv[1]).align(sys.argv[2], sys.argv[3]).words))\n"
    )
    utterance = read_corpus(tones["test"].table)[0]
    command = [sys.executable, "-c", code, str(aligner_run), str(utterance.path), utterance.text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(utterance.words)}\n"
