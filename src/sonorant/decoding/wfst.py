"""Decoding with a weighted finite-state transducer: T (CTC topology), L (lexicon), G (grammar), composed.

Graphs are built with kaldilm and kaldifst and searched with kaldi-decoder (the extra ``decode``).
"""

import math
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sonorant.text import Lexicon, SymbolTable

if TYPE_CHECKING:
    import kaldifst

__all__ = ["WfstDecoder", "uniform_unigram"]

_EPSILON = 0
_ARPA_TO_FST = """
import sys, kaldilm
print(kaldilm.arpa2fst(sys.argv[1], disambig_symbol="#0", read_symbol_table=sys.argv[2]))
"""


def uniform_unigram(lexicon: Lexicon) -> str:
    """An ARPA language model in which every word is as likely, and the sentence can end after any.

    The end of sentence counts as one more word, so the model knows nothing of how many words there are.
    """
    weight = -math.log10(len(lexicon) + 1)
    words = "".join(f"{weight:.6f}\t{word}\n" for word in ("</s>", *lexicon.words))
    return f"\\data\\\nngram 1={len(lexicon) + 2}\n\n\\1-grams:\n-99\t<s>\n{words}\n\\end\\\n"


class WfstDecoder:
    """Finds the most likely words under CTC log probabilities, a lexicon and a language model.

    Args:
        symbols: the classes of the model.
        lexicon: the words; their symbols must be in ``symbols``.
        arpa: a language model over the words in ARPA format.
        silence: a symbol that may stand at the start and after each word, at the cost of a fair coin.
        acoustic_scale: what the log probabilities are multiplied with against the graph's costs.
        beam: how much worse than the best a path may be, in nats.
        max_active: how many states are kept at most.

    Raises:
        ValueError: a lexicon whose symbols the model does not have, or a language model that is not one.

    References:
        Miao, Gowayyed and Metze 2015, "EESEN", arXiv 1507.08240 (T, L and G); Mohri, Pereira and Riley 2002,
        "Weighted finite-state transducers in speech recognition".
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
        import kaldi_decoder

        self._words = ["<eps>", *lexicon.words, "#0", "<s>", "</s>"]
        self._graph = _graph(symbols, lexicon, self._words, arpa, silence)
        self._acoustic_scale = acoustic_scale
        self._options = kaldi_decoder.FasterDecoderOptions(beam=beam, max_active=max_active)

    def decode(self, log_probs: npt.NDArray[np.float32]) -> list[str]:
        """Decode one utterance.

        Args:
            log_probs: ``(frames, classes)``.

        Returns:
            The words; none where no path through the graph survives to a final state.
        """
        import kaldi_decoder
        import kaldifst

        decoder = kaldi_decoder.FasterDecoder(self._graph, self._options)
        scores = np.ascontiguousarray(log_probs * self._acoustic_scale, dtype=np.float32)
        decoder.decode(kaldi_decoder.DecodableCtc(scores))
        if not decoder.reached_final():
            return []
        found, path = decoder.get_best_path()
        if not found:
            return []
        _, _, words, _ = kaldifst.get_linear_symbol_sequence(path)
        return [self._words[index] for index in words]


def _graph(
    symbols: SymbolTable, lexicon: Lexicon, words: list[str], arpa: str, silence: str | None
) -> "kaldifst.StdVectorFst":
    """T o det(L o G), with the disambiguation symbols taken out before T is put in front."""
    import kaldifst

    first_disambiguation = len(symbols) + 1
    lexicon_fst = _lexicon_fst(symbols, lexicon, words, silence, first_disambiguation)
    grammar = _grammar_fst(arpa, words)
    kaldifst.arcsort(lexicon_fst, "olabel")
    kaldifst.arcsort(grammar, "ilabel")
    composed = kaldifst.compose(lexicon_fst, grammar)
    kaldifst.determinize_star(composed)
    kaldifst.minimize_encoded(composed)
    for state in range(composed.num_states):
        arcs = list(kaldifst.ArcIterator(composed, state))
        composed.delete_arcs(state, len(arcs))
        for arc in arcs:
            label = _EPSILON if arc.ilabel >= first_disambiguation else arc.ilabel
            composed.add_arc(state, kaldifst.StdArc(label, arc.olabel, arc.weight, arc.nextstate))
    kaldifst.arcsort(composed, "ilabel")
    topology = _topology_fst(symbols)
    kaldifst.arcsort(topology, "olabel")
    graph = kaldifst.compose(topology, composed)
    if graph.num_states == 0:
        raise ValueError("the lexicon and the language model have no word in common")
    kaldifst.arcsort(graph, "ilabel")
    return graph


def _topology_fst(symbols: SymbolTable) -> "kaldifst.StdVectorFst":
    """CTC: a symbol repeats itself for free, and a blank must part it from its own next occurrence.

    Labels are ids + 1, since 0 is epsilon; kaldi-decoder reads class ``label - 1``.
    """
    import kaldifst

    blank = symbols.blank + 1
    ids = [index + 1 for index in range(len(symbols)) if index != symbols.blank]
    lines = [f"0 0 {blank} {_EPSILON}"]
    for state, label in enumerate(ids, start=1):
        lines += [f"0 {state} {label} {label}", f"{state} {state} {label} {_EPSILON}", f"{state} 0 {blank} {_EPSILON}"]
        lines += [
            f"{state} {other} {ids[other - 1]} {ids[other - 1]}" for other in range(1, len(ids) + 1) if other != state
        ]
    lines += [str(state) for state in range(len(ids) + 1)]
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


def _grammar_fst(arpa: str, words: list[str]) -> "kaldifst.StdVectorFst":
    import kaldifst

    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "words.txt", Path(folder) / "model.arpa"
        table.write_text("".join(f"{word} {index}\n" for index, word in enumerate(words)), encoding="utf-8")
        model.write_text(arpa, encoding="utf-8")
        # in a process of its own: kaldilm ends the process when it does not like a file
        done = subprocess.run(
            [sys.executable, "-c", _ARPA_TO_FST, str(model), str(table)], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith(("[F]", "[E]"))), lines[-1] if lines else "")
        raise ValueError(f"not a language model in ARPA format: {reason}")
    return kaldifst.compile(done.stdout, acceptor=False)
