"""g2p: pronunciations of words from a dictionary of any language: LSTMs with location-aware attention. Without a
dictionary of yours it learns English from CMUdict.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from sonorant.data.cmudict import FACTS, NEW_WORDS, load_cmudict
from sonorant.data.facts import CorpusFacts
from sonorant.data.pronunciations import RarePhone, rare_phones, read_pronunciations
from sonorant.data.splitting import hold_out_words
from sonorant.inference.pronouncer import Pronouncer, SearchConfig
from sonorant.inference.pronunciation_evaluation import evaluate_pronunciations, rates_table
from sonorant.plots import plot_attention
from sonorant.recipes.g2p_training import G2pTrainingConfig, fit_models
from sonorant.text import Lexicon, SymbolTable, encode_word, split_graphemes

__all__ = ["PRESETS", "Config", "DataConfig", "fit_pronouncer", "report", "test_set", "train"]

MOST_DEV = 5000
_NUM_EXAMPLES = 5

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "quick": {
            "batch_size": 192,
            "model.embedding_dim": 64,
            "model.encoder_dim": 128,
            "model.encoder_layers": 1,
            "model.decoder_dim": 128,
            "model.dropout": 0.1,
            "optimizer.learning_rate": 1.2e-2,
            "trainer.max_epochs": 1,
            "trainer.num_threads": 1,
        },
        "full": {},
        "small": {
            "ensemble": 4,
            "jobs": 2,
            "batch_size": 64,
            "min_examples": 80_000,
            "optimizer.learning_rate": 4e-3,
            "model.dropout": 0.3,
            "model.ctc_frames": 2,
            "search.ctc_weight": 0.4,
            "trainer.max_epochs": 18,
            "trainer.num_threads": 1,
        },
    }
)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The dictionaries: files of ``word<TAB>phones`` or ``WORD  PH PH`` lines.

    Args:
        train: to train on; by default CMUdict, split by word.
        dev: to choose the best weights with; if there is none, a part of ``train`` is held out.
        test: to count errors on; may be left out.
        dev_share: of the words of ``train``, held out if no ``dev`` is given, but at most 5000.
        most_dev_words: that are looked at after each epoch.
    """

    train: str | None = None
    dev: str | None = None
    test: str | None = None
    dev_share: float = 0.05
    most_dev_words: int = 2000

    def __post_init__(self) -> None:
        if self.train is None and not self.dev == self.test is None:
            raise ValueError("data.dev and data.test need data.train: CMUdict comes with parts of its own")


@dataclass(frozen=True, kw_only=True)
class Config(G2pTrainingConfig):
    """What can be chosen.

    Args:
        data: the dictionaries.
        search: how pronunciations are searched, in evaluation and use.
    """

    data: DataConfig = field(default_factory=DataConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search.ctc_weight and not self.model.ctc_frames:
            raise ValueError(
                f"search.ctc_weight is {self.search.ctc_weight}, but model.ctc_frames is 0: there is no CTC head to ask"
            )


class Dictionaries(NamedTuple):
    """What there is to learn from, to choose with and to test on, and what is known about it."""

    train: Lexicon
    dev: Lexicon
    test: Lexicon | None
    facts: CorpusFacts | None


def train(config: Config, run: Path) -> dict[str, Any]:
    """Train, evaluate, and write model, metrics and picture into the run directory.

    Returns:
        What ``metrics.json`` holds; nothing in processes other than the first.
    """
    dictionaries = _dictionaries(config.data)
    rare = rare_phones(dictionaries.train)
    _announce(dictionaries, rare)
    start = time.monotonic()
    pronouncer = fit_pronouncer(config, dictionaries, run)
    train_seconds = time.monotonic() - start
    if pronouncer is None:
        return {}
    pronouncer.save(run / "model")
    metrics: dict[str, Any] = {
        name: evaluate_pronunciations(pronouncer, lexicon).summary()
        for name, lexicon in (("dev", dictionaries.dev), ("test", dictionaries.test))
        if lexicon is not None
    }
    words = NEW_WORDS if dictionaries.facts is FACTS else _some_words(dictionaries.test or dictionaries.dev, pronouncer)
    examples = {word: best[0] for word, best in zip(words, pronouncer.pronounce_all(words), strict=True)}
    metrics["examples"] = {word: " ".join(best.phones) for word, best in examples.items()}
    metrics["rare_phones"] = [phone._asdict() for phone in rare]
    metrics["train_seconds"] = round(train_seconds, 2)
    (run / "metrics.json").write_text(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _draw(pronouncer, {word: best.phones for word, best in examples.items()}, run / "attention.png")
    return metrics


def report(metrics: Mapping[str, Any], run: Path) -> str:
    """What is printed at the end of a run."""
    sets = {name: metrics[name] for name in ("dev", "test") if name in metrics}
    return "\n".join(
        [
            rates_table(sets),
            *(f"{word}\t{phones}" for word, phones in metrics["examples"].items()),
            f"trained in {metrics['train_seconds']:.1f} s",
            f"model    {run / 'model'}\npicture  {run / 'attention.png'}\nmetrics  {run / 'metrics.json'}",
        ]
    )


def test_set() -> Lexicon:
    """What ``sonorant evaluate`` uses when no dictionary is given: the test part of CMUdict."""
    return load_cmudict().test


def fit_pronouncer(config: Config, dictionaries: Dictionaries, run: Path) -> Pronouncer | None:
    """Train all models.

    Returns:
        The pronouncer; None in processes other than the one that writes results.
    """
    train = dictionaries.train
    graphemes = SymbolTable(sorted({grapheme for word in train.words for grapheme in split_graphemes(word)}))
    phones = SymbolTable(sorted({phone for prons in train.entries.values() for pron in prons for phone in pron}))
    dev = _usable(dictionaries.dev, graphemes, phones, config.data.most_dev_words)
    models = fit_models(config, train, dev, graphemes, phones, run)
    if models is None:
        return None
    return Pronouncer(
        models,
        graphemes,
        phones,
        search=config.search,
        train_words=train.words,
        recipe="g2p" if dictionaries.facts is FACTS else None,
        corpus=dictionaries.facts,
    )


def _dictionaries(config: DataConfig) -> Dictionaries:
    if config.train is None:
        return Dictionaries(*load_cmudict(), FACTS)
    train = read_pronunciations(config.train)
    test = None if config.test is None else read_pronunciations(config.test)
    if config.dev is not None:
        return Dictionaries(train, read_pronunciations(config.dev), test, None)
    rest, dev = hold_out_words(train, config.dev_share, MOST_DEV)
    return Dictionaries(rest, dev, test, None)


def _usable(lexicon: Lexicon, graphemes: SymbolTable, phones: SymbolTable, at_most: int) -> Lexicon:
    """Words of a dev set that can be scored while training: of known symbols, and not too many."""
    entries = {}
    for word, prons in lexicon.entries.items():
        known = [pron for pron in prons if all(phone in phones for phone in pron)]
        if known and _is_accepted(word, partial(encode_word, graphemes=graphemes)):
            entries[word] = known
    if not entries:
        raise ValueError("data.dev: no word of it has only graphemes and phones that are in the training dictionary")
    usable = Lexicon(entries)
    return usable if len(usable) <= at_most else hold_out_words(usable, at_most / len(usable), at_most)[1]


def _is_accepted(word: str, encode: Callable[[str], list[int]]) -> bool:
    try:
        encode(word)
    except ValueError:
        return False
    return True


def _announce(dictionaries: Dictionaries, rare: list[RarePhone]) -> None:
    sizes = ((name, lexicon) for name, lexicon in zip(("train", "dev", "test"), dictionaries[:3], strict=True))
    print(", ".join(f"{len(lexicon)} words {name}" for name, lexicon in sizes if lexicon is not None))
    for phone, times, word in rare:
        print(f"rare phone {phone!r}: {times} time, in {word!r}")


def _some_words(lexicon: Lexicon, pronouncer: Pronouncer) -> list[str]:
    """A few words of a dictionary that can be pronounced, from all over it."""
    words = lexicon.words[:: max(1, len(lexicon) // _NUM_EXAMPLES)]
    return [word for word in words if _is_accepted(word, pronouncer.encode)][:_NUM_EXAMPLES]


def _draw(pronouncer: Pronouncer, examples: Mapping[str, list[str]], path: Path) -> None:
    """Where the model looks as it pronounces the longest of the examples."""
    if not examples:
        return
    word = max(examples, key=len)
    phones = examples[word]
    letters = pronouncer.graphemes.decode(pronouncer.encode(word))
    plot_attention(pronouncer.attention(word, phones), path=path, tokens=letters, outputs=[*phones, "end"])
