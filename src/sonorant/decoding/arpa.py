"""Language models in ARPA format: G of the decoding graph."""

import logging
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sonorant.text import Lexicon

if TYPE_CHECKING:
    import kaldifst

__all__ = ["arpa_words", "check_vocabulary", "grammar_fst", "uniform_unigram"]

logger = logging.getLogger(__name__)

_NO_WORDS = frozenset(("<s>", "</s>", "<unk>", "<UNK>"))
_NUM_NAMED = 10
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


def arpa_words(arpa: str) -> list[str]:
    """The words of an ARPA model's unigrams, without marks of sentence and unknown words."""
    _, _, rest = arpa.partition("\\1-grams:")
    words = []
    for line in rest.split("\n"):
        if line.startswith("\\"):
            break
        fields = line.replace("\t", " ").strip(" \r").split(" ")
        if len(fields) > 1 and fields[1] not in _NO_WORDS:
            words.append(fields[1])
    return words


def check_vocabulary(arpa: str, lexicon: Lexicon) -> None:
    """Compare the words of a language model with those of a lexicon.

    Words that only one of them has are never recognised: they are named in a warning of this module's logger.

    Raises:
        ValueError: no word in common, each side with examples.
    """
    in_arpa = arpa_words(arpa)
    known = set(in_arpa)
    unpronounced = [word for word in in_arpa if word not in lexicon.entries]
    unmodelled = [word for word in lexicon.words if word not in known]
    if in_arpa and len(unmodelled) == len(lexicon):
        raise ValueError(
            "the lexicon and the language model have no word in common: "
            f"the lexicon has {_named(lexicon.words)}; the language model has {_named(in_arpa)}"
        )
    if unpronounced:
        logger.warning("not recognised, since the lexicon lacks them: %s", _named(unpronounced))
    if unmodelled and in_arpa:
        logger.warning("not recognised, since the language model lacks them: %s", _named(unmodelled))


def grammar_fst(arpa: str, words: list[str]) -> "kaldifst.StdVectorFst":
    """The acceptor of an ARPA model, with ``#0`` on the input side of its back-off arcs.

    Args:
        arpa: the model.
        words: by id; n-grams with other words are left out.

    Raises:
        ValueError: not a model in ARPA format.
    """
    import kaldifst

    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "words.txt", Path(folder) / "model.arpa"
        table.write_text("".join(f"{word} {index}\n" for index, word in enumerate(words)), encoding="utf-8")
        model.write_text(arpa, encoding="utf-8")
        # in a process of its own: kaldilm ends the process when it does not like a file
        done = subprocess.run(
            [sys.executable, "-c", _ARPA_TO_FST, str(model), str(table)],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith(("[F]", "[E]"))), lines[-1] if lines else "")
        raise ValueError(f"not a language model in ARPA format: {reason}")
    return kaldifst.compile(done.stdout, acceptor=False)


def _named(words: list[str]) -> str:
    more = f" and {len(words) - _NUM_NAMED} more" if len(words) > _NUM_NAMED else ""
    return ", ".join(words[:_NUM_NAMED]) + more
