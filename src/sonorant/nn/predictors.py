"""What predicts durations, pitch, energy and voicing from a text."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from sonorant.lengths import check_lengths, sequence_mask
from sonorant.nn.convolutions import MaskedConvolutions
from sonorant.nn.randomness import dropout_masks
from sonorant.nn.recurrent import BiLstm

__all__ = ["AttributePredictor", "AttributePredictorConfig"]


@dataclass(frozen=True)
class AttributePredictorConfig:
    """What can be chosen about :class:`AttributePredictor`.

    Args:
        hidden_channels: the width of the convolutions.
        kernel_size: taps of the convolutions, an odd number.
        num_layers: of the convolutions.
        lstm_dim: of each direction of the LSTM behind them.
        dropout: of what the convolutions give, in training: whole channels of an utterance.
    """

    hidden_channels: int = 256
    kernel_size: int = 3
    num_layers: int = 2
    lstm_dim: int = 128
    dropout: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1); got {self.dropout}")


class AttributePredictor(nn.Module):
    r"""Convolutions and a bidirectional LSTM over a text, and a condition such as who speaks.

    .. math:: y = W \, \mathrm{BiLSTM}(\mathrm{conv}(U [\mathrm{norm}(x_t); c]))

    The text is that of tokens (durations), or that of frames (f0, energy, voicing), where it is the same for all
    frames of a token: the LSTM tells them how far they are into it. Each step of it is normalised by itself, for its
    size is that of something which predictors do not train.

    Args:
        config: see :class:`AttributePredictorConfig`.
        in_dim: features of the text.
        condition_dim: of the condition.
        out_dim: what is predicted of each step.

    References:
        Shih et al. 2021, "RAD-TTS"; Badlani et al. 2023, arXiv 2301.10335 (RAD-MMM).

    Example:
        >>> import torch
        >>> from sonorant.nn.predictors import AttributePredictor, AttributePredictorConfig
        >>> predictor = AttributePredictor(AttributePredictorConfig(hidden_channels=8), 4, 2)
        >>> predictor(torch.randn(2, 5, 4), torch.tensor([5, 3]), torch.randn(2, 2)).shape
        torch.Size([2, 5, 1])
    """

    def __init__(self, config: AttributePredictorConfig, in_dim: int, condition_dim: int, out_dim: int = 1) -> None:
        super().__init__()
        self.config = config
        self.input = nn.Linear(in_dim + condition_dim, config.hidden_channels)
        self.convolutions = MaskedConvolutions(
            config.hidden_channels, kernel_size=config.kernel_size, num_layers=config.num_layers
        )
        self.lstm = BiLstm(config.hidden_channels, config.lstm_dim)
        self.output = nn.Linear(self.lstm.output_dim, out_dim)

    def forward(
        self,
        x: Float[Tensor, "batch time features"],
        lengths: Int[Tensor, " batch"],
        condition: Float[Tensor, "batch condition"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch time out"]:
        """Predict.

        Args:
            x: ``(batch, time, in_dim)``.
            lengths: ``(batch,)``.
            condition: ``(batch, condition_dim)``.
            seeds: int64 ``(batch,)``, of each utterance's dropout in training; None takes them from torch's global
                generator.

        Returns:
            ``(batch, time, out_dim)``, 0 beyond the lengths.

        Raises:
            ValueError: lengths that do not fit.
        """
        check_lengths(lengths, "lengths", batch_size=x.shape[0], max_length=x.shape[1])
        valid = sequence_mask(lengths, x.shape[1]).unsqueeze(2)
        x = F.layer_norm(torch.where(valid, x, 0.0), x.shape[2:])
        x = self.input(torch.cat([x, condition.unsqueeze(1).expand(-1, x.shape[1], -1)], 2))
        masks = None
        if self.training and self.config.dropout > 0:
            widths = [self.config.hidden_channels] * self.config.num_layers
            masks = dropout_masks(seeds, len(x), widths, self.config.dropout, x.device)
        x = self.lstm(self.convolutions(x, lengths, masks), lengths)
        return torch.where(valid, self.output(x), 0.0)
