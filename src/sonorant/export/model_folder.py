"""Model folders: safetensors weights, a JSON configuration and text files. Nothing in them can run code."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from sonorant.durable import sync

__all__ = [
    "ModelFolder",
    "ModelFolderError",
    "check_replaceable",
    "find_model_folder",
    "read_model_folder",
    "write_model_folder",
]

FORMAT_VERSION = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
CARD, METRICS, TRAINING = "README.md", "metrics.json", "training.yaml"
_FILES = {CONFIG, WEIGHTS, CARD, METRICS, TRAINING, "tokens.txt", "lexicon.txt", "lm.arpa"}
_FILES |= {"graphemes.txt", "train_words.txt.gz"}


class ModelFolderError(ValueError):
    """A folder that is not a model folder of this package; the message names it."""


class ModelFolder(NamedTuple):
    """What a model folder holds: where it is, its configuration and its weights."""

    path: Path
    config: dict[str, Any]
    weights: dict[str, Tensor]


def write_model_folder(
    path: Path, kind: str, config: Mapping[str, Any], weights: Mapping[str, Tensor], files: Mapping[str, str | bytes]
) -> None:
    """Write a model folder; it replaces one that is there only when all of it is on disk.

    Args:
        path: the folder.
        kind: what the model does, which decides the class that :func:`sonorant.load` returns.
        config: plain data, as JSON takes it.
        weights: a state dict.
        files: further files, content by name.
    """
    from safetensors.torch import save_file

    from sonorant import __version__

    scratch = path.with_name(path.name + ".part")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    header = {"format_version": FORMAT_VERSION, "sonorant_version": __version__, "kind": kind}
    (scratch / CONFIG).write_text(
        json.dumps({**header, **config}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, scratch / WEIGHTS)
    for name, content in files.items():
        (scratch / name).write_bytes(content.encode() if isinstance(content, str) else content)
    for file in scratch.iterdir():
        sync(file)
    old = path.with_name(path.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if path.exists():
        path.rename(old)
    scratch.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def check_replaceable(path: Path) -> None:
    """Refuse to write a model folder where something else would be lost.

    Raises:
        ModelFolderError: a file, a folder that is not a model folder, or one that holds more than a model.
    """
    if not path.exists():
        return
    if not path.is_dir():
        raise ModelFolderError(f"{path}: a file; it is not overwritten")
    names = {entry.name for entry in path.iterdir()}
    if not names:
        return
    if CONFIG not in names:
        raise ModelFolderError(f"{path}: holds something, but no model; it is not overwritten")
    _read_config(path)
    if others := sorted(names - _FILES):
        raise ModelFolderError(f"{path}: also holds {', '.join(others)}, which would be lost; it is not overwritten")


def find_model_folder(path: str | Path) -> Path:
    """The model folder that a path means: itself, or ``model/`` inside a run directory.

    Raises:
        FileNotFoundError: no such folder.
        ModelFolderError: a file, or a folder without a model.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such folder")
    if path.is_file():
        raise ModelFolderError(
            f"{path}: a file; expected a model folder or a run directory (pickled files are not read)"
        )
    for folder in (path, path / "model"):
        if (folder / CONFIG).is_file():
            return folder
    raise ModelFolderError(
        f"{path}: not a model folder or a run directory: there is no {CONFIG} in it or in its model/"
    )


def read_model_folder(path: str | Path) -> ModelFolder:
    """Read a model folder.

    Raises:
        FileNotFoundError: no such folder, or one without weights.
        ModelFolderError: not ours, of a newer format, or with weights that are not safetensors.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = find_model_folder(path)
    config = _read_config(path)
    weights = path / WEIGHTS
    if not weights.is_file():
        raise FileNotFoundError(f"{weights}: no such file")
    try:
        return ModelFolder(path, config, load_file(weights))
    except SafetensorError as error:
        raise ModelFolderError(f"{weights}: not a safetensors file ({error}); pickled weights are not read") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelFolderError(f"{path / CONFIG}: not JSON ({error})") from error
    if not isinstance(config, dict) or "kind" not in config or "format_version" not in config:
        raise ModelFolderError(f"{path / CONFIG}: not a configuration of sonorant: there is no kind or format_version")
    if config["format_version"] != FORMAT_VERSION:
        raise ModelFolderError(
            f"{path / CONFIG}: format_version is {config['format_version']}; this release reads {FORMAT_VERSION}"
        )
    return config
