"""Several pronunciation models that answer together."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sonorant.decoding.step import StepOutput
from sonorant.lengths import Padded
from sonorant.models.g2p import G2p, G2pState
from sonorant.nn import AttentionMemory

__all__ = ["G2pEnsemble"]


class G2pEnsemble(nn.Module):
    r"""The mean of what models of the same symbols say at each step; of one model, the model itself.

    .. math:: p(y_t \mid y_{<t}, x) = \frac{1}{M} \sum_m p_m(y_t \mid y_{<t}, x)

    Args:
        members: at least one.

    Example:
        >>> import torch
        >>> from sonorant.models import G2p, G2pConfig, G2pEnsemble
        >>> models = [G2p(G2pConfig(encoder_dim=8, decoder_dim=8), num_graphemes=5, num_phones=6) for _ in range(2)]
        >>> ensemble = G2pEnsemble(models).eval()
        >>> states, memories = ensemble.start(torch.tensor([[1, 2, 3]]), torch.tensor([3]))
        >>> ensemble.step(torch.tensor([0]), states, memories).log_probs.shape
        torch.Size([1, 6])
    """

    def __init__(self, members: Sequence[G2p]) -> None:
        super().__init__()
        if not members:
            raise ValueError("members: an ensemble needs at least one model")
        self._members = nn.ModuleList(members)

    @property
    def members(self) -> list[G2p]:
        """The models."""
        return [member for member in self._members if isinstance(member, G2p)]

    def start(
        self, graphemes: Int[Tensor, "batch grapheme"], grapheme_lengths: Int[Tensor, " batch"]
    ) -> tuple[list[G2pState], list[AttentionMemory]]:
        """Read words, as :meth:`sonorant.models.G2p.start`; a state and a memory of each model."""
        started = [member.start(graphemes, grapheme_lengths) for member in self.members]
        return [state for state, _ in started], [memory for _, memory in started]

    def step(
        self, phones: Int[Tensor, " rows"], states: list[G2pState], memories: list[AttentionMemory]
    ) -> StepOutput[list[G2pState]]:
        """Predict the next phone, as :meth:`sonorant.models.G2p.step`; the attention is the mean too."""
        outputs = [
            member.step(phones, state, memory)
            for member, state, memory in zip(self.members, states, memories, strict=True)
        ]
        after = [output.state for output in outputs]
        weights = [output.attention for output in outputs if output.attention is not None]
        log_probs = _log_mean([output.log_probs for output in outputs])
        return StepOutput(log_probs, after, torch.stack(weights).mean(0))

    def ctc_log_probs(self, memories: list[AttentionMemory]) -> Padded | None:
        """What the CTC heads say of words that were read, averaged likewise; None if the models have no head."""
        outputs = [member.ctc_log_probs(memory) for member, memory in zip(self.members, memories, strict=True)]
        given = [output for output in outputs if output is not None]
        return Padded(_log_mean([output.values for output in given]), given[0].lengths) if given else None


def _log_mean(log_probs: list[Tensor]) -> Tensor:
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))
