"""Checkpoints that survive a kill at any moment, and from which a run goes on bit by bit as if never stopped."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

from sonorant.durable import written_durably

__all__ = ["DurableCheckpointIO", "RandomState", "latest_checkpoint", "periodic_checkpoint"]

_SUFFIX = ".ckpt"


class DurableCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint aside, syncs it to the disk and renames it; loads only data, never code."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write a checkpoint; the file appears under its name only when all of it is on disk."""
        with written_durably(Path(path)) as file:
            torch.save(checkpoint, file)

    def load_checkpoint(
        self, path: str | Path, map_location: Any = lambda storage, _: storage, weights_only: bool | None = True
    ) -> dict[str, Any]:
        """Read a checkpoint.

        Raises:
            ValueError: not a checkpoint, or one that holds pickled objects, which could run code.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such checkpoint")
        try:
            checkpoint: dict[str, Any] = torch.load(path, map_location=map_location, weights_only=True)
        except Exception as error:
            raise ValueError(f"{path}: not a checkpoint of plain data: {error}") from error
        return checkpoint


class RandomState(Callback):
    """Keeps the random generators of Python, NumPy and torch in the checkpoint, which Lightning does not.

    They are restored just before the first batch, when nothing else draws any more.
    """

    def __init__(self) -> None:
        self._restored: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """The generators, as plain data."""
        algorithm, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
        version, internal, gauss = random.getstate()
        return {
            "python": [version, list(internal), gauss],
            "numpy": [algorithm, [int(key) for key in keys], position, has_gauss, cached],
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Keep them for the first batch."""
        self._restored = state

    def on_train_batch_start(self, *_: Any) -> None:
        """Restore them, once."""
        if self._restored is None:
            return
        state, self._restored = self._restored, None
        version, internal, gauss = state["python"]
        random.setstate((version, tuple(internal), gauss))
        algorithm, keys, position, has_gauss, cached = state["numpy"]
        np.random.set_state((algorithm, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
        torch.set_rng_state(state["torch"].cpu())
        if state["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([generator.cpu() for generator in state["cuda"]])


def periodic_checkpoint(folder: Path, every_n_steps: int) -> ModelCheckpoint:
    """Save every so many steps, and keep the newest: the old one goes when the new one is safe."""
    return ModelCheckpoint(
        dirpath=folder,
        filename="{step:08d}",
        auto_insert_metric_name=False,
        every_n_train_steps=every_n_steps,
        save_top_k=1,
        enable_version_counter=False,
        save_on_train_epoch_end=False,
    )


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint of a run, or None."""
    return max(folder.glob(f"*{_SUFFIX}"), default=None, key=lambda path: path.name)
