"""What trains a synthesizer from text to waveform against discriminators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sonorant import functional
from sonorant.functional.reduction import compute_dtype
from sonorant.functional.spectral import Magnitude, StftNorm
from sonorant.lengths import check_lengths
from sonorant.losses.alignment import AlignmentLoss
from sonorant.losses.spectral import MultiResolutionStftLoss
from sonorant.losses.weights import BinarizationSchedule

__all__ = [
    "AdversarialTtsLoss",
    "CroppedWaveforms",
    "DiscriminatorLossWeights",
    "DiscriminatorLosses",
    "GeneratorLossWeights",
    "GeneratorLosses",
]

Maps = Sequence[Sequence[Tensor]]


class GeneratorLosses(NamedTuple):
    """The unweighted terms of :meth:`AdversarialTtsLoss.generator_losses`, scalars."""

    spectral_convergence: Tensor
    log_magnitude: Tensor
    adversarial: Tensor
    feature_matching: Tensor
    forward_sum: Tensor
    binarization: Tensor


@dataclass(frozen=True)
class GeneratorLossWeights(BinarizationSchedule):
    """The weights of :class:`GeneratorLosses`; feature matching counts twice, as in HiFi-GAN."""

    spectral_convergence: float = 1.0
    log_magnitude: float = 1.0
    adversarial: float = 1.0
    feature_matching: float = 2.0
    forward_sum: float = 0.1
    binarization: float = 1.0


class DiscriminatorLosses(NamedTuple):
    """The unweighted term of :meth:`AdversarialTtsLoss.discriminator_losses`, a scalar."""

    discriminator: Tensor


@dataclass(frozen=True)
class DiscriminatorLossWeights:
    """The weight of :class:`DiscriminatorLosses`."""

    discriminator: float = 1.0


class CroppedWaveforms(NamedTuple):
    """Waveforms of one size, what of them is valid in samples, and the same as ratios for scores and maps."""

    prediction: Tensor
    target: Tensor
    lengths: Tensor
    length_ratios: Tensor


class AdversarialTtsLoss(nn.Module):
    """Spectral, adversarial and feature-matching terms together with what trains the aligner.

    In the original the adversarial terms are commented out, lose the multi-scale discriminators and return nothing on
    the discriminators' side. A training step crops the waveforms, runs the discriminators on what remains, and asks
    for one side's terms::

        waves = loss.crop(prediction, target, lengths)
        real_scores, _ = discriminators(waves.target)
        fake_scores, _ = discriminators(waves.prediction.detach())
        loss.discriminator_losses(real_scores, fake_scores, length_ratios=waves.length_ratios)

    Args:
        resolutions: see :func:`sonorant.functional.multi_resolution_stft_loss`, as for the next four.
        magnitude: ``"log"`` or ``"log1p"``.
        norm: ``"utterance"``, ``"frame"`` or ``"batch"``.
        a_weighting: weigh the bins' differences as the ear does.
        sample_rate: in Hz, for ``a_weighting``.
        blank_logprob: the score of the aligner's blank in every frame.

    Raises:
        ValueError: as :class:`MultiResolutionStftLoss`.

    References:
        Kong, Kim and Bae 2020, "HiFi-GAN", arXiv 2010.05646.

    Example:
        >>> import torch
        >>> from sonorant.losses import AdversarialTtsLoss
        >>> loss = AdversarialTtsLoss([(64, 16, 64)])
        >>> scores, lengths = torch.zeros(1, 2, 2), torch.tensor([2])
        >>> wave = torch.sin(torch.arange(100) / 5).unsqueeze(0)
        >>> fake_scores, maps = [torch.tensor([[0.5, 0.5]])], [[torch.ones(1, 4, 2)]]
        >>> arguments = torch.eye(2).unsqueeze(0), scores.softmax(2), scores, lengths, lengths
        >>> losses = loss.generator_losses(0.5 * wave, wave, fake_scores, maps, maps, *arguments)
        >>> losses.spectral_convergence, losses.adversarial, losses.feature_matching
        (tensor(0.5000), tensor(0.2500), tensor(0.))
    """

    def __init__(
        self,
        resolutions: Sequence[tuple[int, int, int]],
        magnitude: Magnitude = "log",
        norm: StftNorm = "utterance",
        a_weighting: bool = False,
        sample_rate: int | None = None,
        blank_logprob: float = -1.0,
    ) -> None:
        super().__init__()
        self.stft_loss = MultiResolutionStftLoss(resolutions, magnitude, norm, a_weighting, sample_rate)
        self.alignment_loss = AlignmentLoss(blank_logprob)

    @staticmethod
    def crop(prediction: Tensor, target: Tensor, lengths: Tensor | None = None) -> CroppedWaveforms:
        """Cut both waveforms to the shorter, and clamp the lengths to it.

        Args:
            prediction: ``(batch, samples)``.
            target: ``(batch, samples)``, of another size perhaps.
            lengths: ``(batch,)``, samples; None: all are valid.

        Returns:
            ``CroppedWaveforms``: both waveforms, their lengths in samples, and these as ratios of what remains.

        Raises:
            ValueError: lengths beyond the longer waveform.
        """
        size, longer = sorted((prediction.shape[1], target.shape[1]))
        if lengths is None:
            lengths = torch.full(prediction.shape[:1], size, device=prediction.device)
        check_lengths(lengths, "lengths", batch_size=len(prediction), max_length=longer)
        lengths = lengths.clamp(max=size)
        return CroppedWaveforms(prediction[:, :size], target[:, :size], lengths, lengths / size)

    def generator_losses(
        self,
        prediction: Tensor | None,
        target: Tensor | None,
        fake_scores: Sequence[Tensor] | None,
        real_maps: Maps | None,
        fake_maps: Maps | None,
        alignment: Tensor,
        attention: Tensor,
        log_attention: Tensor,
        query_lengths: Tensor,
        key_lengths: Tensor,
        lengths: Tensor | None = None,
    ) -> GeneratorLosses:
        """The generator's and the aligner's terms, unweighted.

        Args:
            prediction: ``(batch, samples)``; None (or no target): the spectral terms are 0.
            target: ``(batch, samples)``; both are cropped to the shorter.
            fake_scores: the discriminators' scores of the prediction; None: the adversarial term is 0.
            real_maps: their feature maps of the target; None: the feature-matching term is 0.
            fake_maps: those of the prediction.
            alignment: see :class:`AlignmentLoss`, as for the rest.
            attention: ``(batch, query, key)``.
            log_attention: ``(batch, query, key)``.
            query_lengths: ``(batch,)``, mel frames.
            key_lengths: ``(batch,)``, tokens.
            lengths: ``(batch,)``, samples, clamped to the cropped waveforms; None: all are valid. Scores and maps
                are valid in proportion, which needs the waveforms.

        Returns:
            ``GeneratorLosses``: scalars, in float32 for half precision.

        Raises:
            ValueError: shapes, lengths or numbers of discriminators that do not fit; ``lengths`` without waveforms.
        """
        aligned = self.alignment_loss(alignment, attention, log_attention, query_lengths, key_lengths)
        zero = log_attention.new_zeros((), dtype=compute_dtype(log_attention))
        convergence = log_magnitude = adversarial = feature_matching = zero
        length_ratios = None
        if prediction is not None and target is not None:
            waves = self.crop(prediction, target, lengths)
            convergence, log_magnitude = self.stft_loss(waves.prediction, waves.target, waves.lengths)
            length_ratios = None if lengths is None else waves.length_ratios
        elif lengths is not None:
            raise ValueError("lengths are given without prediction and target")
        if fake_scores is not None:
            adversarial = functional.lsgan_generator_loss(fake_scores, length_ratios=length_ratios)
        if real_maps is not None and fake_maps is not None:
            feature_matching = functional.feature_matching_loss(real_maps, fake_maps, length_ratios=length_ratios)
        return GeneratorLosses(convergence, log_magnitude, adversarial, feature_matching, *aligned)

    def discriminator_losses(
        self, real_scores: Sequence[Tensor], fake_scores: Sequence[Tensor], length_ratios: Tensor | None = None
    ) -> DiscriminatorLosses:
        """The discriminators' term, unweighted.

        Args:
            real_scores: for each discriminator ``(batch, time)``, of the target.
            fake_scores: the same of the prediction, detached.
            length_ratios: ``(batch,)``, as :meth:`crop` gives them; None: all steps are valid.

        Returns:
            ``DiscriminatorLosses``: a scalar, in float32 for half precision.

        Raises:
            ValueError: numbers of discriminators, shapes or ratios that do not fit.
        """
        value = functional.lsgan_discriminator_loss(real_scores, fake_scores, length_ratios=length_ratios)
        return DiscriminatorLosses(value)

    def forward(
        self,
        prediction: Tensor | None,
        target: Tensor | None,
        fake_scores: Sequence[Tensor] | None,
        real_maps: Maps | None,
        fake_maps: Maps | None,
        alignment: Tensor,
        attention: Tensor,
        log_attention: Tensor,
        query_lengths: Tensor,
        key_lengths: Tensor,
        lengths: Tensor | None = None,
    ) -> GeneratorLosses:
        """The same as :meth:`generator_losses`."""
        return self.generator_losses(
            prediction,
            target,
            fake_scores,
            real_maps,
            fake_maps,
            alignment,
            attention,
            log_attention,
            query_lengths,
            key_lengths,
            lengths,
        )
