"""Posterior probabilities of words: forward and backward sums over a decoding graph."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import kaldifst

__all__ = ["WordPosteriors"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class _Arcs(NamedTuple):
    """Arcs sorted by their source: those of state ``s`` are ``first[s]`` to ``first[s + 1]``."""

    first: Integers
    target: Integers
    symbol: Integers
    word: Integers
    weight: Floats


class _Step(NamedTuple):
    """The active states before a step, how probable they are, and which step it is."""

    states: Integers
    mass: Floats
    frame: int
    level: int


class _Moves(NamedTuple):
    """What a step does: from which active state (its place) to which state, with which word and weight."""

    place: Integers
    target: Integers
    word: Integers
    weight: Floats


class WordPosteriors:
    """Sums over the paths of a graph, in the manner of forward-backward.

    Unlike the search for the best path, all alignments and all competing word sequences count, each with its
    probability. States that are far behind the best of their frame are left out.

    Args:
        graph: labels of symbols are class ids + 1, 0 is epsilon; weights are costs in nats.
        beam: how far behind the best of its frame a state may be, in nats.
        max_active: how many states of a frame are kept at most.
    """

    def __init__(self, graph: "kaldifst.StdVectorFst", *, beam: float, max_active: int) -> None:
        import kaldifst

        rows = [
            (state, arc.nextstate, arc.ilabel, arc.olabel, arc.weight.value)
            for state in range(graph.num_states)
            for arc in kaldifst.ArcIterator(graph, state)
        ]
        table = np.array(rows, dtype=np.float64).reshape(-1, 5)
        is_silent = table[:, 2] == 0
        self._start = graph.start
        self._emitting = _sorted_arcs(table[~is_silent], graph.num_states)
        self._silent = _sorted_arcs(table[is_silent], graph.num_states)
        self._final = np.exp(-np.array([graph.final(state).value for state in range(graph.num_states)]))
        self._level = _levels(table[is_silent].astype(np.int64), graph.num_states)
        self._smallest, self._max_active = np.exp(-beam), max_active

    def __call__(self, scores: npt.NDArray[np.float32], words: Sequence[int]) -> Floats:
        """The expected number of times that a word is put out in each frame.

        Args:
            scores: ``(frames, classes)``, log probabilities (scaled or not).
            words: distinct ids of words.

        Returns:
            ``(frames, len(words))``; zeros where no path has a positive probability.
        """
        best = scores.max(1, keepdims=True)
        probs = np.exp(scores.astype(np.float64) - np.where(np.isfinite(best), best, 0.0))
        steps, states, _ = self._forward(probs)
        counts = np.zeros((len(scores), len(words)))
        if not len(states):
            return counts
        column = np.full(1 + max((*words, int(self._emitting.word.max()), int(self._silent.word.max(initial=0)))), -1)
        column[np.asarray(words, dtype=np.int64)] = np.arange(len(words))
        self._backward(probs, steps, states, column, counts)
        return counts

    def _forward(self, probs: Floats) -> tuple[list[_Step], Integers, Floats]:
        states, mass = np.array([self._start], dtype=np.int64), np.ones(1)
        steps: list[_Step] = []
        for frame, level in self._plan(len(probs)):
            step = _Step(states, mass, frame, level)
            if level and not self._has_work(step):
                continue
            moves = self._moves(step, probs)
            states, index = np.unique(moves.target, return_inverse=True)
            mass = _sums(index, mass[moves.place] * moves.weight, len(states))
            steps.append(step)
            if not mass.any():
                return steps, states[:0], mass[:0]
            states, mass = self._pruned(states, mass)
        return steps, states, mass

    def _backward(self, probs: Floats, steps: list[_Step], states: Integers, column: Integers, counts: Floats) -> None:
        """Goes back over the steps and adds the words' posterior probabilities to ``counts``."""
        mass = self._final[states]
        if not mass.any():
            mass = np.ones(len(states))
        for step in reversed(steps):
            moves = self._moves(step, probs)
            index = np.searchsorted(states, moves.target).clip(max=len(states) - 1)
            onward = np.where(states[index] == moves.target, moves.weight * mass[index], 0.0)
            through = step.mass[moves.place] * onward
            total = through.sum()
            if total == 0:
                return
            says = column[moves.word]
            chosen = says >= 0
            counts[max(step.frame, 0)] += _sums(says[chosen], through[chosen] / total, counts.shape[1])
            states, mass = step.states, _sums(moves.place, onward, len(step.states))
            mass = mass / mass.max()

    def _plan(self, num_frames: int) -> Iterable[tuple[int, int]]:
        """Frames, each followed by the epsilons after it in the order in which they can follow each other."""
        last = int(self._level.max(initial=0))
        for frame in range(-1, num_frames):
            if frame >= 0:
                yield frame, 0
            for level in range(1, last + 2):
                yield frame, level

    def _has_work(self, step: _Step) -> bool:
        first = self._silent.first
        sources = step.states[self._level[step.states] == step.level - 1]
        return bool((first[sources + 1] > first[sources]).any())

    def _moves(self, step: _Step, probs: Floats) -> _Moves:
        if step.level == 0:
            place, arcs = _leaving(self._emitting, step.states)
            weight = self._emitting.weight[arcs] * probs[step.frame, self._emitting.symbol[arcs]]
            return _Moves(place, self._emitting.target[arcs], self._emitting.word[arcs], weight)
        # everything stays, and the states of one level also send on what they hold
        (sources,) = np.nonzero(self._level[step.states] == step.level - 1)
        place, arcs = _leaving(self._silent, step.states[sources])
        stay = np.arange(len(step.states))
        return _Moves(
            np.concatenate([stay, sources[place]]),
            np.concatenate([step.states, self._silent.target[arcs]]),
            np.concatenate([np.zeros_like(stay), self._silent.word[arcs]]),
            np.concatenate([np.ones(len(stay)), self._silent.weight[arcs]]),
        )

    def _pruned(self, states: Integers, mass: Floats) -> tuple[Integers, Floats]:
        best = mass.max()
        threshold = best * self._smallest
        if len(mass) > self._max_active:
            threshold = max(threshold, np.partition(mass, -self._max_active)[-self._max_active])
        keep = (mass >= threshold) & (mass > 0)
        return states[keep], mass[keep] / best


def _sorted_arcs(table: Floats, num_states: int) -> _Arcs:
    """Columns of ``table``: source (ascending), target, label, word, cost."""
    source, target, label, word = table[:, :4].astype(np.int64).T
    first = np.searchsorted(source, np.arange(num_states + 1))
    return _Arcs(first, target, label - 1, word, np.exp(-table[:, 4]))


def _leaving(arcs: _Arcs, states: Integers) -> tuple[Integers, Integers]:
    """All arcs that leave some states, and for each the place of its state among them."""
    count = arcs.first[states + 1] - arcs.first[states]
    place = np.repeat(np.arange(len(states)), count)
    offset = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
    return place, arcs.first[states][place] + offset


def _sums(index: Integers, values: Floats, size: int) -> Floats:
    return np.bincount(index, values, size).astype(np.float64, copy=False)


def _levels(silent: Integers, num_states: int) -> Integers:
    """For each state the most epsilons that can lead to it one after the other."""
    level = np.zeros(num_states, dtype=np.int64)
    for _ in range(num_states):
        before = level.copy()
        np.maximum.at(level, silent[:, 1], level[silent[:, 0]] + 1)
        if (level == before).all():
            return level
    raise ValueError("the graph has a cycle of epsilons")
