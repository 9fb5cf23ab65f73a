"""The aligner on the Asterisk prompts, beside pocketsphinx: the table of docs/aligner.md, and pictures of both.

    pip install pocketsphinx  # holds its American English model
    python -m benchmarks.asterisk_alignment [--pictures OUT] [--pronouncer DIR] [--rate 8000]

The recipe `aligner` trains with its default settings on the train part of `load_asterisk`, with phones of CMUdict.
Prompts with words that neither the dictionary nor the pronouncer knows are left out, and listed.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from benchmarks.agreement import Differences, agreement, differences, joined
from benchmarks.pocketsphinx_alignment import SAMPLE_RATE, Pocketsphinx, UnalignedError
from sonorant.data.asterisk import load_asterisk
from sonorant.data.cmudict import DICTIONARY
from sonorant.data.manifest import Corpus, Utterance
from sonorant.inference import Aligner, Alignment
from sonorant.inference.spelling import pronounce_missing
from sonorant.plots import plot_alignment
from sonorant.recipes import aligner as recipe
from sonorant.text import Lexicon, Speller

NUM_PICTURES = 20


class Compared(NamedTuple):
    """An utterance that both could align."""

    utterance: Utterance
    ours: Alignment
    theirs: Alignment

    @property
    def differences(self) -> Differences:
        return differences(self.ours.words, self.theirs.words)

    @property
    def farthest(self) -> float:
        """In seconds, of the marks between its words."""
        return max(map(abs, self.differences.inner), default=0.0)


def default_config(pronouncer: str | None = None) -> recipe.Config:
    units = recipe.UnitsConfig(kind="lexicon", lexicon=str(DICTIONARY), pronouncer=pronouncer)
    return recipe.Config(data=recipe.DataConfig(train="", skip_bad=True), units=units)


def train(config: recipe.Config, utterances: Sequence[Utterance]) -> tuple[recipe.Prepared, float, float]:
    """A trained aligner, and the seconds of features and training, by the clock and of the CPU."""
    task = recipe.prepare(config, Corpus(list(utterances)))
    with tempfile.TemporaryDirectory() as run:
        start = time.monotonic(), time.process_time()
        recipe.fit_aligner(config, task, Path(run))
        return task, time.monotonic() - start[0], time.process_time() - start[1]


def compare(aligner: Aligner, utterances: Sequence[Utterance]) -> tuple[list[Compared], dict[str, str]]:
    """Alignments by both; and, by id, why pocketsphinx has none."""
    compared, unaligned = [], {}
    lexicon = _words_of(aligner.speller, utterances)
    with tempfile.TemporaryDirectory() as folder:
        pocketsphinx = Pocketsphinx(lexicon, Path(folder))
        for utterance, ours in zip(utterances, aligner.align_all(utterances), strict=True):
            samples = utterance.load_audio(SAMPLE_RATE, allow_resampling=True).samples
            try:
                theirs = pocketsphinx.align(samples, utterance.words)
            except UnalignedError as error:
                unaligned[utterance.id] = str(error)
            else:
                compared.append(Compared(utterance, ours, theirs))
    return compared, unaligned


def table(parts: Iterable[tuple[str, Sequence[Compared]]]) -> str:
    """Rows of each part: word starts, word ends, and those between the words of an utterance."""
    rows = ["| prompts | marks | number | median | 90 % | beyond 100 ms | median, signed |", "|---" * 7 + "|"]
    for name, compared in parts:
        found = joined(item.differences for item in compared)
        for marks, values in zip(("word starts", "word ends", "between words"), found, strict=True):
            result = agreement(values)
            median, high, shift = (
                f"{1000 * value:.0f} ms" for value in (result.median, result.percentile_90, result.shift)
            )
            rows.append(f"| {name} | {marks} | {result.count} | {median} | {high} | {result.beyond:.1%} | {shift} |")
    return "\n".join(rows)


def evenly(compared: Sequence[Compared], count: int) -> list[Compared]:
    """Some, from the one where the two are farthest apart to the one where they are nearest."""
    ordered = sorted(compared, key=lambda item: -item.farthest)
    count = min(count, len(ordered))
    return [ordered[index * (len(ordered) - 1) // max(count - 1, 1)] for index in range(count)]


def draw(aligner: Aligner, compared: Sequence[Compared], folder: Path) -> None:
    """A picture each: the aligner's marks above, pocketsphinx's below."""
    from PIL import Image  # comes with matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    for number, item in enumerate(compared, start=1):
        path = folder / f"{number:02d}-{item.utterance.id.replace('/', '-')}.png"
        halves = []
        for alignment in (item.ours, item.theirs):
            plot_alignment(aligner, item.utterance, alignment, path)
            with Image.open(path) as image:
                halves.append(image.convert("RGB"))
        both = Image.new("RGB", (halves[0].width, sum(half.height for half in halves)))
        both.paste(halves[0], (0, 0))
        both.paste(halves[1], (0, halves[0].height))
        both.save(path)


def usable(aligner: Aligner, utterances: Sequence[Utterance]) -> list[Utterance]:
    """Those whose words can all be spelled."""
    missing = set(aligner.speller.missing(word for utterance in utterances for word in utterance.words))
    return [utterance for utterance in utterances if not missing.intersection(utterance.words)]


def print_left_out(aligner: Aligner, utterances: Sequence[Utterance], used: Sequence[Utterance]) -> None:
    """The prompts, and the words that are why."""
    missing = Counter(aligner.speller.missing(word for utterance in utterances for word in utterance.words))
    print("words without pronunciation:", ", ".join(f"{word} ({times})" for word, times in missing.items()) or "none")
    kept = {utterance.id for utterance in used}
    left_out = [utterance.id for utterance in utterances if utterance.id not in kept]
    print(f"prompts left out ({len(left_out)}):", ", ".join(left_out) or "none")


def _words_of(speller: Speller, utterances: Sequence[Utterance]) -> Lexicon:
    words = sorted({word for utterance in utterances for word in utterance.words})
    return Lexicon(
        {
            spelled.word: [speller.symbols.decode(pron) for pron in spelled.pronunciations]
            for spelled in speller.spell(words)
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="the prompts, see load_asterisk; apt fetches them otherwise")
    parser.add_argument("--rate", type=int, choices=[8000, 16000], default=16000, help="of the recordings, in Hz")
    parser.add_argument("--pronouncer", metavar="DIR", help="a model of the recipe g2p, for words that CMUdict lacks")
    parser.add_argument("--epochs", type=int, help="by default those of the recipe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pictures", type=Path, metavar="OUT", help=f"{NUM_PICTURES} of the held-out prompts")
    options = parser.parse_args()
    corpus = load_asterisk(sample_rate=options.rate, folder=options.folder)
    config = replace(default_config(options.pronouncer), seed=options.seed)
    if options.epochs is not None:
        config = replace(config, trainer=replace(config.trainer, max_epochs=options.epochs))
    task, seconds, cpu_seconds = train(config, corpus.train)
    test_words = [word for utterance in corpus.test for word in utterance.words]
    aligner = task.aligner.with_words(pronounce_missing(task.aligner.speller.lexicon, test_words, options.pronouncer))
    test = usable(aligner, corpus.test)
    print_left_out(aligner, [*corpus.train, *corpus.test], [*task.train, *task.dev, *test])
    parts = []
    for name, utterances in (("held out", test), ("trained on", task.train)):
        compared, unaligned = compare(aligner, utterances)
        parts.append((name, compared))
        words = sum(len(item.ours.words) for item in compared)
        print(f"{name}: {words} words in {len(compared)} prompts; pocketsphinx could not align {len(unaligned)}")
        for key, reason in unaligned.items():
            print(f"  {key}: {reason}")
        coarse = [item.utterance.id for item in compared if not item.theirs.tokens]
        print(f"  second pass failed, words by the first ({len(coarse)}):", ", ".join(coarse) or "none")
    print(f"pocketsphinx {metadata.version('pocketsphinx')}; trained in {seconds:.0f} s, {cpu_seconds:.0f} s of CPU")
    print(table(parts))
    if options.pictures is not None:
        draw(aligner, evenly(parts[0][1], NUM_PICTURES), options.pictures)


if __name__ == "__main__":
    main()
