"""Pronunciations of words with a trained model."""

import gzip
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sonorant.data.facts import CorpusFacts
from sonorant.decoding.beam_search import beam_search, check_search
from sonorant.decoding.ctc_prefix import CtcPrefixScorer
from sonorant.export.model_folder import ModelFolder, ModelFolderError, write_model_folder
from sonorant.lengths import pad_sequences
from sonorant.models import G2p, G2pConfig, G2pEnsemble
from sonorant.models.g2p import MARK
from sonorant.text import SymbolTable, encode_word, is_punctuation

__all__ = ["Pronouncer", "Pronunciation", "SearchConfig"]


@dataclass(frozen=True)
class SearchConfig:
    """How pronunciations are searched.

    Args:
        beam_size: hypotheses that are kept; 1 is greedy.
        length_penalty: see :func:`sonorant.decoding.beam_search.beam_search`.
        ctc_weight: of the CTC head, below 1; 0 leaves it out.
    """

    beam_size: int = 5
    length_penalty: float = 0.0
    ctc_weight: float = 0.0

    def __post_init__(self) -> None:
        check_search(self.beam_size, length_penalty=self.length_penalty)
        if not 0 <= self.ctc_weight < 1:
            raise ValueError(f"ctc_weight must be at least 0 and below 1; got {self.ctc_weight}")


class Pronunciation(NamedTuple):
    """The phones of a word, and their log probability."""

    phones: list[str]
    score: float


class Pronouncer:
    """A trained pronunciation model, or several that answer together, with all that is needed to ask them.

    Args:
        models: with the same symbols; at least one.
        graphemes: what words are made of.
        phones: what pronunciations are made of.
        search: how the best pronunciation is found.
        train_words: the words that the models have seen.
        recipe: the recipe that trained the models, or None.
        corpus: what they were trained on, or None where that is not known.

    Example:
        >>> import sonorant  # doctest: +SKIP
        >>> sonorant.load("runs/g2p").pronounce("seedling")  # doctest: +SKIP
        'S IY D L IH NG'
    """

    KIND = "pronouncer"

    def __init__(
        self,
        models: Sequence[G2p],
        graphemes: SymbolTable,
        phones: SymbolTable,
        *,
        search: SearchConfig | None = None,
        train_words: Collection[str] = (),
        recipe: str | None = None,
        corpus: CorpusFacts | None = None,
    ) -> None:
        self.model = G2pEnsemble(models).eval()
        self.graphemes = graphemes
        self.phones = phones
        self.search = search or SearchConfig()
        self.train_words = frozenset(train_words)
        self.recipe = recipe
        self.corpus = corpus

    def pronounce(self, word: str) -> str:
        """The most probable pronunciation of a word.

        Args:
            word: in the script of the dictionary that the model was trained with, in any case of its letters.

        Returns:
            Phones separated by spaces.

        Raises:
            ValueError: a word that cannot be pronounced: empty, nothing but punctuation, or with letters that the
                model does not know (each named with its position).
        """
        return " ".join(self.pronounce_all([word])[0][0].phones)

    def pronounce_all(
        self, words: Iterable[str], *, n_best: int = 1, search: SearchConfig | None = None, batch_size: int = 256
    ) -> list[list[Pronunciation]]:
        """Pronunciations of many words, in batches of words of similar length.

        Args:
            words: see :meth:`pronounce`.
            n_best: how many of each word, at most; a wider beam is used where it is needed.
            search: instead of the model's own.
            batch_size: words of a batch.

        Returns:
            For each word its pronunciations, the most probable first.

        Raises:
            ValueError: a word that cannot be pronounced, as in :meth:`pronounce`.
        """
        if n_best < 1 or batch_size < 1:
            raise ValueError(f"n_best and batch_size must be at least 1; got {n_best} and {batch_size}")
        encoded = [self.encode(word) for word in words]
        order = sorted(range(len(encoded)), key=lambda index: len(encoded[index]))
        results: list[list[Pronunciation]] = [[] for _ in encoded]
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            found = self._search([encoded[index] for index in batch], n_best, search or self.search)
            for index, pronunciations in zip(batch, found, strict=True):
                results[index] = pronunciations
        return results

    def encode(self, word: str) -> list[int]:
        """The ids of a word's graphemes.

        Raises:
            ValueError: as in :meth:`pronounce`.
        """
        if is_punctuation(word) and word not in self.train_words:
            raise ValueError(f"{word!r} is nothing but punctuation: there is nothing to pronounce")
        return encode_word(word, self.graphemes)

    def attention(self, word: str, phones: Sequence[str]) -> Tensor:
        """Where the model looks as it writes a pronunciation; the mean over models.

        Returns:
            ``(phones + 1, graphemes)``, the last row that of the end.
        """
        graphemes, written = torch.tensor([self.encode(word)]), torch.tensor([[*self.phones.encode(phones), MARK]])
        lengths = torch.tensor([graphemes.shape[1]]), torch.tensor([written.shape[1]])
        with torch.inference_mode():
            outputs = [member(graphemes, lengths[0], written, lengths[1]) for member in self.model.members]
        return torch.stack([output.attention[0] for output in outputs]).mean(0)

    def save(self, folder: Path) -> None:
        """Write the model folder that :func:`sonorant.load` reads."""
        config: dict[str, Any] = {
            "recipe": self.recipe,
            "model": asdict(self.model.members[0].config),
            "num_models": len(self.model.members),
            "search": asdict(self.search),
            "corpus": None if self.corpus is None else asdict(self.corpus),
        }
        write_model_folder(folder, self.KIND, config, self.model.state_dict(), self.files())

    def files(self) -> dict[str, str | bytes]:
        """The other files of the model folder, content by name."""
        words = "".join(f"{word}\n" for word in sorted(self.train_words))
        return {
            "graphemes.txt": self.graphemes.to_text(),
            "tokens.txt": self.phones.to_text(),
            "train_words.txt.gz": gzip.compress(words.encode(), mtime=0),
        }

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> "Pronouncer":
        """Rebuild a pronouncer from the contents of its folder.

        Raises:
            ModelFolderError: a part is missing or does not fit the others.
        """
        path, config, weights = folder
        try:
            graphemes, phones = SymbolTable.read(path / "graphemes.txt"), SymbolTable.read(path / "tokens.txt")
            words = gzip.decompress((path / "train_words.txt.gz").read_bytes()).decode().splitlines()
            model_config = G2pConfig(**config["model"])
            models = [G2p(model_config, len(graphemes), len(phones)) for _ in range(config["num_models"])]
            G2pEnsemble(models).load_state_dict(weights, strict=True)
            search = SearchConfig(**config["search"])
            corpus = CorpusFacts(**config["corpus"]) if config.get("corpus") else None
        except (KeyError, TypeError, OSError, EOFError, ValueError, RuntimeError) as error:
            raise ModelFolderError(f"{path}: damaged or incomplete: {error}") from error
        recipe = config.get("recipe")
        return cls(models, graphemes, phones, search=search, train_words=words, recipe=recipe, corpus=corpus)

    @torch.inference_mode()
    def _search(self, words: Sequence[list[int]], n_best: int, search: SearchConfig) -> list[list[Pronunciation]]:
        graphemes, lengths = pad_sequences([torch.tensor(word) for word in words])
        state, memory = self.model.start(graphemes, lengths)
        head = self.model.ctc_log_probs(memory) if search.ctc_weight else None
        if search.ctc_weight and head is None:
            raise ValueError(f"ctc_weight is {search.ctc_weight}, but the model has no CTC head")
        best = beam_search(
            self.model.step,
            state,
            memory,
            sos=MARK,
            eos=MARK,
            max_length=G2p.max_phones(lengths),
            min_length=1,
            beam_size=max(search.beam_size, n_best),
            n_best=n_best,
            length_penalty=search.length_penalty,
            ctc=None if head is None else CtcPrefixScorer(*head, eos=MARK),
            ctc_weight=search.ctc_weight,
        )
        return [
            [Pronunciation(self.phones.decode(found.tokens), found.log_prob) for found in hypotheses]
            for hypotheses in best.hypotheses()
        ]
