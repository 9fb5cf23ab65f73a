"""From a run to what is given to others: an ONNX model, or a model folder with a card."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from sonorant import __version__
from sonorant.export.card import CardFacts, model_card
from sonorant.export.model_folder import (
    CARD,
    METRICS,
    TRAINING,
    ModelFolder,
    ModelFolderError,
    check_replaceable,
    read_model_folder,
    write_model_folder,
)
from sonorant.inference.recognizer import Recognizer

__all__ = ["export_model"]


def export_model(source: str | Path, target: str | Path) -> list[Path]:
    """Write a trained model for others.

    A target that ends in ``.onnx`` becomes an ONNX model, with its ``tokens.txt`` beside it. Any other becomes a model
    folder that holds all that is known about the model: the model, its metrics, the settings of its run, and a card
    (``README.md``) written from these.

    Args:
        source: a run directory or a model folder.
        target: where to.

    Returns:
        The files that were written.

    Raises:
        FileNotFoundError: no such source.
        ModelFolderError: the source is not a model, or the target is something that would be lost.
    """
    target = Path(target)
    contents = read_model_folder(source)
    if contents.config["kind"] != Recognizer.KIND:
        raise ModelFolderError(f"{contents.path}: a model of kind {contents.config['kind']!r} cannot be exported")
    recognizer = Recognizer.from_folder(contents)
    if target.suffix.lower() == ".onnx":
        return _export_onnx(recognizer, target)
    return _export_folder(recognizer, contents, target)


def _export_onnx(recognizer: Recognizer, path: Path) -> list[Path]:
    from sonorant.export.onnx import export_onnx

    tokens, text = path.with_name("tokens.txt"), recognizer.symbols.to_text()
    if tokens.exists() and tokens.read_bytes() != text.encode():
        raise ModelFolderError(f"{tokens}: holds the symbols of another model; choose another folder")
    export_onnx(recognizer.model, path, _metadata(recognizer), blank=recognizer.symbols.blank)
    tokens.write_text(text, encoding="utf-8")
    return [path, tokens]


def _metadata(recognizer: Recognizer) -> dict[str, object]:
    from sonorant.export.onnx import PADDING_VALUE

    symbols = recognizer.symbols
    return {
        "model_type": "tdnn",  # these two are read by sherpa-onnx
        "vocab_size": len(symbols),
        "model_author": "sonorant",
        "sonorant_version": __version__,
        "comment": "log mel energies to CTC log probabilities; normalisation is inside",
        "recipe": recognizer.recipe or "",
        "tokens": " ".join(symbols.symbols),
        "blank": symbols.blank,
        "silence": recognizer.silence or "",
        **asdict(recognizer.fbank.config),
        "edge_seconds": recognizer.frontend.recordings.edge_seconds,
        "edge_level_db": recognizer.frontend.recordings.edge_level_db,
        "padding_value": PADDING_VALUE,
    }


def _export_folder(recognizer: Recognizer, contents: ModelFolder, target: Path) -> list[Path]:
    check_replaceable(target)
    record = _read_record(contents.path)
    facts = CardFacts(
        title=target.resolve().name,
        version=contents.config["sonorant_version"],
        recipe=recognizer.recipe,
        words=recognizer.lexicon.words,
        open_vocabulary=recognizer.open_vocabulary,
        num_parameters=sum(parameter.numel() for parameter in recognizer.model.parameters()),
        features=recognizer.fbank.config,
        shortest_frames=recognizer.model.min_frames,
        edge_seconds=recognizer.frontend.recordings.edge_seconds,
        corpus=recognizer.corpus,
        metrics=record.metrics,
        settings=record.settings,
    )
    texts = {**recognizer.texts(), CARD: model_card(facts)}
    if record.metrics is not None:
        texts[METRICS] = json.dumps(record.metrics, indent=2) + "\n"
    if record.settings is not None:
        texts[TRAINING] = record.settings
    write_model_folder(target, contents.config["kind"], contents.config, contents.weights, texts)
    return sorted(target.iterdir())


class _Record(NamedTuple):
    """What a run, or a folder exported from it, recorded about a model."""

    metrics: Mapping[str, Any] | None
    settings: str | None


def _read_record(folder: Path) -> _Record:
    """Beside the model in an exported folder; in a run directory, one level up and under the run's names."""
    folder = folder.resolve()
    run = folder.parent if folder.name == "model" else folder
    metrics = _first_file(folder / METRICS, run / METRICS)
    settings = _first_file(folder / TRAINING, run / "config.yaml")
    try:
        recorded = None if metrics is None else json.loads(metrics.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelFolderError(f"{metrics}: not JSON ({error})") from error
    return _Record(recorded, None if settings is None else settings.read_text(encoding="utf-8"))


def _first_file(*paths: Path) -> Path | None:
    return next((path for path in paths if path.is_file()), None)
