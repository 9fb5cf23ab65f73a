"""From a model folder to what the model is for."""

from pathlib import Path

from sonorant.export.model_folder import ModelFolder, ModelFolderError, read_model_folder
from sonorant.inference.aligner import Aligner
from sonorant.inference.pronouncer import Pronouncer
from sonorant.inference.recognizer import Recognizer
from sonorant.inference.synthesizer import Synthesizer

__all__ = ["Model", "load", "rebuild"]

Model = Recognizer | Pronouncer | Aligner | Synthesizer


def load(folder: str | Path) -> Model:
    """Load a trained model.

    Args:
        folder: a model folder, or the run directory of a training run.

    Returns:
        What the model is for: a :class:`Recognizer`, a :class:`Pronouncer`, an :class:`Aligner`, or a
        :class:`Synthesizer`.

    Raises:
        FileNotFoundError: no such folder.
        ModelFolderError: not a model folder of this package, or damaged.
    """
    return rebuild(read_model_folder(folder))


def rebuild(contents: ModelFolder) -> Model:
    """The model whose folder was read.

    Raises:
        ModelFolderError: of a kind that is not known, or damaged.
    """
    kind = contents.config["kind"]
    if kind == Recognizer.KIND:
        return Recognizer.from_folder(contents)
    if kind == Pronouncer.KIND:
        return Pronouncer.from_folder(contents)
    if kind == Aligner.KIND:
        return Aligner.from_folder(contents)
    if kind == Synthesizer.KIND:
        return Synthesizer.from_folder(contents)
    raise ModelFolderError(f"{contents.path}: a model of kind {kind!r}, which is not known")
