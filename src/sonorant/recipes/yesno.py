"""yesno: a TDNN trained with CTC on 30 recordings of "yes" and "no" in Hebrew.

Every setting was chosen by cross-validation inside the 30 training recordings (``benchmarks/yesno_settings.py``), none
by its errors on the test half.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from sonorant.data.check import check_corpus, without_faults
from sonorant.data.features import FbankConfig
from sonorant.data.manifest import Utterance
from sonorant.data.yesno import FACTS, LEXICON, SILENCE, load_yesno
from sonorant.decoding.arpa import uniform_unigram
from sonorant.inference.recognizer import Recognizer
from sonorant.inference.requirements import requirements
from sonorant.models import TdnnCtc
from sonorant.recipes.ctc_training import CtcTrainingConfig, finish, fit_ctc, report
from sonorant.tasks.training import TrainerConfig
from sonorant.text import Lexicon, SymbolTable

__all__ = ["Config", "fit_recognizer", "report", "test_set", "train"]


@dataclass(frozen=True, kw_only=True)
class Config(CtcTrainingConfig):
    """What can be chosen.

    Args:
        features: Kaldi's filterbanks.
    """

    speeds: tuple[float, ...] = (0.8, 0.9, 1.0, 1.1, 1.25)
    batch_size: int = 4
    pool_batches: int = 2
    features: FbankConfig = field(default_factory=lambda: FbankConfig(sample_rate=8000, n_mels=23))
    trainer: TrainerConfig = field(default_factory=lambda: TrainerConfig(max_epochs=12, num_threads=1))


def train(config: Config, run: Path) -> dict[str, Any]:
    """Train, evaluate, and write model, metrics and picture into the run directory.

    Returns:
        What ``metrics.json`` holds.
    """
    corpus = load_yesno()
    start = time.monotonic()
    recognizer, is_writer = fit_recognizer(config, corpus.train, run)
    train_seconds = time.monotonic() - start
    return finish(recognizer, run, {"test": corpus.test}, train_seconds) if is_writer else {}


def test_set() -> list[Utterance]:
    """What ``sonorant evaluate`` uses when no table is given."""
    return load_yesno().test


def fit_recognizer(config: Config, utterances: Sequence[Utterance], run: Path) -> tuple[Recognizer, bool]:
    """Train on some utterances.

    Returns:
        The recognizer, and whether this process is the one that writes results.
    """
    torch.manual_seed(config.seed)
    symbols, lexicon = SymbolTable([SILENCE, "N", "Y"]), Lexicon(LEXICON)
    model = TdnnCtc(config.model, config.features.n_mels, len(symbols))
    recognizer = Recognizer(
        model,
        config.features,
        symbols,
        lexicon,
        uniform_unigram(lexicon),
        silence=SILENCE,
        recipe="yesno",
        corpus=FACTS,
    )
    faults = check_corpus(utterances, requirements(recognizer, config.speeds))
    utterances = without_faults(utterances, faults, skip_bad=False)
    return recognizer, fit_ctc(recognizer, utterances, config, run)
