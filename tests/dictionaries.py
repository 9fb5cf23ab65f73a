"""Made-up dictionaries that are quickly learned."""

import random
from pathlib import Path

_LETTERS = "abdeik"
_PHONES = {"a": "AA", "b": "B", "d": "D", "e": "EH", "i": "IY", "k": "K", "x": "K S"}


def spell_out(word: str) -> list[str]:
    """Each letter is a phone, and ``x`` two."""
    return " ".join(_PHONES[letter] for letter in word).split()


def made_up_words(number: int, seed: int = 0) -> list[str]:
    """Different words of two to six letters."""
    generator = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < number:
        words["".join(generator.choices(_LETTERS + "x", k=generator.randint(2, 6)))] = None
    return list(words)


def write_dictionary(path: Path, words: list[str]) -> Path:
    path.write_text("".join(f"{word}\t{' '.join(spell_out(word))}\n" for word in words), encoding="utf-8")
    return path
