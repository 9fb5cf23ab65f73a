"""The verb ``data``, which has verbs of its own."""

import argparse
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sonorant.data.manifest import Fault

__all__ = ["add_data"]


def add_data(data: argparse.ArgumentParser) -> None:
    """Give the verb its verbs."""
    verbs = data.add_subparsers(dest="data_verb", required=True, metavar="VERB")
    _add_check(verbs.add_parser("check", help="list everything that is wrong with a corpus"))
    strings = verbs.add_parser(
        "digit-strings",
        help="write strings of spoken digits with their word boundaries",
        description="Write strings of fsdd digits by one speaker each: FOLDER/table.tsv, boundaries.jsonl and wav/.",
    )
    strings.add_argument("folder", type=Path, metavar="FOLDER", help="where to")
    strings.add_argument("--number", type=int, required=True, metavar="N", help="of strings; 1200 are an hour")
    strings.add_argument("--split", choices=("train", "test"), default="train", help="(default: train)")
    strings.add_argument("--seed", type=int, default=0, metavar="N", help="(default: 0)")
    strings.add_argument("--speakers", nargs="+", metavar="NAME", help="(default: all six)")
    strings.set_defaults(run=_digit_strings)
    fsdd = verbs.add_parser(
        "fsdd",
        help="write tables of single spoken digits",
        description="Write FOLDER/train.tsv and test.tsv of the Free Spoken Digit Dataset; its recordings stay where "
        "they are.",
    )
    fsdd.add_argument("folder", type=Path, metavar="FOLDER", help="where to")
    fsdd.add_argument("--leave-out", metavar="SPEAKER", help="test on this one only (default: the official split)")
    fsdd.set_defaults(run=_fsdd)


def _add_check(check: argparse.ArgumentParser) -> None:
    check.description = "List all faults of a corpus with file and line. The exit status is 1 if there are errors."
    check.add_argument(
        "table", type=Path, metavar="TABLE", help="path<TAB>text lines, metadata.csv, a Kaldi folder, lhotse's jsonl"
    )
    check.add_argument("--sample-rate", type=int, metavar="HZ", help="the rate that is needed (default: any)")
    check.add_argument("--resample", action="store_true", help="other rates will do")
    check.add_argument("--mix-channels", action="store_true", help="recordings with several channels will do")
    check.add_argument("--min-duration", type=float, default=0.0, metavar="S", help="in seconds (default: 0)")
    check.add_argument("--max-duration", type=float, default=30.0, metavar="S", help="in seconds (default: 30)")
    vocabulary = check.add_mutually_exclusive_group()
    vocabulary.add_argument("--characters", metavar="SET", help="those that transcripts may hold, or a file of them")
    vocabulary.add_argument("--lexicon", type=Path, metavar="FILE", help="word symbol symbol ... lines")
    check.add_argument(
        "--frames-per-second", type=float, default=100.0, metavar="N", help="that the model emits (default: 100)"
    )
    check.add_argument("--shrink", type=int, default=0, metavar="N", help="frames that its context takes (default: 0)")
    check.add_argument("--jobs", type=int, metavar="N", help="threads (default: one for each core)")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=_check)


def _digit_strings(options: argparse.Namespace, rest: list[str]) -> int:
    from sonorant.data.digit_strings import write_digit_strings

    written = write_digit_strings(
        options.folder, options.number, options.seed, split=options.split, speakers=options.speakers
    )
    print(f"{options.number} strings, {written.seconds / 60:.1f} minutes")
    print(f"{len(written.left_out)} recordings with a pause inside the word were left out")
    print(f"table       {written.table}\nboundaries  {written.boundaries}")
    return 0


def _fsdd(options: argparse.Namespace, rest: list[str]) -> int:
    from sonorant.data.fsdd import write_fsdd

    for path in write_fsdd(options.folder, leave_out=options.leave_out):
        print(path)
    return 0


def _check(options: argparse.Namespace, rest: list[str]) -> int:
    from sonorant.data.check import Requirements, check_corpus
    from sonorant.data.corpus import scan_corpus
    from sonorant.progress import progress_bar

    requirements = Requirements(
        sample_rate=options.sample_rate,
        allow_resampling=options.resample,
        mix_channels=options.mix_channels,
        min_duration=options.min_duration,
        max_duration=options.max_duration,
        encode=_encoder(options.characters, options.lexicon),
        num_frames=lambda samples, rate: max(0, int(samples / rate * options.frames_per_second) - options.shrink),
    )
    corpus = scan_corpus(options.table)
    with progress_bar("checking", len(corpus.utterances)) as progress:
        found = check_corpus(corpus.utterances, requirements, jobs=options.jobs, progress=progress)
    faults = corpus.faults + found
    if options.json:
        listed = [asdict(fault) | {"is_error": fault.is_error} for fault in faults]
        print(json.dumps({"utterances": len(corpus.utterances), "faults": listed}, indent=2))
    else:
        _print_faults(faults, len(corpus.utterances))
    return int(any(fault.is_error for fault in faults))


def _encoder(characters: str | None, lexicon_file: Path | None) -> Callable[[Sequence[str]], list[int]]:
    """From words to labels: a lexicon's symbols, else characters with the spaces between words; any, if none given."""
    from sonorant.text import Lexicon, SymbolTable

    if lexicon_file is not None:
        lexicon = Lexicon.read(lexicon_file)
        prons = [pron for prons in lexicon.entries.values() for pron in prons]
        symbols = SymbolTable(dict.fromkeys(symbol for pron in prons for symbol in pron))
        return lambda words: symbols.encode(lexicon.spell(words))
    if characters is not None and Path(characters).is_file():
        characters = Path(characters).read_text(encoding="utf-8-sig")
    known = characters and set(unicodedata.normalize("NFC", characters)) | {" "}

    def encode(words: Sequence[str]) -> list[int]:
        text = " ".join(words)
        unknown = [sign for sign in dict.fromkeys(text) if known and sign not in known]
        if unknown:
            raise ValueError(f"characters that are not allowed: {', '.join(map(repr, unknown))}")
        return [ord(sign) for sign in text]

    return encode


def _print_faults(faults: Sequence["Fault"], num_utterances: int) -> None:
    for fault in faults:
        print(f"{fault.source}: {'error' if fault.is_error else 'warning'}: {fault.message}")
    counts = Counter((fault.is_error, fault.kind) for fault in faults)
    errors = sum(number for (is_error, _), number in counts.items() if is_error)
    print(f"utterances: {num_utterances}, errors: {errors}, warnings: {len(faults) - errors}")
    for (is_error, kind), number in sorted(counts.items(), reverse=True):
        print(f"  {'error' if is_error else 'warning':7} {kind:24} {number:7}")
