"""An aligner: which token of a text each frame of its recording belongs to, learned without any alignment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sonorant.functional import subtract_floor
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["AlignmentEncoder", "AlignmentEncoderConfig", "AlignmentOutput"]

_DEVIATION = 3.0  # nats, about that of speech: the network's input is of the order of 1


@dataclass(frozen=True)
class AlignmentEncoderConfig:
    """What can be chosen about :class:`AlignmentEncoder`.

    Args:
        hidden_channels: the width of the convolutions.
        attention_dim: of the space in which frames and tokens are compared.
        text_kernels: taps of the text encoder's convolutions, odd numbers: how many neighbours a token knows of. One
            that knows of them may learn their sound: in connected speech a boundary takes the beginning of a word.
        mel_kernels: taps of the mel encoder's convolutions, odd numbers. A wide view blurs the borders of tokens.
        speaker_dim: of a speaker's embedding; 0 makes no difference between speakers.
        temperature: of the score; small ones need large distances, which are learned slowly.
        dynamic_range: log energies count from a floor so many nats below the utterance's loudest.
    """

    hidden_channels: int = 128
    attention_dim: int = 64
    text_kernels: tuple[int, ...] = (1, 1)
    mel_kernels: tuple[int, ...] = (3, 3, 1)
    speaker_dim: int = 0
    temperature: float = 0.02
    dynamic_range: float = 12.0

    def __post_init__(self) -> None:
        for name in ("text_kernels", "mel_kernels"):
            taps = tuple(getattr(self, name))
            object.__setattr__(self, name, taps)  # a list, out of JSON
            if not taps or any(size < 1 or size % 2 == 0 for size in taps):
                raise ValueError(f"{name} must be odd numbers, and at least one; got {list(taps)}")
        if not self.temperature > 0:
            raise ValueError(f"temperature must be positive; got {self.temperature}")


class AlignmentOutput(NamedTuple):
    """Three of ``(batch, query, key)``, queries being frames and keys tokens, of use within the lengths only.

    ``log_attention``, the scores after the softmax over tokens and with the prior, -inf for tokens that are padding;
    ``attention``, probabilities made of them, 0 in all padding; ``scores``, what came before the softmax.
    """

    log_attention: Tensor
    attention: Tensor
    scores: Tensor


class AlignmentEncoder(nn.Module):
    r"""Frames and tokens in one space: the nearer they are, the more the frame belongs to the token.

    .. math:: s_{q,k} = -\tau \lVert f(x)_q - g(y)_k \rVert^2, \qquad
              \log a_{q,k} = \log\mathrm{softmax}_k\, s_{q,k} + \log P_{q,k}

    with two stacks of convolutions, f over log energies and g over tokens, and a prior P that starts training off
    (:class:`sonorant.models.AlignmentPrior`). The distance is computed as
    :math:`\lVert q \rVert^2 + \lVert k \rVert^2 - 2 q k`, so that no tensor of differences is made. It departs from
    the source in that each frame and token is normalised by itself (layer normalisation) and padding is masked before
    every convolution and before the softmax: neither padding nor neighbours change anything.

    Args:
        config: see :class:`AlignmentEncoderConfig`.
        num_features: features of a frame, log energies.
        num_tokens: symbols, padding (0) included.
        num_speakers: whose embeddings are learned, with the numbers from 1 on; 0 is a speaker who is not known, and
            gets their mean.

    References:
        Shih et al. 2021, "RAD-TTS"; Badlani et al. 2021, arXiv 2108.10447.

    Example:
        >>> import torch
        >>> from sonorant.models import AlignmentEncoder, AlignmentEncoderConfig
        >>> model = AlignmentEncoder(AlignmentEncoderConfig(hidden_channels=8), num_features=20, num_tokens=5)
        >>> tokens = torch.tensor([[1, 3, 1]])
        >>> model(torch.randn(1, 9, 20), torch.tensor([9]), tokens, torch.tensor([3])).attention.shape
        torch.Size([1, 9, 3])
    """

    def __init__(
        self, config: AlignmentEncoderConfig, num_features: int, num_tokens: int, num_speakers: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        width, out = config.hidden_channels, config.attention_dim
        self.tokens = nn.Embedding(num_tokens, width)
        self.text = _Convolutions(width, width, out, config.text_kernels)
        self.mel = _Convolutions(num_features, width, out, config.mel_kernels)
        has_speakers = config.speaker_dim > 0 and num_speakers > 0
        self.speakers = nn.Embedding(num_speakers, config.speaker_dim) if has_speakers else None
        self.by_speaker = nn.Linear(config.speaker_dim, width, bias=False) if has_speakers else None

    def forward(
        self,
        features: Float[Tensor, "batch query features"],
        feature_lengths: Int[Tensor, " batch"],
        tokens: Int[Tensor, "batch key"],
        token_lengths: Int[Tensor, " batch"],
        *,
        log_prior: Float[Tensor, "batch query key"] | None = None,
        speakers: Int[Tensor, " batch"] | None = None,
    ) -> AlignmentOutput:
        """Score each token in each frame.

        Args:
            features: ``(batch, query, num_features)``, log energies.
            feature_lengths: ``(batch,)``, frames.
            tokens: ids ``(batch, key)``.
            token_lengths: ``(batch,)``, at least 1.
            log_prior: ``(batch, query, key)``, added to the scores after the softmax over tokens.
            speakers: ``(batch,)``, from 1 on; 0, or None for all, is not known.

        Returns:
            ``AlignmentOutput``, in float32 for half precision.

        Raises:
            ValueError: lengths that do not fit.
        """
        check_lengths(feature_lengths, "feature_lengths", batch_size=len(features), max_length=features.shape[1])
        check_lengths(token_lengths, "token_lengths", batch_size=len(tokens), max_length=tokens.shape[1])
        energies = subtract_floor(features, feature_lengths, self.config.dynamic_range)
        # beyond the end it is as quiet as it gets, and before the beginning
        queries = self.mel(energies / _DEVIATION, feature_lengths)
        embedded = self.tokens(tokens)
        if self.speakers is not None and self.by_speaker is not None:
            embedded = embedded + self.by_speaker(self._embed(speakers, len(tokens))).unsqueeze(1)
        keys = self.text(embedded, token_lengths)
        scores = -self.config.temperature * _squared_distances(queries, keys)
        valid_keys = sequence_mask(token_lengths, tokens.shape[1]).unsqueeze(1)
        log_attention = scores.masked_fill(~valid_keys, -torch.inf).log_softmax(2)
        if log_prior is not None:
            log_attention = log_attention + log_prior
        valid_queries = sequence_mask(feature_lengths, features.shape[1]).unsqueeze(2)
        attention = log_attention.masked_fill(~valid_keys, -torch.inf).softmax(2)
        return AlignmentOutput(log_attention, torch.where(valid_queries, attention, 0.0), scores)

    def _embed(self, speakers: Tensor | None, batch_size: int) -> Tensor:
        assert self.speakers is not None
        mean = self.speakers.weight.mean(0, keepdim=True)
        table = torch.cat([mean, self.speakers.weight])
        return mean.expand(batch_size, -1) if speakers is None else table[speakers]


class _Convolutions(nn.Module):
    """Convolutions over ``(batch, time, features)``, each but the last with ReLU and layer normalisation."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, kernels: Sequence[int]) -> None:
        super().__init__()
        widths = [in_channels, *[hidden_channels] * (len(kernels) - 1), out_channels]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(narrow, wide, size, padding=size // 2)
            for narrow, wide, size in zip(widths, widths[1:], kernels, strict=False)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden_channels) for _ in kernels[1:])

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        mask = sequence_mask(lengths, x.shape[1]).unsqueeze(2)
        for index, convolution in enumerate(self.convolutions):
            if index > 0:
                x = self.norms[index - 1](x.relu())
            x = convolution(torch.where(mask, x, 0.0).transpose(1, 2)).transpose(1, 2)
        return torch.where(mask, x, 0.0)


def _squared_distances(queries: Tensor, keys: Tensor) -> Tensor:
    """``(batch, query, key)``, at least 0."""
    queries, keys = queries.to(compute_dtype(queries)), keys.to(compute_dtype(keys))
    squares = queries.square().sum(2).unsqueeze(2) + keys.square().sum(2).unsqueeze(1)
    return (squares - 2 * queries @ keys.transpose(1, 2)).clamp(min=0)
