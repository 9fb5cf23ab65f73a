"""The yesno recipe on real recordings: a short run, interruptions, ranks, and the ten seeds of the documentation."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import kaldialign
import numpy as np
import pytest
import torch
from benchmarks.yesno_seeds import train_and_evaluate
from safetensors.torch import load_file

import sonorant
from sonorant.cli import main
from sonorant.data.audio import load_audio
from sonorant.data.manifest import Utterance
from sonorant.data.yesno import YesnoCorpus
from sonorant.inference.evaluation import evaluate
from sonorant.recipes.yesno import Config, fit_recognizer
from sonorant.tasks.checkpointing import DurableCheckpointIO, latest_checkpoint

SHORT = [
    "--speeds=[1.0]",
    "--batch_size=8",
    "--trainer.max_epochs=2",
    "--trainer.checkpoint_every=1",
    "--model.hidden_channels=8",
]
WORST_GREEDY, WORST_WFST = 2, 1
SEVEN_WORDS = "0_1_0_1_0_0_0_0"  # the recording holds seven words, its name promises eight


def train(run: Path, *arguments: str) -> None:
    assert main(["train", "yesno", "--output", str(run), *arguments]) == 0


@pytest.fixture(scope="module")
def short_run(yesno: YesnoCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "whole"
    train(run, *SHORT)
    return run


def test_a_run_leaves_everything_behind(short_run: Path) -> None:
    names = {path.name for path in short_run.iterdir()}
    assert names == {"config.yaml", "checkpoints", "logs", "model", "metrics.json", "posteriors.png"}
    assert any(path.name.startswith("events") for path in (short_run / "logs").iterdir())
    assert (short_run / "posteriors.png").read_bytes()[:4] == b"\x89PNG"
    metrics = json.loads((short_run / "metrics.json").read_text())
    assert metrics.keys() == {"test", "train_seconds"}
    for decoder in ("greedy", "wfst"):
        rate = metrics["test"][decoder]
        assert rate["errors"] == rate["insertions"] + rate["deletions"] + rate["substitutions"]
        assert (rate["words"], rate["wer"]) == (240, rate["errors"] / 240)


def test_batch_statistics_are_learned(short_run: Path) -> None:
    weights = load_file(short_run / "model" / "model.safetensors")
    assert weights["encoder.tdnn.2.running_mean"].abs().max() > 0
    assert weights["encoder.tdnn.2.num_batches_tracked"] > 0


def test_a_second_run_in_the_same_folder_is_refused(short_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "yesno", "--output", str(short_run)]) == 2
    assert "holds a run already" in capsys.readouterr().err


def test_a_run_that_failed_before_its_first_checkpoint_can_be_started_anew(
    yesno: YesnoCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, unknown = tmp_path / "run", replace(yesno.train[0], text="MAYBE")
    with monkeypatch.context() as patch:
        patch.setattr("sonorant.recipes.yesno.load_yesno", lambda: YesnoCorpus([unknown], yesno.test))
        assert main(["train", "yesno", "--output", str(run), *SHORT]) == 2
    assert (run / "config.yaml").exists()
    train(run, *SHORT, "--trainer.max_epochs=1")
    assert "max_epochs: 1" in (run / "config.yaml").read_text()


def test_resuming_takes_no_other_settings(short_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "yesno", "--output", str(short_run), "--resume", "--seed=3"]) == 2
    assert "leave out the others" in capsys.readouterr().err
    assert main(["train", "yesno", "--output", str(short_run / "nothing"), "--resume"]) == 2
    assert "there is no run to resume" in capsys.readouterr().err


KILLED_IN_A_STEP = """
import os, signal
from sonorant.tasks.ctc_asr import CtcAsr
step = CtcAsr.training_step
def training_step(self, batch, index):
    if self.trainer.global_step == {step}:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch, index)
CtcAsr.training_step = training_step
"""
KILLED_IN_A_WRITE = """
import os, signal, torch
save = torch.save
calls = []
def killing_save(checkpoint, file, *rest, **options):
    calls.append(0)
    if len(calls) == {step}:
        file.write(b"half of it")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return save(checkpoint, file, *rest, **options)
torch.save = killing_save
"""


@pytest.mark.parametrize(
    ("program", "step"),
    [
        pytest.param(KILLED_IN_A_STEP, 2, id="in mid-epoch"),
        pytest.param(KILLED_IN_A_STEP, 4, id="between epochs", marks=pytest.mark.slow),
        pytest.param(KILLED_IN_A_STEP, 6, id="in the averaged part", marks=pytest.mark.slow),
        pytest.param(KILLED_IN_A_STEP, 0, id="before the first checkpoint", marks=pytest.mark.slow),
        pytest.param(KILLED_IN_A_WRITE, 7, id="while a checkpoint is written"),
    ],
)
def test_a_killed_run_resumes_and_ends_bit_equal(short_run: Path, tmp_path: Path, program: str, step: int) -> None:
    run = tmp_path / "killed"
    arguments = ["train", "yesno", "--output", str(run), *SHORT]
    code = program.format(step=step) + f"\nfrom sonorant.cli import main\nmain({arguments!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (run / "model").exists()
    train(run, "--resume")

    expected = load_file(short_run / "model" / "model.safetensors")
    for name, weight in load_file(run / "model" / "model.safetensors").items():
        assert torch.equal(weight, expected[name]), name
    last, expected_last = (
        DurableCheckpointIO().load_checkpoint(latest_checkpoint(folder / "checkpoints")) for folder in (run, short_run)
    )
    assert last["global_step"] == expected_last["global_step"] == 8
    assert equal(last["optimizer_states"], expected_last["optimizer_states"])
    assert equal(last["lr_schedulers"], expected_last["lr_schedulers"])
    assert equal(last["callbacks"]["RandomState"], expected_last["callbacks"]["RandomState"])


def equal(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return isinstance(b, list | tuple) and len(a) == len(b) and all(map(equal, a, b))
    return a == b


def test_a_loss_that_is_not_finite_stops_with_step_and_utterances(
    yesno: YesnoCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def poisoned(self: torch.nn.Module, features: torch.Tensor, lengths: torch.Tensor, seeds: torch.Tensor) -> object:
        output = forward(self, features, lengths, seeds)
        return output._replace(values=output.values * torch.nan)

    from sonorant.models import TdnnCtc

    forward = TdnnCtc.forward
    monkeypatch.setattr(TdnnCtc, "forward", poisoned)
    assert main(["train", "yesno", "--output", str(tmp_path / "run"), *SHORT]) == 2
    message = capsys.readouterr().err
    assert "step 0: the CTC loss is not finite: " in message
    assert any(utterance.id in message for utterance in yesno.train)


def test_utterances_that_cannot_be_learned_are_all_named(write_wav: Callable[..., Path], tmp_path: Path) -> None:
    utterances = [
        Utterance("fine", write_wav("fine.wav", seconds=2), "YES NO"),
        Utterance("fits as it is", write_wav("slow.wav", seconds=0.28), "NO"),
        Utterance("fast", write_wav("fast.wav", sample_rate=16000), "NO"),
        Utterance("other", write_wav("other.wav", seconds=2), "MAYBE"),
    ]
    with pytest.raises(ValueError, match=r"utterances that cannot be used \(3\)") as caught:
        fit_recognizer(Config(), utterances, tmp_path / "run")
    message = str(caught.value)
    assert "fits as it is: 0.28 s give 0 frames, and its 3 labels need at least 3" in message
    assert "fast.wav: the sample rate is 16000 Hz; 8000 Hz is needed" in message
    assert "other: word 'MAYBE' is not in the lexicon" in message
    assert "fine" not in message


def test_settings_come_from_a_file_and_the_command_line(yesno: YesnoCorpus, tmp_path: Path) -> None:
    settings = tmp_path / "run.yaml"
    settings.write_text("seed: 5\nmodel:\n  hidden_channels: 6\ntrainer:\n  max_epochs: 3\n")
    run = tmp_path / "run"
    train(run, f"--config={settings}", "--speeds=[1.0]", "--trainer.max_epochs=1")
    resolved = (run / "config.yaml").read_text()
    for line in ("seed: 5", "hidden_channels: 6", "max_epochs: 1", "sample_rate: 8000", "n_mels: 23"):
        assert line in resolved
    assert sonorant.load(run).model.config.hidden_channels == 6


@pytest.mark.slow
def test_confidences_part_right_words_from_wrong_ones(yesno: YesnoCorpus, tmp_path: Path) -> None:
    """The area under the ROC curve over the test half in noise; docs/decoding.md reports 0.92 and 0.93."""
    recognizer, _, _ = train_and_evaluate(0, tmp_path)
    for decoder in ("wfst", "greedy"):
        confidences: dict[bool, list[float]] = {True: [], False: []}
        for snr in (20, 15, 10, 5):
            random = np.random.default_rng(snr)
            for utterance in yesno.test:
                samples = load_audio(utterance.path).samples
                noise = random.normal(0, np.sqrt((samples**2).mean() / 10 ** (snr / 10)), len(samples))
                words = recognizer.recognize(samples + noise, 8000, decoder=decoder).words
                pairs = kaldialign.align(utterance.words, [word.word for word in words], "-")
                remaining = iter(words)
                for wanted, got in pairs:
                    if got != "-":
                        confidences[wanted == got].append(next(remaining).confidence)
        right, wrong = np.array(confidences[True]), np.array(confidences[False])
        assert len(wrong) > 10
        assert (right[:, None] > wrong).mean() > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_every_seed_learns(yesno: YesnoCorpus, tmp_path: Path, seed: int) -> None:
    """One error is the floor."""
    recognizer, result, _ = train_and_evaluate(seed, tmp_path)
    assert result.error_rates["greedy"].errors <= WORST_GREEDY
    assert result.error_rates["wfst"].errors <= WORST_WFST
    for batch_size in (1, 7, 30):
        again = evaluate(recognizer, yesno.test, batch_size=batch_size)
        assert again.transcripts == result.transcripts
        assert again.losses == pytest.approx(result.losses, rel=1e-5)
    seven = [utterance.id for utterance in yesno.test].index(SEVEN_WORDS)
    assert len(result.transcripts["wfst"][seven]) == 7
