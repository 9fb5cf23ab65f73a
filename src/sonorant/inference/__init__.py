"""Trained models in use."""

from pathlib import Path

from sonorant.export.model_folder import ModelFolderError, read_model_folder
from sonorant.inference.exporting import export_model
from sonorant.inference.recognizer import Recognizer
from sonorant.inference.transcript import RecognizedWord, Transcript

__all__ = ["RecognizedWord", "Recognizer", "Transcript", "export_model", "load"]


def load(folder: str | Path) -> Recognizer:
    """Load a trained model.

    Args:
        folder: a model folder, or the run directory of a training run.

    Returns:
        What the model is for: a :class:`Recognizer`.

    Raises:
        FileNotFoundError: no such folder.
        ModelFolderError: not a model folder of this package, or damaged.
    """
    contents = read_model_folder(folder)
    if contents.config["kind"] != Recognizer.KIND:
        raise ModelFolderError(f"{contents.path}: a model of kind {contents.config['kind']!r}, which is not known")
    return Recognizer.from_folder(contents)
