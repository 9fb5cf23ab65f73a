"""What speech synthesis learns from: speakers and accents, what is held out, and corpora that cannot be used."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from sonorant.cli import main
from sonorant.data.acoustic import AcousticConfig
from sonorant.data.corpus import scan_corpus
from sonorant.data.frontend import RecordingConfig
from sonorant.recipes.spelling import UnitsConfig
from sonorant.recipes.tts_corpus import TtsCorpus, TtsDataConfig, prepare_corpus
from sonorant.recipes.tts_stages import TtsStages, TtsTrainingConfig
from tests.conftest import TINY_TTS
from tests.tasks.tts import CONFIG
from tests.voices import RATE, VoiceCorpus

Capture = pytest.CaptureFixture[str]
FEATURES = AcousticConfig(sample_rate=8000, n_fft=256, hop_length=80, n_mels=20)


def prepare(table: Path, lexicon: Path | None = None, *, dev: Path | None = None, **options: float | bool) -> TtsCorpus:
    units = UnitsConfig(kind="lexicon", lexicon=str(lexicon)) if lexicon else UnitsConfig()
    data = TtsDataConfig(cache=False, **options)  # type: ignore[arg-type]
    others = None if dev is None else scan_corpus(dev)
    return prepare_corpus(data, units, FEATURES, RecordingConfig(), 2, scan_corpus(table), others)


def edit(corpus: VoiceCorpus, folder: Path, change: Callable[[int, list[str]], list[str] | None]) -> VoiceCorpus:
    """A copy in which each row, counted from 1, is changed, or left out."""
    shutil.copytree(corpus.table.parent, folder)
    rows = [row.split("\t") for row in corpus.table.read_text().splitlines()]
    changed = [change(number, row) for number, row in enumerate(rows, start=1)]
    (folder / "table.tsv").write_text("".join("\t".join(row) + "\n" for row in changed if row is not None))
    return VoiceCorpus(folder / "table.tsv", folder / "words.tsv")


def test_speakers_accents_and_tokens(voices: VoiceCorpus) -> None:
    corpus = prepare(voices.table, voices.lexicon)
    assert (len(corpus.train), len(corpus.dev)) == (33, 2)
    assert (corpus.speakers, corpus.accents) == (["ann", "ben"], ["north", "south"])
    assert corpus.speaker_accents == {"ann": "north", "ben": "south"}
    assert corpus.voice(corpus.train[1]) == (1, 1)
    assert corpus.speller.symbols.symbols == ("<blk>", "SIL", "A", "I", "M", "S", "U")


def test_letters_do_without_a_lexicon_and_a_table_without_speakers(voices: VoiceCorpus, tmp_path: Path) -> None:
    other = edit(voices, tmp_path / "corpus", lambda number, row: row[:2])
    corpus = prepare(other.table)
    assert (corpus.speakers, corpus.accents, corpus.speaker_accents) == ([""], [""], {"": ""})
    assert corpus.speller.symbols.symbols == ("<blk>", "SIL", *"aimsu")


def test_a_speaker_s_own_accent_is_the_most_frequent(voices: VoiceCorpus, tmp_path: Path) -> None:
    other = edit(voices, tmp_path / "corpus", lambda number, row: [*row[:3], "west" if number == 1 else row[3]])
    corpus = prepare(other.table, voices.lexicon)
    assert corpus.accents == ["north", "south", "west"]
    assert corpus.speaker_accents == {"ann": "north", "ben": "south"}


def test_a_lexicon_loses_what_was_never_heard(voices: VoiceCorpus, tmp_path: Path) -> None:
    lexicon = tmp_path / "words.tsv"
    lexicon.write_text(voices.lexicon.read_text() + "zim\tZ I M\nzim\tS I M\nzoo\tZ U\nmisu\tM I S U\n")
    speller = prepare(voices.table, lexicon).speller
    assert "Z" not in speller.symbols
    assert speller.lexicon is not None
    assert speller.lexicon.entries["misu"] == [["M", "I", "S", "U"]]
    assert speller.lexicon.entries["zim"] == [["S", "I", "M"]]
    assert "zoo" not in speller.lexicon.entries


def test_who_and_what_was_only_held_out_is_trained_on(voices: VoiceCorpus, tmp_path: Path) -> None:
    held_out = prepare(voices.table, voices.lexicon).dev
    numbers = [int(Path(utterance.id).stem) + 1 for utterance in held_out]
    assert len(numbers) == 2

    def change(number: int, row: list[str]) -> list[str]:
        return [*row[:3], "rare"] if number == numbers[0] else row

    corpus = prepare(edit(voices, tmp_path / "accent", change).table, voices.lexicon)
    assert [utterance.id for utterance in corpus.dev] == [held_out[1].id]
    assert "rare" in corpus.accents
    other = edit(voices, tmp_path / "text", lambda n, row: [row[0], "bu", *row[2:]] if n == numbers[1] else row)
    corpus = prepare(other.table)
    assert [utterance.id for utterance in corpus.dev] == [held_out[0].id]
    assert "b" in corpus.speller.symbols


def test_a_speaker_with_one_recording_is_learned_and_named(
    voices: VoiceCorpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = edit(voices, tmp_path / "corpus", lambda number, row: [*row[:2], "zoe" if number == 3 else row[2], row[3]])
    with caplog.at_level(logging.WARNING):
        corpus = prepare(other.table, voices.lexicon)
    assert corpus.speakers == ["ann", "ben", "zoe"]
    assert "speakers with a single training recording, of whose voice little will be learned: 'zoe'" in caplog.text
    stages = TtsStages(TtsTrainingConfig(features=FEATURES, model=CONFIG), corpus, tmp_path / "run", None)
    assert stages.statistics.of("zoe").num_frames > 0


def test_unknown_voices_of_a_dev_set_are_refused_or_left_out(voices: VoiceCorpus, tmp_path: Path) -> None:
    def change(number: int, row: list[str]) -> list[str] | None:
        names = {1: ["zoe", "north"], 2: ["ben", "west"], 3: row[2:]}
        return [*row[:2], *names[number]] if number in names else None

    dev = edit(voices, tmp_path / "dev", change)
    with pytest.raises(ValueError, match="cannot be used") as error:
        prepare(voices.table, voices.lexicon, dev=dev.table)
    assert "0.wav: the speaker 'zoe' is not in the training set, which has 'ann', 'ben'" in str(error.value)
    assert "1.wav: the accent 'west' is not in the training set, which has 'north', 'south'" in str(error.value)
    corpus = prepare(voices.table, voices.lexicon, dev=dev.table, skip_bad=True)
    assert (len(corpus.train), [Path(utterance.id).name for utterance in corpus.dev]) == (35, ["2.wav"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n, row: [row[0], "ma " * 60, *row[2:]] if n == 3 else row, r"frames, and its 181 labels need at least"),
        (lambda n, row: [row[0], "", *row[2:]] if n == 3 else row, r"table\.tsv:3"),
    ],
)
def test_recordings_that_do_not_fit_their_texts_are_refused(
    voices: VoiceCorpus, tmp_path: Path, change: Callable[[int, list[str]], list[str]], message: str
) -> None:
    other = edit(voices, tmp_path / "corpus", change)
    with pytest.raises(ValueError, match=message):
        prepare(other.table, voices.lexicon)
    assert len(prepare(other.table, voices.lexicon, skip_bad=True, dev_share=0).train) == 34


def test_missing_words_are_listed(voices: VoiceCorpus, tmp_path: Path) -> None:
    other = edit(voices, tmp_path / "corpus", lambda n, row: [row[0], "ma blue", *row[2:]] if n in (2, 5) else row)
    with pytest.raises(ValueError, match=r"lacks 1 words(.|\n)*  blue \(2, first at .*table\.tsv:2\)"):
        prepare(other.table, voices.lexicon)


def test_silence_is_refused(voices: VoiceCorpus, tmp_path: Path) -> None:
    other = edit(voices, tmp_path / "corpus", lambda number, row: row)
    soundfile.write(tmp_path / "corpus" / "3.wav", np.zeros(4000), RATE)
    with pytest.raises(ValueError, match=r"3\.wav: holds nothing but silence"):
        prepare(other.table, voices.lexicon)


def test_hisses_are_named_and_nothing_but_hisses_is_refused(
    voices: VoiceCorpus, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: Capture
) -> None:
    other = edit(voices, tmp_path / "corpus", lambda number, row: row)
    random = np.random.default_rng(0)

    def hiss(index: int) -> None:
        soundfile.write(tmp_path / "corpus" / f"{index}.wav", 0.1 * random.normal(size=6000), RATE)

    hiss(0)
    corpus = prepare(other.table, voices.lexicon, dev_share=0)
    with caplog.at_level(logging.WARNING):
        TtsStages(TtsTrainingConfig(features=FEATURES, model=CONFIG), corpus, tmp_path / "run", None)
    assert "recordings without a voiced frame (1): 0.wav" in caplog.text
    for index in range(35):
        hiss(index)
    given = [f"--data.train={other.table}", f"--units.lexicon={other.lexicon}"]
    assert main(["train", "tts", "--output", str(tmp_path / "run"), *given, *TINY_TTS]) == 2
    assert "none of the 33 recordings has a voiced frame" in capsys.readouterr().err
