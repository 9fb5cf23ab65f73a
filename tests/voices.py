"""Recordings of two voices that buzz, hum and hiss: speech enough for pitch, energy and voicing to be found in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import soundfile

RATE = 8000
FORMANTS = {"a": (800.0, 1300.0), "i": (300.0, 2300.0), "u": (350.0, 800.0), "m": (250.0, 1000.0)}
WORDS = ("ma", "mi", "su", "sam", "umi", "is")
LEXICON = "".join(f"{word}\t{' '.join(word.upper())}\n" for word in WORDS)
SPEAKERS = {"ann": (200.0, "north"), "ben": (110.0, "south")}


class VoiceCorpus(NamedTuple):
    """A table and a lexicon."""

    table: Path
    lexicon: Path


def say(text: Sequence[str], pitch: float, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Samples of some words: letters of 50 to 100 ms, with a melody that falls, and gaps of 40 to 80 ms."""
    pieces = [np.zeros(400)]
    for word in text:
        for letter in word:
            count = round(random.uniform(0.05, 0.1) * RATE)
            pieces.append(0.05 * random.normal(size=count) if letter == "s" else _buzz(letter, pitch, count, random))
        pieces.append(np.zeros(round(random.uniform(0.04, 0.08) * RATE)))
        pitch *= 0.93
    samples = np.concatenate([*pieces, np.zeros(400)])
    return samples + random.normal(0, 1e-3, len(samples))


def _buzz(letter: str, pitch: float, count: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    phases = 2 * np.pi * pitch * np.arange(count) / RATE
    harmonics = range(1, int(3800 / pitch))
    gains = [sum(1 / (1 + ((k * pitch - peak) / 150) ** 2) for peak in FORMANTS[letter]) for k in harmonics]
    voice = sum(gain * np.cos(k * phases) for k, gain in zip(harmonics, gains, strict=True))
    return random.uniform(0.05, 0.1) * np.asarray(voice)


def write_voices(folder: Path, number: int, seed: int = 0) -> VoiceCorpus:
    """A corpus of strings of one to three words by two speakers, each with an accent."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    rows = []
    for index in range(number):
        speaker = list(SPEAKERS)[index % 2]
        pitch, accent = SPEAKERS[speaker]
        text = random.choice(WORDS, random.integers(1, 3, endpoint=True)).tolist()
        soundfile.write(folder / f"{index}.wav", say(text, pitch * random.uniform(0.9, 1.1), random), RATE)
        rows.append(f"{index}.wav\t{' '.join(text)}\t{speaker}\t{accent}\n")
    table, lexicon = folder / "table.tsv", folder / "words.tsv"
    table.write_text("".join(rows))
    lexicon.write_text(LEXICON)
    return VoiceCorpus(table, lexicon)
