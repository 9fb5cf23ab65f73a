"""aligner: from recordings and transcripts of your own to the times of words and tokens: two convolutional encoders,
the forward-sum loss, and monotonic alignment search. Nothing has to be aligned beforehand.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch

from sonorant.data.alignment import AlignmentDataset, collate_alignment
from sonorant.data.corpus import scan_corpus
from sonorant.data.download import cache_directory
from sonorant.data.feature_store import FeatureStore
from sonorant.data.features import FbankConfig
from sonorant.data.frontend import RecordingConfig
from sonorant.data.manifest import Corpus, Utterance
from sonorant.data.splitting import hold_out
from sonorant.inference.aligner import Aligner
from sonorant.inference.suspects import find_suspects, typical
from sonorant.models import AlignmentEncoder, AlignmentEncoderConfig, AlignmentPrior
from sonorant.plots import plot_alignment
from sonorant.progress import progress_bar
from sonorant.recipes.corpora import first_sample_rate, usable_utterances
from sonorant.recipes.spelling import UnitsConfig, make_speller, refuse_missing_words
from sonorant.tasks.aligner import AlignerLossConfig, AlignerTask
from sonorant.tasks.batches import loader_maker
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.training import TrainerConfig, fit

__all__ = ["Config", "DataConfig", "Prepared", "UnitsConfig", "fit_aligner", "prepare", "report", "test_set", "train"]

MOST_DEV = 500
MOST_LOOKED_AT = 1000


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The recordings.

    Args:
        train: a corpus to train on, of any format that ``sonorant data check`` takes.
        dev: a corpus to watch while training; if there is none, a part of ``train`` is held out.
        dev_share: of ``train``, held out by speaker if no ``dev`` is given, but at most 500 utterances; 0 holds out
            nothing.
        skip_bad: leave faulty utterances out; a corpus with any is refused otherwise.
        sample_rate: in Hz; by default that of the first training recording.
        n_mels: mel bins of the filterbanks.
        frame_length_ms: the window, in milliseconds: the shorter, the sharper are the borders.
        recordings: what is done with other rates, several channels and tight edges.
        min_duration: of an utterance, in seconds.
        max_duration: of an utterance, in seconds.
        cache: keep features in the user's cache; they stay in memory otherwise.
    """

    train: str
    dev: str | None = None
    dev_share: float = 0.05
    skip_bad: bool = False
    sample_rate: int | None = None
    n_mels: int = 40
    frame_length_ms: float = 16.0
    recordings: RecordingConfig = field(default_factory=RecordingConfig)
    min_duration: float = 0.0
    max_duration: float = 60.0
    cache: bool = True


@dataclass(frozen=True, kw_only=True)
class Config:
    """What can be chosen.

    Args:
        seed: of the weights and of the order of the batches.
        data: the recordings.
        units: what is placed in time.
        batch_size: utterances of a batch, over all devices.
        pool_batches: batches that are sorted by length together; 1 shuffles freely.
        num_workers: processes that prepare batches; with 0 training does it itself.
        model: the network.
        prior: where tokens can be, before anything is learned.
        loss: what is minimised.
        optimizer: optimizer, schedule and weight averaging.
        trainer: where and how long.
    """

    seed: int = 0
    data: DataConfig
    units: UnitsConfig = field(default_factory=UnitsConfig)
    batch_size: int = 16
    pool_batches: int = 20
    num_workers: int = 0
    model: AlignmentEncoderConfig = field(default_factory=AlignmentEncoderConfig)
    prior: AlignmentPrior = field(default_factory=AlignmentPrior)
    loss: AlignerLossConfig = field(default_factory=AlignerLossConfig)
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=5e-3))
    trainer: TrainerConfig = field(default_factory=lambda: TrainerConfig(max_epochs=12, checkpoint_every=200))


class Prepared(NamedTuple):
    """An untrained aligner, and the utterances that it can use."""

    aligner: Aligner
    train: list[Utterance]
    dev: list[Utterance]


def train(config: Config, run: Path) -> dict[str, Any]:
    """Train, and write model, metrics and picture into the run directory.

    Returns:
        What ``metrics.json`` holds; nothing in processes other than the first.
    """
    dev = None if config.data.dev is None else scan_corpus(config.data.dev)
    task = prepare(config, scan_corpus(config.data.train), dev)
    start = time.monotonic()
    is_writer = fit_aligner(config, task, run)
    train_seconds = time.monotonic() - start
    if not is_writer:
        return {}
    return finish(task, run, train_seconds)


def finish(task: Prepared, run: Path, train_seconds: float) -> dict[str, Any]:
    """Write model, metrics and picture into the run directory.

    Returns:
        What ``metrics.json`` holds.
    """
    aligner, example = task.aligner, (task.dev or task.train)[0]
    some = hold_out(task.train, min(MOST_LOOKED_AT / len(task.train), 0.999), MOST_LOOKED_AT)[1] or task.train
    alignments = aligner.align_all(some)
    aligner.usual = typical(alignments)
    aligner.save(run / "model")
    suspects = find_suspects(alignments, aligner.usual)
    metrics: dict[str, Any] = {
        "utterances": {"train": len(task.train), "dev": len(task.dev)},
        "score": {"median": aligner.usual.score[0], "deviation": aligner.usual.score[1]},
        "looked_at": len(some),
        "suspects": [{"id": some[suspect.number].id, "reasons": suspect.reasons} for suspect in suspects],
        "train_seconds": round(train_seconds, 2),
    }
    (run / "metrics.json").write_text(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    plot_alignment(aligner, example, aligner.align_all([example])[0], run / "alignment.png")
    return metrics


def report(metrics: Mapping[str, Any], run: Path) -> str:
    """What is printed at the end of a run."""
    return "\n".join(
        [
            f"score a frame {metrics['score']['median']:.2f}, deviation {metrics['score']['deviation']:.2f}",
            f"{len(metrics['suspects'])} of {metrics['looked_at']} transcripts are suspicious",
            f"trained in {metrics['train_seconds']:.1f} s",
            f"model    {run / 'model'}\npicture  {run / 'alignment.png'}\nmetrics  {run / 'metrics.json'}",
        ]
    )


def test_set() -> NoReturn:
    """There is none that all models of this recipe share.

    Raises:
        ValueError: always.
    """
    raise ValueError("an aligner has no test set of its own; give --data TABLE")


def prepare(config: Config, train: Corpus, dev: Corpus | None = None) -> Prepared:
    """Check all corpora, and make an aligner for what can be used of them.

    Args:
        config: the settings; its paths are not looked at, but for the lexicon and the pronouncer.
        train: to train on.
        dev: to watch; None holds a part of ``train`` out.

    Raises:
        ValueError: faults, all of them listed, if they are not to be left out; words that the lexicon lacks.
    """
    sample_rate = config.data.sample_rate or first_sample_rate(train.utterances)
    aligner = _aligner(config, sample_rate, [*train.utterances, *(dev.utterances if dev else [])])
    if not config.data.skip_bad:
        refuse_missing_words(aligner.speller, [*train.utterances, *(dev.utterances if dev else [])])
    utterances = _usable(config, aligner, train, "train")
    if config.units.lexicon is None:
        aligner = _aligner(config, sample_rate, utterances)  # without letters that only faulty ones have
    if dev is None:
        utterances, dev_utterances = hold_out(utterances, config.data.dev_share, MOST_DEV)
    else:
        dev_utterances = _usable(config, aligner, dev, "dev")
    return Prepared(aligner, utterances, dev_utterances)


def fit_aligner(config: Config, task: Prepared, run: Path) -> bool:
    """Train.

    Returns:
        Whether this process is the one that writes results.
    """
    aligner = task.aligner
    store = FeatureStore(aligner.frontend, cache_directory() / "features" if config.data.cache else None)
    make_loader = loader_maker(_dataset(aligner, store, task.train), collate_alignment, config, config.seed)
    dev = _dataset(aligner, store, task.dev) if task.dev else None
    total_steps = len(make_loader(0, 1)) * config.trainer.max_epochs
    lightning_task = AlignerTask(
        aligner.model,
        config.optimizer,
        make_loader,
        total_steps=total_steps,
        boundary=aligner.speller.boundary_id,
        prior=config.prior,
        loss=config.loss,
        make_dev_loader=None if dev is None else loader_maker(dev, collate_alignment, config, config.seed),
    )
    return fit(lightning_task, config.trainer, run, seed=config.seed)


def _aligner(config: Config, sample_rate: int, utterances: Sequence[Utterance]) -> Aligner:
    torch.manual_seed(config.seed)
    speller = make_speller(config.units, utterances)
    speakers: list[str] = []
    if config.model.speaker_dim:
        speakers = sorted({utterance.speaker for utterance in utterances if utterance.speaker is not None})
    features = FbankConfig(
        sample_rate=sample_rate, n_mels=config.data.n_mels, frame_length_ms=config.data.frame_length_ms
    )
    return Aligner(
        AlignmentEncoder(config.model, features.n_mels, len(speller.symbols), len(speakers)),
        features,
        speller,
        prior=config.prior,
        speakers=speakers,
        recordings=config.data.recordings,
        recipe="aligner",
    )


def _dataset(aligner: Aligner, store: FeatureStore, utterances: Sequence[Utterance]) -> AlignmentDataset:
    with progress_bar("computing features", len(utterances)) as progress:
        stored = store.collect(utterances, (1.0,), progress=progress)
    speller = aligner.speller
    tokens = [speller.tokens(speller.spell(utterance.words)) for utterance in utterances]
    return AlignmentDataset(store, stored, tokens, [aligner.speaker_number(item.speaker) for item in utterances])


def _usable(config: Config, aligner: Aligner, corpus: Corpus, name: str) -> list[Utterance]:
    data = config.data
    needed = aligner.requirements(min_duration=data.min_duration, max_duration=data.max_duration)
    return usable_utterances(corpus, needed, name, skip_bad=config.data.skip_bad)
