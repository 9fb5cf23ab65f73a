"""Recordings whose words are tones, a pitch for each letter, with the times of all words: quickly learned."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import soundfile

PITCHES = {"d": 500.0, "s": 3000.0, "a": 900.0, "u": 1500.0, "m": 300.0, "i": 2300.0}
WORDS = ("da", "du", "su", "mi", "sam", "dia", "mus")
LEXICON = "".join(f"{word}\t{' '.join(word.upper())}\n" for word in WORDS)


class ToneCorpus(NamedTuple):
    """A table, a lexicon, and by the id of each utterance its words with start and end in seconds."""

    table: Path
    lexicon: Path
    truth: dict[str, list[tuple[str, float, float]]]


def say(
    text: Sequence[str], random: np.random.Generator, *, rate: int = 8000, edge: float = 0.1, noise: float = 1e-3
) -> tuple[npt.NDArray[np.float64], list[tuple[str, float, float]]]:
    """Samples, and the words' times: letters of 60 to 140 ms, gaps of 60 to 300 ms."""
    pieces, times, now = [np.zeros(round(edge * rate))], [], edge
    for number, word in enumerate(text):
        if number:
            pieces.append(np.zeros(round(random.uniform(0.06, 0.3) * rate)))
            now += len(pieces[-1]) / rate
        start = now
        for letter in word:
            seconds = np.arange(round(random.uniform(0.06, 0.14) * rate)) / rate
            pieces.append(0.3 * np.sin(2 * np.pi * PITCHES[letter] * seconds))
            now += len(seconds) / rate
        times.append((word, start, now))
    pieces.append(np.zeros(round(edge * rate)))
    samples = np.concatenate(pieces)
    return samples + random.normal(0, noise, len(samples)), times


def write_tones(
    folder: Path, number: int, seed: int = 0, *, rate: int = 8000, words: tuple[int, int] = (2, 4)
) -> ToneCorpus:
    """A corpus of strings of these words by two speakers."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    rows, truth = [], {}
    for index in range(number):
        text = random.choice(WORDS, random.integers(*words, endpoint=True)).tolist()
        samples, truth[f"{index}.wav"] = say(text, random, rate=rate)
        soundfile.write(folder / f"{index}.wav", samples, rate)
        rows.append(f"{index}.wav\t{' '.join(text)}\t{'ann' if index % 2 else 'ben'}\n")
    table, lexicon = folder / "table.tsv", folder / "words.tsv"
    table.write_text("".join(rows))
    lexicon.write_text(LEXICON)
    return ToneCorpus(table, lexicon, truth)
