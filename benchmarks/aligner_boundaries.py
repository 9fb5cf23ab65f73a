"""How exact an aligner's word boundaries are, on strings of spoken digits whose boundaries are known.

    python -m benchmarks.aligner_boundaries [--seeds 0 1 2] [--epochs N] [--units lexicon|characters] [--held-out]

Trains on 600 strings of the train part and aligns 200 strings of the test part, whose recordings are others. With
``--held-out``, for the choice of settings, both are of the train part, of different recordings.
"""

import argparse
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.fsdd_speakers import LEXICON
from sonorant.data.corpus import read_corpus
from sonorant.data.digit_strings import read_boundaries, write_digit_strings
from sonorant.data.fsdd import FsddCorpus, load_fsdd
from sonorant.data.manifest import Corpus
from sonorant.recipes import aligner as recipe

TRAIN_STRINGS, TEST_STRINGS = 600, 200


class Result(NamedTuple):
    """Absolute errors of all word starts and ends in milliseconds, by speaker, and the seconds of training."""

    errors: dict[str, list[float]]
    seconds: float

    @property
    def all(self) -> np.ndarray:
        return np.concatenate(list(self.errors.values()))


def held_out() -> FsddCorpus:
    """The train part in two, a fifth of the recordings being the second."""
    train = load_fsdd().train
    second = {utterance.id for utterance in train if zlib.crc32(utterance.id.encode()) % 5 == 0}
    return FsddCorpus([u for u in train if u.id not in second], [u for u in train if u.id in second])


def train_and_measure(folder: Path, seed: int, corpus: FsddCorpus, *, epochs: int, kind: str = "lexicon") -> Result:
    """Train with the recipe and its own settings.

    Args:
        folder: for strings and run; strings that are there already are used again.
        seed: of the training. The strings are the same for all seeds.
        corpus: recordings to train and to test on.
        epochs: of the training.
        kind: the units.
    """
    for split, number in (("train", TRAIN_STRINGS), ("test", TEST_STRINGS)):
        if not (folder / split).exists():
            write_digit_strings(folder / split, number, split=split, corpus=corpus)
    lexicon = folder / "digits.txt"
    lexicon.write_text(LEXICON, encoding="utf-8")
    units = recipe.UnitsConfig(kind=kind, lexicon=str(lexicon) if kind == "lexicon" else None)  # type: ignore[arg-type]
    data = recipe.DataConfig(train="", cache=False)
    config = recipe.Config(seed=seed, data=data, units=units)
    config = replace(config, trainer=replace(config.trainer, max_epochs=epochs))
    task = recipe.prepare(config, Corpus(read_corpus(folder / "train" / "table.tsv")))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as run:
        recipe.fit_aligner(config, task, Path(run))
    seconds = time.monotonic() - start
    utterances = read_corpus(folder / "test" / "table.tsv")
    truth = read_boundaries(folder / "test" / "boundaries.jsonl")
    errors: dict[str, list[float]] = defaultdict(list)
    for utterance, alignment in zip(utterances, task.aligner.align_all(utterances), strict=True):
        for word, span in zip(alignment.words, truth[utterance.id], strict=True):
            differences = (word.start - span.start, word.end - span.end)
            errors[str(utterance.speaker)] += [1000 * abs(difference) for difference in differences]
    return Result(dict(errors), seconds)


def row(name: str, errors: Sequence[float] | np.ndarray, seconds: float | None = None) -> str:
    """A line of the table, in milliseconds."""
    values = np.asarray(errors)
    median, p90, p95 = np.percentile(values, [50, 90, 95])
    cells = [name, f"{values.mean():.1f}", f"{median:.1f}", f"{p90:.1f}", f"{p95:.1f}", f"{(values > 100).mean():.2%}"]
    return f"| {' | '.join([*cells, '' if seconds is None else f'{seconds:.0f}'])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--epochs", type=int, default=recipe.Config(data=recipe.DataConfig(train="")).trainer.max_epochs
    )
    parser.add_argument("--units", choices=["lexicon", "characters"], default="lexicon")
    parser.add_argument("--held-out", action="store_true", help="for the choice of settings")
    options = parser.parse_args()
    print("| seed | mean | median | 90 % | 95 % | over 100 ms | seconds |\n|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for seed in options.seeds:
            corpus = held_out() if options.held_out else load_fsdd()
            result = train_and_measure(Path(folder), seed, corpus, epochs=options.epochs, kind=options.units)
            print(row(str(seed), result.all, result.seconds), flush=True)
            for speaker, errors in sorted(result.errors.items()):
                print(row(f"{seed}, {speaker}", errors), flush=True)


if __name__ == "__main__":
    main()
