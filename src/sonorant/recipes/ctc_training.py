"""What all recipes that train a recognizer with CTC do the same way."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonorant.data.ctc import CtcDataset, collate_ctc
from sonorant.data.feature_store import FeatureStore
from sonorant.data.manifest import Utterance
from sonorant.inference.evaluation import evaluate, rates_table
from sonorant.inference.recognizer import Recognizer
from sonorant.models import TdnnCtcConfig
from sonorant.plots import plot_posteriors
from sonorant.progress import progress_bar
from sonorant.tasks.batches import loader_maker
from sonorant.tasks.ctc_asr import CtcAsr
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.silence_guide import SilenceGuideConfig
from sonorant.tasks.training import TrainerConfig, fit

__all__ = ["CtcTrainingConfig", "finish", "fit_ctc", "report"]


@dataclass(frozen=True, kw_only=True)
class CtcTrainingConfig:
    """The settings that all these recipes have.

    Args:
        seed: of the weights and of the order of the batches.
        speeds: factors at which every training recording is played.
        batch_size: utterances of a batch, over all devices.
        pool_batches: batches that are sorted by length together; 1 shuffles freely.
        num_workers: processes that prepare batches; with 0 training does it itself.
        model: the network.
        silence_guide: how the silence symbol finds the pauses.
        optimizer: optimizer, schedule and weight averaging.
        trainer: where and how long.
    """

    seed: int = 0
    speeds: tuple[float, ...] = (0.9, 1.0, 1.1)
    batch_size: int = 16
    pool_batches: int = 20
    num_workers: int = 0
    model: TdnnCtcConfig = field(default_factory=TdnnCtcConfig)
    silence_guide: SilenceGuideConfig = field(default_factory=SilenceGuideConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)

    def __post_init__(self) -> None:
        if not self.speeds or min(self.speeds) <= 0:
            raise ValueError(f"speeds must be positive, and at least one; got {list(self.speeds)}")


def fit_ctc(
    recognizer: Recognizer,
    utterances: Sequence[Utterance],
    config: CtcTrainingConfig,
    run: Path,
    *,
    dev: Sequence[Utterance] = (),
    cache: Path | None = None,
    guide_silence: bool = True,
) -> bool:
    """Train a recognizer's model on utterances that were checked.

    Args:
        recognizer: with an untrained model.
        utterances: to train on.
        config: the settings.
        run: the run directory.
        dev: utterances whose loss is shown after each epoch.
        cache: the folder in which features are kept; None keeps them in memory.
        guide_silence: the silence symbol stands where silence is.

    Returns:
        Whether this process is the one that writes results.
    """
    store = FeatureStore(recognizer.frontend, cache)
    dataset = _dataset(recognizer, store, utterances, config.speeds)
    dev_dataset = _dataset(recognizer, store, dev, (1.0,)) if dev else None

    make_loader = loader_maker(dataset, collate_ctc, config, config.seed)
    total_steps = len(make_loader(0, 1)) * config.trainer.max_epochs
    symbols, silence = recognizer.symbols, recognizer.silence
    task = CtcAsr(
        recognizer.model,
        config.optimizer,
        make_loader,
        total_steps=total_steps,
        blank=symbols.blank,
        make_dev_loader=None if dev_dataset is None else loader_maker(dev_dataset, collate_ctc, config, config.seed),
        silence=symbols.encode([silence])[0] if silence is not None and guide_silence else None,
        silence_guide=config.silence_guide,
    )
    return fit(task, config.trainer, run, seed=config.seed)


def finish(
    recognizer: Recognizer, run: Path, sets: dict[str, Sequence[Utterance]], train_seconds: float
) -> dict[str, Any]:
    """Write model, metrics and picture into the run directory.

    Args:
        recognizer: the trained one.
        run: the run directory.
        sets: utterances to evaluate, by name; the picture shows the first of ``test``.
        train_seconds: of features and training.

    Returns:
        What ``metrics.json`` holds.
    """
    recognizer.save(run / "model")
    metrics: dict[str, Any] = {
        name: evaluate(recognizer, utterances).summary() for name, utterances in sets.items() if utterances
    }
    metrics["train_seconds"] = round(train_seconds, 2)
    (run / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    plot_posteriors(recognizer, sets["test"][0], run / "posteriors.png")
    return metrics


def report(metrics: Mapping[str, Any], run: Path) -> str:
    """What is printed at the end of a run."""
    return "\n".join(
        [
            rates_table(metrics["test"]),
            f"trained in {metrics['train_seconds']:.1f} s",
            f"model    {run / 'model'}\npicture  {run / 'posteriors.png'}\nmetrics  {run / 'metrics.json'}",
        ]
    )


def _dataset(
    recognizer: Recognizer, store: FeatureStore, utterances: Sequence[Utterance], speeds: Sequence[float]
) -> CtcDataset:
    with progress_bar("computing features", len(utterances)) as progress:
        stored = store.collect(utterances, speeds, progress=progress)
    targets = [recognizer.target(utterance.words) for utterance in utterances for _ in speeds]
    return CtcDataset(store, stored, targets)
