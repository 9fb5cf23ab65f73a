"""What trains acoustic models of speech synthesis: a term of their own together with the aligner's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths
from sonorant.losses.alignment import AlignmentLoss
from sonorant.losses.weights import BinarizationSchedule

__all__ = [
    "DeterministicTtsLoss",
    "DeterministicTtsLossWeights",
    "DeterministicTtsLosses",
    "DiffusionTtsLoss",
    "DiffusionTtsLossWeights",
    "DiffusionTtsLosses",
    "FlowTtsLoss",
    "FlowTtsLossWeights",
    "FlowTtsLosses",
]


class FlowTtsLosses(NamedTuple):
    """The unweighted terms of :class:`FlowTtsLoss`, scalars."""

    flow_nll: Tensor
    prior_nll: Tensor
    forward_sum: Tensor
    binarization: Tensor


@dataclass(frozen=True)
class FlowTtsLossWeights(BinarizationSchedule):
    """The weights of :class:`FlowTtsLosses`; the prior's part of the likelihood is only reported."""

    flow_nll: float = 1.0
    prior_nll: float = 0.0
    forward_sum: float = 0.1
    binarization: float = 1.0


class DeterministicTtsLosses(NamedTuple):
    """The unweighted terms of :class:`DeterministicTtsLoss`, scalars."""

    mel_l1: Tensor
    forward_sum: Tensor
    binarization: Tensor


@dataclass(frozen=True)
class DeterministicTtsLossWeights(BinarizationSchedule):
    """The weights of :class:`DeterministicTtsLosses`."""

    mel_l1: float = 1.0
    forward_sum: float = 0.1
    binarization: float = 1.0


class DiffusionTtsLosses(NamedTuple):
    """The unweighted terms of :class:`DiffusionTtsLoss`, scalars."""

    noise_mse: Tensor
    forward_sum: Tensor
    binarization: Tensor


@dataclass(frozen=True)
class DiffusionTtsLossWeights(BinarizationSchedule):
    """The weights of :class:`DiffusionTtsLosses`."""

    noise_mse: float = 1.0
    forward_sum: float = 0.1
    binarization: float = 1.0


class FlowTtsLoss(nn.Module):
    """A flow's likelihood together with what trains its aligner (RAD-TTS, RAD-MMM).

    Args:
        sigma: the standard deviation of the flow's prior.
        group_size: how many mel frames the flow takes as one.
        blank_logprob: the score of the aligner's blank in every frame.

    Raises:
        ValueError: ``sigma`` not positive; ``group_size`` below 1.

    References:
        Shih et al. 2021, "RAD-TTS: parallel flow-based TTS with robust alignment learning and diverse synthesis".

    Example:
        >>> import torch
        >>> from sonorant.losses import FlowTtsLoss, FlowTtsLossWeights, weighted_total
        >>> scores, lengths = torch.zeros(1, 2, 2), torch.tensor([2])
        >>> arguments = torch.eye(2).unsqueeze(0), scores.softmax(2), scores, lengths, lengths
        >>> terms = FlowTtsLoss()(torch.ones(1, 2, 4), [torch.full((1, 2, 2), 0.5)], [], *arguments)
        >>> terms.flow_nll, terms.binarization
        (tensor(0.2500), tensor(0.6931))
        >>> weighted_total(terms, FlowTtsLossWeights().at(step=10))
        tensor(0.3362)
    """

    def __init__(self, sigma: float = 1.0, group_size: int = 1, blank_logprob: float = -1.0) -> None:
        super().__init__()
        if not sigma > 0:
            raise ValueError(f"sigma must be positive; got {sigma}")
        if group_size < 1:
            raise ValueError(f"group_size is {group_size}; the smallest is 1")
        self.sigma = sigma
        self.group_size = group_size
        self.alignment_loss = AlignmentLoss(blank_logprob)

    def forward(
        self,
        z: Tensor | None,
        log_scales: Sequence[Tensor],
        log_dets: Sequence[Tensor],
        alignment: Tensor,
        attention: Tensor,
        log_attention: Tensor,
        query_lengths: Tensor,
        key_lengths: Tensor,
    ) -> FlowTtsLosses:
        """The terms, unweighted.

        Args:
            z: ``(batch, grouped frames, mel bins x group size)``; None when no flow is trained: its terms are 0.
            log_scales: see :func:`sonorant.functional.flow_nll`; not read when ``z`` is None.
            log_dets: likewise.
            alignment: see :class:`AlignmentLoss`, as for the rest.
            attention: ``(batch, query, key)``.
            log_attention: ``(batch, query, key)``.
            query_lengths: ``(batch,)``, mel frames; the flow counts ``query_lengths // group_size``.
            key_lengths: ``(batch,)``, tokens.

        Returns:
            ``FlowTtsLosses``: scalars, in float32 for half precision.

        Raises:
            ValueError: shapes or lengths that do not fit; an utterance shorter than a group.
        """
        aligned = self.alignment_loss(alignment, attention, log_attention, query_lengths, key_lengths)
        if z is None:
            zero = _zero(log_attention)
            return FlowTtsLosses(zero, zero, *aligned)
        check_lengths(query_lengths, "query_lengths", min_length=self.group_size)
        grouped = query_lengths // self.group_size
        return FlowTtsLosses(*functional.flow_nll(z, log_scales, log_dets, grouped, sigma=self.sigma), *aligned)

    def extra_repr(self) -> str:
        """The hyperparameters, for ``print``."""
        return f"sigma={self.sigma}, group_size={self.group_size}"


class DeterministicTtsLoss(nn.Module):
    """The L1 distance of mel spectrograms together with what trains the aligner.

    Args:
        blank_logprob: the score of the aligner's blank in every frame.

    Example:
        >>> import torch
        >>> from sonorant.losses import DeterministicTtsLoss
        >>> scores, lengths = torch.zeros(1, 2, 2), torch.tensor([2])
        >>> arguments = torch.eye(2).unsqueeze(0), scores.softmax(2), scores, lengths, lengths
        >>> DeterministicTtsLoss()(torch.ones(1, 2, 80), torch.zeros(1, 2, 80), *arguments).mel_l1
        tensor(1.)
    """

    def __init__(self, blank_logprob: float = -1.0) -> None:
        super().__init__()
        self.alignment_loss = AlignmentLoss(blank_logprob)

    def forward(
        self,
        prediction: Tensor | None,
        target: Tensor | None,
        alignment: Tensor,
        attention: Tensor,
        log_attention: Tensor,
        query_lengths: Tensor,
        key_lengths: Tensor,
    ) -> DeterministicTtsLosses:
        """The terms, unweighted.

        Args:
            prediction: ``(batch, frames, mel bins)``; None when no decoder is trained: the term is 0.
            target: the same shape.
            alignment: see :class:`AlignmentLoss`, as for the rest.
            attention: ``(batch, query, key)``.
            log_attention: ``(batch, query, key)``.
            query_lengths: ``(batch,)``, mel frames.
            key_lengths: ``(batch,)``, tokens.

        Returns:
            ``DeterministicTtsLosses``: scalars, in float32 for half precision.

        Raises:
            ValueError: shapes or lengths that do not fit.
        """
        aligned = self.alignment_loss(alignment, attention, log_attention, query_lengths, key_lengths)
        if prediction is None or target is None:
            return DeterministicTtsLosses(_zero(log_attention), *aligned)
        return DeterministicTtsLosses(functional.masked_l1_loss(prediction, target, lengths=query_lengths), *aligned)


class DiffusionTtsLoss(nn.Module):
    """The squared error of predicted noise together with what trains the aligner.

    Args:
        blank_logprob: the score of the aligner's blank in every frame.

    Example:
        >>> import torch
        >>> from sonorant.losses import DiffusionTtsLoss
        >>> scores, lengths = torch.zeros(1, 2, 2), torch.tensor([2])
        >>> arguments = torch.eye(2).unsqueeze(0), scores.softmax(2), scores, lengths, lengths
        >>> DiffusionTtsLoss()(torch.ones(1, 2, 80), torch.zeros(1, 2, 80), *arguments).noise_mse
        tensor(1.)
    """

    def __init__(self, blank_logprob: float = -1.0) -> None:
        super().__init__()
        self.alignment_loss = AlignmentLoss(blank_logprob)

    def forward(
        self,
        predicted_noise: Tensor | None,
        noise: Tensor | None,
        alignment: Tensor,
        attention: Tensor,
        log_attention: Tensor,
        query_lengths: Tensor,
        key_lengths: Tensor,
    ) -> DiffusionTtsLosses:
        """The terms, unweighted.

        Args:
            predicted_noise: ``(batch, frames, mel bins)``; None when no decoder is trained: the term is 0.
            noise: the same shape.
            alignment: see :class:`AlignmentLoss`, as for the rest.
            attention: ``(batch, query, key)``.
            log_attention: ``(batch, query, key)``.
            query_lengths: ``(batch,)``, mel frames.
            key_lengths: ``(batch,)``, tokens.

        Returns:
            ``DiffusionTtsLosses``: scalars, in float32 for half precision.

        Raises:
            ValueError: shapes or lengths that do not fit.
        """
        aligned = self.alignment_loss(alignment, attention, log_attention, query_lengths, key_lengths)
        if predicted_noise is None or noise is None:
            return DiffusionTtsLosses(_zero(log_attention), *aligned)
        return DiffusionTtsLosses(functional.masked_mse_loss(predicted_noise, noise, lengths=query_lengths), *aligned)


def _zero(scores: Tensor) -> Tensor:
    """What an inactive term is."""
    return scores.new_zeros((), dtype=compute_dtype(scores))
