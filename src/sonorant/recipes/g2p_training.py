"""Training of the models of a pronouncer: one, or several one after the other or side by side."""

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import torch

from sonorant.data.g2p import G2pDataset, collate_g2p
from sonorant.models import G2p, G2pConfig
from sonorant.tasks.batches import loader_maker
from sonorant.tasks.finished import keep_finished, take_finished
from sonorant.tasks.g2p import G2pLossConfig, G2pTask
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.training import TrainerConfig, fit
from sonorant.text import Lexicon, SymbolTable

__all__ = ["G2pTrainingConfig", "fit_models"]


@dataclass(frozen=True, kw_only=True)
class G2pTrainingConfig:
    """How models are trained.

    Args:
        seed: of the weights and of the order of the batches.
        ensemble: models that are trained by themselves, and answer together.
        jobs: how many of them are trained at the same time, each in a process of its own.
        batch_size: words of a batch, over all devices.
        min_examples: pronunciations that each model sees, counting every time: a small dictionary is gone through more
            often than ``trainer.max_epochs`` for it.
        pool_batches: batches that are sorted by length together; 1 shuffles freely.
        num_workers: processes that prepare batches; with 0 training does it itself.
        model: the network.
        loss: what is minimised.
        optimizer: optimizer, schedule and weight averaging.
        trainer: where and how long.
    """

    seed: int = 0
    ensemble: int = 1
    jobs: int = 1
    batch_size: int = 256
    min_examples: int = 0
    pool_batches: int = 40
    num_workers: int = 0
    model: G2pConfig = field(default_factory=G2pConfig)
    loss: G2pLossConfig = field(default_factory=G2pLossConfig)
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=4e-3))
    trainer: TrainerConfig = field(
        default_factory=lambda: TrainerConfig(max_epochs=34, precision="auto", gradient_clip=1.0, checkpoint_every=500)
    )

    def __post_init__(self) -> None:
        for name in ("ensemble", "jobs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}")
        if self.jobs > 1 and self.trainer.devices * self.trainer.num_nodes != 1:
            raise ValueError(
                f"jobs is {self.jobs}: models that are trained on several devices come one after the other"
            )


def fit_models(
    config: G2pTrainingConfig, train: Lexicon, dev: Lexicon, graphemes: SymbolTable, phones: SymbolTable, run: Path
) -> list[G2p] | None:
    """Train all models.

    Args:
        config: the settings.
        train: the dictionary that is learned.
        dev: the dictionary by which the best weights are chosen.
        graphemes: of both dictionaries.
        phones: of both dictionaries.
        run: the run directory.

    Returns:
        The models; None in processes other than the one that writes results.
    """
    examples = G2pDataset(train, graphemes, phones, split_pronunciations=True)
    dev_examples = G2pDataset(dev, graphemes, phones, split_pronunciations=False)
    jobs, members = min(config.jobs, config.ensemble), []
    for number in range(config.ensemble):
        folder = run if config.ensemble == 1 else run / "members" / str(number + 1)
        torch.manual_seed(config.seed + number)
        model = G2p(config.model, len(graphemes), len(phones))
        label = f"model {number + 1}: " if jobs > 1 else None
        members.append(_Member(config, model, examples, dev_examples, folder, config.seed + number, label))
    is_writer = _fit_together(members, jobs) if jobs > 1 else _fit_in_turn(members)
    return [member.model for member in members] if is_writer else None


class _Member(NamedTuple):
    """A model of an ensemble, and what it needs to be trained."""

    config: G2pTrainingConfig
    model: G2p
    examples: G2pDataset
    dev_examples: G2pDataset
    folder: Path
    seed: int
    label: str | None

    def fit(self) -> bool:
        """Train, unless an interrupted run has finished it; whether this process is the one that writes."""
        if take_finished(self.model, self.folder) is not None:
            return True
        config, examples = self.config, self.examples
        epochs = max(config.trainer.max_epochs, math.ceil(config.min_examples / len(examples)))
        make_loader = loader_maker(examples, collate_g2p, config, self.seed)
        total_steps = len(make_loader(0, 1)) * epochs
        task = G2pTask(
            self.model,
            config.optimizer,
            make_loader,
            total_steps=total_steps,
            loss=config.loss,
            make_dev_loader=loader_maker(self.dev_examples, collate_g2p, config, self.seed),
        )
        is_writer = fit(
            task,
            replace(config.trainer, max_epochs=epochs),
            self.folder,
            seed=self.seed,
            select_by="dev_per",
            label=self.label,
        )
        if is_writer and config.ensemble > 1:
            keep_finished(self.model, self.folder)
        return is_writer


def _fit_in_turn(members: Sequence[_Member]) -> bool:
    is_writer = [member.fit() for member in members]
    return all(is_writer)


def _fit_together(members: Sequence[_Member], jobs: int) -> bool:
    """Train in processes of their own; when one fails, those that have not begun are left out."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        fitted = [pool.submit(member.fit) for member in members]
        try:
            for each in as_completed(fitted):
                each.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for member in members:
        take_finished(member.model, member.folder)
    return True
