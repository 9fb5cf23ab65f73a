"""Parts of a corpus that are the same in every run."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from sonorant.data.manifest import Utterance
from sonorant.text import Lexicon

__all__ = ["hold_out", "hold_out_words"]


def hold_out(utterances: Sequence[Utterance], share: float, at_most: int) -> tuple[list[Utterance], list[Utterance]]:
    """Part a corpus in two, of which the second takes about the same share of each speaker's utterances.

    Which ones is decided by their ids alone, so that an utterance that is added moves few others.

    Args:
        utterances: the corpus.
        share: of the second part, in [0, 1).
        at_most: utterances of the second part.

    Returns:
        The larger part and the other, both in the order of the corpus; the other is empty for a share of 0, and else
        holds at least one utterance.

    Raises:
        ValueError: fewer than two utterances to part.
    """
    if not 0 <= share < 1:
        raise ValueError(f"share must lie in [0, 1); got {share}")
    if share == 0:
        return list(utterances), []
    if len(utterances) < 2:
        raise ValueError(f"{len(utterances)} utterance: two are needed to hold one out")
    by_speaker: dict[str, list[int]] = defaultdict(list)
    for index, utterance in enumerate(utterances):
        by_speaker[utterance.speaker or ""].append(index)
    order = []
    for indices in by_speaker.values():
        indices.sort(key=lambda index: _digest(utterances[index].id))
        order += [(rank / len(indices), _digest(utterances[i].id), i) for rank, i in enumerate(indices, start=1)]
    number = min(at_most, max(1, round(share * len(utterances))), len(utterances) - 1)
    held = {index for _, _, index in sorted(order)[:number]}
    rest = [utterance for index, utterance in enumerate(utterances) if index not in held]
    return rest, [utterances[index] for index in sorted(held)]


def hold_out_words(lexicon: Lexicon, share: float, at_most: int | None = None) -> tuple[Lexicon, Lexicon]:
    """Part a dictionary in two by word; all pronunciations of a word stay together.

    Which words is decided by their spelling alone, so that a word that is added moves few others.

    Args:
        lexicon: the dictionary.
        share: of the words that the second part takes, in (0, 1).
        at_most: words of the second part; None sets no limit.

    Returns:
        The larger part and the other, each with at least one word.

    Raises:
        ValueError: fewer than two words to part.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must lie in (0, 1); got {share}")
    if len(lexicon) < 2:
        raise ValueError(f"{len(lexicon)} word: two are needed to hold one out")
    number = min(max(1, round(share * len(lexicon))), len(lexicon) - 1, at_most or len(lexicon))
    held = set(sorted(lexicon.words, key=_digest)[:number])
    rest, other = (
        Lexicon({word: prons for word, prons in lexicon.entries.items() if (word in held) == wanted})
        for wanted in (False, True)
    )
    return rest, other


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
