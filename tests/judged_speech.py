"""What the tests of the judges of speech share."""

import builtins
from typing import Any

import numpy as np
import pytest


def buzz(frequency: float, seconds: float = 0.3, brightness: float = 0.7) -> np.ndarray:
    times = np.arange(round(8000 * seconds)) / 8000
    waves = sum(brightness**k * np.sin(2 * np.pi * frequency * k * times) for k in range(1, 12))
    return (0.1 * waves).astype(np.float32)


def without_module(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def refuse(wanted: str, *arguments: Any, **options: Any) -> Any:
        if wanted == name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return load(wanted, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
