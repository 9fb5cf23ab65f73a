"""The command line. Imports are local: `--help` answers before torch could be imported."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sonorant import __version__
from sonorant.cli_align import add_align
from sonorant.cli_data import add_data
from sonorant.cli_pronounce import add_pronounce
from sonorant.cli_synthesize import add_synthesize
from sonorant.recipes import RECIPES, load_recipe

if TYPE_CHECKING:
    from sonorant.inference import Recognizer
    from sonorant.inference.transcript import TextGridNames

__all__ = ["main"]

EXTRAS = {"lightning": "train", "jsonargparse": "train", "matplotlib": "train", "tensorboard": "train"} | dict.fromkeys(
    ("soundfile", "soxr", "kaldi_native_fbank", "safetensors"), "audio"
)
EXTRAS |= dict.fromkeys(("kaldifst", "kaldi_decoder", "kaldilm", "kaldialign"), "decode")
EXTRAS |= dict.fromkeys(("onnx", "onnxscript", "onnxruntime"), "export") | {"pyworld": "tts"}
_READER_GONE = 141  # what shells report of a program that SIGPIPE ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors that a user can mend are one line and exit status 2."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.verb != "train":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        status: int = options.run(options, rest)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at exit
        return _READER_GONE
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"sonorant: error: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        print(f"sonorant: error: {error}; pip install 'sonorant[{extra}]'", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sonorant", description="Train and use speech sequence models.")
    parser.add_argument("--version", action="version", version=f"sonorant {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    recipes = "\n".join(f"  {name:10} {text}" for name, text in RECIPES.items())
    train = verbs.add_parser(
        "train",
        help="train a system",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Train a system into a run directory.",
        epilog=f"recipes:\n{recipes}\n\n`sonorant train RECIPE --help` lists all its settings.",
        add_help=False,
    )
    train.add_argument("recipe", nargs="?", metavar="RECIPE", help="one of those below")
    train.add_argument("-h", "--help", action="store_true", help="show this, or the settings of RECIPE")
    train.set_defaults(run=_train, usage=train)

    evaluate = verbs.add_parser("evaluate", help="count a model's errors")
    evaluate.add_argument("model", type=Path, metavar="DIR", help="a run directory or a model folder")
    evaluate.add_argument(
        "--data", type=Path, metavar="TABLE", help="a corpus, or a dictionary (default: the recipe's test set)"
    )
    evaluate.add_argument("--skip-bad", action="store_true", help="leave faulty recordings out, and name them")
    evaluate.add_argument("--batch-size", type=int, default=16, metavar="N", help="recordings at once (default: 16)")
    evaluate.add_argument("--json", action="store_true", help="print JSON")
    evaluate.set_defaults(run=_evaluate)

    transcribe = verbs.add_parser("transcribe", help="turn recordings into text: path<TAB>text lines")
    transcribe.add_argument("model", type=Path, metavar="DIR", help="a run directory or a model folder")
    transcribe.add_argument("files", nargs="+", metavar="FILE", help="recordings; - reads their paths from stdin")
    transcribe.add_argument("--decoder", choices=("wfst", "greedy"), default="wfst", help="(default: wfst)")
    transcribe.add_argument("--json", action="store_true", help="a JSON line each: words with times and confidences")
    transcribe.add_argument("--textgrid", type=Path, metavar="OUT", help="write a Praat TextGrid each into this folder")
    transcribe.add_argument("--language-model", type=Path, metavar="ARPA", help="instead of the model's own")
    transcribe.add_argument("--lexicon", type=Path, metavar="FILE", help="other words, of the model's symbols")
    transcribe.set_defaults(run=_transcribe)

    add_pronounce(verbs.add_parser("pronounce", help="pronounce words: word<TAB>phones<TAB>log probability lines"))

    add_align(verbs.add_parser("align", help="find the words of transcripts in their recordings"))

    add_synthesize(verbs.add_parser("synthesize", help="speak texts"))

    add_data(verbs.add_parser("data", help="make corpora and look after them"))

    export = verbs.add_parser("export", help="write a model for others: an ONNX file, or a folder with a card")
    export.add_argument("model", type=Path, metavar="DIR", help="a run directory or a model folder")
    export.add_argument(
        "target",
        type=Path,
        metavar="TARGET",
        help="a file ending in .onnx, for onnxruntime and sherpa-onnx; or a folder, which gets the model and its card",
    )
    export.set_defaults(run=_export)
    return parser


def _train(options: argparse.Namespace, rest: list[str]) -> int:
    if options.recipe is None:
        if rest:
            raise ValueError(f"which recipe? Known are {', '.join(RECIPES)}")
        options.usage.print_help()
        return 0
    recipe = load_recipe(options.recipe)
    from sonorant.recipes.run import leave_processes, prepare_run

    config, run = prepare_run(recipe, options.recipe, rest + ["--help"] * options.help)
    metrics = recipe.train(config, run)
    leave_processes()
    if metrics:
        print(recipe.report(metrics, run))
    return 0


def _evaluate(options: argparse.Namespace, rest: list[str]) -> int:
    from sonorant.inference import Aligner, Pronouncer, Synthesizer, load

    model = load(options.model)
    if isinstance(model, Aligner):
        raise ValueError(f"{options.model}: an aligner makes no errors that could be counted; see `sonorant align`")
    if isinstance(model, Synthesizer):
        raise ValueError(f"{options.model}: a synthesizer makes no errors that could be counted; others must listen")
    if options.data is None and model.recipe is None:
        raise ValueError(f"{options.model}: the model names no recipe whose test set could be used; give --data TABLE")
    data = load_recipe(str(model.recipe)).test_set() if options.data is None else None
    if isinstance(model, Pronouncer):
        from sonorant.data.pronunciations import read_pronunciations
        from sonorant.inference.pronunciation_evaluation import evaluate_pronunciations, summary_text

        lexicon = data or read_pronunciations(options.data)
        summary = evaluate_pronunciations(model, lexicon, batch_size=options.batch_size).summary()
        print(json.dumps(summary, indent=2, ensure_ascii=False) if options.json else summary_text(summary))
        return 0
    from sonorant.data.corpus import scan_corpus
    from sonorant.inference.evaluation import evaluate, rates_table, usable

    utterances = data or usable(model, scan_corpus(options.data), skip_bad=options.skip_bad)
    rates = evaluate(model, utterances, batch_size=options.batch_size).summary()
    print(json.dumps(rates, indent=2) if options.json else rates_table(rates))
    return 0


def _transcribe(options: argparse.Namespace, rest: list[str]) -> int:
    from sonorant.inference import Recognizer, load
    from sonorant.inference.transcript import TextGridNames

    recognizer = load(options.model)
    if not isinstance(recognizer, Recognizer):
        raise ValueError(f"{options.model}: a model of kind {recognizer.KIND!r}, which does not transcribe recordings")
    if options.language_model is not None or options.lexicon is not None:
        recognizer = recognizer.with_language(lexicon=options.lexicon, language_model=options.language_model)
    grids = None
    if options.textgrid is not None:
        options.textgrid.mkdir(parents=True, exist_ok=True)
        grids = TextGridNames(options.textgrid)
    failed = False
    for path in _paths(options.files):
        failed |= not _transcribe_one(recognizer, path, options, grids)
    return 2 if failed else 0


def _export(options: argparse.Namespace, rest: list[str]) -> int:
    from sonorant.inference import export_model

    for path in export_model(options.model, options.target):
        print(f"{path}  {path.stat().st_size:,} bytes")
    return 0


def _transcribe_one(
    recognizer: "Recognizer", path: str, options: argparse.Namespace, grids: "TextGridNames | None"
) -> bool:
    """Print a transcript, or say on stderr why there is none: one bad file does not stop the others."""
    from sonorant.data.textgrid import write_textgrid

    grid = None if grids is None else grids.path(path)
    try:
        if grid is None and not options.json:
            line = f"{path}\t{recognizer.transcribe(path, decoder=options.decoder)}"
        else:
            transcript = recognizer.recognize(path, decoder=options.decoder)
            data = {"path": path, **transcript.to_json()}
            line = json.dumps(data, ensure_ascii=False) if options.json else f"{path}\t{transcript.text}"
            if grid is not None:
                write_textgrid(grid, transcript.to_textgrid())
    except FileExistsError:
        print(f"sonorant: error: {path}: {grid} is there already", file=sys.stderr)
        return False
    except (ValueError, OSError) as error:
        print(f"sonorant: error: {error}", file=sys.stderr)
        return False
    print(line, flush=True)
    return True


def _paths(files: list[str]) -> Iterator[str]:
    for file in files:
        if file == "-":
            yield from (line.rstrip("\r\n") for line in sys.stdin if line.strip())
        else:
            yield file


if __name__ == "__main__":
    sys.exit(main())
