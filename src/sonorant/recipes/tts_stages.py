"""The stages in which a model learns to speak: text and times first, then the flow, then the predictors."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.batching import Draw
from sonorant.data.feature_store import FeatureStore, StoredFeatures
from sonorant.data.frontend import Frontend, RecordingConfig
from sonorant.data.manifest import Utterance
from sonorant.data.speaker_statistics import AcousticStatistics, collect_statistics
from sonorant.data.tts import TtsDataset, collate_tts
from sonorant.models import AlignmentPrior, FlowTts, FlowTtsConfig
from sonorant.progress import progress_bar
from sonorant.recipes.spelling import UnitsConfig
from sonorant.recipes.tts_corpus import TtsCorpus
from sonorant.tasks.batches import MakeLoader, loader_maker
from sonorant.tasks.finished import keep_finished, take_finished
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.stopwatch import Stopwatch
from sonorant.tasks.training import TrainerConfig, fit
from sonorant.tasks.tts import FlowTtsLossConfig, FlowTtsTask
from sonorant.tasks.tts_predictors import PredictorsTask
from sonorant.tasks.tts_samples import CopySamples, Watched
from sonorant.tasks.tts_task import TtsTask, mean_terms

__all__ = ["PredictorsConfig", "RegressionConfig", "TtsStages", "TtsTrainingConfig"]

MOST_WATCHED = 4  # sentences
TIMES_WATCHED = 6  # in a stage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RegressionConfig:
    """How the times of the tokens, and the mean spectra that belong to them, are learned.

    Args:
        max_epochs: of the stage.
        optimizer: of the stage.
    """

    max_epochs: int = 20
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=2e-3))

    def __post_init__(self) -> None:
        if self.max_epochs < 1:
            raise ValueError(f"max_epochs must be at least 1; got {self.max_epochs}")


@dataclass(frozen=True, kw_only=True)
class PredictorsConfig:
    """How durations, f0, energy and voicing are learned.

    Args:
        joint: along with the flow; by default in a stage of their own, after it.
        max_epochs: of that stage.
        optimizer: of that stage.
    """

    joint: bool = False
    max_epochs: int = 50
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=1e-3))

    def __post_init__(self) -> None:
        if self.max_epochs < 1:
            raise ValueError(f"max_epochs must be at least 1; got {self.max_epochs}")


@dataclass(frozen=True, kw_only=True)
class TtsTrainingConfig:
    """The settings that all these recipes have; by default those of a corpus of LJSpeech's size.

    Args:
        seed: of the weights and of the order of the batches.
        units: what words are spelled with.
        features: spectra, f0 and energy.
        recordings: what is done with other rates, several channels and tight edges.
        batch_size: utterances of a batch, over all devices.
        pool_batches: batches that are sorted by length together; 1 shuffles freely.
        num_workers: processes that prepare batches; with 0 training does it itself.
        model: the network.
        prior: where tokens can be, before anything is learned.
        loss: what is minimised beside the flow's likelihood.
        regression: the first stage.
        optimizer: optimizer, schedule and weight averaging of the whole flow.
        predictors: how they are trained.
        temperature: that the model speaks with, unless it is told another.
        trainer: where and how long; the number of epochs is that of the whole flow.
    """

    seed: int = 0
    units: UnitsConfig = field(default_factory=UnitsConfig)
    features: AcousticConfig = field(default_factory=AcousticConfig)
    recordings: RecordingConfig = field(default_factory=lambda: RecordingConfig(edge_seconds=0.05))
    batch_size: int = 16
    pool_batches: int = 20
    num_workers: int = 0
    model: FlowTtsConfig = field(default_factory=FlowTtsConfig)
    prior: AlignmentPrior = field(default_factory=AlignmentPrior)
    loss: FlowTtsLossConfig = field(default_factory=FlowTtsLossConfig)
    regression: RegressionConfig = field(default_factory=RegressionConfig)
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=1e-3))
    predictors: PredictorsConfig = field(default_factory=PredictorsConfig)
    temperature: float = 0.667
    trainer: TrainerConfig = field(default_factory=lambda: TrainerConfig(max_epochs=200, checkpoint_every=500))

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 10:
            raise ValueError(f"temperature must lie in [0, 10]; got {self.temperature}")


class TtsStages:
    """A model, what it learns from, and the stages of its training, each with a folder of its own.

    Args:
        config: the settings.
        corpus: what is learned from.
        run: the run directory.
        cache: the folder in which features are kept; None keeps them in memory.

    Raises:
        ValueError: no recording has a voiced frame, or there are too few frames.
    """

    def __init__(self, config: TtsTrainingConfig, corpus: TtsCorpus, run: Path, cache: Path | None) -> None:
        self.config = config
        self.corpus = corpus
        self.run = run
        self._store = FeatureStore(Frontend(config.features, config.recordings), cache)
        stored = self._collect(corpus.train)
        self.statistics = _statistics(self._store, stored)
        self.train_set = self._dataset(stored)
        self.dev_set = self._dataset(self._collect(corpus.dev)) if corpus.dev else None
        torch.manual_seed(config.seed)
        voices = len(corpus.speakers), len(corpus.accents)
        self.model = FlowTts(config.model, config.features.n_mels, len(corpus.speller.symbols), *voices)
        self.model.decoder.fit_whitening(AcousticFeatures.from_columns(self._store.read(one)).log_mel for one in stored)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the stages, in their order."""
        return ("regression", "decoder") if self.config.predictors.joint else ("regression", "decoder", "predictors")

    @property
    def watched(self) -> list[Utterance]:
        """A few sentences, of the dev set if there is one."""
        utterances = self.corpus.dev or self.corpus.train
        number = min(MOST_WATCHED, len(utterances))
        return [utterances[index * len(utterances) // number] for index in range(number)]

    def fit(self, name: str) -> float:
        """Go through a stage, unless an interrupted run has finished it.

        Returns:
            The seconds that its training took.
        """
        folder = self.run / "stages" / name
        finished = take_finished(self.model, folder)
        if finished is not None:
            return float(finished["train_seconds"])
        config, epochs = self.config, self._epochs(name)
        task = self._task(name)
        stopwatch = Stopwatch()
        is_writer = fit(
            task,
            replace(config.trainer, max_epochs=epochs),
            folder,
            seed=config.seed,
            select_by=None if self.dev_set is None else "dev_loss",
            callbacks=[stopwatch, *([] if name == "predictors" or self.dev_set is None else [self._copies(epochs)])],
        )
        if is_writer:
            keep_finished(self.model, folder, {"train_seconds": str(stopwatch.seconds)})
        return stopwatch.seconds

    def dev_terms(self) -> dict[str, float]:
        """The means of all terms over the dev set; empty if there is none."""
        terms: dict[str, float] = {}
        if self.dev_set is not None:
            loader = self._loader(self.dev_set)(0, 1)
            for name in self.names[1:]:  # the whole flow has the first stage's term
                terms |= mean_terms(self._task(name), loader)
        return terms

    def _task(self, name: str) -> TtsTask:
        config = self.config
        make_loader = self._loader(self.train_set)
        make_dev_loader = None if self.dev_set is None else self._loader(self.dev_set)
        total_steps = len(make_loader(0, 1)) * self._epochs(name)
        boundary = self.corpus.speller.boundary_id
        if name == "predictors":
            return PredictorsTask(
                self.model,
                self._optimizer(name),
                make_loader,
                total_steps=total_steps,
                boundary=boundary,
                prior=config.prior,
                make_dev_loader=make_dev_loader,
            )
        return FlowTtsTask(
            self.model,
            self._optimizer(name),
            make_loader,
            total_steps=total_steps,
            boundary=boundary,
            prior=config.prior,
            loss=config.loss,
            regression=name == "regression",
            joint=config.predictors.joint and name == "decoder",
            make_dev_loader=make_dev_loader,
        )

    def _epochs(self, name: str) -> int:
        config = self.config
        return {
            "regression": config.regression.max_epochs,
            "decoder": config.trainer.max_epochs,
            "predictors": config.predictors.max_epochs,
        }[name]

    def _optimizer(self, name: str) -> OptimizerConfig:
        config = self.config
        return {
            "regression": config.regression.optimizer,
            "decoder": config.optimizer,
            "predictors": config.predictors.optimizer,
        }[name]

    def _loader(self, dataset: TtsDataset) -> MakeLoader:
        return loader_maker(dataset, collate_tts, self.config, self.config.seed)

    def _collect(self, utterances: Sequence[Utterance]) -> list[StoredFeatures]:
        with progress_bar("computing features", len(utterances)) as progress:
            return self._store.collect(utterances, (1.0,), progress=progress)

    def _dataset(self, stored: Sequence[StoredFeatures]) -> TtsDataset:
        utterances = [one.utterance for one in stored]
        tokens = [self.corpus.tokens(utterance) for utterance in utterances]
        voices = [self.corpus.voice(utterance) for utterance in utterances]
        speakers, accents = [speaker for speaker, _ in voices], [accent for _, accent in voices]
        return TtsDataset(self._store, stored, tokens, speakers, accents, self.statistics)

    def _copies(self, epochs: int) -> CopySamples:
        utterances = self.watched
        dataset = self._dataset(self._collect(utterances))
        batch = collate_tts([dataset[Draw(index, 0)] for index in range(len(dataset))])
        tokens = [self.corpus.speller.symbols.decode(self.corpus.tokens(utterance)) for utterance in utterances]
        watched = Watched(batch, [utterance.text for utterance in utterances], tokens)
        every = max(1, epochs // TIMES_WATCHED)
        return CopySamples(watched, self.config.features, self.statistics.corpus, self.run / "samples", every)


def _statistics(store: FeatureStore, stored: Sequence[StoredFeatures]) -> AcousticStatistics:
    """Of a corpus; recordings without a voiced frame are named."""
    unvoiced = []

    def features() -> Iterator[tuple[str | None, AcousticFeatures]]:
        for one in stored:
            recording = AcousticFeatures.from_columns(store.read(one))
            if not recording.voiced.any():
                unvoiced.append(one.id)
            yield one.utterance.speaker, recording

    statistics = collect_statistics(features())
    if unvoiced:
        logger.warning("recordings without a voiced frame (%d): %s", len(unvoiced), ", ".join(unvoiced))
    return statistics
