"""A decoder of mel spectra: an invertible network between frames and noise, conditioned on what is said and how."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask
from sonorant.nn import AffineCoupling, InvertibleLinear, Whitening
from sonorant.nn.randomness import UtteranceRandomness
from sonorant.nn.recurrent import BiLstm

__all__ = ["FlowDecoder", "FlowDecoderConfig", "FlowOutput"]


@dataclass(frozen=True)
class FlowDecoderConfig:
    """What can be chosen about :class:`FlowDecoder`.

    Args:
        group_size: frames that are taken together as one.
        num_flows: pairs of a linear map and a coupling.
        hidden_channels: between the layers of a coupling's network.
        num_layers: of a coupling's network.
        kernel_size: taps of its convolutions, an odd number.
        early_every: after so many flows some channels are done, and leave as they are; 0 keeps all to the end.
        early_channels: how many leave each time.
        encoder_dim: of each direction of the LSTM that reads the context.
    """

    group_size: int = 2
    num_flows: int = 8
    hidden_channels: int = 192
    num_layers: int = 4
    kernel_size: int = 3
    early_every: int = 2
    early_channels: int = 2
    encoder_dim: int = 128

    def __post_init__(self) -> None:
        for name in ("group_size", "num_flows", "hidden_channels", "num_layers", "encoder_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}")
        for name in ("early_every", "early_channels"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0; got {getattr(self, name)}")
        if self.kernel_size < 1 or self.kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be an odd number; got {self.kernel_size}")

    def channels(self, dim: int) -> list[int]:
        """The channels of each flow, of grouped frames of ``dim`` features.

        Raises:
            ValueError: the last flow has fewer than 2.
        """
        widths, width = [], dim
        for index in range(self.num_flows):
            if self._is_early(index):
                width -= self.early_channels
            widths.append(width)
        if widths[-1] < 2:
            raise ValueError(
                f"n_mels * group_size is {dim}, of which {dim - width} leave early (early_channels "
                f"{self.early_channels}, early_every {self.early_every}): the last flow needs at least 2"
            )
        return widths

    def _is_early(self, index: int) -> bool:
        return index > 0 and self.early_every > 0 and index % self.early_every == 0


class FlowOutput(NamedTuple):
    """What :func:`sonorant.functional.flow_nll` takes, with the lengths of grouped frames.

    ``z`` ``(batch, grouped time, n_mels * group_size)``, 0 beyond the lengths; ``log_scales``, of each flow
    ``(batch, grouped time, channels)``; ``log_dets``, of each flow a scalar.
    """

    z: Tensor
    log_scales: list[Tensor]
    log_dets: list[Tensor]


class FlowDecoder(nn.Module):
    r"""Mel spectra to noise, and back: the flow of RAD-TTS and RAD-MMM.

    .. math:: z = f_K(\cdots f_1(x; c) \cdots; c), \quad
              \log p(x | c) = \log \mathcal{N}(z; 0, I) + \sum_k \left( \sum \log s_k + \log |\det W_k| \right)

    Frames are grouped. Each flow is a linear map and an :class:`~sonorant.nn.AffineCoupling`; the first linear map
    whitens the data (:meth:`fit_whitening`), the others are learned (:class:`~sonorant.nn.InvertibleLinear`). Some
    channels leave after every few flows. A bidirectional LSTM reads the grouped context, for all couplings.

    It departs from RAD-TTS in that the first coupling keeps no channel: the context alone says how a frame is scaled
    and shifted. The first flow is thus a regression, of a normal distribution on the context, and the others model what
    it leaves. They begin as rotations, which change no likelihood, so that it can be trained first and by itself
    (``num_flows=1``). In the likelihood of a frame what is said counts little beside how loud it is said: flows that
    are trained from the start on a small corpus know it by heart before they have learned to read.

    Args:
        config: see :class:`FlowDecoderConfig`.
        n_mels: features of a frame.
        context_dim: features of a frame of the context: what is said, by whom, and how.

    Raises:
        ValueError: too few channels for what leaves early.

    References:
        Shih et al. 2021, "RAD-TTS"; Badlani et al. 2023, "RAD-MMM", arXiv 2301.10335.

    Example:
        >>> import torch
        >>> from sonorant.functional import flow_nll
        >>> from sonorant.models import FlowDecoder, FlowDecoderConfig
        >>> config = FlowDecoderConfig(num_flows=2, hidden_channels=8, encoder_dim=4)
        >>> model = FlowDecoder(config, n_mels=10, context_dim=3)
        >>> mel, lengths, context = torch.randn(2, 9, 10), torch.tensor([9, 6]), torch.randn(2, 9, 3)
        >>> model.fit_whitening([torch.randn(50, 10)])
        >>> nll = flow_nll(*model(mel, lengths, context), lengths // config.group_size).nll
        >>> model.sample(lengths, context).shape
        torch.Size([2, 9, 10])
    """

    def __init__(self, config: FlowDecoderConfig, n_mels: int, context_dim: int) -> None:
        super().__init__()
        self.config = config
        self.n_mels = n_mels
        self.context_dim = context_dim
        widths = config.channels(n_mels * config.group_size)
        self.encoder = BiLstm(config.group_size * context_dim, config.encoder_dim)
        self.whitening = Whitening(widths[0])
        self.linears = nn.ModuleList(InvertibleLinear(width) for width in widths[1:])
        self.couplings = nn.ModuleList(
            AffineCoupling(
                width,
                num_kept=None if index else 0,
                context_dim=self.encoder.output_dim,
                hidden_channels=config.hidden_channels,
                num_layers=config.num_layers,
                kernel_size=config.kernel_size,
            )
            for index, width in enumerate(widths)
        )
        # how many channels leave before each flow
        self._leaving = [before - after for before, after in zip([widths[0], *widths], widths, strict=False)]

    def fit_whitening(self, frames: Iterable[Float[Tensor, "time mels"]]) -> None:
        """Take the statistics of the data; before training.

        They are those of all groups of successive frames, wherever a group begins, in float64. Nothing is kept of a
        recording but its part of the sums.

        Args:
            frames: ``(time, n_mels)``, one recording at a time; those with less than a group count for nothing.

        Raises:
            ValueError: a recording of another shape or with values that are not finite, too few frames.
        """
        group_size = self.config.group_size
        dim = self.n_mels * group_size
        count, mean = 0, torch.zeros(dim, dtype=torch.float64)
        scatter = torch.zeros(dim, dim, dtype=torch.float64)
        for index, recording in enumerate(frames):
            if recording.dim() != 2 or recording.shape[1] != self.n_mels:
                raise ValueError(f"frames[{index}] must have shape (time, {self.n_mels}); got {tuple(recording.shape)}")
            wrong = (~recording.isfinite()).nonzero()
            if len(wrong):
                row, column = wrong[0].tolist()
                raise ValueError(f"frames[{index}][{row}, {column}] is {float(recording[row, column])}")
            if len(recording) < group_size:
                continue
            groups = recording.detach().double().cpu().unfold(0, group_size, 1).transpose(1, 2).reshape(-1, dim)
            # as Chan, Golub and LeVeque (1979) put sums together
            its_mean, total = groups.mean(0), count + len(groups)
            difference = its_mean - mean
            centred = groups - its_mean
            scatter += centred.T @ centred + difference.outer(difference) * (count * len(groups) / total)
            mean += difference * (len(groups) / total)
            count = total
        if count <= dim:
            raise ValueError(
                f"frames has {count} groups of {group_size} frames; their covariance needs more than {dim}"
            )
        self.whitening.fit(mean, scatter / count)

    def forward(
        self,
        mel: Float[Tensor, "batch time mels"],
        lengths: Int[Tensor, " batch"],
        context: Float[Tensor, "batch time context"],
        num_flows: int | None = None,
    ) -> FlowOutput:
        """From frames to latent variables.

        Args:
            mel: ``(batch, time, n_mels)``.
            lengths: ``(batch,)``, frames, at least ``group_size``; those beyond ``group_size * (length //
                group_size)`` are left out.
            context: ``(batch, time, context_dim)``.
            num_flows: that are gone through, from the first on; by default all.

        Returns:
            ``FlowOutput``, in float32 for half precision.

        Raises:
            ValueError: shapes or lengths that do not fit.
        """
        self._check(mel, "mel", self.n_mels)
        self._check(context, "context", self.context_dim, mel.shape[:2])
        group_size = self.config.group_size
        check_lengths(lengths, "lengths", batch_size=len(mel), max_length=mel.shape[1], min_length=group_size)
        lengths = lengths // group_size
        x = self._group(mel, lengths).to(compute_dtype(mel))
        encoded = self._encode(context, lengths)
        mask = sequence_mask(lengths, x.shape[1]).unsqueeze(2)
        done, log_scales, log_dets = [], [], []
        for leaving, linear, coupling in self._flows()[:num_flows]:
            if leaving:
                early, x = torch.split(x, [leaving, x.shape[2] - leaving], 2)
                done.append(early)
            x, log_det = linear(x)
            x, log_scale = coupling.run(x, encoded, mask)
            log_scales.append(log_scale)
            log_dets.append(log_det)
        return FlowOutput(torch.where(mask, torch.cat([*done, x], 2), 0.0), log_scales, log_dets)

    def inverse(
        self,
        z: Float[Tensor, "batch grouped_time dim"],
        lengths: Int[Tensor, " batch"],
        context: Float[Tensor, "batch time context"],
    ) -> Float[Tensor, "batch frames mels"]:
        """From latent variables to frames.

        Args:
            z: ``(batch, grouped time, n_mels * group_size)``.
            lengths: ``(batch,)``, GROUPED frames.
            context: ``(batch, time, context_dim)``, at least ``group_size`` frames for each grouped one.

        Returns:
            ``(batch, grouped time * group_size, n_mels)``, 0 beyond the lengths.

        Raises:
            ValueError: shapes or lengths that do not fit.
        """
        group_size = self.config.group_size
        self._check(z, "z", self.n_mels * group_size)
        self._check(context, "context", self.context_dim)
        num_frames = z.shape[1] * group_size
        if len(context) != len(z) or context.shape[1] < num_frames:
            raise ValueError(
                f"context must have shape ({len(z)}, at least {num_frames}, {self.context_dim}); "
                f"got {tuple(context.shape)}"
            )
        check_lengths(lengths, "lengths", batch_size=len(z), max_length=z.shape[1])
        mask = sequence_mask(lengths, z.shape[1]).unsqueeze(2)
        encoded = self._encode(context[:, :num_frames], lengths)
        x = torch.where(mask, z, 0.0).to(compute_dtype(z))
        early, x = x[..., : sum(self._leaving)], x[..., sum(self._leaving) :]
        for leaving, linear, coupling in reversed(self._flows()):
            x = linear.inverse(coupling.inverse(x, encoded, lengths))
            early, leaves = early[..., : early.shape[2] - leaving], early[..., early.shape[2] - leaving :]
            x = torch.cat([leaves, x], 2)
        return torch.where(mask, x, 0.0).reshape(len(z), num_frames, self.n_mels)

    @torch.no_grad()
    def sample(
        self,
        lengths: Int[Tensor, " batch"],
        context: Float[Tensor, "batch time context"],
        *,
        temperature: float = 0.667,
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch time mels"]:
        """Draw frames.

        Args:
            lengths: ``(batch,)``, frames. Where the last group is not full, the last frame of the context is repeated.
            context: ``(batch, time, context_dim)``.
            temperature: the standard deviation of the latent variables; 0 gives the mode of the prior, which is the
                same each time.
            seeds: ``(batch,)``, of each utterance's own noise, which is then the same in any batch; None takes them
                from torch's global generator.

        Returns:
            ``(batch, time, n_mels)``, 0 beyond the lengths.

        Raises:
            ValueError: shapes or lengths that do not fit, a temperature below 0.
        """
        self._check(context, "context", self.context_dim)
        check_lengths(lengths, "lengths", batch_size=len(context), max_length=context.shape[1])
        if not temperature >= 0:
            raise ValueError(f"temperature must be at least 0; got {temperature}")
        group_size, num_frames = self.config.group_size, context.shape[1]
        grouped = (lengths + group_size - 1) // group_size
        num_groups = (num_frames + group_size - 1) // group_size
        places = torch.arange(num_groups * group_size, device=context.device).minimum(lengths.unsqueeze(1) - 1)
        context = context[torch.arange(len(context), device=context.device).unsqueeze(1), places]
        like = context.new_empty(len(context), num_groups, self.n_mels * group_size, dtype=compute_dtype(context))
        noise = UtteranceRandomness(seeds, len(context), context.device).normal(grouped, like)
        mel = self.inverse(temperature * noise, grouped, context)[:, :num_frames]
        return torch.where(sequence_mask(lengths, num_frames).unsqueeze(2), mel, 0.0)

    def _flows(self) -> list[tuple[int, Whitening | InvertibleLinear, AffineCoupling]]:
        """Of each flow: how many channels leave before it, its linear map and its coupling."""
        linears: list[Whitening | InvertibleLinear] = [self.whitening, *cast(Iterable[InvertibleLinear], self.linears)]
        return list(zip(self._leaving, linears, cast(Iterable[AffineCoupling], self.couplings), strict=True))

    def _group(self, frames: Tensor, lengths: Tensor) -> Tensor:
        """Grouped frames, 0 beyond their lengths."""
        group_size = self.config.group_size
        num_groups = frames.shape[1] // group_size
        grouped = frames[:, : num_groups * group_size].reshape(len(frames), num_groups, -1)
        return torch.where(sequence_mask(lengths, num_groups).unsqueeze(2), grouped, 0.0)

    def _encode(self, context: Tensor, lengths: Tensor) -> Tensor:
        encoded: Tensor = self.encoder(self._group(context, lengths), lengths)
        return encoded  # finite in padding, where the LSTM has read zeros

    def _check(self, x: Tensor, name: str, features: int, batch_and_time: tuple[int, ...] | None = None) -> None:
        expected = ("batch", "time", features) if batch_and_time is None else (*batch_and_time, features)
        if x.dim() != 3 or x.shape[2] != features or (batch_and_time is not None and x.shape[:2] != batch_and_time):
            raise ValueError(f"{name} must have shape ({', '.join(map(str, expected))}); got {tuple(x.shape)}")
