"""The verb ``align``."""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sonorant.data.manifest import Corpus, Utterance
    from sonorant.inference import Aligner, Alignment
    from sonorant.inference.suspects import Suspect
    from sonorant.inference.transcript import TextGridNames

__all__ = ["add_align"]

_AT_ONCE = 64


def add_align(align: argparse.ArgumentParser) -> None:
    """Give the verb its arguments."""
    align.description = (
        "Find the words of transcripts in their recordings: id<TAB>start<TAB>end<TAB>word<TAB>tokens lines, seconds. "
        "Transcripts that are probably wrong are listed at the end, on standard error. Utterances that cannot be "
        "aligned are listed there too; the exit status is then 2."
    )
    align.add_argument("model", type=Path, metavar="DIR", help="a run directory or a model folder")
    align.add_argument("--data", type=Path, required=True, metavar="TABLE", help="recordings and their transcripts")
    align.add_argument("--textgrid", type=Path, metavar="OUT", help="write a Praat TextGrid each into this folder")
    align.add_argument("--pictures", type=Path, metavar="OUT", help="draw each into this folder")
    align.add_argument("--json", action="store_true", help="a JSON line each: words and tokens with times and scores")
    align.add_argument("--lexicon", type=Path, metavar="FILE", help="further words, of the model's symbols")
    align.add_argument("--pronouncer", type=Path, metavar="DIR", help="a g2p model for words that the lexicon lacks")
    align.add_argument("--batch-size", type=int, default=16, metavar="N", help="recordings at once (default: 16)")
    align.set_defaults(run=_align)


def _align(options: argparse.Namespace, rest: list[str]) -> int:
    from sonorant.data.corpus import scan_corpus
    from sonorant.inference import Aligner, load
    from sonorant.inference.suspects import find_suspects
    from sonorant.inference.transcript import TextGridNames

    aligner = load(options.model)
    if not isinstance(aligner, Aligner):
        raise ValueError(f"{options.model}: a model of kind {aligner.KIND!r}, which does not align recordings")
    corpus = scan_corpus(options.data)
    aligner = _with_words(aligner, corpus.utterances, options.lexicon, options.pronouncer)
    utterances = _usable(aligner, corpus)
    names = []
    for folder, ending in ((options.textgrid, "TextGrid"), (options.pictures, "png")):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        names.append(None if folder is None else TextGridNames(folder, ending))
    alignments, failed = [], len(utterances) < len(corpus.utterances) or bool(corpus.faults)
    for utterance, alignment in _aligned(aligner, utterances, options.batch_size):
        alignments.append(alignment)
        _print(utterance, alignment, as_json=options.json)
        failed |= not _write(aligner, utterance, alignment, *names)
    _print_suspects(utterances, find_suspects(alignments, aligner.usual))
    return 2 if failed else 0


def _with_words(
    aligner: "Aligner", utterances: Sequence["Utterance"], lexicon: Path | None, pronouncer: Path | None
) -> "Aligner":
    from sonorant.data.pronunciations import read_pronunciations
    from sonorant.inference.spelling import pronounce_missing

    if lexicon is not None:
        aligner = aligner.with_words(read_pronunciations(lexicon))
    if pronouncer is not None:
        if aligner.speller.lexicon is None:
            raise ValueError("--pronouncer: the model spells words with their letters")
        words = [word for utterance in utterances for word in utterance.words]
        aligner = aligner.with_words(pronounce_missing(aligner.speller.lexicon, words, pronouncer))
    return aligner


def _usable(aligner: "Aligner", corpus: "Corpus") -> list["Utterance"]:
    """Say on stderr what cannot be aligned: bad utterances do not stop the others."""
    from sonorant.data.check import check_corpus
    from sonorant.progress import progress_bar

    missing = aligner.speller.missing(word for utterance in corpus.utterances for word in utterance.words)
    if missing:
        named = ", ".join(f"{word} ({times})" for word, times in Counter(missing).most_common())
        print(f"sonorant: words that cannot be spelled, and how often they come: {named}", file=sys.stderr)
    with progress_bar("checking", len(corpus.utterances)) as progress:
        needed = aligner.requirements(max_duration=math.inf)
        faults = corpus.faults + check_corpus(corpus.utterances, needed, progress=progress)
    errors = [fault for fault in faults if fault.is_error]
    for fault in errors:
        print(f"sonorant: error: {fault}", file=sys.stderr)
    bad = {(fault.source, fault.id) for fault in errors}
    return [utterance for utterance in corpus.utterances if (utterance.source, utterance.id) not in bad]


def _aligned(
    aligner: "Aligner", utterances: Sequence["Utterance"], batch_size: int
) -> Iterator[tuple["Utterance", "Alignment"]]:
    from sonorant.progress import progress_bar

    with progress_bar("aligning", len(utterances)) as progress:
        for start in range(0, len(utterances), _AT_ONCE):
            some = utterances[start : start + _AT_ONCE]
            yield from zip(some, aligner.align_all(some, batch_size=batch_size), strict=True)
            progress(start + len(some))


def _print(utterance: "Utterance", alignment: "Alignment", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"id": utterance.id, **alignment.to_json()}, ensure_ascii=False), flush=True)
        return
    for word in alignment.words:
        tokens = " ".join(f"{token.token}@{token.start:.3f}" for token in word.tokens)
        print(f"{utterance.id}\t{word.start:.3f}\t{word.end:.3f}\t{word.word}\t{tokens}")
    sys.stdout.flush()


def _write(
    aligner: "Aligner",
    utterance: "Utterance",
    alignment: "Alignment",
    grids: "TextGridNames | None",
    pictures: "TextGridNames | None",
) -> bool:
    """Whether all that was asked for could be written; a file that is there already stays as it is."""
    from sonorant.data.textgrid import write_textgrid

    if grids is not None:
        path = grids.path(utterance.id)
        try:
            write_textgrid(path, alignment.to_textgrid())
        except FileExistsError:
            print(f"sonorant: error: {utterance.id}: {path} is there already", file=sys.stderr)
            return False
    if pictures is not None:
        from sonorant.plots import plot_alignment

        plot_alignment(aligner, utterance, alignment, pictures.path(utterance.id))
    return True


def _print_suspects(utterances: Sequence["Utterance"], suspects: Sequence["Suspect"]) -> None:
    for suspect in suspects:
        utterance = utterances[suspect.number]
        where = f"{utterance.source}: " if utterance.source else ""
        reasons = "; ".join(suspect.reasons)
        print(f"sonorant: suspicious: {where}{utterance.id}: {reasons} (text: {utterance.text})", file=sys.stderr)
