"""From the tokens of a text to what they sound like in it."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sonorant.lengths import check_lengths, sequence_mask
from sonorant.nn.convolutions import MaskedConvolutions
from sonorant.nn.randomness import dropout_masks
from sonorant.nn.recurrent import BiLstm

__all__ = ["TextEncoder", "TextEncoderConfig"]


@dataclass(frozen=True)
class TextEncoderConfig:
    """What can be chosen about :class:`TextEncoder`.

    Args:
        hidden_channels: of embeddings and convolutions.
        kernel_size: taps of the convolutions, an odd number.
        num_layers: of the convolutions.
        lstm_dim: of each direction of the LSTM; a token's encoding has twice as many features.
        dropout: of what the convolutions give, in training: whole channels of an utterance.
    """

    hidden_channels: int = 512
    kernel_size: int = 5
    num_layers: int = 3
    lstm_dim: int = 256
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1); got {self.dropout}")

    @property
    def text_dim(self) -> int:
        """Features of a token's encoding."""
        return 2 * self.lstm_dim


class TextEncoder(nn.Module):
    r"""Embeddings of tokens, to each of which the accent is added, convolutions and a bidirectional LSTM.

    .. math:: h = \mathrm{BiLSTM}(\mathrm{conv}(E_{y_n} + A a))

    It departs from RAD-MMM in that each token is normalised by itself (layer normalisation). Instance normalisation
    subtracts from each channel its mean over the tokens of the text, and with it the accent, which is the same for all
    of them; in a text of four tokens it hides much else.

    Args:
        config: see :class:`TextEncoderConfig`.
        num_tokens: symbols, padding (0) included.
        accent_dim: of an accent's vector.

    References:
        Shen et al. 2018, "Tacotron 2", arXiv 1712.05884 (the encoder); Badlani et al. 2023, arXiv 2301.10335 (RAD-MMM).

    Example:
        >>> import torch
        >>> from sonorant.models.text_encoder import TextEncoder, TextEncoderConfig
        >>> encoder = TextEncoder(TextEncoderConfig(hidden_channels=8, lstm_dim=3), num_tokens=5, accent_dim=2)
        >>> encoder(torch.tensor([[1, 3, 1]]), torch.tensor([3]), torch.randn(1, 2)).shape
        torch.Size([1, 3, 6])
    """

    def __init__(self, config: TextEncoderConfig, num_tokens: int, accent_dim: int) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(num_tokens, config.hidden_channels)
        self.by_accent = nn.Linear(accent_dim, config.hidden_channels, bias=False)
        self.convolutions = MaskedConvolutions(
            config.hidden_channels, kernel_size=config.kernel_size, num_layers=config.num_layers
        )
        self.lstm = BiLstm(config.hidden_channels, config.lstm_dim)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        token_lengths: Int[Tensor, " batch"],
        accents: Float[Tensor, "batch accent"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch token text"]:
        """Encode texts.

        Args:
            tokens: ids ``(batch, token)``.
            token_lengths: ``(batch,)``, at least 1.
            accents: ``(batch, accent_dim)``, vectors.
            seeds: int64 ``(batch,)``, of each text's dropout in training; None takes them from torch's global
                generator.

        Returns:
            ``(batch, token, text_dim)``, 0 beyond the lengths.

        Raises:
            ValueError: lengths that do not fit.
        """
        check_lengths(token_lengths, "token_lengths", batch_size=tokens.shape[0], max_length=tokens.shape[1])
        x = self.embed(tokens, accents)
        masks = None
        if self.training and self.config.dropout > 0:
            widths = [self.config.hidden_channels] * self.config.num_layers
            masks = dropout_masks(seeds, len(tokens), widths, self.config.dropout, tokens.device)
        x = self.lstm(self.convolutions(x, token_lengths, masks), token_lengths)
        return torch.where(sequence_mask(token_lengths, tokens.shape[1]).unsqueeze(2), x, 0.0)

    def embed(
        self, tokens: Int[Tensor, "batch token"], accents: Float[Tensor, "batch accent"]
    ) -> Float[Tensor, "batch token hidden"]:
        """The tokens in an accent, each by itself: what the convolutions read. Arguments as for :meth:`forward`."""
        embedded: Tensor = self.tokens(tokens) + self.by_accent(accents).unsqueeze(1)
        return embedded
