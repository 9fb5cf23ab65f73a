"""The verb ``pronounce``."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sonorant.inference import Pronouncer

__all__ = ["add_pronounce"]

_WORDS_AT_ONCE = 2048


def add_pronounce(pronounce: argparse.ArgumentParser) -> None:
    """Give the verb its arguments."""
    pronounce.add_argument("model", type=Path, metavar="DIR", help="a run directory or a model folder")
    pronounce.add_argument("words", nargs="*", metavar="WORD", help="(default: from stdin, a word a line)")
    pronounce.add_argument("--nbest", type=int, default=1, metavar="N", help="pronunciations of a word (default: 1)")
    pronounce.add_argument("--beam-size", type=int, metavar="N", help="1 is greedy, and fast (default: the model's)")
    pronounce.add_argument("--json", action="store_true", help="a JSON line for each word")
    pronounce.set_defaults(run=_pronounce)


def _pronounce(options: argparse.Namespace, rest: list[str]) -> int:
    from dataclasses import replace

    from sonorant.inference import Pronouncer, load

    pronouncer = load(options.model)
    if not isinstance(pronouncer, Pronouncer):
        raise ValueError(f"{options.model}: a model of kind {pronouncer.KIND!r}, which does not pronounce words")
    if options.beam_size is not None:
        pronouncer.search = replace(pronouncer.search, beam_size=options.beam_size)
    failed = False
    lines = iter(options.words or (line.strip() for line in sys.stdin if line.strip()))
    while words := list(islice(lines, _WORDS_AT_ONCE)):
        good = list(_pronounceable(pronouncer, words))
        failed |= len(good) < len(words)
        for word, found in zip(good, pronouncer.pronounce_all(good, n_best=options.nbest), strict=True):
            if options.json:
                data = [{"phones": best.phones, "score": round(best.score, 4)} for best in found]
                print(json.dumps({"word": word, "pronunciations": data}, ensure_ascii=False))
                continue
            for best in found:
                print(f"{word}\t{' '.join(best.phones)}\t{best.score:.4f}")
        sys.stdout.flush()
    return 2 if failed else 0


def _pronounceable(pronouncer: "Pronouncer", words: Iterable[str]) -> Iterator[str]:
    """Say on stderr which words cannot be pronounced: one bad word does not stop the others."""
    for word in words:
        try:
            pronouncer.encode(word)
        except ValueError as error:
            print(f"sonorant: error: {error}", file=sys.stderr)
        else:
            yield word
