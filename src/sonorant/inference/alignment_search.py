"""The search for the frames of each token, and for the pronunciations that fit best."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sonorant.functional import alignment_durations, monotonic_alignment_search
from sonorant.lengths import pad_sequences
from sonorant.models import AlignmentEncoder, AlignmentPrior
from sonorant.models.aligner import AlignmentOutput
from sonorant.text import SpelledWord, Speller

__all__ = ["AlignmentPath", "AlignmentSearch", "AlignmentTask"]

_MOST_CELLS = 2**24  # of a batch's scores, 64 MiB
_ROUNDS = 3  # of looking for better pronunciations, each of which may show others


class AlignmentTask(NamedTuple):
    """A recording and its text, ready for the model."""

    features: Tensor
    duration: float
    words: list[SpelledWord]
    tokens: list[int]
    speaker: int
    chosen: dict[int, int]  # the number of a word's pronunciation, by its index, if it is not the first


class AlignmentPath(NamedTuple):
    """The frames of each token, how well each fits, the mean of that over frames, and of how near frame and token are.

    The score depends on what else is in the text, how near they are does not: by that, texts are compared.
    """

    durations: Tensor
    scores: Tensor
    score: float
    nearness: float


class AlignmentSearch:
    """Monotonic alignment search over the scores of a model.

    Args:
        model: frames and tokens to scores.
        prior: of the scores.
        speller: words to tokens.
        batch_size: texts that are looked at together, or as many of them as memory allows; it changes nothing.
    """

    def __init__(self, model: AlignmentEncoder, prior: AlignmentPrior, speller: Speller, batch_size: int) -> None:
        self._model = model
        self._prior = prior
        self._speller = speller
        self._batch_size = batch_size

    def __call__(self, tasks: Sequence[AlignmentTask]) -> list[tuple[AlignmentTask, AlignmentPath]]:
        """The best path of each task, which is given back with the pronunciations that were chosen."""
        tasks, paths = list(tasks), self._search(tasks)
        for _ in range(_ROUNDS):
            found = self._search_variants(tasks, paths)
            if not found:
                break
            for index, (task, path) in found.items():
                tasks[index], paths[index] = task, path
        return list(zip(tasks, paths, strict=True))

    def _search_variants(
        self, tasks: Sequence[AlignmentTask], paths: Sequence[AlignmentPath]
    ) -> dict[int, tuple[AlignmentTask, AlignmentPath]]:
        """By index of the task what is better with other pronunciations: each tried alone, and the good together."""
        variants = [
            (index, self._with_pronunciations(task, {word: number}))
            for index, task in enumerate(tasks)
            for word, spelled in enumerate(task.words)
            for number in range(len(spelled.pronunciations))
            if number != task.chosen.get(word, 0)
        ]
        variants = [(index, task) for index, task in variants if len(task.features) >= len(task.tokens)]
        good: dict[int, list[tuple[AlignmentTask, AlignmentPath]]] = {}
        for (index, task), path in zip(variants, self._search([task for _, task in variants]), strict=True):
            if path.nearness > paths[index].nearness:
                good.setdefault(index, []).append((task, path))
        for found in good.values():
            found.sort(key=lambda variant: variant[1].nearness)
        together = {
            index: self._with_pronunciations(tasks[index], {k: v for task, _ in found for k, v in task.chosen.items()})
            for index, found in good.items()
        }
        together = {index: task for index, task in together.items() if len(task.features) >= len(task.tokens)}
        for (index, task), path in zip(together.items(), self._search(list(together.values())), strict=True):
            good[index].append((task, path))
        return {index: max(found, key=lambda variant: variant[1].nearness) for index, found in good.items()}

    def _with_pronunciations(self, task: AlignmentTask, numbers: dict[int, int]) -> AlignmentTask:
        chosen = {**task.chosen, **numbers}
        return task._replace(tokens=self._speller.tokens(task.words, chosen), chosen=chosen)

    def _search(self, tasks: Sequence[AlignmentTask]) -> list[AlignmentPath]:
        """The best path of each task, in batches of similar length."""
        paths: dict[int, AlignmentPath] = {}
        for batch in _batches(tasks, self._batch_size):
            paths |= dict(zip(batch, self._search_batch([tasks[index] for index in batch]), strict=True))
        return [paths[index] for index in range(len(tasks))]

    @torch.inference_mode()
    def _search_batch(self, tasks: Sequence[AlignmentTask]) -> list[AlignmentPath]:
        features, frames = pad_sequences([task.features for task in tasks])
        tokens, lengths = pad_sequences([torch.tensor(task.tokens) for task in tasks])
        log_prior = self._prior.log_prior(features, frames, tokens == self._speller.boundary_id, lengths)
        speakers = torch.tensor([task.speaker for task in tasks])
        output: AlignmentOutput = self._model(features, frames, tokens, lengths, log_prior=log_prior, speakers=speakers)
        hard = monotonic_alignment_search(output.log_attention, frames, lengths)
        own = output.log_attention - log_prior
        # a token that comes several times is the same token: which of them it is, is no question of how well it fits
        ids = tokens.unsqueeze(1).expand_as(own)
        lowest = own.new_full((*own.shape[:2], len(self._speller.symbols)), -torch.inf)
        own = lowest.scatter_reduce(2, ids, own, "amax").gather(2, ids)
        fit = torch.where(hard == 1, own - own.amax(2, keepdim=True), 0.0).sum(1).double()
        nearness = torch.where(hard == 1, output.scores, 0.0).sum((1, 2)).double() / frames
        durations, score = alignment_durations(hard), fit.sum(1) / frames
        return [
            AlignmentPath(
                durations[row, :size], fit[row, :size] / durations[row, :size], float(score[row]), float(nearness[row])
            )
            for row, size in enumerate(lengths.tolist())
        ]


def _batches(tasks: Sequence[AlignmentTask], batch_size: int) -> Iterator[list[int]]:
    """Indices of tasks of similar length, as many at once as memory allows."""
    batch: list[int] = []
    keys = 0
    for index in sorted(range(len(tasks)), key=lambda index: len(tasks[index].features)):
        keys = max(keys, len(tasks[index].tokens))
        if batch and (len(batch) == batch_size or (len(batch) + 1) * len(tasks[index].features) * keys > _MOST_CELLS):
            yield batch
            batch, keys = [], len(tasks[index].tokens)
        batch.append(index)
    if batch:
        yield batch
