"""What a CTC model says of prefixes, for the joint decoding of CTC and attention."""

from copy import copy
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["CtcPrefixScorer", "CtcPrefixState"]

_TOLERANCE = 1e-3  # what rounding may add to a log probability
_SMALLEST = torch.finfo(torch.float64).min  # stands for the logarithm of 0 where it is subtracted


class CtcPrefixState(NamedTuple):
    """The forward variables of some prefixes of each utterance, float64.

    ``label`` and ``blank`` ``(batch, prefixes, time + 1)``: the log probability of having put out the prefix after so
    many frames, the last of them a label or a blank. ``last`` int64 ``(batch, prefixes)``: the last token, -1 where
    there is none.
    """

    label: Tensor
    blank: Tensor
    last: Tensor

    def index_select(self, utterances: Int[Tensor, " utterances"]) -> "CtcPrefixState":
        """The prefixes of other utterances of the batch."""
        return CtcPrefixState(self.label[utterances], self.blank[utterances], self.last[utterances])


class CtcPrefixScorer:
    r"""The CTC probability that a transcript begins with a prefix, and that it is the prefix.

    .. math:: \psi(g c) = \sum_{\nu} P(g c \nu \mid X) = \sum_t \phi_{t-1}(g, c) \, p_t(c), \quad
              \phi_t(g, c) = \gamma^b_t(g) + [c \ne g_{-1}] \, \gamma^n_t(g)

    where :math:`\gamma^n_t(g)` and :math:`\gamma^b_t(g)` sum the paths of t frames that put out g and end in its last
    label and in a blank. Where it departs from the source: the first frame is no special case, since the empty prefix
    has the probability 1 after 0 frames; frames beyond an utterance's length are sure blanks, which changes nothing.

    All is computed in float64. A continuation less probable than about :math:`10^{-300}` of its prefix counts as
    impossible.

    Args:
        log_probs: ``(batch, time, classes)``, normalised; the classes are the decoder's tokens, with the same ids.
        lengths: ``(batch,)``, frames; 0 is allowed.
        eos: the token that ends a transcript; it may have the id of the blank. Else its class is nothing that can be
            put out, and should have no probability.
        blank: the class of the blank.

    Raises:
        ValueError: shapes or lengths that do not fit, log probabilities that are NaN or above 0, ids out of range.

    References:
        Graves 2008, "Supervised sequence labelling with recurrent neural networks" (prefix search); Watanabe, Hori,
        Kim, Hershey and Hayashi 2017, "Hybrid CTC/attention architecture for end-to-end speech recognition",
        algorithm 2.

    Example:
        >>> import torch
        >>> from sonorant.decoding.ctc_prefix import CtcPrefixScorer
        >>> log_probs = torch.full((1, 2, 3), 1 / 3).log()  # two frames: blank (and end), a, b
        >>> scorer = CtcPrefixScorer(log_probs, torch.tensor([2]), eos=0)
        >>> state = scorer.initial_state()
        >>> scorer.score(state).exp()  # nothing; begins with a; begins with b
        tensor([[[0.1111, 0.4444, 0.4444]]], dtype=torch.float64)
        >>> state = scorer.extend(state, torch.tensor([[0]]), torch.tensor([[1]]))
        >>> scorer.score(state).exp()  # a; begins with a a (too long for two frames); begins with a b
        tensor([[[0.3333, 0.0000, 0.1111]]], dtype=torch.float64)
    """

    def __init__(
        self,
        log_probs: Float[Tensor, "batch time classes"],
        lengths: Int[Tensor, " batch"],
        *,
        eos: int,
        blank: int = 0,
    ) -> None:
        if log_probs.dim() != 3:
            raise ValueError(f"log_probs must have shape (batch, time, classes); got {tuple(log_probs.shape)}")
        batch_size, max_frames, self.num_classes = log_probs.shape
        check_lengths(lengths, "lengths", batch_size=batch_size, max_length=max_frames, min_length=0)
        for name, token in (("eos", eos), ("blank", blank)):
            if not 0 <= token < self.num_classes:
                raise ValueError(f"{name} is {token}, but log_probs has {self.num_classes} classes")
        mask = sequence_mask(lengths, max_frames).unsqueeze(2)
        values = torch.where(mask, log_probs.detach().double(), -torch.inf)
        wrong = ~(values <= _TOLERANCE)
        if wrong.any():
            utterance, frame, token = wrong.nonzero()[0].tolist()
            value = float(values[utterance, frame, token])
            raise ValueError(f"log_probs[{utterance}, {frame}, {token}] is {value}; log probabilities are at most 0")
        self._blank = torch.where(mask, values[:, :, blank : blank + 1], 0.0).squeeze(2)
        if blank != eos:
            values[:, :, blank] = -torch.inf
        values[:, :, eos] = -torch.inf
        self._log_probs, self._probs, self.eos = values, values.exp(), eos

    def index_select(self, utterances: Int[Tensor, " utterances"]) -> "CtcPrefixScorer":
        """The scorer of other utterances of the batch."""
        selected = copy(self)
        selected._log_probs, selected._probs = self._log_probs[utterances], self._probs[utterances]
        selected._blank = self._blank[utterances]
        return selected

    @property
    def batch_size(self) -> int:
        """The number of utterances."""
        return len(self._blank)

    def initial_state(self) -> CtcPrefixState:
        """The empty prefix of each utterance."""
        start = self._blank.new_zeros(self.batch_size, 1)
        blank = torch.cat([start, self._blank.cumsum(1)], 1).unsqueeze(1)
        last = torch.full((self.batch_size, 1), -1, device=blank.device)
        return CtcPrefixState(torch.full_like(blank, -torch.inf), blank, last)

    def score(self, state: CtcPrefixState) -> Float[Tensor, "batch prefixes classes"]:
        """Log probabilities of all continuations.

        Args:
            state: from :meth:`initial_state` or :meth:`extend`.

        Returns:
            ``(batch, prefixes, classes)``: that the transcript begins with the prefix and the token; for ``eos``, that
            the transcript is the prefix.
        """
        reached = torch.logaddexp(state.label, state.blank)
        before, ended = reached[:, :, :-1], reached[:, :, -1]
        # as a product of matrices, for a sum over (prefixes, time, classes) would need much memory
        peak = reached.amax(2, keepdim=True).clamp(min=_SMALLEST)
        scores = torch.matmul((before - peak).exp(), self._probs).log() + peak
        # a label after itself needs a blank between
        last = state.last.clamp(min=0)
        repeated = (state.blank[:, :, :-1] + self._of_tokens(last)).logsumexp(2)
        column = torch.arange(self.num_classes, device=last.device) == state.last.unsqueeze(2)
        scores = torch.where(column, repeated.unsqueeze(2), scores)
        scores[:, :, self.eos] = ended
        return scores

    def extend(
        self, state: CtcPrefixState, parents: Int[Tensor, "batch prefixes"], tokens: Int[Tensor, "batch prefixes"]
    ) -> CtcPrefixState:
        """Longer prefixes.

        Args:
            state: of the prefixes before.
            parents: ``(batch, prefixes)``: which of the utterance's prefixes each new one continues.
            tokens: ``(batch, prefixes)``: with what; not ``eos``.

        Returns:
            The state of the new prefixes.
        """
        index = parents.unsqueeze(2).expand(-1, -1, state.label.shape[2])
        label, blank = state.label.gather(1, index), state.blank.gather(1, index)
        new = tokens != state.last.gather(1, parents)
        entering = torch.where(new.unsqueeze(2), torch.logaddexp(label, blank), blank).unbind(2)
        emitted, silent = self._of_tokens(tokens).unbind(2), self._blank.unsqueeze(1).unbind(2)
        labels, blanks = [torch.full_like(entering[0], -torch.inf)], [torch.full_like(entering[0], -torch.inf)]
        for frame in range(len(emitted)):
            blanks.append(torch.logaddexp(labels[-1], blanks[-1]) + silent[frame])
            labels.append(torch.logaddexp(labels[-1], entering[frame]) + emitted[frame])
        return CtcPrefixState(torch.stack(labels, 2), torch.stack(blanks, 2), tokens)

    def _of_tokens(self, tokens: Tensor) -> Tensor:
        """Log probabilities ``(batch, prefixes, time)`` of one token a prefix."""
        index = tokens.unsqueeze(1).expand(-1, self._log_probs.shape[1], -1)
        return self._log_probs.gather(2, index).transpose(1, 2)
