"""Pronunciation dictionaries: ``word<TAB>phones`` or CMU's ``WORD  PH PH`` lines, in any script."""

import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from sonorant.data.manifest import Corpus, list_faults, read_lines
from sonorant.text import Lexicon

__all__ = ["RarePhone", "rare_phones", "read_pronunciations"]

_VARIANT = re.compile(r"(?<=.)\(\d+\)$")


class RarePhone(NamedTuple):
    """A phone that hardly occurs: how often (``times``), and the first word that has it."""

    phone: str
    times: int
    word: str


def read_pronunciations(path: str | Path) -> Lexicon:
    r"""Read a dictionary of words and how they are pronounced.

    A line is ``word<TAB>phones``, or ``word phones`` where there is no tab; white space of any kind parts the phones.
    A word may have several lines, also marked as CMU does (``WORD(2)``). UTF-8 with or without byte order mark,
    brought to Unicode NFC; LF or CRLF; packed if the name ends in ``.gz``. Before a tab, a word may hold spaces; a
    no-break space belongs to its word everywhere. CMU's comments are passed over: lines that begin with ``;;;``, and,
    where there is no tab, what follows `` # ``.

    Args:
        path: the file.

    Returns:
        The words with all their pronunciations.

    Raises:
        FileNotFoundError: no such file.
        ValueError: lines without a word or without a pronunciation (each named with file and number), a file that is
            not UTF-8, or no word at all.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such dictionary")
    entries: dict[str, list[list[str]]] = {}
    faults = Corpus()
    for source, line in read_lines(path, faults):
        if line.startswith(";;;"):
            continue
        word, phones = _parse(line)
        if not word:
            faults.refuse(source, f"there is no word before the tab: {line!r}")
        elif not phones:
            faults.refuse(source, f"{word!r} has no pronunciation; expected word<TAB>phones or word phones", word)
        else:
            entries.setdefault(word, []).append(phones)
    if faults.faults:
        raise ValueError(f"{path}: {len(faults.faults)} lines cannot be used:{list_faults(faults.faults)}")
    if not entries:
        raise ValueError(f"{path}: the dictionary is empty: it holds no word")
    return Lexicon(entries)


def rare_phones(lexicon: Lexicon, at_most: int = 1) -> list[RarePhone]:
    """Phones that a dictionary has too seldom to learn; often they are typing errors.

    Args:
        lexicon: the dictionary.
        at_most: how often a phone is rare.

    Example:
        >>> from sonorant.data.pronunciations import rare_phones
        >>> from sonorant.text import Lexicon
        >>> rare_phones(Lexicon({"ab": [["a", "b"]], "ba": [["b", "a:"]], "aa": [["a", "a"]]}))
        [RarePhone(phone='a:', times=1, word='ba')]
    """
    pronunciations = [(word, pron) for word, prons in lexicon.entries.items() for pron in prons]
    counts = Counter(phone for _, pron in pronunciations for phone in pron)
    rare = {phone for phone, count in counts.items() if count <= at_most}
    first: dict[str, str] = {}
    for word, pron in pronunciations:
        for phone in rare.intersection(pron):
            first.setdefault(phone, word)
    return [RarePhone(phone, counts[phone], first[phone]) for phone in sorted(rare)]


def _parse(line: str) -> tuple[str, list[str]]:
    line = unicodedata.normalize("NFC", line)
    if "\t" in line:
        word, _, phones = line.partition("\t")
    else:
        word, _, phones = line.strip(" ").partition(" ")
        phones = f" {phones}".partition(" # ")[0]
    return _VARIANT.sub("", " ".join(word.split())), phones.split()
