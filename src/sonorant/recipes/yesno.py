"""yesno: a TDNN trained with CTC on 30 recordings of "yes" and "no" in Hebrew.

Every setting was chosen by cross-validation inside the 30 training recordings (``benchmarks/yesno_settings.py``), none
by its errors on the test half.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from sonorant.data.audio import change_speed
from sonorant.data.batching import BucketBatchSampler, StatefulLoader
from sonorant.data.check import Requirements, check_corpus, without_faults
from sonorant.data.ctc import CtcDataset, CtcExample, collate_ctc
from sonorant.data.features import FbankConfig
from sonorant.data.manifest import Utterance
from sonorant.data.yesno import FACTS, LEXICON, SILENCE, load_yesno
from sonorant.decoding.wfst import uniform_unigram
from sonorant.inference.evaluation import evaluate
from sonorant.inference.recognizer import Recognizer
from sonorant.models import TdnnCtc, TdnnCtcConfig
from sonorant.plots import plot_posteriors
from sonorant.tasks.ctc_asr import CtcAsr
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.silence_guide import SilenceGuideConfig
from sonorant.tasks.training import TrainerConfig, fit
from sonorant.text import Lexicon, SymbolTable

__all__ = ["Config", "fit_recognizer", "test_set", "train"]


@dataclass(frozen=True)
class Config:
    """What can be chosen.

    Args:
        seed: of the weights and of the order of the batches.
        speeds: factors at which every training recording is played.
        batch_size: utterances of a batch, over all devices.
        pool_batches: batches that are sorted by length together; 1 shuffles freely.
        features: Kaldi's filterbanks.
        model: the network.
        silence_guide: how the silence symbol finds the pauses.
        optimizer: optimizer, schedule and weight averaging.
        trainer: where and how long.
    """

    seed: int = 0
    speeds: tuple[float, ...] = (0.9, 1.0, 1.1)
    batch_size: int = 4
    pool_batches: int = 2
    features: FbankConfig = field(default_factory=lambda: FbankConfig(sample_rate=8000, n_mels=23))
    model: TdnnCtcConfig = field(default_factory=TdnnCtcConfig)
    silence_guide: SilenceGuideConfig = field(default_factory=SilenceGuideConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)


def train(config: Config, run: Path) -> dict[str, Any]:
    """Train, evaluate, and write model, metrics and picture into the run directory.

    Returns:
        What ``metrics.json`` holds.
    """
    corpus = load_yesno()
    start = time.monotonic()
    recognizer, is_writer = fit_recognizer(config, corpus.train, run)
    train_seconds = time.monotonic() - start
    if not is_writer:
        return {}
    recognizer.save(run / "model")
    result = evaluate(recognizer, corpus.test)
    metrics = {"test": result.summary(), "train_seconds": round(train_seconds, 2)}
    (run / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    plot_posteriors(recognizer, corpus.test[0].path, run / "posteriors.png")
    return metrics


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
    requirements = Requirements(
        sample_rate=config.features.sample_rate,
        encode=lambda words: recognizer.target(words).tolist(),
        num_frames=lambda samples, _: recognizer.num_frames(int(samples / max(config.speeds))),
    )
    utterances = without_faults(utterances, check_corpus(utterances, requirements), skip_bad=False)
    examples = _examples(recognizer, utterances, config.speeds)

    def make_loader(rank: int, num_ranks: int) -> StatefulLoader:
        sampler = BucketBatchSampler(
            [len(example.features) for example in examples],
            config.batch_size,
            seed=config.seed,
            pool_batches=config.pool_batches,
            rank=rank,
            num_ranks=num_ranks,
        )
        return StatefulLoader(CtcDataset(examples), sampler, collate_fn=collate_ctc)

    total_steps = len(make_loader(0, 1)) * config.trainer.max_epochs
    task = CtcAsr(
        model,
        config.optimizer,
        make_loader,
        total_steps=total_steps,
        blank=symbols.blank,
        silence=symbols.encode([SILENCE])[0],
        silence_guide=config.silence_guide,
    )
    averaged_from = config.optimizer.first_averaged_step(total_steps)
    trainer = fit(task, config.trainer, run, seed=config.seed, averaged_from=averaged_from)
    model.cpu().eval()
    return recognizer, trainer.is_global_zero


def _examples(recognizer: Recognizer, utterances: Sequence[Utterance], speeds: Sequence[float]) -> list[CtcExample]:
    examples = []
    for utterance in utterances:
        samples = utterance.load_audio(recognizer.fbank.config.sample_rate).samples
        target = recognizer.target(utterance.words)
        for speed in speeds:
            name = utterance.id if speed == 1 else f"{utterance.id} at speed {speed:g}"
            examples.append(CtcExample(name, recognizer.fbank(change_speed(samples, speed)), target))
    return examples
