"""Decoding with a weighted finite-state transducer, searched with kaldi-decoder (the extra ``decode``)."""

import logging
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from sonorant.decoding.ctc import TokenSpan, WordSpan, merge_frames
from sonorant.decoding.graph import decoding_graph, word_table
from sonorant.decoding.posteriors import WordPosteriors
from sonorant.decoding.spelling import place_words, symbol_confidence
from sonorant.text import Lexicon, SymbolTable

if TYPE_CHECKING:
    import kaldifst

__all__ = ["WfstDecoder"]

logger = logging.getLogger(__name__)

_CONFIDENCE_BEAM, _CONFIDENCE_STATES = 14.0, 2000
_NO_BEAM, _NO_LIMIT = 1e9, 2**31 - 1


class _Path(NamedTuple):
    """The class of every frame; the ids of the words, and the frame in which each is put out."""

    classes: list[int]
    words: list[int]
    frames: list[int]


class WfstDecoder:
    """Finds the most likely words under CTC log probabilities, a lexicon and a language model.

    Words that only the lexicon or only the language model has are named in a warning (``logging``).

    Args:
        symbols: the classes of the model.
        lexicon: the words; their symbols must be in ``symbols``.
        arpa: a language model over the words in ARPA format.
        silence: a symbol that may stand at the start and after each word, at the cost of a fair coin.
        acoustic_scale: what the log probabilities are multiplied with against the graph's costs.
        beam: how much worse than the best a path may be, in nats. Where no path within it reaches the end, the search
            is done again without a limit, and a warning says so.
        max_active: how many states are kept at most.

    Raises:
        ValueError: a lexicon whose symbols the model does not have, or a language model that is not one or has no
            word of the lexicon.

    References:
        Miao, Gowayyed and Metze 2015, "EESEN", arXiv 1507.08240 (T, L and G); Mohri, Pereira and Riley 2002,
        "Weighted finite-state transducers in speech recognition"; Wessel, Schlüter, Macherey and Ney 2001,
        "Confidence measures for large vocabulary continuous speech recognition" (posteriors of words).
    """

    def __init__(
        self,
        symbols: SymbolTable,
        lexicon: Lexicon,
        arpa: str,
        *,
        silence: str | None = None,
        acoustic_scale: float = 1.0,
        beam: float = 20.0,
        max_active: int = 7000,
    ) -> None:
        self._words = word_table(lexicon)
        self._graph = decoding_graph(symbols, lexicon, arpa, silence)
        self._acoustic_scale = acoustic_scale
        self._beam, self._max_active = beam, max_active
        self._blank = symbols.blank
        self._silence = None if silence is None else symbols.encode([silence])[0]
        self._spellings = {
            word: [tuple(symbols.encode(pron)) for pron in prons] for word, prons in lexicon.entries.items()
        }

    def decode(self, log_probs: npt.NDArray[np.float32]) -> list[str]:
        """Decode one utterance.

        Args:
            log_probs: ``(frames, classes)``.

        Returns:
            The words; none where no path through the graph has so many frames.
        """
        return [self._words[index] for index in self._best_path(self._scores(log_probs)).words]

    def decode_words(self, log_probs: npt.NDArray[np.float32]) -> list[WordSpan]:
        """Decode one utterance into words with their frames and confidences.

        A word reaches from the first frame of its first symbol to the last frame of its last symbol on the best path.
        Its confidence is the product of two probabilities. The first is its posterior in its place: the share of all
        paths, each with its probability, that say this word between the middle of the gap before it and the middle of
        the gap after it; so competing words (homophones above all) take their share. The second is that of its least
        probable symbol, averaged over the frames in which the best path has it. The posterior alone says little of
        noise: it takes frames for independent, so that several doubtful ones make a sure word.

        Args:
            log_probs: ``(frames, classes)``.

        Returns:
            The words of :meth:`decode`.
        """
        scores = self._scores(log_probs)
        path = self._best_path(scores)
        if not path.words:
            return []
        words = [self._words[index] for index in path.words]
        runs = merge_frames(path.classes, self._blank)
        places = place_words(runs, [self._spellings[word] for word in words], path.frames, self._silence)
        posteriors = self._word_posteriors(scores, path.words, places)
        return [
            WordSpan(word, place[0].start, place[-1].end, posterior * symbol_confidence(log_probs, place))
            for word, place, posterior in zip(words, places, posteriors, strict=True)
        ]

    @cached_property
    def _posteriors(self) -> WordPosteriors:
        beam = min(self._beam, _CONFIDENCE_BEAM)
        return WordPosteriors(self._graph, beam=beam, max_active=min(self._max_active, _CONFIDENCE_STATES))

    def _word_posteriors(
        self, scores: npt.NDArray[np.float32], words: list[int], places: list[list[TokenSpan]]
    ) -> list[float]:
        distinct = sorted(set(words))
        counts = self._posteriors(scores, distinct)
        gaps = [(before[-1].end + after[0].start) // 2 for before, after in pairwise(places)]
        bounds = [0, *gaps, len(scores)]
        sums = [
            counts[bounds[index] : bounds[index + 1], distinct.index(word)].sum() for index, word in enumerate(words)
        ]
        return [min(1.0, float(value)) for value in sums]

    def _scores(self, log_probs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if np.isnan(log_probs).any():
            raise ValueError("log_probs holds NaN")
        return np.ascontiguousarray(log_probs * self._acoustic_scale, dtype=np.float32)

    def _best_path(self, scores: npt.NDArray[np.float32]) -> _Path:
        import kaldi_decoder

        for beam, max_active in ((self._beam, self._max_active), (_NO_BEAM, _NO_LIMIT)):
            options = kaldi_decoder.FasterDecoderOptions(beam=beam, max_active=max_active)
            decoder = kaldi_decoder.FasterDecoder(self._graph, options)
            decoder.decode(kaldi_decoder.DecodableCtc(scores))
            if decoder.reached_final():
                found, lattice = decoder.get_best_path()
                if found:
                    return _read_path(lattice)
            if beam != _NO_BEAM:
                logger.warning("no path within the beam of %g reaches the end; searching without a beam", beam)
        return _Path([], [], [])


def _read_path(lattice: "kaldifst.Lattice") -> _Path:
    """From its text (source, target, symbol, word, weights), for kaldifst has no iterator over the arcs of lattices."""
    rows = [line.split() for line in lattice.to_str(show_weight_one=True).splitlines()]
    arcs = {int(row[0]): [int(field) for field in row[1:4]] for row in rows if len(row) > 3}
    path, state = _Path([], [], []), lattice.start
    while state in arcs:
        state, label, word = arcs[state]
        if label:
            path.classes.append(label - 1)
        if word:
            path.words.append(word)
            path.frames.append(max(len(path.classes) - 1, 0))
    return path
