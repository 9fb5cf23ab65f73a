"""ctc-asr: a speech recognizer from recordings and transcripts of your own: TDNN and CTC over words, characters or the
symbols of a lexicon.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from sonorant.data.corpus import scan_corpus
from sonorant.data.download import cache_directory
from sonorant.data.features import FbankConfig
from sonorant.data.frontend import RecordingConfig
from sonorant.data.manifest import Corpus, Utterance
from sonorant.data.splitting import hold_out
from sonorant.decoding.arpa import uniform_unigram
from sonorant.inference.recognizer import Recognizer
from sonorant.inference.requirements import requirements
from sonorant.models import TdnnCtc, TdnnCtcConfig
from sonorant.recipes.corpora import first_sample_rate, usable_utterances
from sonorant.recipes.ctc_training import CtcTrainingConfig, finish, fit_ctc, report
from sonorant.text import Lexicon, Units, make_units
from sonorant.text.units import UnitName

__all__ = [
    "Config",
    "DataConfig",
    "Prepared",
    "UnitsConfig",
    "fit_recognizer",
    "prepare",
    "report",
    "test_set",
    "train",
]


MOST_DEV = 500


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The recordings.

    Args:
        train: a corpus to train on, of any format that ``sonorant data check`` takes.
        test: a corpus to count errors on.
        dev: a corpus to watch while training; if there is none, a part of ``train`` is held out.
        dev_share: of ``train``, held out by speaker if no ``dev`` is given, but at most 500 utterances; 0 holds out
            nothing.
        skip_bad: leave faulty utterances out; a corpus with any is refused otherwise.
        sample_rate: in Hz; by default that of the first training recording.
        n_mels: mel bins of the filterbanks.
        recordings: what is done with other rates, several channels and tight edges.
        min_duration: of an utterance, in seconds.
        max_duration: of an utterance, in seconds.
        cache: keep features in the user's cache; they stay in memory otherwise.
    """

    train: str
    test: str
    dev: str | None = None
    dev_share: float = 0.1
    skip_bad: bool = False
    sample_rate: int | None = None
    n_mels: int = 40
    recordings: RecordingConfig = field(default_factory=lambda: RecordingConfig(edge_seconds=0.2))
    min_duration: float = 0.0
    max_duration: float = 30.0
    cache: bool = True


@dataclass(frozen=True, kw_only=True)
class UnitsConfig:
    """What the model emits, and what words are made of it.

    Args:
        kind: ``words``, each a symbol of its own; ``characters``; or what a ``lexicon`` spells words with.
        lexicon: for the last one, a file of ``word symbol symbol ...`` lines.
        separator: the symbol before, between and after words: by default ``SIL``, silence, or for characters ``▁``.
            None has no such symbol; the characters of an utterance are then one word.
        language_model: a file in ARPA format for the WFST decoder; by default all words are equally likely.
    """

    kind: UnitName = "words"
    lexicon: str | None = None
    separator: str | None = "auto"
    language_model: str | None = None


@dataclass(frozen=True, kw_only=True)
class Config(CtcTrainingConfig):
    """What can be chosen.

    Args:
        data: the recordings.
        units: what the model emits.
    """

    data: DataConfig
    units: UnitsConfig = field(default_factory=UnitsConfig)
    model: TdnnCtcConfig = field(
        default_factory=lambda: TdnnCtcConfig(hidden_channels=64, noise=0.8, channel_noise=0.6)
    )


class Prepared(NamedTuple):
    """An untrained recognizer, and the utterances that it can use."""

    recognizer: Recognizer
    train: list[Utterance]
    dev: list[Utterance]
    test: list[Utterance]


def train(config: Config, run: Path) -> dict[str, Any]:
    """Train, evaluate, and write model, metrics and picture into the run directory.

    Returns:
        What ``metrics.json`` holds.
    """
    data = config.data
    dev = None if data.dev is None else scan_corpus(data.dev)
    task = prepare(config, scan_corpus(data.train), scan_corpus(data.test), dev)
    start = time.monotonic()
    is_writer = fit_recognizer(config, task, run)
    train_seconds = time.monotonic() - start
    return finish(task.recognizer, run, {"dev": task.dev, "test": task.test}, train_seconds) if is_writer else {}


def test_set() -> list[Utterance]:
    """There is none that all models of this recipe share.

    Raises:
        ValueError: always.
    """
    raise ValueError("a model of ctc-asr has no test set of its own; give --data TABLE")


def prepare(config: Config, train: Corpus, test: Corpus, dev: Corpus | None = None) -> Prepared:
    """Check all corpora, and build the untrained recognizer, before anything takes long.

    The units are those of the whole training corpus, also where a dev set is held out of it.

    Args:
        config: the settings; its paths of corpora are not looked at.
        train: to train on.
        test: to count errors on.
        dev: to watch; held out of ``train`` if it is None.

    Raises:
        ValueError: faulty utterances, all of them listed; or settings that do not fit the corpora.
    """
    sample_rate = config.data.sample_rate or first_sample_rate(train.utterances)
    recognizer = _recognizer(config, sample_rate, train.utterances)
    utterances = _usable(config, recognizer, train, "train", config.speeds)
    if len(utterances) < len(train.utterances):
        recognizer = _recognizer(config, sample_rate, utterances)  # without symbols that only faulty ones have
    test_utterances = _usable(config, recognizer, test, "test")
    if dev is None:
        utterances, dev_utterances = hold_out(utterances, config.data.dev_share, MOST_DEV)
    else:
        dev_utterances = _usable(config, recognizer, dev, "dev")
    return Prepared(recognizer, utterances, dev_utterances, test_utterances)


def fit_recognizer(config: Config, task: Prepared, run: Path) -> bool:
    """Train.

    Returns:
        Whether this process is the one that writes results.
    """
    cache = cache_directory() / "features" if config.data.cache else None
    # between characters there is a word boundary, which need not be silent
    guide = config.units.kind != "characters"
    return fit_ctc(task.recognizer, task.train, config, run, dev=task.dev, cache=cache, guide_silence=guide)


def _recognizer(config: Config, sample_rate: int, utterances: Sequence[Utterance]) -> Recognizer:
    torch.manual_seed(config.seed)
    units = _units(config.units, utterances)
    features = FbankConfig(sample_rate=sample_rate, n_mels=config.data.n_mels)
    recognizer = Recognizer(
        TdnnCtc(config.model, features.n_mels, len(units.symbols)),
        features,
        units.symbols,
        units.lexicon,
        uniform_unigram(units.lexicon),
        silence=units.separator,
        open_vocabulary=config.units.kind == "characters",
        recordings=config.data.recordings,
        recipe="ctc-asr",
    )
    if config.units.language_model is not None:
        recognizer = recognizer.with_language(language_model=config.units.language_model)
    return recognizer


def _units(config: UnitsConfig, utterances: Sequence[Utterance]) -> Units:
    lexicon = None if config.lexicon is None else Lexicon.read(Path(config.lexicon))
    words = (word for utterance in utterances for word in utterance.words)
    units = make_units(config.kind, words, separator=config.separator, lexicon=lexicon)
    if config.kind == "characters" and units.separator is None:
        several = next((utterance for utterance in utterances if len(utterance.words) > 1), None)
        if several is not None:
            raise ValueError(f"{several.source}: several words, which characters cannot part without a separator")
    return units


def _usable(
    config: Config, recognizer: Recognizer, corpus: Corpus, name: str, speeds: Sequence[float] = (1.0,)
) -> list[Utterance]:
    data = config.data
    needed = requirements(recognizer, speeds, min_duration=data.min_duration, max_duration=data.max_duration)
    return usable_utterances(corpus, needed, name, skip_bad=config.data.skip_bad)
