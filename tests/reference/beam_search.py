"""Beam search one utterance and one hypothesis at a time, and the search of everything."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sonorant.decoding.step import Step, select_rows

CtcScores = Callable[[tuple[int, ...]], tuple[float, float]]


class Scored(NamedTuple):
    tokens: tuple[int, ...]
    log_prob: float
    score: float
    ended: bool


@dataclass(frozen=True)
class Search:
    """The options of a search; ``ctc`` gives log probabilities of a prefix: that it is all, and that more follows."""

    step: Step[Any, Any]
    sos: int
    eos: int
    max_length: int
    min_length: int = 0
    length_penalty: float = 0.0
    coverage_penalty: float = 0.0
    num_keys: int = 0
    ctc: CtcScores | None = None
    ctc_weight: float = 0.3


@dataclass
class Prefix:
    tokens: tuple[int, ...]
    log_prob: float
    state: Any
    attended: Tensor | float = 0.0
    following: list[float] = field(default_factory=list)


def take_step(search: Search, prefix: Prefix, memory: Any) -> Prefix:
    """The same prefix with the log probabilities of what follows."""
    last = prefix.tokens[-1] if prefix.tokens else search.sos
    log_probs, state, attention = search.step(torch.tensor([last]), prefix.state, memory)
    attended = prefix.attended if attention is None else prefix.attended + attention[0, : search.num_keys]
    return Prefix(prefix.tokens, prefix.log_prob, state, attended, log_probs[0].tolist())


def total(search: Search, prefix: Prefix, token: int | None) -> float:
    """The joint log probability of a prefix and a token, or of any token but the end mark (None)."""
    others = [value for index, value in enumerate(prefix.following) if index != search.eos]
    log_prob = prefix.log_prob + (logsumexp(others) if token is None else prefix.following[token])
    if search.ctc is None:
        return log_prob
    complete, more = search.ctc(prefix.tokens)
    if token == search.eos:
        ctc = complete
    elif token is None:
        ctc = more
    else:
        ctc = logsumexp(search.ctc((*prefix.tokens, token)))
    return (1 - search.ctc_weight) * log_prob + search.ctc_weight * ctc


def coverage_term(search: Search, prefix: Prefix) -> float:
    if not search.coverage_penalty:
        return 0.0
    return search.coverage_penalty * sum(math.log(min(1.0, value)) for value in prefix.attended.tolist())


def finished(search: Search, prefix: Prefix, token: int | None) -> Scored:
    log_prob = total(search, prefix, token)
    score = log_prob / (len(prefix.tokens) + 1) ** search.length_penalty + coverage_term(search, prefix)
    return Scored(prefix.tokens, log_prob, score, token is not None)


def all_hypotheses(search: Search, state: Any, memory: Any) -> list[Scored]:
    """Every sequence that may end and every one that is cut off, from the best on."""
    found, prefixes = [], [Prefix((), 0.0, state)]
    for length in range(search.max_length + 1):
        prefixes = [take_step(search, prefix, memory) for prefix in prefixes]
        if length >= search.min_length:
            found += [finished(search, prefix, search.eos) for prefix in prefixes]
        if length == search.max_length:
            found += [finished(search, prefix, None) for prefix in prefixes]
        prefixes = [continued(prefix, token) for prefix in prefixes for token in tokens_of(search, prefix)]
    return sorted((one for one in found if one.score > -math.inf), key=lambda one: -one.score)


def beam_search_by_hypotheses(search: Search, state: Any, memory: Any, beam_size: int, n_best: int) -> list[Scored]:
    """Beam search of one utterance in plain Python."""
    found: list[Scored] = []
    num_ended, beam = 0, [Prefix((), 0.0, state)]
    for length in range(search.max_length + 1):
        beam = [take_step(search, prefix, memory) for prefix in beam]
        if length == search.max_length:
            found += [finished(search, prefix, search.eos) for prefix in beam]
            found += [finished(search, prefix, None) for prefix in beam]
            break
        allowed = [search.eos] if length >= search.min_length else []
        choices = [
            (total(search, prefix, token), place, token)
            for place, prefix in enumerate(beam)
            for token in sorted([*tokens_of(search, prefix), *allowed])
        ]
        choices.sort(key=lambda choice: -choice[0])  # stable
        ends = [choice for choice in choices[:beam_size] if choice[2] == search.eos and choice[0] > -math.inf]
        found += [finished(search, beam[place], search.eos) for _, place, _ in sorted(ends, key=lambda end: end[1])]
        found = sorted(found, key=lambda one: -one.score)[:n_best]
        num_ended += len(ends)
        live = [choice for choice in choices if choice[2] != search.eos][:beam_size]
        worst = found[n_best - 1].score if len(found) == n_best else -math.inf
        if live[0][0] / (search.max_length + 1) ** search.length_penalty <= worst:
            break
        present = [
            value / (length + 1) ** search.length_penalty + coverage_term(search, beam[place])
            for value, place, _ in live
        ]
        if num_ended >= beam_size and max(present) <= worst:
            break
        beam = [continued(beam[place], token) for _, place, token in live]
    found = [one for one in found if one.score > -math.inf]
    return sorted(found, key=lambda one: -one.score)[:n_best]


def tokens_of(search: Search, prefix: Prefix) -> list[int]:
    return [token for token in range(len(prefix.following)) if token != search.eos]


def continued(prefix: Prefix, token: int) -> Prefix:
    log_prob = prefix.log_prob + prefix.following[token]
    return Prefix((*prefix.tokens, token), log_prob, prefix.state, prefix.attended)


def ctc_scores_by_paths(log_probs: Tensor, blank: int) -> CtcScores:
    """The CTC probabilities of prefixes from the sum over every path of an utterance."""
    num_frames, num_classes = log_probs.shape
    by_tokens: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(num_classes), repeat=num_frames):
        tokens = tuple(token for token, _ in itertools.groupby(path) if token != blank)
        prob = math.exp(sum(float(log_probs[frame, token]) for frame, token in enumerate(path)))
        by_tokens[tokens] = by_tokens.get(tokens, 0.0) + prob

    def scores(prefix: tuple[int, ...]) -> tuple[float, float]:
        size = len(prefix)
        more = sum(prob for tokens, prob in by_tokens.items() if tokens[:size] == prefix and len(tokens) > size)
        return logarithm(by_tokens.get(prefix, 0.0)), logarithm(more)

    return scores


def logarithm(value: float) -> float:
    return math.log(value) if value else -math.inf


def logsumexp(values: Any) -> float:
    return logarithm(sum(map(math.exp, values)))


def single(tree: Any, utterance: int) -> Any:
    """One utterance of a state or memory."""
    return select_rows(tree, torch.tensor([utterance]))
