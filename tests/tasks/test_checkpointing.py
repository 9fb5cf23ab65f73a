"""Checkpoints: safe to write, safe to read, and complete."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from sonorant.tasks.checkpointing import DurableCheckpointIO, RandomState, latest_checkpoint


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return (Path.touch, (Path("exploded"),))


def test_round_trip_leaves_no_scratch_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.ckpt"
    DurableCheckpointIO().save_checkpoint({"w": torch.arange(3), "step": 4}, path)
    checkpoint = DurableCheckpointIO().load_checkpoint(path)
    assert checkpoint["w"].tolist() == [0, 1, 2]
    assert [p.name for p in path.parent.iterdir()] == ["a.ckpt"]


def test_a_failed_write_keeps_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, io = tmp_path / "a.ckpt", DurableCheckpointIO()
    io.save_checkpoint({"step": 1}, path)

    def full(_: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        io.save_checkpoint({"step": 2}, path)
    assert io.load_checkpoint(path) == {"step": 1}


def test_code_in_a_checkpoint_is_refused_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"state_dict": Bomb()}, tmp_path / "evil.ckpt")
    for weights_only in (True, False):
        with pytest.raises(ValueError, match=r"evil\.ckpt: not a checkpoint of plain data"):
            DurableCheckpointIO().load_checkpoint(tmp_path / "evil.ckpt", weights_only=weights_only)
    assert not (tmp_path / "exploded").exists()


def test_what_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(b"half a checkpo")
    with pytest.raises(ValueError, match=r"a\.ckpt: not a checkpoint"):
        DurableCheckpointIO().load_checkpoint(tmp_path / "a.ckpt")
    with pytest.raises(FileNotFoundError, match=r"b\.ckpt"):
        DurableCheckpointIO().load_checkpoint(tmp_path / "b.ckpt")


def test_the_newest_checkpoint_is_found_and_scratch_files_are_not(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path / "none") is None
    for name in ("00000009.ckpt", "00000010.ckpt", "00000011.ckpt.part"):
        (tmp_path / name).touch()
    assert latest_checkpoint(tmp_path) == tmp_path / "00000010.ckpt"


def draw() -> tuple[object, ...]:
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), float(torch.randn(()))


def test_random_generators_go_on_where_they_were(tmp_path: Path) -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    draw()
    path = tmp_path / "a.ckpt"
    DurableCheckpointIO().save_checkpoint(RandomState().state_dict(), path)  # plain data, or loading would refuse it
    expected = [draw(), draw()]
    callback = RandomState()
    callback.load_state_dict(DurableCheckpointIO().load_checkpoint(path))
    draw()
    callback.on_train_batch_start()
    first = draw()
    callback.on_train_batch_start()  # only once
    assert [first, draw()] == expected
