"""The WFST decoder against every word sequence that there is."""

import itertools
import math

import numpy as np
import pytest
import torch

from sonorant.decoding.arpa import uniform_unigram
from sonorant.decoding.wfst import WfstDecoder
from sonorant.functional import ctc_loss
from sonorant.text import Lexicon, SymbolTable

YESNO = Lexicon({"YES": [["Y"]], "NO": [["N"]]})
SYMBOLS = SymbolTable(["SIL", "N", "Y"])
BIGRAM = """\\data\\
ngram 1=4
ngram 2=4

\\1-grams:
-99\t<s>\t0
-0.7\t</s>
-0.3\tNO\t-0.3
-1.0\tYES\t-0.3

\\2-grams:
-0.1\t<s> NO
-0.2\tNO YES
-0.9\tYES NO
-0.1\tYES </s>

\\end\\
"""


def one_hot(classes: list[int], num_classes: int) -> np.ndarray:
    probs = np.full((len(classes), num_classes), 0.04 / (num_classes - 1))
    probs[np.arange(len(classes)), classes] = 0.96
    return np.log(probs).astype(np.float32)


def viterbi(log_probs: np.ndarray, labels: tuple[int, ...]) -> float:
    """The best CTC path of exactly these labels, by the obvious recursion over states."""
    states = [0, *itertools.chain.from_iterable((label, 0) for label in labels)]
    score = [log_probs[0, s] if i < 2 else -math.inf for i, s in enumerate(states)]
    for frame in log_probs[1:]:
        new = []
        for i, state in enumerate(states):
            best = max(score[max(i - 1, 0) : i + 1])
            if i > 1 and state != 0 and state != states[i - 2]:
                best = max(best, score[i - 2])
            new.append(best + frame[state])
        score = new
    return max(score[-2:])


def test_reads_words_through_silence_and_blanks() -> None:
    decoder = WfstDecoder(SYMBOLS, YESNO, uniform_unigram(YESNO), silence="SIL")
    assert decoder.decode(one_hot([0, 1, 1, 0, 2, 2, 0, 1, 3, 0, 3, 1, 0], 4)) == ["NO", "YES", "YES"]
    assert decoder.decode(one_hot([1, 1, 0, 0], 4)) == []
    assert decoder.decode(one_hot([2, 2, 2], 4)) == ["NO"]


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_best_of_all_word_sequences(seed: int) -> None:
    """Every sequence of up to four words, with every choice of optional silences, scored one by one."""
    log_probs = np.log(np.random.default_rng(seed).dirichlet(np.full(4, 0.4), 7)).astype(np.float32)
    word_cost, coin = -math.log(3), -math.log(2)
    best, best_words = -math.inf, []
    for count in range(5):
        for words in itertools.product(("NO", "YES"), repeat=count):
            for silences in itertools.product((False, True), repeat=count + 1):
                labels = [1] if silences[0] else []
                for word, silence in zip(words, silences[1:], strict=True):
                    labels += [2 if word == "NO" else 3] + [1] * silence
                score = viterbi(log_probs, tuple(labels)) + (count + 1) * (word_cost + coin)
                if score > best:
                    best, best_words = score, list(words)
    decoder = WfstDecoder(SYMBOLS, YESNO, uniform_unigram(YESNO), silence="SIL", beam=100)
    assert decoder.decode(log_probs) == best_words


def test_homophones_and_words_that_begin_others() -> None:
    lexicon = Lexicon({"a": [["x"]], "ab": [["x", "y"]], "b": [["y"]], "c": [["x"], ["z"]], "d": [["z"]]})
    decoder = WfstDecoder(SymbolTable(["x", "y", "z"]), lexicon, uniform_unigram(lexicon))
    assert decoder.decode(one_hot([0, 1, 0, 2, 0], 4)) == ["ab"]
    assert decoder.decode(one_hot([0, 2, 0], 4)) == ["b"]
    assert decoder.decode(one_hot([3, 3, 3], 4)) in (["c"], ["d"])


def test_a_bigram_with_back_off_decides_between_equal_sounds() -> None:
    lexicon = Lexicon({"YES": [["S"]], "NO": [["S"]]})
    decoder = WfstDecoder(SymbolTable(["S"]), lexicon, BIGRAM)
    assert decoder.decode(one_hot([0, 1, 0, 1, 0], 2)) == ["NO", "YES"]


def test_the_acoustic_scale_weighs_against_the_language_model() -> None:
    log_probs = np.log(np.array([[0.55, 0.0001, 0.4498, 0.0001]] * 1)).astype(np.float32)
    parts = (SYMBOLS, YESNO, uniform_unigram(YESNO))
    assert WfstDecoder(*parts, silence="SIL").decode(log_probs) == []
    confident = np.log(np.array([[0.2, 0.0001, 0.7998, 0.0001]])).astype(np.float32)
    assert WfstDecoder(*parts, silence="SIL", acoustic_scale=0.1).decode(confident) == []
    assert WfstDecoder(*parts, silence="SIL", acoustic_scale=3.0).decode(confident) == ["NO"]


def test_the_uniform_unigram_sums_to_one() -> None:
    lines = uniform_unigram(YESNO).splitlines()
    probabilities = [10 ** float(line.split("\t")[0]) for line in lines if "\t" in line and "<s>" not in line]
    assert len(probabilities) == 3
    assert sum(probabilities) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("arpa", ["rubbish", "", "\\data\\\nngram 1=1\n\n\\1-grams:\n-1\tmaybe\n\n\\end\\\n"])
def test_what_is_no_language_model_is_refused(arpa: str) -> None:
    with pytest.raises(ValueError, match="language model"):
        WfstDecoder(SYMBOLS, YESNO, arpa)


def test_a_lexicon_needs_the_model_s_symbols() -> None:
    with pytest.raises(ValueError, match="unknown symbol 'Q'"):
        WfstDecoder(SYMBOLS, Lexicon({"Q": [["Q"]]}), uniform_unigram(YESNO))


def test_viterbi_here_is_below_the_sum_over_paths() -> None:
    log_probs = np.log(np.random.default_rng(0).dirichlet(np.ones(4), 6)).astype(np.float32)
    total = -ctc_loss(
        torch.from_numpy(log_probs)[None], torch.tensor([[2, 3]]), torch.tensor([6]), torch.tensor([2]), reduction="sum"
    )
    assert viterbi(log_probs, (2, 3)) < float(total)


def test_words_reach_from_their_first_symbol_to_their_last() -> None:
    lexicon = Lexicon({"a": [["x"]], "ab": [["x", "y"]], "b": [["y"]]})
    decoder = WfstDecoder(SymbolTable(["SIL", "x", "y"]), lexicon, uniform_unigram(lexicon), silence="SIL")
    classes = [0, 2, 2, 0, 3, 3, 0, 1, 1, 2, 0, 0, 2, 2, 2, 0]
    words = decoder.decode_words(one_hot(classes, 4))
    assert [word[:3] for word in words] == [("ab", 1, 6), ("a", 9, 10), ("a", 12, 15)]
    assert [word.word for word in words] == decoder.decode(one_hot(classes, 4))


def test_a_doubtful_word_has_less_confidence() -> None:
    log_probs = one_hot([0, 2, 0, 0, 3, 0], 4)
    log_probs[4] = np.log([0.02, 0.02, 0.4, 0.56])
    sure, doubtful = WfstDecoder(SYMBOLS, YESNO, uniform_unigram(YESNO), silence="SIL").decode_words(log_probs)
    assert (sure.word, doubtful.word) == ("NO", "YES")
    assert 0.8 < sure.confidence <= 1
    assert 0.2 < doubtful.confidence < 0.5


def test_homophones_share_the_confidence() -> None:
    log_probs = one_hot([0, 1, 0, 0], 2)
    confidences = []
    for words in (["one"], ["one", "won"], ["one", "won", "wan"]):
        lexicon = Lexicon({word: [["S"]] for word in words})
        (word,) = WfstDecoder(SymbolTable(["S"]), lexicon, uniform_unigram(lexicon)).decode_words(log_probs)
        confidences.append(word.confidence)
    one, two, three = confidences
    assert two == pytest.approx(one / 2, rel=0.1)
    assert three == pytest.approx(one / 3, rel=0.1)


def test_nothing_said_has_no_words() -> None:
    decoder = WfstDecoder(SYMBOLS, YESNO, uniform_unigram(YESNO), silence="SIL")
    assert decoder.decode_words(one_hot([1, 1, 0, 0], 4)) == []
    assert decoder.decode_words(np.zeros((0, 4), dtype=np.float32)) == []


def test_a_beam_in_which_no_path_ends_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    """Everything speaks for forty words that are then not finished (the search keeps twenty states in any case)."""
    begun = [f"s{index}" for index in range(40)]
    lexicon = Lexicon({**{symbol: [[symbol, "y"]] for symbol in begun}, "c": [["z"]]})
    symbols = SymbolTable([*begun, "y", "z"])
    probs = np.array([[1e-20, *[0.02] * 40, 1e-20, 1e-5]] * 2 + [[1, *[1e-30] * 42]])
    log_probs = np.log(probs).astype(np.float32)
    parts = (symbols, lexicon, uniform_unigram(lexicon))
    exact = WfstDecoder(*parts, beam=1000).decode(log_probs)
    assert exact == ["c"]
    assert not caplog.records
    assert WfstDecoder(*parts, beam=5).decode(log_probs) == exact
    assert "no path within the beam of 5 reaches the end" in caplog.text


def test_where_no_path_exists_nothing_is_recognised() -> None:
    decoder = WfstDecoder(SYMBOLS, YESNO, uniform_unigram(YESNO))
    impossible = np.full((2, 4), -np.inf, dtype=np.float32)
    assert decoder.decode(impossible) == []
    assert decoder.decode_words(impossible) == []


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="log_probs holds NaN"):
        WfstDecoder(SYMBOLS, YESNO, uniform_unigram(YESNO)).decode(np.full((2, 4), np.nan, dtype=np.float32))


@pytest.mark.parametrize("seed", range(12))
def test_words_of_any_lexicon_are_placed_in_order(seed: int) -> None:
    """Random pronunciations make homophones and words that begin others or hold them."""
    random = np.random.default_rng(seed)
    names = ["SIL", "p", "q", "r"]
    pronunciations = [[random.choice(names[1:], random.integers(1, 4)).tolist() for _ in range(2)] for _ in range(6)]
    lexicon = Lexicon({f"w{index}": prons for index, prons in enumerate(pronunciations)})
    silence = "SIL" if seed % 2 else None
    decoder = WfstDecoder(SymbolTable(names), lexicon, uniform_unigram(lexicon), silence=silence)
    for num_frames in (1, 5, 20):
        log_probs = np.log(random.dirichlet(np.full(5, 0.3), num_frames) + 1e-12).astype(np.float32)
        words = decoder.decode_words(log_probs)
        assert [word.word for word in words] == decoder.decode(log_probs)
        assert all(0 <= word.confidence <= 1 and word.start < word.end for word in words)
        assert all(before.end <= after.start for before, after in itertools.pairwise(words))
