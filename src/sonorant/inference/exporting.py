"""From a run to what is given to others: ONNX models, or a model folder with a card."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from sonorant import __version__
from sonorant.export.aligner_card import AlignerFacts, aligner_card
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
from sonorant.export.pronouncer_card import PronouncerFacts, pronouncer_card
from sonorant.export.recognizer_card import RecognizerFacts, recognizer_card
from sonorant.export.synthesizer_card import SynthesizerFacts, synthesizer_card
from sonorant.inference.aligner import Aligner
from sonorant.inference.loading import Model, rebuild
from sonorant.inference.pronouncer import Pronouncer
from sonorant.inference.recognizer import Recognizer
from sonorant.inference.synthesizer import Synthesizer
from sonorant.text import Speller

__all__ = ["export_model"]


def export_model(source: str | Path, target: str | Path) -> list[Path]:
    """Write a trained model for others.

    A target that ends in ``.onnx`` becomes ONNX: of a recognizer one model, with its ``tokens.txt`` beside it; of a
    pronouncer ``NAME-encoder.onnx`` and ``NAME-decoder.onnx``, with ``graphemes.txt`` and ``tokens.txt``. Any other
    becomes a model folder that holds all that is known about the model: the model, its metrics, the settings of its
    run, and a card (``README.md``) written from these.

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
    model = rebuild(contents)
    if target.suffix.lower() != ".onnx":
        return _export_folder(model, contents, target)
    if isinstance(model, Aligner | Synthesizer):
        raise ModelFolderError(f"{target}: {model.KIND}s are not exported to ONNX; give a folder")
    return _export_recognizer(model, target) if isinstance(model, Recognizer) else _export_pronouncer(model, target)


def _export_recognizer(recognizer: Recognizer, path: Path) -> list[Path]:
    from sonorant.export.onnx import export_onnx

    tokens, text = path.with_name("tokens.txt"), recognizer.symbols.to_text()
    _check_symbols({tokens: text})
    export_onnx(recognizer.model, path, _recognizer_metadata(recognizer), blank=recognizer.symbols.blank)
    tokens.write_text(text, encoding="utf-8")
    return [path, tokens]


def _export_pronouncer(pronouncer: Pronouncer, path: Path) -> list[Path]:
    from sonorant.export.g2p_onnx import export_g2p_onnx

    symbols = {
        path.with_name("graphemes.txt"): pronouncer.graphemes.to_text(),
        path.with_name("tokens.txt"): pronouncer.phones.to_text(),
    }
    _check_symbols(symbols)
    files = export_g2p_onnx(pronouncer.model, path, _pronouncer_metadata(pronouncer))
    for file, text in symbols.items():
        file.write_text(text, encoding="utf-8")
    return [*files, *symbols]


def _check_symbols(symbols: Mapping[Path, str]) -> None:
    for path, text in symbols.items():
        if path.exists() and path.read_bytes() != text.encode():
            raise ModelFolderError(f"{path}: holds the symbols of another model; choose another folder")


def _recognizer_metadata(recognizer: Recognizer) -> dict[str, object]:
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


def _pronouncer_metadata(pronouncer: Pronouncer) -> dict[str, object]:
    return {
        "model_type": "g2p",
        "model_author": "sonorant",
        "sonorant_version": __version__,
        "comment": "graphemes to phones; 0 is before the first phone and after the last one",
        "recipe": pronouncer.recipe or "",
        "graphemes": " ".join(pronouncer.graphemes.symbols),
        "tokens": " ".join(pronouncer.phones.symbols),
    }


def _export_folder(model: Model, contents: ModelFolder, target: Path) -> list[Path]:
    check_replaceable(target)
    record = _read_record(contents.path)
    files: dict[str, str | bytes] = {**model.files(), CARD: _card(model, contents, record, target.resolve().name)}
    if record.metrics is not None:
        files[METRICS] = json.dumps(record.metrics, indent=2, ensure_ascii=False) + "\n"
    if record.settings is not None:
        files[TRAINING] = record.settings
    write_model_folder(target, contents.config["kind"], contents.config, contents.weights, files)
    return sorted(target.iterdir())


class _Record(NamedTuple):
    """What a run, or a folder exported from it, recorded about a model."""

    metrics: Mapping[str, Any] | None
    settings: str | None


def _card(model: Model, contents: ModelFolder, record: _Record, title: str) -> str:
    common: dict[str, Any] = {
        "title": title,
        "version": contents.config["sonorant_version"],
        "recipe": model.recipe,
        "num_parameters": sum(parameter.numel() for parameter in model.model.parameters()),
        "corpus": model.corpus,
        **record._asdict(),
    }
    if isinstance(model, Pronouncer):
        facts = PronouncerFacts(
            **common,
            num_models=len(model.model.members),
            num_words=len(model.train_words),
            graphemes=model.graphemes.symbols[1:],
            phones=model.phones.symbols[1:],
            example=max(model.train_words, key=lambda word: (len(word), word), default="word"),
        )
        return pronouncer_card(facts)
    if isinstance(model, Aligner):
        aligner_facts = AlignerFacts(
            **common,
            **_spelling(model.speller),
            features=model.fbank.config,
            speakers=model.speakers,
        )
        return aligner_card(aligner_facts)
    if isinstance(model, Synthesizer):
        words = [] if model.speller.lexicon is None else model.speller.lexicon.words
        synthesizer_facts = SynthesizerFacts(
            **common,
            **_spelling(model.speller),
            features=model.features,
            speaker_accents=model.speaker_accents,
            accents=model.accents,
            predictors_trained=model.predictors_trained,
            example=words[len(words) // 2] if words else "your text",
        )
        return synthesizer_card(synthesizer_facts)
    return recognizer_card(
        RecognizerFacts(
            **common,
            words=model.lexicon.words,
            open_vocabulary=model.open_vocabulary,
            features=model.fbank.config,
            shortest_frames=model.model.min_frames,
            edge_seconds=model.frontend.recordings.edge_seconds,
        )
    )


def _spelling(speller: Speller) -> dict[str, Any]:
    return {
        "tokens": [symbol for symbol in speller.symbols.symbols[1:] if symbol != speller.boundary],
        "num_words": None if speller.lexicon is None else len(speller.lexicon),
    }


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
