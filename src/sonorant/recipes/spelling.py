"""What the words of a corpus are spelled with, where texts are placed in time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sonorant.data.cmudict import DICTIONARY
from sonorant.data.manifest import Utterance
from sonorant.data.pronunciations import read_pronunciations
from sonorant.inference.spelling import pronounce_missing
from sonorant.text import Lexicon, Speller, SymbolTable

__all__ = ["CMUDICT", "UnitsConfig", "make_speller", "refuse_missing_words", "with_used_symbols"]

CMUDICT = "cmudict"  # the name of the dictionary that comes with this library


@dataclass(frozen=True, kw_only=True)
class UnitsConfig:
    """What is placed in time, beside words.

    Args:
        kind: ``characters`` of the words, without punctuation; or what a ``lexicon`` spells words with.
        lexicon: for the latter, a dictionary: ``word symbol symbol ...`` or ``word<TAB>symbols`` lines; ``cmudict`` is
            the one of American English that comes with this library.
        pronouncer: a model of the recipe g2p, or its run, that spells the words which the lexicon lacks.
    """

    kind: Literal["characters", "lexicon"] = "characters"
    lexicon: str | None = None
    pronouncer: str | None = None

    def __post_init__(self) -> None:
        if (self.lexicon is None) == (self.kind == "lexicon"):
            raise ValueError(f"units.kind {self.kind}: a lexicon is {'needed' if self.lexicon is None else 'not used'}")
        if self.pronouncer is not None and self.lexicon is None:
            raise ValueError("units.pronouncer needs units.lexicon, for the words that it lacks")


def make_speller(units: UnitsConfig, utterances: Sequence[Utterance], more: Lexicon | None = None) -> Speller:
    """What spells the words of a corpus: with their letters, or with a lexicon and what a pronouncer adds to it.

    Args:
        units: what words are spelled with.
        utterances: of the corpus.
        more: words beside those of the lexicon, if there is one.

    Raises:
        ValueError: as of :meth:`~sonorant.text.Speller.of_letters`, or a pronouncer of other phones.
        FileNotFoundError: no such lexicon or pronouncer.
    """
    words = dict.fromkeys(word for utterance in utterances for word in utterance.words)
    if units.lexicon is None:
        return Speller.of_letters(words)
    lexicon = read_pronunciations(DICTIONARY if units.lexicon == CMUDICT else units.lexicon)
    if more is not None:
        lexicon = Lexicon({**more.entries, **lexicon.entries})
    return Speller.of_lexicon(pronounce_missing(lexicon, words, units.pronouncer))


def with_used_symbols(speller: Speller, utterances: Sequence[Utterance]) -> Speller:
    """A speller without the symbols that these texts lack, and without the words that need them.

    A model that speaks can only say what it has heard.
    """
    used = {token for utterance in utterances for token in speller.tokens(speller.spell(utterance.words))}
    symbols = [symbol for index, symbol in enumerate(speller.symbols.symbols) if index in used]
    if speller.lexicon is None:
        return Speller(SymbolTable(symbols), None, speller.boundary)
    spoken = {
        word: [pron for pron in prons if set(pron) <= set(symbols)] for word, prons in speller.lexicon.entries.items()
    }
    lexicon = Lexicon({word: prons for word, prons in spoken.items() if prons})
    return Speller(SymbolTable(symbols), lexicon, speller.boundary)


def refuse_missing_words(speller: Speller, utterances: Sequence[Utterance]) -> None:
    """Find all words that a lexicon lacks at once, however many utterances they are in.

    Raises:
        ValueError: there are some; all are listed, with how often and where they come first.
    """
    if speller.lexicon is None:
        return
    counts = Counter(speller.missing(word for utterance in utterances for word in utterance.words))
    if not counts:
        return
    first: dict[str, str] = {}
    for utterance in utterances:
        for word in counts.keys() & set(utterance.words):
            first.setdefault(word, utterance.source)
    listed = "".join(f"\n  {word} ({times}, first at {first[word]})" for word, times in counts.most_common())
    raise ValueError(
        f"units.lexicon: lacks {len(counts)} words; add them, give --units.pronouncer, or leave their utterances out "
        f"with --data.skip_bad true:{listed}"
    )
