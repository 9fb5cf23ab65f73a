"""The g2p recipe on a made-up language: what a run leaves, presets, ensembles, interruptions, bad dictionaries."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_file

import sonorant
from sonorant.cli import main
from sonorant.data.cmudict import DICTIONARY, NEW_WORDS
from sonorant.data.pronunciations import read_pronunciations
from sonorant.inference import Pronouncer
from sonorant.recipes.g2p_training import _fit_together
from tests.conftest import TINY_G2P

SHORT = [*TINY_G2P, "--trainer.max_epochs=2", "--trainer.checkpoint_every=4", "--batch_size=64", "--model.dropout=0.2"]
Capture = pytest.CaptureFixture[str]


def train(run: Path, *arguments: str) -> int:
    return main(["train", "g2p", "--output", str(run), *arguments])


@pytest.fixture(scope="module")
def short_run(dictionaries: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "whole"
    assert train(run, *dictionaries, *SHORT) == 0
    return run


@pytest.fixture(scope="module")
def ensemble_run(dictionaries: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "ensemble"
    assert train(run, *dictionaries, *SHORT, "--ensemble=2", "--trainer.num_threads=1") == 0
    return run


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model" / "model.safetensors")


def test_a_run_leaves_everything_behind(g2p_run: Path) -> None:
    names = {path.name for path in g2p_run.iterdir()}
    assert names >= {"config.yaml", "logs", "model", "metrics.json", "attention.png"}
    assert (g2p_run / "attention.png").read_bytes()[:4] == b"\x89PNG"
    metrics = json.loads((g2p_run / "metrics.json").read_text())
    assert metrics.keys() == {"dev", "test", "examples", "rare_phones", "train_seconds"}
    assert metrics["test"]["wer"] == metrics["test"]["word_errors"] / 50 <= 0.1
    assert len(metrics["examples"]) == 5


def test_what_is_printed(dictionaries: list[str], tmp_path: Path, capsys: Capture) -> None:
    assert train(tmp_path / "run", *dictionaries, *SHORT, "--trainer.max_epochs=1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "400 words train, 50 words dev, 50 words test"
    assert lines[1].startswith("epoch 1/1  loss ")
    assert "dev PER" in lines[1]
    assert [line.split()[0] for line in lines[3:5]] == ["dev", "test"]
    assert lines[-3:] == [f"{name:8} {tmp_path / 'run' / file}" for name, file in FILES]


FILES = [("model", "model"), ("picture", "attention.png"), ("metrics", "metrics.json")]


def test_a_small_dictionary_is_gone_through_more_often(
    dictionaries: list[str], tmp_path: Path, capsys: Capture
) -> None:
    options = ["--trainer.max_epochs=1", "--min_examples=801"]
    assert train(tmp_path / "run", *dictionaries, *SHORT, *options) == 0
    assert "epoch 3/3" in capsys.readouterr().out


def test_without_dev_and_test_a_part_of_the_words_is_held_out(
    dictionaries: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert train(tmp_path / "run", dictionaries[0], *SHORT, "--trainer.max_epochs=1", "--data.dev_share=0.2") == 0
    assert capsys.readouterr().out.startswith("320 words train, 80 words dev\n")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert "test" not in metrics
    assert metrics["dev"]["training_words"] == []


KILLED = """
import os, signal
from sonorant.tasks.g2p import G2pTask
step, calls = G2pTask.training_step, []
def training_step(self, batch, index):
    calls.append(0)
    if len(calls) == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch, index)
G2pTask.training_step = training_step
from sonorant.cli import main
main({arguments!r})
"""


def kill(run: Path, arguments: list[str], call: int) -> None:
    code = KILLED.format(call=call, arguments=["train", "g2p", "--output", str(run), *arguments])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (run / "model").exists()


@pytest.mark.parametrize("call", [6, pytest.param(13, marks=pytest.mark.slow)])  # of 14; the last third is averaged
def test_a_killed_run_resumes_and_ends_bit_equal(
    short_run: Path, dictionaries: list[str], tmp_path: Path, call: int
) -> None:
    run = tmp_path / "killed"
    kill(run, [*dictionaries, *SHORT], call)
    assert train(run, "--resume") == 0
    expected = weights(short_run)
    for name, weight in weights(run).items():
        assert torch.equal(weight, expected[name]), name


def test_an_ensemble_resumes_with_the_models_that_are_finished(
    ensemble_run: Path, dictionaries: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "killed"
    kill(run, [*dictionaries, *SHORT, "--ensemble=2", "--trainer.num_threads=1"], 14 + 6)
    finished = run / "members" / "1" / "finished.safetensors"
    written = finished.stat().st_mtime_ns
    assert train(run, "--resume") == 0
    assert finished.stat().st_mtime_ns == written
    expected = weights(ensemble_run)
    for name, weight in weights(run).items():
        assert torch.equal(weight, expected[name]), name


def test_the_models_of_an_ensemble_are_different(ensemble_run: Path) -> None:
    pronouncer = sonorant.load(ensemble_run)
    assert isinstance(pronouncer, Pronouncer)
    first, second = pronouncer.model.members
    assert not torch.equal(first.output.weight, second.output.weight)
    assert [path.name for path in sorted((ensemble_run / "members").iterdir())] == ["1", "2"]


def test_models_that_are_trained_at_the_same_time_are_those_trained_in_turn(
    ensemble_run: Path, dictionaries: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(run, *dictionaries, *SHORT, "--ensemble=2", "--jobs=2", "--trainer.num_threads=1") == 0
    lines = capfd.readouterr().out.splitlines()
    for number in (1, 2):
        assert sum(line.startswith(f"model {number}: epoch ") for line in lines) == 2
    expected = weights(ensemble_run)
    for name, weight in weights(run).items():
        assert torch.equal(weight, expected[name]), name


class FailingMember(NamedTuple):
    """A model whose training fails, or, if there is a file to write, does not."""

    path: Path | None

    def fit(self) -> bool:
        if self.path is None:
            raise FloatingPointError("step 3: the loss is not finite")
        self.path.touch()
        return True


def test_when_a_model_fails_the_others_are_not_begun(tmp_path: Path) -> None:
    members = [FailingMember(None), *(FailingMember(tmp_path / str(number)) for number in range(9))]
    with pytest.raises(FloatingPointError, match="step 3"):
        _fit_together(members, jobs=1)  # type: ignore[arg-type]
    assert not (tmp_path / "8").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ensemble=0"], "ensemble must be at least 1; got 0"),
        (["--jobs=0"], "jobs must be at least 1; got 0"),
        (["--jobs=2", "--trainer.devices=2"], "jobs is 2: models that are trained on several devices"),
    ],
)
def test_ensembles_that_cannot_be(
    options: list[str], message: str, dictionaries: list[str], tmp_path: Path, capsys: Capture
) -> None:
    with contextlib.suppress(SystemExit):
        assert train(tmp_path / "run", *dictionaries, *options) == 2
    assert message in capsys.readouterr().err


def test_a_second_run_in_the_folder_of_an_ensemble_is_refused(ensemble_run: Path, capsys: Capture) -> None:
    assert train(ensemble_run) == 2
    assert "holds a run already" in capsys.readouterr().err


def test_a_preset_is_between_the_recipe_and_the_arguments(dictionaries: list[str], tmp_path: Path) -> None:
    settings = tmp_path / "run.yaml"
    settings.write_text("seed: 5\nmodel:\n  decoder_dim: 20\n")
    options = ["--preset=quick", f"--config={settings}", "--trainer.max_epochs=1", "--model.encoder_dim=12"]
    assert train(tmp_path / "run", *dictionaries, *options) == 0
    resolved = (tmp_path / "run" / "config.yaml").read_text()
    for line in ("seed: 5", "embedding_dim: 64", "decoder_dim: 20", "encoder_dim: 12", "max_epochs: 1"):
        assert line in resolved
    assert "preset" not in resolved


@pytest.mark.parametrize("preset", ["quick", "full", "small"])
def test_every_preset_is_made_of_settings_that_exist(preset: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["train", "g2p", "--output", "x", "--preset", preset, "--print_config"])
    assert caught.value.code == 0
    assert ("ensemble: 1\n" in capsys.readouterr().out) == (preset != "small")


def test_phones_that_are_used_once_are_listed(dictionaries: list[str], tmp_path: Path, capsys: Capture) -> None:
    table = Path(dictionaries[0].partition("=")[2])
    (tmp_path / "train.tsv").write_text(table.read_text() + "kk\tK Q\n")
    run = tmp_path / "run"
    assert train(run, f"--data.train={tmp_path / 'train.tsv'}", *SHORT, "--trainer.max_epochs=1") == 0
    assert "rare phone 'Q': 1 time, in 'kk'" in capsys.readouterr().out
    rare = json.loads((run / "metrics.json").read_text())["rare_phones"]
    assert rare == [{"phone": "Q", "times": 1, "word": "kk"}]


def test_a_word_of_500_letters_can_be_trained_on(dictionaries: list[str], tmp_path: Path) -> None:
    table = Path(dictionaries[0].partition("=")[2])
    (tmp_path / "train.tsv").write_text(f"{table.read_text()}{'ab' * 250}\t{'AA B ' * 250}\n")
    options = [f"--data.train={tmp_path / 'train.tsv'}", *dictionaries[1:], *SHORT, "--trainer.max_epochs=1"]
    assert train(tmp_path / "run", *options) == 0
    assert "ab" * 250 in sonorant.load(tmp_path / "run").train_words


def test_unknown_symbols_of_a_dev_set_are_counted_and_not_in_the_way(
    dictionaries: list[str], tmp_path: Path, capsys: Capture
) -> None:
    dev = tmp_path / "dev.tsv"
    dev.write_text("da\tD AA\nzoo\tZ UW\nab\tAA V\n")
    assert train(tmp_path / "run", dictionaries[0], f"--data.dev={dev}", *SHORT, "--trainer.max_epochs=1") == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert list(metrics["dev"]["refused"]) == ["zoo"]
    dev.write_text("zoo\tZ UW\n")
    assert train(tmp_path / "other", dictionaries[0], f"--data.dev={dev}", *SHORT) == 2
    assert "data.dev: no word of it has only graphemes and phones" in capsys.readouterr().err


def test_words_in_another_case_choose_weights_and_are_drawn(dictionaries: list[str], tmp_path: Path) -> None:
    """Of the letter ß a model that knows S alone sees two."""
    table = Path(dictionaries[0].partition("=")[2])
    shouted = table.read_text().splitlines()
    shouted = ["\t".join([word.upper(), phones]) for word, phones in (line.split("\t") for line in shouted)]
    (tmp_path / "train.tsv").write_text("\n".join([*shouted, "SS\tK"]))
    (tmp_path / "dev.tsv").write_text("abß\tAA B K\n", encoding="utf-8")
    options = [f"--data.{name}={tmp_path / name}.tsv" for name in ("train", "dev")]
    assert train(tmp_path / "run", *options, *SHORT, "--trainer.max_epochs=1") == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["dev"]["words"], metrics["dev"]["refused"]) == (1, {})
    assert (tmp_path / "run" / "attention.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--search.ctc_weight=0.3", "--model.ctc_frames=0"], "search.ctc_weight is 0.3, but model.ctc_frames is 0"),
        (["--search.ctc_weight=1"], "ctc_weight must be at least 0 and below 1; got 1.0"),
        (["--search.beam_size=0"], "beam_size must be at least 1; got 0"),
        (["--search.length_penalty=-1"], "length_penalty must be at least 0; got -1.0"),
    ],
)
def test_a_search_that_cannot_be_done_is_refused_before_training(
    options: list[str], message: str, tmp_path: Path, capsys: Capture
) -> None:
    try:
        status = train(tmp_path / "run", *options)
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "words.tsv: the dictionary is empty"),
        ("ab\tAA B\nsilent\n", "words.tsv:2: 'silent' has no pronunciation"),
        ("ab\tAA B\n", "1 word: two are needed to hold one out"),
    ],
)
def test_bad_dictionaries_are_refused(content: str, message: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "words.tsv").write_text(content)
    assert train(tmp_path / "run", f"--data.train={tmp_path / 'words.tsv'}") == 2
    assert message in capsys.readouterr().err


def test_a_dev_set_needs_a_training_set(tmp_path: Path, capsys: Capture) -> None:
    try:
        status = train(tmp_path / "run", "--data.dev=x.tsv")
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert "need data.train" in capsys.readouterr().err


def test_the_words_of_the_demonstration_are_in_no_dictionary() -> None:
    assert not set(NEW_WORDS) & set(read_pronunciations(DICTIONARY).words)


def test_two_processes_train_the_ensemble_of_one(dictionaries: list[str], tmp_path: Path) -> None:
    """Of 400 words the last batch gets one, so that one rank has nothing to do in it."""
    for devices in (1, 2):
        run = tmp_path / str(devices)
        command = [sys.executable, "-m", "sonorant.cli", "train", "g2p", "--output", str(run), *dictionaries, *SHORT]
        options = ["--ensemble=2", "--batch_size=57", f"--trainer.devices={devices}", "--trainer.accelerator=cpu"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
    for name, weight in weights(tmp_path / "2").items():
        torch.testing.assert_close(weight, weights(tmp_path / "1")[name], rtol=1e-3, atol=1e-4)
    metrics = [json.loads((tmp_path / run / "metrics.json").read_text()) for run in ("1", "2")]
    assert metrics[1]["test"]["words"] == 50
    assert metrics[1]["dev"]["per"] == pytest.approx(metrics[0]["dev"]["per"], abs=0.05)
