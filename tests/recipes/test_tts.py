"""The recipe that learns to speak: what a run leaves, its stages, interruptions, several devices."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile
import torch
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import sonorant
from sonorant.cli import main
from sonorant.inference.synthesizer import Synthesizer
from tests.conftest import TINY_TTS
from tests.voices import VoiceCorpus

Capture = pytest.CaptureFixture[str]
SHORT = [*TINY_TTS, *(f"--{stage}.max_epochs=1" for stage in ("regression", "trainer", "predictors"))]


def arguments(run: Path, corpus: VoiceCorpus, *options: str) -> list[str]:
    given = [f"--data.train={corpus.table}", f"--units.lexicon={corpus.lexicon}"]
    return ["train", "tts", "--output", str(run), *given, *options]


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model" / "model.safetensors")


def test_a_run_leaves_everything_behind(tts_run: Path) -> None:
    assert {path.name for path in tts_run.iterdir()} == {"config.yaml", "metrics.json", "model", "samples", "stages"}
    metrics = json.loads((tts_run / "metrics.json").read_text())
    assert metrics["utterances"] == {"train": 33, "dev": 2}
    assert metrics["speakers"] == {"ann": 17, "ben": 16}
    assert metrics["accents"] == {"north": 17, "south": 16}
    assert metrics["dev"].keys() == {"flow_nll", "duration", "f0", "energy", "voicing"}
    assert all(seconds > 0 for seconds in metrics["train_seconds"].values())
    assert metrics["train_seconds"].keys() == {"regression", "decoder", "predictors"}
    names = {path.name for path in (tts_run / "samples").iterdir()}
    kinds = ("-alignment.png", "-copy.png", "-copy.wav", ".png", ".wav")
    assert names == {f"{number}{kind}" for number in (1, 2) for kind in kinds}
    for name in ("1.wav", "1-copy.wav"):
        samples, rate = soundfile.read(tts_run / "samples" / name)
        assert rate == 8000
        assert 400 < len(samples) < 80_000


def test_tensorboard_shows_losses_alignments_spectra_and_sounds(tts_run: Path) -> None:
    names = ("regression", "decoder", "predictors")
    boards = {name: EventAccumulator(str(tts_run / "stages" / name / "logs")) for name in names}
    tags = {name: board.Reload().Tags() for name, board in boards.items()}
    terms = {"flow_nll", "prior_nll", "forward_sum", "binarization", "cross_covariance", "variance", "covariance"}
    for name in names[:2]:
        assert {"loss", "dev_loss", *(f"train/{term}" for term in terms)} <= set(tags[name]["scalars"])
        assert {"alignment/1", "mel/1-copy"} <= set(tags[name]["images"])
        assert "speech/1-copy" in tags[name]["audio"]
    assert {f"train/{term}" for term in ("duration", "f0", "energy", "voicing")} <= set(tags["predictors"]["scalars"])
    assert ("mel/1" in tags["predictors"]["images"]) == ("speech/1" in tags["predictors"]["audio"]) is True


def test_the_model_speaks(tts_run: Path) -> None:
    synthesizer = sonorant.load(tts_run)
    assert isinstance(synthesizer, Synthesizer)
    assert synthesizer.speakers == ["ann", "ben"]
    assert synthesizer.speaker_accents == {"ann": "north", "ben": "south"}
    assert synthesizer.recipe == "tts"
    speech = synthesizer.synthesize("su umi", speaker="ann", accent="south")
    assert [token.token for token in speech.tokens] == ["SIL", "S", "U", "SIL", "U", "M", "I", "SIL"]


def test_what_is_printed_and_predictors_trained_along(voices: VoiceCorpus, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    assert main(arguments(run, voices, *SHORT, "--predictors.joint=true")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["33 utterances train, 2 dev; 2 speakers, 2 accents, 6 symbols", "stage regression"]
    assert lines[3] == "stage decoder"
    for line in (lines[2], lines[4]):
        assert re.match(r"epoch 1/1  loss -?\d+\.\d+  dev loss -?\d+\.\d+  ", line)
    assert re.match(r"dev flow nll \S+, duration \S+, f0 \S+, energy \S+, voicing \d", lines[5])
    assert re.match(r"trained in \S+ s \(regression \S+ s, decoder \S+ s\)$", lines[6])
    files = [("model", "model"), ("samples", "samples"), ("metrics", "metrics.json")]
    assert lines[7:10] == [f"{name:8} {run / file}" for name, file in files]
    assert lines[10] == f"speak    sonorant synthesize {run} --text '...' --speaker ann -o out.wav"
    assert {path.name for path in (run / "stages").iterdir()} == {"regression", "decoder"}
    before, after = weights(run), load_file(run / "stages" / "decoder" / "finished.safetensors")
    assert all(torch.equal(before[name], after[name]) for name in before)


KILLED = """
import os, sys
from sonorant.cli import main
from sonorant.tasks.tts import FlowTtsTask
from sonorant.tasks.tts_predictors import PredictorsTask

def killed_at(task, folder, last):
    step = task.training_step
    def counted(self, batch, index):
        if self.trainer.global_step == last and folder in self.trainer.logger.save_dir:
            os._exit(9)
        return step(self, batch, index)
    task.training_step = counted

killed_at(FlowTtsTask, "regression", 7)
killed_at(FlowTtsTask, "decoder", 14)
killed_at(PredictorsTask, "predictors", 11)
main(sys.argv[1:])
"""


def test_killed_in_each_stage_and_resumed_it_ends_the_same(tts_run: Path, voices: VoiceCorpus, tmp_path: Path) -> None:
    run, script = tmp_path / "run", KILLED
    command = arguments(run, voices, *TINY_TTS)
    for stage in ("regression", "decoder", "predictors"):
        assert subprocess.run([sys.executable, "-c", script, *command], capture_output=True).returncode == 9
        assert (run / "stages" / stage / "checkpoints").is_dir()
        assert not (run / "stages" / stage / "finished.safetensors").exists()
        script = re.sub(rf"killed_at\(.*{stage}.*", "", script)
        command = resumed = ["train", "tts", "--output", str(run), "--resume"]
    assert not (run / "model").exists()
    assert main(resumed) == 0
    expected, actual = weights(tts_run), weights(run)
    assert all(torch.equal(expected[name], actual[name]) for name in expected)
    metrics = [json.loads((each / "metrics.json").read_text())["dev"] for each in (tts_run, run)]
    assert metrics[0] == metrics[1]


def test_the_temperature_of_a_recipe_is_its_model_s(tts_run: Path, tmp_path: Path, capsys: Capture) -> None:
    synthesizer = sonorant.load(tts_run)
    assert isinstance(synthesizer, Synthesizer)
    assert synthesizer.temperature == 0.4  # as tests/conftest.py has it
    with contextlib.suppress(SystemExit):
        assert main(["train", "tts", "--output", str(tmp_path / "run"), "--data.train=x", "--temperature=-1"]) == 2
    assert "temperature must lie in [0, 10]; got -1" in capsys.readouterr().err


def test_a_run_with_a_stage_behind_it_is_not_overwritten(tts_run: Path, voices: VoiceCorpus, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "stages" / "regression" / "checkpoints").mkdir(parents=True)
    (run / "stages" / "regression" / "checkpoints" / "00000004.ckpt").touch()
    assert main(arguments(run, voices, *SHORT)) == 2


def test_two_devices(tts_run: Path, voices: VoiceCorpus, tmp_path: Path) -> None:
    """33 utterances in batches of 4: of the last batch the second rank gets none."""
    run = tmp_path / "run"
    command = [sys.executable, "-m", "sonorant.cli", *arguments(run, voices, *TINY_TTS, "--trainer.devices=2")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert re.findall("^stage (.*)$", done.stdout, re.MULTILINE) == ["regression", "decoder", "predictors"]
    expected, actual = weights(tts_run), weights(run)
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, rtol=1e-3, atol=1e-4)
    metrics = [json.loads((each / "metrics.json").read_text())["dev"] for each in (tts_run, run)]
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-3)


def test_without_a_dev_set(voices: VoiceCorpus, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main(arguments(run, voices, *SHORT, "--data.dev_share=0")) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["utterances"] == {"train": 35, "dev": 0}
    assert metrics["dev"] == {}
    assert (run / "samples" / "4.wav").is_file()
