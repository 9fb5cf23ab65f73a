"""The aligner recipe on words that are tones: what a run leaves, units, interruptions, bad corpora."""

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import sonorant
from sonorant.cli import main
from sonorant.data.corpus import read_corpus
from sonorant.inference import Aligner
from tests.conftest import TINY_ALIGNER
from tests.tones import ToneCorpus

Capture = pytest.CaptureFixture[str]
SHORT = [*TINY_ALIGNER, "--trainer.max_epochs=2", "--trainer.checkpoint_every=4"]


def train(run: Path, corpus: ToneCorpus, *options: str) -> int:
    given = [f"--data.train={corpus.table}", f"--units.lexicon={corpus.lexicon}"]
    return main(["train", "aligner", "--output", str(run), *given, *options])


def test_a_run_leaves_everything_behind(aligner_run: Path) -> None:
    names = {path.name for path in aligner_run.iterdir()}
    assert names == {"config.yaml", "logs", "model", "metrics.json", "alignment.png"}
    assert (aligner_run / "alignment.png").read_bytes()[:4] == b"\x89PNG"
    metrics = json.loads((aligner_run / "metrics.json").read_text())
    assert metrics.keys() == {"utterances", "score", "looked_at", "suspects", "train_seconds"}
    assert metrics["utterances"] == {"train": 57, "dev": 3}
    assert metrics["suspects"] == []


def test_what_is_printed(tones: dict[str, ToneCorpus], tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    assert train(run, tones["train"], *SHORT) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("epoch 1/2  loss ")
    assert "dev loss" in lines[0]
    assert lines[2].startswith("score a frame ")
    assert lines[3].endswith(" transcripts are suspicious")
    files = [("model", "model"), ("picture", "alignment.png"), ("metrics", "metrics.json")]
    assert lines[-3:] == [f"{name:8} {run / file}" for name, file in files]


def test_characters_a_dev_set_and_speakers(tones: dict[str, ToneCorpus], tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ["--units.kind=characters", "--units.lexicon=null", "--model.speaker_dim=4"]
    assert train(run, tones["train"], *SHORT, *options, f"--data.dev={tones['test'].table}") == 0
    aligner = sonorant.load(run)
    assert isinstance(aligner, Aligner)
    assert aligner.speller.symbols.symbols == ("<blk>", "SIL", *"adimsu")
    assert aligner.speakers == ["ann", "ben"]
    utterance = read_corpus(tones["test"].table)[0]
    known, unknown = (aligner.align(utterance, utterance.text, speaker=name) for name in ("ann", "zoe"))
    assert known.score != unknown.score
    assert json.loads((run / "metrics.json").read_text())["utterances"] == {"train": 60, "dev": 30}


def test_killed_and_resumed_it_ends_the_same(tones: dict[str, ToneCorpus], tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert train(whole, tones["train"], *SHORT) == 0
    code = (
        "import os, sys\n"
        "from sonorant.cli import main\n"
        "from sonorant.tasks.aligner import AlignerTask\n"
        "step = AlignerTask.training_step\n"
        "def counted(self, batch, index):\n"
        "    if self.trainer.global_step == 18:\n"
        "        os._exit(9)\n"
        "    return step(self, batch, index)\n"
        "AlignerTask.training_step = counted\n"
        "main(sys.argv[1:])\n"
    )
    corpus = tones["train"]
    given = [f"--data.train={corpus.table}", f"--units.lexicon={corpus.lexicon}", *SHORT]
    command = [sys.executable, "-c", code, "train", "aligner", "--output", str(stopped), *given]
    assert subprocess.run(command, capture_output=True).returncode == 9
    assert not (stopped / "model").exists()
    assert main(["train", "aligner", "--output", str(stopped), "--resume"]) == 0
    weights = [load_file(run / "model" / "model.safetensors") for run in (whole, stopped)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def edited(corpus: ToneCorpus, folder: Path, changes: dict[int, str]) -> ToneCorpus:
    """A copy with other texts in some lines, counted from 1."""
    shutil.copytree(corpus.table.parent, folder)
    rows = [row.split("\t") for row in corpus.table.read_text().splitlines()]
    for number, text in changes.items():
        rows[number - 1][1] = text
    (folder / "table.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return ToneCorpus(folder / "table.tsv", folder / "words.tsv", {})


def test_missing_words_are_listed_at_once_or_left_out(
    tones: dict[str, ToneCorpus], tmp_path: Path, capsys: Capture
) -> None:
    corpus = edited(tones["train"], tmp_path / "corpus", {2: "da blue", 5: "red su blue"})
    assert train(tmp_path / "run", corpus, *SHORT) == 2
    error = capsys.readouterr().err
    assert "units.lexicon: lacks 2 words" in error
    assert f"\n  blue (2, first at {corpus.table}:2)\n  red (1, first at {corpus.table}:5)\n" in error
    assert train(tmp_path / "run", corpus, *SHORT, "--data.skip_bad=true", "--trainer.max_epochs=1") == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["utterances"] == {"train": 55, "dev": 3}


def test_missing_words_are_pronounced(
    tones: dict[str, ToneCorpus], g2p_run: Path, tmp_path: Path, capsys: Capture
) -> None:
    corpus = edited(tones["train"], tmp_path / "corpus", {2: "dab Bid"})
    (tmp_path / "corpus" / "words.tsv").write_text(
        "da D AA\ndu D K\nsu S K\nmi B IY\nsam S AA B\ndia D IY AA\nmus B K S\nx EH\n"
    )
    options = ["--trainer.max_epochs=1", f"--units.pronouncer={g2p_run}"]
    assert train(tmp_path / "run", corpus, *SHORT, *options) == 0
    aligner = sonorant.load(tmp_path / "run")
    assert isinstance(aligner, Aligner)
    assert aligner.speller.lexicon is not None
    assert aligner.speller.lexicon.entries["dab"] == [["D", "AA", "B"]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({3: " ".join(["mus"] * 60)}, "frames, and its 241 labels need at least 241"),
        ({3: ""}, "table.tsv:3"),
    ],
)
def test_faulty_utterances_are_refused(
    tones: dict[str, ToneCorpus], tmp_path: Path, capsys: Capture, changes: dict[int, str], message: str
) -> None:
    corpus = edited(tones["train"], tmp_path / "corpus", changes)
    assert train(tmp_path / "run", corpus, *SHORT) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "table.tsv:3" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--units.lexicon=null"], "units.kind lexicon: a lexicon is needed"),
        (["--units.kind=characters"], "units.kind characters: a lexicon is not used"),
        (
            ["--units.kind=characters", "--units.lexicon=null", "--units.pronouncer=x"],
            "units.pronouncer needs units.lexicon",
        ),
        (["--prior.margin=-1"], "margin must be positive; got -1.0"),
    ],
)
def test_settings_that_do_not_go_together(
    tones: dict[str, ToneCorpus], tmp_path: Path, capsys: Capture, options: list[str], message: str
) -> None:
    with contextlib.suppress(SystemExit):
        assert train(tmp_path / "run", tones["train"], *SHORT, *options) == 2
    assert message in capsys.readouterr().err
