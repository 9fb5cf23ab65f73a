"""How long training takes."""

import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

__all__ = ["Stopwatch"]


class Stopwatch(Callback):
    """Seconds of training, those before an interruption included, as far as they were not for nothing."""

    def __init__(self) -> None:
        self._before = 0.0
        self._started: float | None = None

    @property
    def seconds(self) -> float:
        """Until now."""
        return self._before + (0.0 if self._started is None else time.monotonic() - self._started)

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Start the clock."""
        self._started = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._before = float(state["seconds"])
