"""Strings of digits: the truth about their words, joins that do not click, and that only seed and index decide."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from torch.utils.data import DataLoader

from sonorant.cli import main
from sonorant.data.digit_strings import DigitStrings, read_boundaries, speech_range, write_digit_strings
from sonorant.data.fsdd import ACCENTS, SAMPLE_RATE, FsddCorpus
from sonorant.data.manifest import Utterance

WORDS = {"low": 400, "middle": 1000, "high": 2500}  # tones
MARGIN = 800  # samples of noise around the tones
LEVEL = 1e-3  # of that noise


def tone(frequency: int, length: int) -> np.ndarray:
    return 0.5 * np.cos(2 * np.pi * frequency * np.arange(length) / SAMPLE_RATE)


def write(path: Path, pieces: list[np.ndarray]) -> Path:
    samples = np.concatenate(pieces)
    noise = np.random.default_rng(0).normal(0, LEVEL, len(samples))
    soundfile.write(path, samples + noise, SAMPLE_RATE)
    return path


@pytest.fixture
def tones(tmp_path: Path) -> list[Utterance]:
    """Two speakers who say three words, in tones that start and end at once."""
    utterances = []
    for speaker in ("a", "b"):
        for number, (word, frequency) in enumerate(WORDS.items()):
            around = np.zeros(MARGIN)
            name = f"{number}_{speaker}"
            path = write(tmp_path / f"{name}.wav", [around, tone(frequency, 1600 + 80 * number), around])
            utterances.append(Utterance(name, path, word, speaker, "flat"))
    return utterances


def plain(utterances: list[Utterance], name: str, path: Path) -> list[Utterance]:
    return [*utterances, Utterance(name, path, "low", "a", "flat")]


def test_words_are_where_they_are_said_to_be(tones: list[Utterance]) -> None:
    for string in DigitStrings(tones, 20):
        inside = np.zeros(len(string.samples), dtype=bool)
        for word in string.words:
            start, stop = round(word.start * SAMPLE_RATE), round(word.end * SAMPLE_RATE)
            spectrum = np.abs(np.fft.rfft(string.samples[start:stop]))
            assert spectrum.argmax() * SAMPLE_RATE / (stop - start) == pytest.approx(WORDS[word.word], abs=5)
            first, last = string.samples[start : start + 80], string.samples[stop - 80 : stop]
            assert min(np.abs(first).max(), np.abs(last).max()) > 0.4
            inside[start:stop] = True
        assert np.abs(string.samples[~inside]).max() < 10 * LEVEL
        assert string.text.split() == [word.word for word in string.words]


def test_numbers_and_gaps_stay_in_their_ranges(tones: list[Utterance]) -> None:
    counts, gaps, edges = set(), [], []
    for string in DigitStrings(tones, 200, digits=(2, 4), gap=(0.1, 0.3), edge=(0.02, 0.06)):
        counts.add(len(string.words))
        gaps += [after.start - before.end for before, after in zip(string.words, string.words[1:], strict=False)]
        edges += [string.words[0].start, len(string.samples) / SAMPLE_RATE - string.words[-1].end]
    assert counts == {2, 3, 4}
    for values, low, high in ((gaps, 0.1, 0.3), (edges, 0.02, 0.06)):
        assert low - 1e-4 <= min(values) < low + 0.01
        assert high - 0.01 < max(values) <= high + 1e-4


def test_gaps_hold_the_background_of_the_recordings(tones: list[Utterance]) -> None:
    for string in DigitStrings(tones, 6, gap=(0.3, 0.4)):
        start, stop = round(string.words[0].end * SAMPLE_RATE), round(string.words[1].start * SAMPLE_RATE)
        gap = string.samples[start + 40 : stop - 40]
        assert 0.5 * LEVEL < gap.std() < 1.2 * LEVEL
        assert np.unique(gap).size > 20


def test_a_loud_background_is_turned_down(tmp_path: Path) -> None:
    path = write(tmp_path / "loud.wav", [np.zeros(0), tone(400, 1600) + np.sign(tone(90, 1600))])
    (string,) = DigitStrings([Utterance("loud", path, "low", "a")], 1)
    words = np.concatenate([string.samples[round(w.start * 8000) : round(w.end * 8000)] for w in string.words])
    edge = string.samples[: round(string.words[0].start * 8000) - 40]
    assert 20 * np.log10(edge.std() / words.std()) == pytest.approx(-35, abs=3)


def test_a_background_of_digital_silence_is_no_digital_silence(tmp_path: Path) -> None:
    path = tmp_path / "still.wav"
    soundfile.write(path, np.concatenate([np.zeros(400), tone(400, 1600), np.zeros(400)]), SAMPLE_RATE)
    (string,) = DigitStrings([Utterance("still", path, "low", "a")], 1)
    edge = string.samples[: round(string.words[0].start * 8000) - 40]
    assert 0 < np.abs(edge).max() < 1e-3


def test_joins_do_not_click(tmp_path: Path) -> None:
    """A recording that is cut in mid-wave: samples may not jump more than within the wave."""
    path = write(tmp_path / "cut.wav", [tone(100, 1600)])
    (string,) = DigitStrings([Utterance("cut", path, "low", "a")], 1)
    steepest = 0.5 * 2 * np.pi * 100 / SAMPLE_RATE
    assert np.abs(np.diff(string.samples)).max() < 1.2 * steepest + 6 * LEVEL


def test_order_and_workers_change_nothing(tones: list[Utterance]) -> None:
    forwards = list(DigitStrings(tones, 12, seed=3))
    strings = DigitStrings(tones, 30, seed=3)
    backwards = [strings[index] for index in reversed(range(12))][::-1]
    workers = list(DataLoader(DigitStrings(tones, 12, seed=3), batch_size=None, num_workers=2, collate_fn=lambda s: s))
    for others in (backwards, workers):
        for one, other in zip(forwards, others, strict=True):
            np.testing.assert_array_equal(one.samples, other.samples)
            assert one._replace(samples=None) == other._replace(samples=None)  # type: ignore[arg-type]


def test_seed_and_utterances_change_everything(tones: list[Utterance]) -> None:
    def texts(utterances: list[Utterance], seed: int) -> list[str]:
        return [string.text for string in DigitStrings(utterances, 12, seed)]

    renamed = [Utterance(f"x{u.id}", u.path, u.text, u.speaker, u.accent) for u in tones]
    assert texts(tones, 0) == texts(tones, 0)
    assert texts(tones, 0) != texts(tones, 1)
    assert texts(tones, 0) != texts(renamed, 0)


def test_a_string_has_one_speaker_and_they_take_turns(tones: list[Utterance]) -> None:
    speakers = [string.speaker for string in DigitStrings(tones, 4)]
    assert speakers == ["a", "b", "a", "b"]


@pytest.mark.parametrize(("pause", "left_out"), [(960, False), (1040, True)])
def test_a_pause_of_over_120_ms_is_not_used(tmp_path: Path, tones: list[Utterance], pause: int, left_out: bool) -> None:
    path = write(tmp_path / "pause.wav", [tone(400, 800), np.zeros(pause), tone(400, 800)])
    strings = DigitStrings(plain(tones, "pause", path), 1)
    assert strings.left_out == ({"pause": 0.13} if left_out else {})


def test_speech_starts_and_stops_30_db_below_the_loudest_frame() -> None:
    frames = np.repeat(10 ** (np.array([-40, -29, -10, 0, -31, -31, -29, -40]) / 20), 80)
    assert speech_range(frames.astype(np.float32)) == (80, 560, 0.02)
    with pytest.raises(ValueError, match=r"a\.wav: no sound in 800 samples"):
        speech_range(np.zeros(800, dtype=np.float32), "a.wav")
    with pytest.raises(ValueError, match="no sound in 79 samples"):
        speech_range(np.ones(79, dtype=np.float32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"digits": (0, 3)}, "digits must be a range from at least 1; got 0 to 3"),
        ({"gap": (0.4, 0.1)}, r"gap must be a range from at least 0\.01; got 0\.4 to 0\.1"),
        ({"edge": (0.0, 0.1)}, "edge must be"),
        ({"number": 0}, "number must be positive"),
        ({"seed": -1}, "seed not negative"),
    ],
)
def test_impossible_settings_are_named(tones: list[Utterance], options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DigitStrings(tones, **{"number": 1, **options})  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="string 3 of 3"):
        DigitStrings(tones, 3)[3]
    with pytest.raises(ValueError, match="no recording"):
        DigitStrings([], 3)


def test_what_is_written_is_what_is_made(tones: list[Utterance], tmp_path: Path) -> None:
    corpus = FsddCorpus(train=tones, test=tones[:3])
    written = write_digit_strings(tmp_path / "out", 5, seed=2, corpus=corpus)
    boundaries = read_boundaries(written.boundaries)
    lines = written.table.read_text().splitlines()
    assert {path.name for path in written.table.parent.iterdir()} == {"table.tsv", "boundaries.jsonl", "wav"}
    seconds = 0.0
    for line, string in zip(lines, DigitStrings(tones, 5, seed=2), strict=True):
        path, text, speaker, accent = line.split("\t")
        samples, sample_rate = soundfile.read(tmp_path / "out" / path, dtype="float32")
        np.testing.assert_array_equal(samples, string.samples)
        assert (sample_rate, text, speaker, accent) == (SAMPLE_RATE, string.text, string.speaker, "flat")
        assert boundaries[path] == string.words
        seconds += len(samples) / SAMPLE_RATE
    assert written.seconds == pytest.approx(seconds)
    with pytest.raises(FileExistsError, match=r"table\.tsv: there already"):
        write_digit_strings(tmp_path / "out", 5, corpus=corpus)


def test_splits_and_speakers_are_chosen(tones: list[Utterance], tmp_path: Path) -> None:
    corpus = FsddCorpus(train=tones, test=tones[:3])
    write_digit_strings(tmp_path / "test", 4, split="test", corpus=corpus)
    write_digit_strings(tmp_path / "b", 4, speakers=["b"], corpus=corpus)
    for folder, speaker in (("test", "a"), ("b", "b")):
        rows = [line.split("\t") for line in (tmp_path / folder / "table.tsv").read_text().splitlines()]
        assert {row[2] for row in rows} == {speaker}
    with pytest.raises(ValueError, match="no split 'dev'; known are train, test"):
        write_digit_strings(tmp_path / "c", 4, split="dev", corpus=corpus)
    with pytest.raises(ValueError, match="no speaker 'c'; known are a, b"):
        write_digit_strings(tmp_path / "c", 4, speakers=["c"], corpus=corpus)


def test_33_real_recordings_are_left_out(fsdd: FsddCorpus) -> None:
    train, test = DigitStrings(fsdd.train, 1), DigitStrings(fsdd.test, 1)
    assert (len(train.left_out), len(test.left_out)) == (29, 4)
    assert not train.left_out.keys() & {utterance.id for utterance in fsdd.test}


def test_real_joins_do_not_click(fsdd: FsddCorpus) -> None:
    """At the edge of a word, samples jump no more than in its recording, but for the slope of the fade."""
    for string in DigitStrings(fsdd.test, 60):
        jumps = np.abs(np.diff(string.samples))
        for word in string.words:
            start, stop = round(word.start * SAMPLE_RATE), round(word.end * SAMPLE_RATE)
            inside = string.samples[start:stop]
            fade = np.pi / 2 / 40 * np.abs(inside).max()
            for edge in (start, stop):
                around = jumps[edge - 2 : edge + 1].max()
                assert around < np.abs(np.diff(inside)).max() + fade


def test_the_command_writes_a_corpus(fsdd: FsddCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "strings")
    arguments = ["data", "digit-strings", folder, "--number", "4", "--split", "test", "--speakers", "theo", "lucas"]
    assert main(arguments) == 0
    assert "4 strings, 0." in capsys.readouterr().out
    rows = [line.split("\t") for line in (tmp_path / "strings" / "table.tsv").read_text().splitlines()]
    assert [row[2:] for row in rows] == [[name, ACCENTS[name]] for name in ("lucas", "theo")] * 2
    entry = json.loads((tmp_path / "strings" / "boundaries.jsonl").read_text().splitlines()[0])
    assert entry["id"] == rows[0][0]
    assert " ".join(word["word"] for word in entry["words"]) == rows[0][1]
    assert main(arguments) == 2
    assert "there already" in capsys.readouterr().err
