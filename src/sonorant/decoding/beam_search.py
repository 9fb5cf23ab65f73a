"""Beam search with any model that puts out one token after the other."""

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from sonorant.decoding.ctc_prefix import CtcPrefixScorer
from sonorant.decoding.hypotheses import NBest, largest
from sonorant.decoding.step import Step, check_output, num_rows, select_rows
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask
from sonorant.metrics import attention_coverage

__all__ = ["beam_search", "check_search"]

State = TypeVar("State")
Memory = TypeVar("Memory")


@torch.no_grad()
def beam_search(
    step: Step[State, Memory],
    state: State,
    memory: Memory,
    *,
    sos: int,
    eos: int,
    max_length: int | Int[Tensor, " batch"],
    min_length: int = 0,
    beam_size: int = 8,
    n_best: int = 1,
    length_penalty: float = 0.0,
    coverage_penalty: float = 0.0,
    attention_lengths: Int[Tensor, " batch"] | None = None,
    ctc: CtcPrefixScorer | None = None,
    ctc_weight: float = 0.3,
) -> NBest:
    r"""The most probable token sequences of an autoregressive model, for a batch of utterances at once.

    .. math:: s(y) = \frac{(1 - \lambda) \log p(y \mid x) + \lambda \log p_{ctc}(y \mid x)}{(|y| + 1)^\alpha}
              + \beta \sum_k \log \min\Big(1, \sum_q a_{q,k}\Big)

    with the end mark counted in :math:`|y| + 1`. At each step an utterance's hypotheses are continued with every token,
    and the ``beam_size`` most probable continuations looked at: those with the end mark are finished, and the
    ``beam_size`` best of the others go on. An utterance is done when nothing that goes on can still be among its
    ``n_best``; or, since with a length or coverage penalty that would take long to be sure of, when ``beam_size``
    hypotheses have ended and none that goes on is better at its present length. So a beam of 1 is greedy search, and
    one that is wide enough is exhaustive. Among equals, the one from the better hypothesis and then the smaller token
    comes first.

    A hypothesis of ``max_length`` tokens can only end there. That it does not is a hypothesis too, of the probability
    of all other tokens together and with ``ended`` False; where that is the best, a warning says so (``logging``).

    Where it departs from the sources: the length penalty is a power of the length, without constants; coverage counts
    at most as log(tiny), where a position got no attention at all; both serve to rank what has ended, and at no step
    to prune.

    Args:
        step: called with the last tokens ``(rows,)``, the state and the memory; see :class:`Step`.
        state: before the first step, a row for each utterance.
        memory: a row for each utterance, or None.
        sos: the token that the first step gets.
        eos: the token that ends a sequence; may be ``sos``.
        max_length: tokens without the end mark, at least 1: one number, or one for each utterance.
        min_length: tokens before the end mark is allowed.
        beam_size: hypotheses that are kept for each utterance.
        n_best: hypotheses that are returned, at most ``beam_size``.
        length_penalty: alpha, at least 0; 1 ranks by the mean over tokens.
        coverage_penalty: beta, at least 0; needs ``attention_lengths``.
        attention_lengths: ``(batch,)``, what the attention reaches; with it, the result has coverages.
        ctc: the prefix scorer of a CTC model of the same utterances, with the same tokens.
        ctc_weight: lambda, between 0 and 1.

    Returns:
        ``NBest``: tokens, lengths, log probabilities (with ``ctc`` the weighted sum above), scores.

    Raises:
        ValueError: options out of range; state, memory, lengths or ``ctc`` of different batch sizes; a step that puts
            out no log probabilities (NaN, above 0), or other shapes than it should.

    References:
        Sutskever, Vinyals and Le 2014, arXiv 1409.3215; Wu et al. 2016, arXiv 1609.08144, section 7 (length and
        coverage penalties); Watanabe, Hori, Kim, Hershey and Hayashi 2017, "Hybrid CTC/attention architecture for
        end-to-end speech recognition".

    Example:
        >>> import torch
        >>> from sonorant.decoding.beam_search import beam_search
        >>> from sonorant.decoding.step import StepOutput
        >>> table = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.1, 0.4], [0.9, 0.1, 0.0]]).log()  # of what follows what
        >>> def step(tokens, state, memory):
        ...     return StepOutput(table[tokens], state + 1)
        >>> best = beam_search(step, torch.zeros(1), None, sos=0, eos=0, max_length=5, beam_size=2, n_best=2)
        >>> [(hypothesis.tokens, round(hypothesis.log_prob, 3)) for hypothesis in best.hypotheses()[0]]
        [([2], -1.022), ([1], -1.204)]
    """
    batch_size, device = num_rows(state, memory)
    options = _Options(
        sos, eos, min_length, beam_size, n_best, length_penalty, coverage_penalty, 0.0 if ctc is None else ctc_weight
    )
    options.check()
    if coverage_penalty and attention_lengths is None:
        raise ValueError(f"coverage_penalty is {coverage_penalty}, which needs attention_lengths")
    if attention_lengths is not None:
        check_lengths(attention_lengths, "attention_lengths", batch_size=batch_size)
    if ctc is not None:
        if not 0 < ctc_weight < 1:
            raise ValueError(f"ctc_weight must be between 0 and 1; got {ctc_weight}")
        if (ctc.batch_size, ctc.eos) != (batch_size, eos):
            found = f"{ctc.batch_size} utterances and ends with {ctc.eos}"
            raise ValueError(f"ctc is of {found}; the search is of {batch_size} and ends with {eos}")
    max_lengths = torch.as_tensor(max_length, device=device).expand(batch_size)
    check_lengths(max_lengths, "max_length", batch_size=batch_size, min_length=max(1, min_length))
    best = _Search(step, state, memory, options, max_lengths, attention_lengths, ctc).run()
    best.warn_of_unended()
    return best


def check_search(beam_size: int, **not_negative: float) -> None:
    """Refuse options of a search, by name, before there is anything to search.

    Args:
        beam_size: at least 1.
        not_negative: others, which must be at least 0 and finite.

    Raises:
        ValueError: one that is out of range.
    """
    for name, value in not_negative.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} must be at least 0; got {value}")
    if beam_size < 1:
        raise ValueError(f"beam_size must be at least 1; got {beam_size}")


@dataclass(frozen=True)
class _Options:
    sos: int
    eos: int
    min_length: int
    beam_size: int
    n_best: int
    length_penalty: float
    coverage_penalty: float
    ctc_weight: float

    def check(self) -> None:
        not_negative = ("sos", "eos", "min_length", "length_penalty", "coverage_penalty")
        check_search(self.beam_size, **{name: getattr(self, name) for name in not_negative})
        if not 1 <= self.n_best <= self.beam_size:
            raise ValueError(f"n_best must be between 1 and beam_size, {self.beam_size}; got {self.n_best}")


class _Choice(NamedTuple):
    """Continuations ``(batch, choices)``, from the best on: their totals, what they continue, and with which token."""

    totals: Tensor
    parents: Tensor
    tokens: Tensor


class _Search(Generic[State, Memory]):
    """The utterances that are not done, ``batch`` of them, and the ``width`` hypotheses of each."""

    def __init__(
        self,
        step: Step[State, Memory],
        state: State,
        memory: Memory,
        options: _Options,
        max_lengths: Tensor,
        attention_lengths: Tensor | None,
        ctc: CtcPrefixScorer | None,
    ) -> None:
        batch_size, device = len(max_lengths), max_lengths.device
        self.step, self.state, self.memory, self.options = step, state, memory, options
        self.utterances = torch.arange(batch_size, device=device)
        self.max_lengths, self.attention_lengths = max_lengths, attention_lengths
        self.tokens = torch.full((batch_size, 1, 1), options.sos, device=device)  # (batch, width, 1 + length)
        self.log_probs = torch.zeros(batch_size, 1, device=device)  # the decoder's alone, at least float32
        self.attended: Tensor | None = None  # (batch, width, time): the attention of all steps together
        self.ctc, self.prefixes = ctc, None if ctc is None else ctc.initial_state()
        self.num_ended = torch.zeros_like(self.utterances)
        self.best = NBest.none(batch_size, options.n_best, device)
        self.done: list[tuple[Tensor, NBest]] = []

    def run(self) -> NBest:
        """Search until every utterance is done."""
        length = 0
        while len(self.utterances):
            self._advance(length)
            length += 1
        order = torch.cat([self.utterances, *(utterances for utterances, _ in self.done)]).argsort()
        return NBest.join([self.best, *(best for _, best in self.done)], self.options.eos).index_select(order)

    def _advance(self, length: int) -> None:
        """Continue hypotheses of ``length`` tokens."""
        eos = self.options.eos
        log_probs = self._take_step()
        ctc = None if self.ctc is None or self.prefixes is None else self.ctc.score(self.prefixes)
        if ctc is not None and ctc.shape != log_probs.shape:
            raise ValueError(f"ctc has {ctc.shape[2]} classes, but the decoder has {log_probs.shape[2]} tokens")
        totals = self._joint(log_probs, ctc)
        if length < self.options.min_length:
            totals[:, :, eos] = -torch.inf
        stopping = self.max_lengths == length
        if stopping.any():
            self._stop(stopping, log_probs, ctc, length)
            totals[stopping] = -torch.inf
        best, ended = self._choose(totals)
        self._keep(totals[:, :, eos], ended, length)
        self.num_ended += ended.sum(1)
        self._go_on(best, self._find_done(best, length), log_probs)

    def _take_step(self) -> Tensor:
        """The decoder's log probabilities ``(batch, width, vocabulary)`` of all continuations."""
        batch_size, width = self.log_probs.shape
        output = self.step(self.tokens[:, :, -1].flatten(), self.state, self.memory)
        check_output(output, self.utterances.repeat_interleave(width), self.options.eos)
        self.state = output.state
        if self.attention_lengths is not None:
            if output.attention is None:
                raise ValueError("attention_lengths was given, but the step gives no attention")
            attention = output.attention.to(compute_dtype(output.attention)).reshape(batch_size, width, -1)
            self.attended = attention if self.attended is None else self.attended + attention
        return self.log_probs.unsqueeze(2) + output.log_probs.reshape(batch_size, width, -1)

    def _joint(self, log_probs: Tensor, ctc: Tensor | None) -> Tensor:
        weight = self.options.ctc_weight
        return log_probs.clone() if ctc is None else (1 - weight) * log_probs + weight * ctc

    def _stop(self, stopping: Tensor, log_probs: Tensor, ctc: Tensor | None, length: int) -> None:
        """Let the hypotheses of some utterances end here, and have as others that they would go on."""
        eos = self.options.eos
        every = stopping.unsqueeze(1).expand(log_probs.shape[:2])
        others = torch.arange(log_probs.shape[2], device=log_probs.device) != eos
        ends = self._joint(log_probs[:, :, eos], None if ctc is None else ctc[:, :, eos])
        more = self._joint(
            log_probs[:, :, others].logsumexp(2), None if ctc is None else ctc[:, :, others].logsumexp(2)
        )
        self._keep(ends, every, length)
        self._keep(more, every, length, ended=False)

    def _choose(self, totals: Tensor) -> tuple[_Choice, Tensor]:
        """The best continuations without the end mark, and which hypotheses end: those whose end is among the best."""
        batch_size, width, vocabulary = totals.shape
        size = self.options.beam_size
        values, index = largest(totals.flatten(1), min(size + width, width * vocabulary))
        parents, tokens = index // vocabulary, index % vocabulary
        is_eos = tokens == self.options.eos
        among_best = torch.arange(index.shape[1], device=index.device) < size
        ending = torch.where(is_eos & among_best & (values > -torch.inf), parents, width)
        ended = torch.zeros(batch_size, width + 1, dtype=torch.bool, device=index.device).scatter_(1, ending, True)
        rest = is_eos.long().argsort(dim=1, stable=True)[:, : min(size, width * (vocabulary - 1))]
        return _Choice(values.gather(1, rest), parents.gather(1, rest), tokens.gather(1, rest)), ended[:, :width]

    def _keep(self, totals: Tensor, chosen: Tensor, length: int, *, ended: bool = True) -> None:
        """Add the chosen ``(batch, width)`` of the hypotheses of ``length`` tokens to the best that are finished."""
        if not chosen.any():
            return
        scores = torch.where(chosen, self._normalize(totals, length) + self._coverage_term(), -torch.inf)
        coverage = torch.full_like(scores, torch.nan)
        if self.attended is not None and self.attention_lengths is not None:
            once = torch.ones_like(self.attention_lengths)
            coverage = attention_coverage(self.attended.unsqueeze(2), once, self.attention_lengths).to(scores.dtype)
        lengths = torch.full_like(chosen, length, dtype=torch.int64)
        flags = torch.full_like(chosen, ended)
        self.best = self.best.merge(NBest(self.tokens[:, :, 1:], lengths, totals, scores, flags, coverage))

    def _normalize(self, totals: Tensor, length: int | Tensor) -> Tensor:
        return totals / (length + 1) ** self.options.length_penalty

    def _coverage_term(self) -> Tensor | float:
        """The last term of the score, ``(batch, width)``."""
        if self.attended is None or self.attention_lengths is None or not self.options.coverage_penalty:
            return 0.0
        mask = sequence_mask(self.attention_lengths, self.attended.shape[2]).unsqueeze(1)
        smallest = torch.finfo(self.attended.dtype).tiny
        return self.options.coverage_penalty * torch.where(mask, self.attended.clamp(smallest, 1).log(), 0.0).sum(2)

    def _find_done(self, best: _Choice, length: int) -> Tensor:
        """The utterances that need not go on, ``(batch,)``."""
        worst = self.best.scores[:, -1]
        # totals only fall, by least where everything that follows is certain; the coverage term rises at most to 0
        attainable = self._normalize(best.totals[:, 0], self.max_lengths)
        present = self._normalize(best.totals, length)
        term = self._coverage_term()
        if isinstance(term, Tensor):
            present = present + term.gather(1, best.parents)
        full = self.num_ended >= self.options.beam_size
        return (attainable <= worst) | (full & (present.amax(1) <= worst))

    def _go_on(self, best: _Choice, done: Tensor, log_probs: Tensor) -> None:
        """Make the best continuations of the other utterances the hypotheses."""
        (_, width, vocabulary), new_width = log_probs.shape, best.tokens.shape[1]
        rest = (~done).nonzero().squeeze(1)
        _, parents, tokens = (field[rest] for field in best)
        fewer = len(rest) < len(done)
        if fewer or new_width != width:
            self.memory = select_rows(self.memory, (rest * width).repeat_interleave(new_width))
        if fewer or new_width > 1 or width > 1:
            self.state = select_rows(self.state, (rest.unsqueeze(1) * width + parents).flatten())
        if fewer:
            self._take_out(done, rest)
        chosen = rest.unsqueeze(1), parents
        self.tokens = torch.cat([self.tokens[chosen], tokens.unsqueeze(2)], 2)
        self.log_probs = log_probs[rest].flatten(1).gather(1, parents * vocabulary + tokens)
        if self.attended is not None:
            self.attended = self.attended[chosen]
        if self.ctc is not None and self.prefixes is not None:
            self.prefixes = self.ctc.extend(self.prefixes.index_select(rest), parents, tokens)

    def _take_out(self, done: Tensor, rest: Tensor) -> None:
        """Set the results of the utterances that are done apart."""
        finished = done.nonzero().squeeze(1)
        self.done.append((self.utterances[finished], self.best.index_select(finished)))
        self.utterances, self.max_lengths = self.utterances[rest], self.max_lengths[rest]
        self.num_ended, self.best = self.num_ended[rest], self.best.index_select(rest)
        if self.attention_lengths is not None:
            self.attention_lengths = self.attention_lengths[rest]
        if self.ctc is not None:
            self.ctc = self.ctc.index_select(rest)
