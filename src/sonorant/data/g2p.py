"""Examples and batches of words and their pronunciations."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from sonorant.data.batching import Draw
from sonorant.lengths import pad_sequences
from sonorant.text import Lexicon, SymbolTable, encode_word

__all__ = ["G2pBatch", "G2pDataset", "G2pExample", "collate_g2p"]


class G2pExample(NamedTuple):
    """A word, the ids of its graphemes, one or all of its pronunciations as ids, without end marks, and a seed."""

    word: str
    graphemes: list[int]
    pronunciations: list[list[int]]
    seed: int = 0


class G2pBatch(NamedTuple):
    """A padded batch.

    ``graphemes`` ``(batch, grapheme)``; ``phones`` ``(batch, phone)``, the first pronunciation of each word with
    the end mark 0; lengths and seeds ``(batch,)``; ``pronunciations``, all that each word has.
    """

    words: list[str]
    graphemes: Tensor
    grapheme_lengths: Tensor
    phones: Tensor
    phone_lengths: Tensor
    pronunciations: list[list[list[int]]]
    seeds: Tensor


class G2pDataset(Dataset[G2pExample]):
    """The words of a dictionary.

    Args:
        lexicon: the dictionary; its graphemes and phones must be in the tables.
        graphemes: what words are made of.
        phones: what pronunciations are made of.
        split_pronunciations: a word with several pronunciations is as many examples, for training, instead of one.
    """

    def __init__(
        self, lexicon: Lexicon, graphemes: SymbolTable, phones: SymbolTable, *, split_pronunciations: bool
    ) -> None:
        self._examples = []
        for word, prons in lexicon.entries.items():
            ids, encoded = encode_word(word, graphemes), [phones.encode(pron) for pron in prons]
            groups = [[pron] for pron in encoded] if split_pronunciations else [encoded]
            self._examples += [G2pExample(word, ids, group) for group in groups]

    @property
    def lengths(self) -> list[int]:
        """Graphemes and phones of each example: what its time is about proportional to."""
        return [len(example.graphemes) + len(example.pronunciations[0]) for example in self._examples]

    def __len__(self) -> int:
        """The number of examples."""
        return len(self._examples)

    def __getitem__(self, draw: Draw) -> G2pExample:
        """One example."""
        return self._examples[draw.utterance]._replace(seed=draw.seed)


def collate_g2p(examples: Sequence[G2pExample]) -> G2pBatch:
    """Pad examples into a batch."""
    graphemes = pad_sequences([torch.tensor(example.graphemes) for example in examples])
    phones = pad_sequences([torch.tensor([*example.pronunciations[0], 0]) for example in examples])
    words, pronunciations = ([getattr(example, name) for example in examples] for name in ("word", "pronunciations"))
    seeds = torch.tensor([example.seed for example in examples])
    return G2pBatch(words, *graphemes, *phones, pronunciations, seeds)
