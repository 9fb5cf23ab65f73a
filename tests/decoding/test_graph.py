"""Decoding graphs: the topology, odd lexicons, and their size."""

import itertools
import time

import kaldifst
import numpy as np
import pytest

from sonorant.decoding.arpa import uniform_unigram
from sonorant.decoding.graph import decoding_graph, topology_fst, word_table
from sonorant.decoding.wfst import WfstDecoder
from sonorant.text import Lexicon, SymbolTable


def outputs(fst: "kaldifst.StdVectorFst", labels: list[int]) -> list[list[int]]:
    """What the graph puts out for a sequence of labels: one item for each path."""
    found = []

    def walk(state: int, position: int, words: list[int]) -> None:
        if position == len(labels) and np.isfinite(fst.final(state).value):
            found.append(words)
        for arc in kaldifst.ArcIterator(fst, state):
            onward = words + [arc.olabel] * (arc.olabel != 0)
            if arc.ilabel == 0:
                walk(arc.nextstate, position, onward)
            elif position < len(labels) and arc.ilabel == labels[position]:
                walk(arc.nextstate, position + 1, onward)

    walk(fst.start, 0, [])
    return found


def collapsed(labels: list[int]) -> list[int]:
    return [label for label, _ in itertools.groupby(labels) if label != 1]


@pytest.mark.parametrize("bucket", [1, 2, 64])
def test_the_topology_collapses_every_path_and_has_it_once(bucket: int) -> None:
    topology = topology_fst(SymbolTable(list("abcdefg")), bucket)
    for labels in itertools.product((1, 2, 3, 7, 8), repeat=4):
        assert outputs(topology, list(labels)) == [collapsed(list(labels))]


def test_a_topology_of_many_symbols_stays_small() -> None:
    topology = topology_fst(SymbolTable([f"s{index}" for index in range(2000)]))
    assert sum(topology.num_arcs(state) for state in range(topology.num_states)) < 250_000


def test_every_path_of_a_word_sequence_is_in_the_graph_once() -> None:
    """Also those of homophones and of words that begin others, whose ends are marked."""
    symbols = SymbolTable(["SIL", "x", "y"])
    lexicon = Lexicon({"a": [["x"]], "ab": [["x", "y"]], "b": [["y"]], "c": [["x"]], "d": [["x", "x"], ["y"]]})
    graph = decoding_graph(symbols, lexicon, uniform_unigram(lexicon), "SIL")
    sounds = {word: [tuple(p) for p in prons] for word, prons in lexicon.entries.items()}
    expected = {}
    for count in range(5):
        for words in itertools.product(sounds, repeat=count):
            for prons in itertools.product(*(sounds[word] for word in words)):
                for silences in itertools.product((0, 1), repeat=count + 1):
                    said = ["SIL"] * silences[0]
                    for pron, silence in zip(prons, silences[1:], strict=True):
                        said += [*pron] + ["SIL"] * silence
                    expected.setdefault(tuple(said), []).append(words)
    table = word_table(lexicon)
    for labels in itertools.product((1, 2, 3, 4), repeat=4):
        said = tuple(symbols.symbols[label - 1] for label in collapsed(list(labels)))
        words = [tuple(table[index] for index in path) for path in outputs(graph, list(labels))]
        assert sorted(words) == sorted(expected.get(said, []))


def test_symbols_and_words_of_any_script(frames) -> None:
    symbols = SymbolTable(["你", "好", "ж", "é", "#1", "|"])
    lexicon = Lexicon({"你好": [["你", "好"]], "жé": [["ж", "é"]], "#1": [["#1"]], "a\u00a0b": [["|"]]})
    decoder = WfstDecoder(symbols, lexicon, uniform_unigram(lexicon))
    assert decoder.decode(frames([0, 1, 0, 2, 3, 4, 0, 5, 6], 7)) == ["你好", "жé", "#1", "a\u00a0b"]


@pytest.mark.parametrize("silence", ["|", None])
def test_letters_with_a_separator(frames, silence: str | None) -> None:
    """The separator as optional silence, or at the end of every spelling."""
    symbols = SymbolTable(["|", *"adehnot"])
    words = ["a", "and", "than", "hat", "the", "that"]
    lexicon = Lexicon({word: [[*word] + ["|"] * (silence is None)] for word in words})
    decoder = WfstDecoder(symbols, lexicon, uniform_unigram(lexicon), silence=silence)
    classes = symbols.encode([*"that|a|hat|and|the|"])
    assert decoder.decode(frames(classes, len(symbols))) == ["that", "a", "hat", "and", "the"]


@pytest.mark.parametrize(
    ("word", "message"), [("#0", "'#0' is reserved"), ("</s>", "reserved"), ("a b", "white space")]
)
def test_words_that_cannot_be_in_a_graph_are_named(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        word_table(Lexicon({word: [["x"]]}))


def test_ten_thousand_words_of_eighty_symbols_take_seconds() -> None:
    random = np.random.default_rng(0)
    names = [f"s{index}" for index in range(80)]
    lexicon = Lexicon({f"w{i}": [random.choice(names, random.integers(1, 12)).tolist()] for i in range(10_000)})
    start = time.process_time()
    graph = decoding_graph(SymbolTable(names), lexicon, uniform_unigram(lexicon))
    assert time.process_time() - start < 30
    assert sum(graph.num_arcs(state) for state in range(graph.num_states)) < 1_000_000


def test_a_word_spelled_with_the_blank_is_refused() -> None:
    lexicon = Lexicon({"a": [["x", "<blk>"]]})
    with pytest.raises(ValueError, match="word 'a' is spelled with the blank <blk>"):
        decoding_graph(SymbolTable(["x"]), lexicon, uniform_unigram(lexicon))
