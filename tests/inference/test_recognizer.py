"""A recognizer in use: files, arrays, folders, and what it refuses."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

import sonorant
from sonorant.data.audio import AudioError
from sonorant.data.frontend import RecordingConfig
from sonorant.data.manifest import Utterance
from sonorant.decoding.ctc import WordSpan
from sonorant.export.model_folder import ModelFolderError
from sonorant.inference import Recognizer
from sonorant.inference.evaluation import evaluate
from sonorant.lengths import Padded

Write = Callable[..., Path]


def test_a_file_and_its_samples_give_the_same_text(recognizer: Recognizer, write_wav: Write) -> None:
    path = write_wav("a.wav", seconds=2)
    samples, rate = soundfile.read(path)
    for decoder in ("wfst", "greedy"):
        text = recognizer.transcribe(path, decoder=decoder)
        assert recognizer.transcribe(str(path), decoder=decoder) == text
        assert recognizer.transcribe(samples, rate, decoder=decoder) == text


def test_a_stretch_is_transcribed_like_its_own_samples(recognizer: Recognizer, write_wav: Write) -> None:
    path = write_wav("a.wav", seconds=2)
    samples, rate = soundfile.read(path)
    utterance = Utterance("a", path, "", start=0.5, duration=1.0)
    assert torch.equal(recognizer.extract(utterance), recognizer.extract(samples[4000:12000], rate))
    assert recognizer.transcribe(utterance) == recognizer.transcribe(samples[4000:12000], rate)
    assert recognizer.num_frames(8000) == recognizer.log_probs([recognizer.extract(utterance)]).lengths.item()


def test_the_folder_gives_back_the_same_recognizer(recognizer: Recognizer, write_wav: Write, tmp_path: Path) -> None:
    recognizer.save(tmp_path / "model")
    again = sonorant.load(tmp_path)
    features = [recognizer.extract(write_wav("a.wav", seconds=2))]
    assert torch.equal(again.log_probs(features).values, recognizer.log_probs(features).values)
    assert (again.symbols, again.lexicon.entries) == (recognizer.symbols, recognizer.lexicon.entries)
    assert (again.silence, again.recipe, again.arpa) == ("SIL", "yesno", recognizer.arpa)


def test_loading_and_transcribing_needs_no_training_extra(
    recognizer: Recognizer, write_wav: Write, tmp_path: Path
) -> None:
    recognizer.save(tmp_path / "model")
    program = (
        "import sys\n"
        "for name in ('lightning', 'jsonargparse', 'rich', 'tensorboard', 'matplotlib'): sys.modules[name] = None\n"
        "import sonorant\n"
        f"print('text:', sonorant.load({str(tmp_path)!r}).transcribe({str(write_wav('a.wav'))!r}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("text:")


def test_greedy_words_are_spelled_and_cut_at_silence(recognizer: Recognizer) -> None:
    classes = torch.tensor([[0, 1, 2, 2, 0, 1, 3, 0, 3, 1]])
    log_probs = Padded(torch.eye(4)[classes].log(), torch.tensor([10]))
    assert recognizer.decode(log_probs, "greedy") == [["NO", "YES", "YES"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": 2}, r"x\.wav: has 2 channels"),
        ({"sample_rate": 16000}, r"x\.wav: the sample rate is 16000 Hz; 8000 Hz is needed"),
        ({"seconds": 0}, r"x\.wav: holds 0 samples"),
        ({"seconds": 0.26}, r"x\.wav: too short: 26 frames, and the model needs at least 27"),
    ],
)
def test_recordings_that_cannot_be_used_are_named(
    recognizer: Recognizer, write_wav: Write, options: dict[str, float], message: str
) -> None:
    with pytest.raises(AudioError, match=message):
        recognizer.transcribe(write_wav("x.wav", **options))


def test_27_frames_are_enough(recognizer: Recognizer, write_wav: Write) -> None:
    recognizer.transcribe(write_wav("x.wav", seconds=0.27))


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (np.zeros(8000), None, "sample_rate is None; the model needs 8000 Hz"),
        (np.zeros(8000), 16000, "sample_rate is 16000"),
        (np.full(8000, np.nan), 8000, "sample 0 is nan"),
        (np.zeros((2, 8000)), 8000, r"shape \(2, 8000\)"),
    ],
)
def test_arrays_that_cannot_be_used_are_named(
    recognizer: Recognizer, samples: np.ndarray, rate: int | None, message: str
) -> None:
    with pytest.raises(AudioError, match=message):
        recognizer.transcribe(samples, rate)


def test_an_unknown_decoder_is_named(recognizer: Recognizer, write_wav: Write) -> None:
    with pytest.raises(ValueError, match="decoder must be one of greedy, wfst; got 'beam'"):
        recognizer.transcribe(write_wav("a.wav"), decoder="beam")


def test_digital_silence_is_transcribed(recognizer: Recognizer) -> None:
    recognizer.transcribe(np.zeros(8000), 8000)


@pytest.mark.parametrize("missing", ["tokens.txt", "lexicon.txt", "lm.arpa"])
def test_an_incomplete_folder_is_refused(recognizer: Recognizer, tmp_path: Path, missing: str) -> None:
    recognizer.save(tmp_path / "model")
    (tmp_path / "model" / missing).unlink()
    with pytest.raises(ModelFolderError, match=missing):
        sonorant.load(tmp_path)


def test_weights_of_another_size_are_refused(recognizer: Recognizer, tmp_path: Path) -> None:
    recognizer.save(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace('"hidden_channels": 8', '"hidden_channels": 9'))
    with pytest.raises(ModelFolderError, match="size mismatch"):
        sonorant.load(tmp_path)


def test_another_kind_of_model_is_refused(recognizer: Recognizer, tmp_path: Path) -> None:
    recognizer.save(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace('"kind": "recognizer"', '"kind": "singer"'))
    with pytest.raises(ModelFolderError, match="'singer'"):
        sonorant.load(tmp_path)


def test_evaluation_does_not_depend_on_the_batch_size(recognizer: Recognizer, write_wav: Write) -> None:
    paths = [write_wav(f"{index}.wav", seconds=0.5 + 0.3 * index) for index in range(9)]
    utterances = [Utterance(path.stem, path, "YES NO") for path in paths]
    alone = evaluate(recognizer, utterances, batch_size=1)
    for batch_size in (4, 9):
        batched = evaluate(recognizer, utterances, batch_size=batch_size)
        assert batched.transcripts == alone.transcripts
        assert batched.losses == pytest.approx(alone.losses, rel=1e-5)
        assert batched.error_rates == alone.error_rates


def test_words_outside_the_lexicon_are_errors(
    recognizer: Recognizer, write_wav: Write, caplog: pytest.LogCaptureFixture
) -> None:
    paths = [write_wav(f"{index}.wav", seconds=1) for index in range(3)]
    texts = "YES", "MAYBE SO MAYBE", "NO"
    utterances = [Utterance(path.stem, path, text) for path, text in zip(paths, texts, strict=True)]
    result = evaluate(recognizer, utterances)
    assert "3 words of the references cannot be recognised, since the lexicon lacks them: MAYBE, SO" in caplog.text
    for rate in result.error_rates.values():
        assert rate.words == 5
        assert rate.errors >= 3
    assert [math.isnan(loss) for loss in result.losses] == [False, True, False]
    known = evaluate(recognizer, [utterances[0], utterances[2]])
    assert known.losses == pytest.approx([result.losses[0], result.losses[2]], rel=1e-5)
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        evaluate(recognizer, [], batch_size=0)


def spoken(recognizer: Recognizer, classes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the model sure of these classes, whatever it hears."""
    probs = torch.full((1, len(classes), 4), 0.01)
    probs[0, torch.arange(len(classes)), torch.tensor(classes)] = 0.97
    monkeypatch.setattr(recognizer, "log_probs", lambda features: Padded(probs.log(), torch.tensor([len(classes)])))


@pytest.mark.parametrize("decoder", ["wfst", "greedy"])
def test_times_are_seconds_of_the_recording(
    recognizer: Recognizer, monkeypatch: pytest.MonkeyPatch, decoder: str
) -> None:
    """Edges are padded, so there is an output frame for every input frame of 10 ms."""
    spoken(recognizer, [0, 0, 2, 2, 2, 0, 0, 1, 0, 3, 0], monkeypatch)
    text, words, duration = recognizer.recognize(np.zeros(8000), 8000, decoder=decoder)
    assert (text, duration) == ("NO YES", 1.0)
    assert [(word.word, round(word.start, 3), round(word.end, 3)) for word in words] == [
        ("NO", 0.02, 0.05),
        ("YES", 0.09, 0.1),
    ]
    assert all(0.8 < word.confidence <= 1 for word in words)


@pytest.mark.parametrize("decoder", ["wfst", "greedy"])
def test_the_model_s_frames_are_where_the_sound_is(recognizer: Recognizer, decoder: str) -> None:
    """A click in silence moves the outputs around it, and their middle is its time."""
    samples = np.zeros(16000, dtype=np.float32)
    samples[11200] = 0.5
    quiet = recognizer.log_probs([recognizer.extract(np.zeros(16000, dtype=np.float32), 8000)]).values[0]
    loud = recognizer.log_probs([recognizer.extract(samples, 8000)]).values[0]
    assert quiet.shape == loud.shape
    inner = loud[20:-20]  # further in than the padding of the edges is seen
    (changed,) = ((inner - inner[0]).abs().amax(1) > 1e-4).nonzero(as_tuple=True)
    middle = 20 + (changed[0] + changed[-1] + 1) / 2 + recognizer.model.first_center
    assert float(middle) * 0.01 == pytest.approx(1.4, abs=0.015)


def test_recognize_and_transcribe_agree(recognizer: Recognizer, write_wav: Write) -> None:
    path = write_wav("a.wav", seconds=3)
    for decoder in ("wfst", "greedy"):
        transcript = recognizer.recognize(path, decoder=decoder)
        assert transcript.text == recognizer.transcribe(path, decoder=decoder)
        assert transcript.text == " ".join(word.word for word in transcript.words)
        assert all(0 <= word.start < word.end <= 3 and 0 <= word.confidence <= 1 for word in transcript.words)


def test_words_do_not_depend_on_the_batch(recognizer: Recognizer, write_wav: Write) -> None:
    features = [recognizer.extract(write_wav(f"{index}.wav", seconds=0.5 + index)) for index in range(3)]
    for decoder in ("wfst", "greedy"):
        together = recognizer.decode_words(recognizer.log_probs(features), decoder)
        for row, words in zip(features, together, strict=True):
            (alone,) = recognizer.decode_words(recognizer.log_probs([row]), decoder)
            assert [word[:3] for word in alone] == [word[:3] for word in words]
            assert [word.confidence for word in alone] == pytest.approx([word.confidence for word in words], abs=1e-4)


def test_another_lexicon_takes_the_model_s_symbols(
    recognizer: Recognizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lexicon.txt"
    path.write_text("\ufeffnyet N Y\r\n\r\ny\u00a0y\tY Y\n", encoding="utf-8")
    other = recognizer.with_language(lexicon=path)
    assert other.lexicon.words == ["nyet", "y\u00a0y"]
    spoken(other, [0, 2, 0, 3, 1, 3, 0, 3, 0], monkeypatch)
    assert other.transcribe(np.zeros(8000), 8000) == "nyet y\u00a0y"
    assert other.transcribe(np.zeros(8000), 8000, decoder="greedy") == "nyet y\u00a0y"
    assert recognizer.lexicon.words == ["NO", "YES"]


def test_another_language_model_decides(
    recognizer: Recognizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lm.arpa"
    path.write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-99\t<s>\n-0.1\t</s>\n-0.1\tNO\n-9\tYES\n\n\\end\\\n")
    other = recognizer.with_language(language_model=path)
    spoken(other, [0, 3, 0, 2, 0], monkeypatch)
    assert other.transcribe(np.zeros(8000), 8000) == "NO"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("lexicon", "a Q\n", r"x\.txt: word 'a': unknown symbol 'Q'"),
        ("lexicon", "a\n", r"x\.txt:1: 'a' has no pronunciation"),
        ("lexicon", "\n", r"x\.txt: holds no word"),
        ("lexicon", "</s> N\n", r"x\.txt: lexicon: the word '</s>' is reserved"),
        ("language_model", "rubbish", r"x\.txt: not a language model in ARPA format"),
        ("language_model", "\\data\\\nngram 1=1\n\n\\1-grams:\n-1\tno\n\n\\end\\\n", r"x\.txt: .*no word in common"),
    ],
)
def test_files_of_words_that_cannot_be_used_are_named(
    recognizer: Recognizer, tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / "x.txt"
    with pytest.raises(FileNotFoundError, match=r"x\.txt: no such file"):
        recognizer.with_language(**{name: path})
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        recognizer.with_language(**{name: path})
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ValueError, match=r"x\.txt: not UTF-8"):
        recognizer.with_language(**{name: path})


def with_recordings(recognizer: Recognizer, **settings: object) -> Recognizer:
    parts = (recognizer.model, recognizer.fbank.config, recognizer.symbols, recognizer.lexicon, recognizer.arpa)
    return Recognizer(*parts, silence="SIL", recordings=RecordingConfig(**settings))


def test_edges_are_heard_but_not_counted(recognizer: Recognizer, write_wav: Write, tmp_path: Path) -> None:
    short = write_wav("short.wav", seconds=0.1)
    with pytest.raises(AudioError, match="too short"):
        recognizer.extract(short)
    padded = with_recordings(recognizer, edge_seconds=0.5)
    assert len(padded.extract(short)) == 110
    assert padded.num_frames(800) == padded.log_probs([padded.extract(short)]).lengths.item()
    samples, rate = soundfile.read(write_wav("a.wav", seconds=1))
    for decoder in ("wfst", "greedy"):
        for word in padded.recognize(samples, rate, decoder=decoder).words:
            assert 0 <= word.start <= word.end <= 1
    padded.save(tmp_path / "model")
    again = sonorant.load(tmp_path)
    assert again.frontend.recordings == padded.frontend.recordings
    assert torch.equal(again.extract(short), padded.extract(short))
    assert again.with_language(language_model=tmp_path / "model" / "lm.arpa").frontend.recordings.edge_seconds == 0.5


def test_times_are_those_of_the_recording_without_its_edges(recognizer: Recognizer) -> None:
    span = WordSpan("YES", 60, 70, 0.5)
    expected = recognizer._timed(span, 10.0)
    shifted = with_recordings(recognizer, edge_seconds=0.25)._timed(span, 10.0)
    assert (shifted.start, shifted.end) == pytest.approx((expected.start - 0.25, expected.end - 0.25))


def test_rates_and_channels_that_training_allowed_are_allowed_in_use(recognizer: Recognizer, write_wav: Write) -> None:
    allowing = with_recordings(recognizer, resample=True, mix_channels=True)
    fast = write_wav("fast.wav", sample_rate=16000)
    samples, rate = soundfile.read(fast, dtype="float32")
    assert torch.equal(allowing.extract(fast), allowing.extract(samples, rate))
    assert len(allowing.extract(write_wav("stereo.wav", channels=2))) == 100
    with pytest.raises(AudioError, match="sample_rate is None"):
        allowing.extract(samples)


def test_folders_of_before_there_were_edges_are_read(recognizer: Recognizer, tmp_path: Path) -> None:
    recognizer.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    for name in ("recordings", "open_vocabulary"):
        del config[name]
    path.write_text(json.dumps(config))
    assert sonorant.load(tmp_path).frontend.recordings == RecordingConfig()
