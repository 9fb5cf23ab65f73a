"""The decoding graph: T (CTC topology) composed with the determinised L (lexicon) composed with G (grammar).

Graphs are built with kaldifst, and the grammar with kaldilm (the extra ``decode``). Labels of symbols are class
ids + 1, since 0 is epsilon; kaldi-decoder reads class ``label - 1``.
"""

import math
from collections import Counter
from typing import TYPE_CHECKING

from sonorant.decoding.arpa import check_vocabulary, grammar_fst
from sonorant.text import Lexicon, SymbolTable

if TYPE_CHECKING:
    import kaldifst

__all__ = ["decoding_graph", "topology_fst", "word_table"]

_EPSILON = 0
_RESERVED = ("<eps>", "#0", "<s>", "</s>")
_BUCKET = 64


def word_table(lexicon: Lexicon) -> list[str]:
    """Words by their ids in the graph.

    Raises:
        ValueError: a word that means something else in the graph or the language model, or with white space in it.
    """
    for word in lexicon.words:
        if word in _RESERVED:
            raise ValueError(f"lexicon: the word {word!r} is reserved")
        if not word or any(character in word for character in " \t\r\n\v\f"):
            raise ValueError(f"lexicon: the word {word!r} is empty or holds white space")
    return ["<eps>", *lexicon.words, "#0", "<s>", "</s>"]


def decoding_graph(
    symbols: SymbolTable, lexicon: Lexicon, arpa: str, silence: str | None = None
) -> "kaldifst.StdVectorFst":
    """T o det(L o G), with the disambiguation symbols taken out before T is put in front.

    Each CTC path of each word sequence has exactly one path in the graph (one for each way of backing off), so that
    paths can be summed; and it puts out a word between the first frames of the word's first and last symbol.

    Args:
        symbols: the classes of the model.
        lexicon: the words.
        arpa: a language model in ARPA format.
        silence: a symbol that may stand at the start and after each word, at the cost of a fair coin.

    Raises:
        ValueError: unknown symbols, a word that cannot be used, or a language model that cannot be used.
    """
    import kaldifst

    words = word_table(lexicon)
    blank = symbols.symbols[symbols.blank]
    for word, prons in lexicon.entries.items():
        if any(blank in pron for pron in prons):
            raise ValueError(f"lexicon: word {word!r} is spelled with the blank {blank}")
    first_disambiguation = len(symbols) + 1
    lexicon_transducer = _lexicon_fst(symbols, lexicon, words, silence, first_disambiguation)
    check_vocabulary(arpa, lexicon)
    grammar = grammar_fst(arpa, words)
    kaldifst.arcsort(lexicon_transducer, "olabel")
    kaldifst.arcsort(grammar, "ilabel")
    composed = kaldifst.compose(lexicon_transducer, grammar)
    kaldifst.determinize_star(composed)
    kaldifst.minimize_encoded(composed)
    _remove_disambiguation(composed, first_disambiguation)
    topology = topology_fst(symbols)
    # Composition takes the epsilons of its first argument before those of the second, so that no path comes twice.
    # Both are turned round to make L o G the first: a word whose end is marked by a disambiguation symbol is then put
    # out with its last symbol and not with the first of the next word.
    kaldifst.invert(composed)
    kaldifst.invert(topology)
    kaldifst.arcsort(topology, "ilabel")
    graph = kaldifst.compose(composed, topology)
    kaldifst.invert(graph)
    if graph.num_states == 0:
        raise ValueError("no sentence of the language model can be said with the words of the lexicon")
    kaldifst.arcsort(graph, "ilabel")
    return graph


def topology_fst(symbols: SymbolTable, bucket: int = _BUCKET) -> "kaldifst.StdVectorFst":
    """CTC: a symbol repeats itself for free, and a blank must part it from its own next occurrence.

    The arcs from every symbol to every other one would be quadratic in the number of symbols. A symbol has arcs of its
    own only to those of its own bucket; each other bucket is entered by one epsilon. That leaves ``C * (B + C / B)``
    arcs of ``C * C``, and the paths are the same.

    Args:
        symbols: the classes of the model.
        bucket: symbols of a bucket; at least the square root of their number is taken.
    """
    import kaldifst

    blank = symbols.blank + 1
    labels = [index + 1 for index in range(len(symbols)) if index != symbols.blank]
    bucket = max(bucket, math.isqrt(len(labels)) + 1)
    buckets = [labels[start : start + bucket] for start in range(0, len(labels), bucket)]
    state_of = {label: state for state, label in enumerate(labels, start=1)}
    entrance = [len(labels) + 1 + index for index in range(len(buckets))]
    lines = [f"0 0 {blank} {_EPSILON}"] + [f"0 {state_of[label]} {label} {label}" for label in labels]
    for index, members in enumerate(buckets):
        if len(buckets) > 1:
            lines += [f"{entrance[index]} {state_of[label]} {label} {label}" for label in members]
        for label in members:
            state = state_of[label]
            lines += [f"{state} {state} {label} {_EPSILON}", f"{state} 0 {blank} {_EPSILON}"]
            lines += [f"{state} {state_of[other]} {other} {other}" for other in members if other != label]
            lines += [f"{state} {door} {_EPSILON} {_EPSILON}" for i, door in enumerate(entrance) if i != index]
    lines += [str(state) for state in range(len(labels) + 1)]
    return kaldifst.compile("\n".join(lines) + "\n", acceptor=False)


def _lexicon_fst(
    symbols: SymbolTable, lexicon: Lexicon, words: list[str], silence: str | None, first_disambiguation: int
) -> "kaldifst.StdVectorFst":
    """Symbols to words, with optional silence and the disambiguation symbols that determinisation needs."""
    import kaldifst

    word_ids = {word: index for index, word in enumerate(words)}
    entries = [(word, symbols.encode(pron)) for word, prons in lexicon.entries.items() for pron in prons]
    marks = _disambiguation([tuple(pron) for _, pron in entries])
    coin = math.log(2.0) if silence is not None else 0.0
    lines = []
    loop, after_word, next_state = 1, 2, 3
    lines.append(f"0 {loop} {_EPSILON} {_EPSILON} {coin}")
    if silence is not None:
        label = symbols.encode([silence])[0] + 1
        lines += [f"0 {loop} {label} {_EPSILON} {coin}", f"{after_word} {loop} {label} {_EPSILON}"]
    for (word, pron), mark in zip(entries, marks, strict=True):
        labels = [index + 1 for index in pron] + ([first_disambiguation + mark] if mark else [])
        state, output = loop, word_ids[word]
        for label in labels[:-1]:
            lines.append(f"{state} {next_state} {label} {output}")
            state, output, next_state = next_state, _EPSILON, next_state + 1
        lines.append(f"{state} {loop} {labels[-1]} {output} {coin}")
        if silence is not None:
            lines.append(f"{state} {after_word} {labels[-1]} {output} {coin}")
    # the grammar's back-off arcs (#0) pass through
    lines += [f"{loop} {loop} {first_disambiguation} {word_ids['#0']}", str(loop)]
    return kaldifst.compile("\n".join(lines) + "\n", acceptor=False)


def _disambiguation(pronunciations: list[tuple[int, ...]]) -> list[int]:
    """For each pronunciation 0, or a number that tells it from its homophones and from those that it begins."""
    count = Counter(pronunciations)
    prefixes = {pron[:length] for pron in pronunciations for length in range(1, len(pron))}
    seen: Counter[tuple[int, ...]] = Counter()
    marks = []
    for pron in pronunciations:
        ambiguous = count[pron] > 1 or pron in prefixes
        seen[pron] += 1
        marks.append(seen[pron] if ambiguous else 0)
    return marks


def _remove_disambiguation(fst: "kaldifst.StdVectorFst", first: int) -> None:
    import kaldifst

    for state in range(fst.num_states):
        arcs = list(kaldifst.ArcIterator(fst, state))
        fst.delete_arcs(state, len(arcs))
        for arc in arcs:
            label = _EPSILON if arc.ilabel >= first else arc.ilabel
            fst.add_arc(state, kaldifst.StdArc(label, arc.olabel, arc.weight, arc.nextstate))
