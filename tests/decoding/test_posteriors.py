"""Posteriors of words against the sum over every path."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from sonorant.decoding.arpa import uniform_unigram
from sonorant.decoding.graph import decoding_graph
from sonorant.decoding.posteriors import WordPosteriors
from sonorant.text import Lexicon, SymbolTable

SYMBOLS = SymbolTable(["SIL", "x", "y"])
# ids 1 to 3: homophones, and one that begins another
LEXICON = Lexicon({"a": [["x"]], "ab": [["x", "y"]], "c": [["x"]]})


def exhaustive(log_probs: np.ndarray) -> dict[str, float]:
    """The expected number of each word, from every word sequence, every choice of silences and every CTC path."""
    num_frames = len(log_probs)
    by_symbols = defaultdict(float)
    for classes in itertools.product(range(4), repeat=num_frames):
        symbols = tuple(symbol for symbol, _ in itertools.groupby(classes) if symbol)
        by_symbols[symbols] += math.exp(sum(log_probs[frame, c] for frame, c in enumerate(classes)))
    counts: dict[str, float] = defaultdict(float)
    total = 0.0
    for number in range(num_frames + 1):
        for words in itertools.product(LEXICON.words, repeat=number):
            for silences in itertools.product((0, 1), repeat=number + 1):
                symbols = [1] * silences[0]
                for word, silence in zip(words, silences[1:], strict=True):
                    symbols += SYMBOLS.encode(LEXICON.entries[word][0]) + [1] * silence
                prob = by_symbols.get(tuple(symbols), 0.0) * 0.25 ** (number + 1) * 0.5 ** (number + 1)
                total += prob
                for word in words:
                    counts[word] += prob
    return {word: counts[word] / total for word in LEXICON.words}


@pytest.fixture(scope="module")
def posteriors() -> WordPosteriors:
    graph = decoding_graph(SYMBOLS, LEXICON, uniform_unigram(LEXICON), "SIL")
    return WordPosteriors(graph, beam=1000, max_active=10**6)


@pytest.mark.parametrize("seed", range(3))
def test_expected_counts_equal_the_sum_over_all_paths(posteriors: WordPosteriors, seed: int) -> None:
    log_probs = np.log(np.random.default_rng(seed).dirichlet(np.full(4, 0.7), 5))
    expected = exhaustive(log_probs)
    counts = posteriors(log_probs.astype(np.float32), [1, 2, 3]).sum(0)
    assert counts == pytest.approx([expected[word] for word in LEXICON.words], rel=1e-3)


def test_words_come_in_the_order_asked_for_and_in_their_frames(posteriors: WordPosteriors, frames) -> None:
    counts = posteriors(frames([0, 0, 2, 3, 0, 0, 2, 0], 4), [2, 1])
    assert counts.shape == (8, 2)
    assert counts[:4, 0].sum() == pytest.approx(1, abs=0.2)
    assert counts[5:, 1].sum() == pytest.approx(0.5, abs=0.1)
    assert counts[4:, 0].sum() < 0.1


def test_scale_of_a_frame_changes_nothing(posteriors: WordPosteriors) -> None:
    scores = np.log(np.random.default_rng(0).dirichlet(np.ones(4), 6)).astype(np.float32)
    offsets = np.array([[-800.0], [0], [50], [3], [-5], [900]], dtype=np.float32)
    assert posteriors(scores + offsets, [1, 2]) == pytest.approx(posteriors(scores, [1, 2]), rel=1e-3)


def test_pruning_hardly_changes_what_is_sure(frames) -> None:
    graph = decoding_graph(SYMBOLS, LEXICON, uniform_unigram(LEXICON), "SIL")
    scores = frames([0, 2, 3, 3, 0, 1, 2, 0], 4)
    whole = WordPosteriors(graph, beam=1000, max_active=10**6)(scores, [1, 2, 3])
    assert WordPosteriors(graph, beam=10, max_active=8)(scores, [1, 2, 3]) == pytest.approx(whole, abs=0.02)


def test_impossible_frames_and_no_frames_give_zeros(posteriors: WordPosteriors) -> None:
    assert posteriors(np.full((3, 4), -np.inf, dtype=np.float32), [1]).tolist() == [[0.0]] * 3
    assert posteriors(np.zeros((0, 4), dtype=np.float32), [1]).shape == (0, 1)
