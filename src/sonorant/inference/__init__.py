"""Trained models in use."""

from pathlib import Path

from sonorant.export.model_folder import ModelFolderError, read_model_folder
from sonorant.inference.exporting import export_model
from sonorant.inference.pronouncer import Pronouncer, Pronunciation
from sonorant.inference.recognizer import Recognizer
from sonorant.inference.transcript import RecognizedWord, Transcript

__all__ = [
    "Pronouncer",
    "Pronunciation",
    "RecognizedWord",
    "Recognizer",
    "Transcript",
    "export_model",
    "load",
]


def load(folder: str | Path) -> Recognizer | Pronouncer:
    """Load a trained model.

    Args:
        folder: a model folder, or the run directory of a training run.

    Returns:
        What the model is for: a :class:`Recognizer`, or a :class:`Pronouncer`.

    Raises:
        FileNotFoundError: no such folder.
        ModelFolderError: not a model folder of this package, or damaged.
    """
    contents = read_model_folder(folder)
    kinds: dict[str, type[Recognizer | Pronouncer]] = {kind.KIND: kind for kind in (Recognizer, Pronouncer)}
    kind = kinds.get(contents.config["kind"])
    if kind is None:
        raise ModelFolderError(f"{contents.path}: a model of kind {contents.config['kind']!r}, which is not known")
    return kind.from_folder(contents)
