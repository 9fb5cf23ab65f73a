"""The same global batch gives the same model, on however many ranks and however they are started."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sonorant.data.yesno import YesnoCorpus

SONORANT = ["-m", "sonorant.cli", "train", "yesno"]
# of 30 recordings the second batch gets one, so that one rank has nothing to do in it
SETTINGS = ["--speeds=[1.0]", "--batch_size=29", "--trainer.max_epochs=2", "--trainer.accelerator=cpu"]


def start(*arguments: str, run: Path, **environment: str) -> subprocess.Popen[str]:
    """A training process; one thread, for several ranks share the cores."""
    return subprocess.Popen(
        [sys.executable, *arguments, *SETTINGS, "--output", str(run)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> list[float]:
    """The losses of the epochs."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return [float(loss) for loss in re.findall(r"^epoch .*? loss ([\d.]+)", output, re.MULTILINE)]


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


@pytest.fixture(scope="module")
def alone(yesno: YesnoCorpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    run = tmp_path_factory.mktemp("alone") / "run"
    losses = finish(start(*SONORANT, run=run))
    assert len(losses) == 2
    return run, losses


def assert_same(alone: tuple[Path, list[float]], run: Path, losses: list[float]) -> None:
    assert losses == pytest.approx(alone[1], rel=1e-5)
    expected, actual = (load_file(folder / "model" / "model.safetensors") for folder in (alone[0], run))
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, rtol=1e-3, atol=1e-4)
    # counted once, by the first rank, over the whole test half
    assert json.loads((run / "metrics.json").read_text())["test"]["greedy"]["words"] == 240


def test_two_devices(alone: tuple[Path, list[float]], tmp_path: Path) -> None:
    losses = finish(start(*SONORANT, "--trainer.devices=2", run=tmp_path / "run"))
    assert_same(alone, tmp_path / "run", losses)


def test_torchrun(alone: tuple[Path, list[float]], tmp_path: Path) -> None:
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}"]
    losses = finish(start(*torchrun, *SONORANT, "--trainer.devices=2", run=tmp_path / "run"))
    assert_same(alone, tmp_path / "run", losses)


def test_two_nodes(alone: tuple[Path, list[float]], tmp_path: Path) -> None:
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    first, second = (
        start(*SONORANT, "--trainer.num_nodes=2", run=tmp_path / "run", NODE_RANK=str(rank), **address)
        for rank in range(2)
    )
    losses = finish(first)
    assert finish(second) == []  # one node speaks
    assert_same(alone, tmp_path / "run", losses)


def test_bfloat16(alone: tuple[Path, list[float]], tmp_path: Path) -> None:
    losses = finish(start(*SONORANT, "--trainer.precision=bf16-mixed", run=tmp_path / "run"))
    assert losses != alone[1]
    assert losses == pytest.approx(alone[1], rel=0.03)


@pytest.mark.slow
def test_four_devices(alone: tuple[Path, list[float]], tmp_path: Path) -> None:
    losses = finish(start(*SONORANT, "--trainer.devices=4", run=tmp_path / "run"))
    assert_same(alone, tmp_path / "run", losses)
