"""Weights of a training that has ended, so that a resumed run does not train them again."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import nn

from sonorant.durable import written_durably

__all__ = ["keep_finished", "take_finished"]

_NAME = "finished.safetensors"


def keep_finished(model: nn.Module, folder: Path, facts: Mapping[str, str] | None = None) -> None:
    """Write the weights of a trained model into the folder of its training.

    Args:
        model: on the CPU.
        folder: exists.
        facts: that :func:`take_finished` gives back.
    """
    with written_durably(folder / _NAME) as file:
        file.write(save(model.state_dict(), dict(facts or {})))


def take_finished(model: nn.Module, folder: Path) -> dict[str, str] | None:
    """Load what :func:`keep_finished` wrote.

    Returns:
        The facts; None, and the model as it was, if the training has not ended.
    """
    path = folder / _NAME
    if not path.is_file():
        return None
    model.load_state_dict(load_file(path))
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata() or {})
