"""The recipe for any corpus, on words that are tones: a small network learns them in seconds."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import load_file

import sonorant
from sonorant.cli import main
from sonorant.data.audio import load_audio
from sonorant.inference.recognizer import Recognizer

WORDS = ("da", "du", "su")
PITCHES = {"d": 500.0, "s": 3000.0, "a": 900.0, "u": 1500.0}
LEXICON = "da D A\ndu D U\nsu S U\n"
QUICK = [
    "--batch_size=8",
    "--pool_batches=1",
    "--speeds=[1.0]",
    "--data.n_mels=20",
    "--model.hidden_channels=16",
    "--trainer.max_epochs=1",
    "--trainer.accelerator=cpu",
]
LEARN = [*QUICK, "--trainer.max_epochs=20", "--model.noise=0.1", "--model.channel_noise=0.1"]


def write_corpus(folder: Path, number: int, seed: int, *, words: tuple[int, int] = (1, 1), rate: int = 8000) -> Path:
    """Words of 0.1 to 0.2 s, cut tightly, a tone for each letter; several are parted by pauses."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    rows = []
    for index in range(number):
        pieces, text = [], []
        for _ in range(random.integers(*words, endpoint=True)):
            word = WORDS[random.integers(len(WORDS))]
            if pieces:
                pieces.append(np.zeros(round(0.15 * rate)))
            times = np.arange(round(random.uniform(0.1, 0.2) * rate)) / rate
            first, second = (PITCHES[letter] for letter in word)
            pieces.append(0.3 * np.sin(2 * np.pi * np.where(times < times[-1] / 2, first, second) * times))
            text.append(word)
        samples = np.concatenate(pieces)
        soundfile.write(folder / f"{index}.wav", samples + random.normal(0, 0.001, len(samples)), rate)
        rows.append(f"{index}.wav\t{' '.join(text)}\t{'ann' if index % 2 else 'ben'}\n")
    table = folder / "table.tsv"
    table.write_text("".join(rows))
    return table


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tones")
    return write_corpus(folder / "train", 48, 0), write_corpus(folder / "test", 12, 1)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sentences")
    return write_corpus(folder / "train", 48, 0, words=(1, 3)), write_corpus(folder / "test", 12, 1, words=(2, 3))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sonorant" / "features"


def command(run: Path, tables: tuple[Path, Path], *options: str) -> list[str]:
    train, test = tables
    return ["train", "ctc-asr", f"--data.train={train}", f"--data.test={test}", f"--output={run}", *options]


def train(run: Path, tables: tuple[Path, Path], *options: str) -> dict:
    assert main(command(run, tables, *options)) == 0
    return json.loads((run / "metrics.json").read_text())


def refuse(run: Path, tables: tuple[Path, Path], capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(command(run, tables, *QUICK, *options)) == 2
    assert not (run / "model").exists()
    return capsys.readouterr().err


def test_words_of_tones_are_learned(
    tables: tuple[Path, Path], tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    metrics = train(run, tables, *LEARN)
    assert metrics.keys() == {"dev", "test", "train_seconds"}
    assert (metrics["dev"]["greedy"]["words"], metrics["test"]["wfst"]["words"]) == (5, 12)
    assert metrics["test"]["wfst"]["errors"] == 0
    assert metrics["test"]["greedy"]["errors"] <= 1
    assert "dev loss" in capsys.readouterr().out
    assert len(list(cache.rglob("*.npy"))) == 48
    assert {path.name for path in run.iterdir()} == {
        "config.yaml", "checkpoints", "logs", "model", "metrics.json", "posteriors.png",
    }  # fmt: skip

    recognizer = sonorant.load(run)
    assert isinstance(recognizer, Recognizer)
    assert recognizer.symbols.symbols == ("<blk>", "SIL", "da", "du", "su")
    path = tables[1].parent / "0.wav"
    word = tables[1].read_text().split("\t")[1]
    samples = load_audio(path).samples
    assert recognizer.fbank.num_frames(len(samples)) < recognizer.model.min_frames  # without edges it would be refused
    assert recognizer.transcribe(path) == recognizer.transcribe(samples, 8000) == word
    (found,) = recognizer.recognize(path).words
    assert 0 <= found.start < found.end <= len(samples) / 8000

    assert main(["evaluate", str(run), "--data", str(tables[1]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == metrics["test"]
    assert main(["transcribe", str(run), str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\t{word}\n"
    assert main(["evaluate", str(run)]) == 2
    assert "no test set of its own; give --data TABLE" in capsys.readouterr().err


def test_the_onnx_file_hears_the_same_and_knows_the_edges(tables: tuple[Path, Path], tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    train(tmp_path / "run", tables, *QUICK)
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "model.onnx")]) == 0
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    about = session.get_modelmeta().custom_metadata_map
    assert (about["edge_seconds"], about["edge_level_db"], about["tokens"]) == ("0.2", "0.0", "<blk> SIL da du su")
    recognizer = sonorant.load(tmp_path / "run")
    features = recognizer.extract(tables[1].parent / "0.wav")
    log_probs, _ = session.run(None, {"x": features.numpy()[np.newaxis]})
    assert np.allclose(log_probs, recognizer.log_probs([features]).values.numpy(), atol=1e-4)
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "folder")]) == 0
    assert sonorant.load(tmp_path / "folder").frontend.recordings.edge_seconds == 0.2


def test_characters(sentences: tuple[Path, Path], tmp_path: Path) -> None:
    metrics = train(tmp_path / "run", sentences, *LEARN, "--units.kind=characters", "--trainer.max_epochs=20")
    recognizer = sonorant.load(tmp_path / "run")
    assert recognizer.symbols.symbols == ("<blk>", "▁", "a", "d", "s", "u")
    assert recognizer.lexicon.words == ["da", "du", "su"]
    assert metrics["test"]["greedy"]["wer"] < 0.1
    assert metrics["test"]["wfst"]["wer"] < 0.1
    # any word can be read, and scored; only the WFST decoder keeps to the words of the corpus
    assert recognizer.symbols.decode(recognizer.target(["sad"]).tolist()) == ["▁", "s", "a", "d", "▁"]
    with pytest.raises(ValueError, match="unknown symbol 'x'"):
        recognizer.target(["axe"])


def test_a_lexicon_and_a_language_model(sentences: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "lexicon.txt").write_text(LEXICON + "sa S A\n")
    arpa = "\\data\\\nngram 1=4\n\n\\1-grams:\n-0.5 </s>\n-99 <s>\n-0.5 da\n-0.5 du\n\n\\end\\\n"
    (tmp_path / "lm.arpa").write_text(arpa)
    options = [f"--units.lexicon={tmp_path / 'lexicon.txt'}", f"--units.language_model={tmp_path / 'lm.arpa'}"]
    train(tmp_path / "run", sentences, *QUICK, "--units.kind=lexicon", "--units.separator=<pause>", *options)
    recognizer = sonorant.load(tmp_path / "run")
    assert recognizer.symbols.symbols == ("<blk>", "<pause>", "A", "D", "S", "U")
    assert (recognizer.silence, recognizer.arpa) == ("<pause>", arpa)
    assert recognizer.lexicon.words == ["da", "du", "sa", "su"]


def test_no_separator(tables: tuple[Path, Path], sentences: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    options = ["--units.kind=characters", "--units.separator=null"]
    train(tmp_path / "run", tables, *QUICK, *options)
    assert sonorant.load(tmp_path / "run").symbols.symbols == ("<blk>", "a", "d", "s", "u")
    message = refuse(tmp_path / "refused", sentences, capsys, *options)
    assert "table.tsv:" in message
    assert "cannot part without a separator" in message


def test_other_rates_are_resampled_on_request_in_use_too(
    tables: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = write_corpus(tmp_path / "fast", 4, 2, rate=16000)
    message = refuse(tmp_path / "refused", (tables[0], fast), capsys)
    assert "the sample rate is 16000 Hz; 8000 Hz is needed" in message
    assert "(4)" in message
    train(tmp_path / "run", (tables[0], fast), *QUICK, "--data.recordings.resample=true")
    recognizer = sonorant.load(tmp_path / "run")
    assert recognizer.fbank.config.sample_rate == 8000
    path = fast.parent / "0.wav"
    assert recognizer.transcribe(path) == recognizer.transcribe(*load_audio(path))
    train(tmp_path / "up", tables, *QUICK, "--data.recordings.resample=true", "--data.sample_rate=16000")
    assert sonorant.load(tmp_path / "up").fbank.config.sample_rate == 16000


def test_faults_are_refused_or_left_out(
    tables: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    table, test = (path.with_name("faulty.tsv") for path in tables)
    for path in (table, test):
        shutil.copy(path.with_name("0.wav"), path.with_name("copy.wav"))
    table.write_text(tables[0].read_text() + "missing.wav\tda\nno text\ncopy.wav\todd\ufffd\n")
    test.write_text(tables[1].read_text() + "copy.wav\tdo\n")
    message = refuse(tmp_path / "refused", (table, test), capsys)
    for expected in ("missing.wav: no such file", "faulty.tsv:50: expected path<TAB>text", "U+FFFD", "(3)"):
        assert expected in message
    message = refuse(tmp_path / "test refused", (tables[0], test), capsys)
    assert "faulty.tsv:13: copy.wav: word 'do' is not in the lexicon" in message
    metrics = train(tmp_path / "run", (table, test), *QUICK, "--data.skip_bad=true")
    assert metrics["test"]["greedy"]["words"] == 12
    assert "utterances left out: 3; used: 48" in caplog.text
    assert "odd\ufffd" not in sonorant.load(tmp_path / "run").symbols


def test_too_short_clips_without_edges(tables: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    message = refuse(tmp_path / "refused", tables, capsys, "--data.recordings.edge_seconds=0")
    assert "frames, and its 3 labels need at least 3" in message
    message = refuse(tmp_path / "bounds", tables, capsys, "--data.min_duration=0.15")
    assert "at least 0.15 s are needed" in message


def test_a_dev_set_of_its_own_or_none(tables: tuple[Path, Path], tmp_path: Path) -> None:
    metrics = train(tmp_path / "given", tables, *QUICK, f"--data.dev={tables[1]}")
    assert metrics["dev"] == metrics["test"]
    metrics = train(tmp_path / "none", tables, *QUICK, "--data.dev_share=0")
    assert "dev" not in metrics


def test_missing_files_are_named(tables: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    assert "none.tsv: no such table" in refuse(tmp_path / "a", (tables[0], tmp_path / "none.tsv"), capsys)
    lexicon = [f"--units.lexicon={tmp_path / 'no.txt'}", "--units.kind=lexicon"]
    assert "no.txt: no such file" in refuse(tmp_path / "b", tables, capsys, *lexicon)
    assert "a lexicon is needed" in refuse(tmp_path / "c", tables, capsys, "--units.kind=lexicon")


def test_the_cache_changes_nothing(tables: tuple[Path, Path], tmp_path: Path, cache: Path) -> None:
    runs = [tmp_path / name for name in ("fresh", "cached", "damaged", "in memory")]
    for run in runs:
        if run.name == "damaged":
            for path in cache.rglob("*.npy"):
                path.write_bytes(path.read_bytes()[:-10])
        train(run, tables, *QUICK, f"--data.cache={str(run.name != 'in memory').lower()}")
        if run.name == "in memory":
            assert not list(cache.rglob("*.npy"))
        if run.name == "damaged":
            for path in cache.rglob("*.npy"):
                path.unlink()
    weights = [load_file(run / "model" / "model.safetensors") for run in runs]
    for others in weights[1:]:
        assert all(torch.equal(weight, others[name]) for name, weight in weights[0].items())


KILLED = """
import os, signal
from sonorant.tasks.ctc_asr import CtcAsr
step = CtcAsr.training_step
def training_step(self, batch, index):
    if self.trainer.global_step == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch, index)
CtcAsr.training_step = training_step
"""


def test_with_workers_a_killed_run_resumes_and_ends_bit_equal(tables: tuple[Path, Path], tmp_path: Path) -> None:
    options = [*QUICK, "--trainer.max_epochs=2", "--trainer.checkpoint_every=1"]
    train(tmp_path / "whole", tables, *options)
    run = tmp_path / "killed"
    code = f"{KILLED}\nfrom sonorant.cli import main\nmain({command(run, tables, *options, '--num_workers=2')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert main(["train", "ctc-asr", f"--output={run}", "--resume"]) == 0
    expected = load_file(tmp_path / "whole" / "model" / "model.safetensors")
    for name, weight in load_file(run / "model" / "model.safetensors").items():
        assert torch.equal(weight, expected[name]), name


def test_impossible_settings(tables: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    assert "speeds must be positive" in refuse(tmp_path / "a", tables, capsys, "--speeds=[0.0]")
    assert "share must lie in [0, 1)" in refuse(tmp_path / "b", tables, capsys, "--data.dev_share=1")
