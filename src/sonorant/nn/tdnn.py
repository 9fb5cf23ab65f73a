"""Time-delay neural networks."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sonorant.lengths import Padded, check_lengths, has_no_padding, sequence_mask, values_are_checkable
from sonorant.nn.normalization import MaskedBatchNorm1d

__all__ = ["Tdnn"]


class Tdnn(nn.Module):
    """The time-delay network of icefall's yesno recipe, right under padding.

    Three convolutions without padding, (kernel 3), (kernel 5, dilation 2), (kernel 5, dilation 4), each followed by
    ReLU and batch normalisation without affine parameters, then a linear layer. The receptive field is 27 frames, so
    the output is 26 frames shorter than the input. Where the original differs: batch statistics are taken over valid
    frames only (there, padding with log(1e-10) shifts outputs by up to 1.75), and short utterances are named. Its
    checkpoints load strictly.

    Args:
        num_features: features of an input frame.
        output_dim: logits of an output frame.
        hidden_channels: the width of the convolutions.

    Raises:
        ValueError: a size below 1.

    References:
        Waibel et al. 1989; Peddinti, Povey and Khudanpur 2015, "A time delay neural network architecture for
        efficient modeling of long temporal contexts".

    Example:
        >>> import torch
        >>> from sonorant.nn import Tdnn
        >>> model = Tdnn(num_features=23, output_dim=4)
        >>> logits, lengths = model(torch.randn(2, 40, 23), torch.tensor([40, 30]))
        >>> logits.shape, lengths
        (torch.Size([2, 14, 4]), tensor([14,  4]))
    """

    def __init__(self, num_features: int, output_dim: int, hidden_channels: int = 32) -> None:
        super().__init__()
        for name, value in (
            ("num_features", num_features),
            ("output_dim", output_dim),
            ("hidden_channels", hidden_channels),
        ):
            if value < 1:
                raise ValueError(f"{name} must be at least 1; got {value}")
        self.num_features = num_features
        layers: list[nn.Module] = []
        in_channels = num_features
        for kernel_size, dilation in ((3, 1), (5, 2), (5, 4)):
            layers += [
                nn.Conv1d(in_channels, hidden_channels, kernel_size, dilation=dilation),
                nn.ReLU(),
                MaskedBatchNorm1d(hidden_channels, affine=False),
            ]
            in_channels = hidden_channels
        self.tdnn = nn.ModuleList(layers)
        self.output_linear = nn.Linear(hidden_channels, output_dim)

    @property
    def shrink(self) -> int:
        """How many frames shorter the output is than the input."""
        return sum(_shrink(layer) for layer in self.tdnn)

    def output_lengths(self, lengths: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        """Output frames of utterances of these lengths, 0 for those that are too short."""
        return (lengths - self.shrink).clamp(min=0)

    def forward(self, x: Float[Tensor, "batch time features"], x_lengths: Int[Tensor, " batch"]) -> Padded:
        """Compute the logits.

        Args:
            x: ``(batch, time, num_features)``.
            x_lengths: ``(batch,)``, frames; more than ``shrink``.

        Returns:
            ``Padded``: logits ``(batch, time - shrink, output_dim)``, 0 beyond the lengths, and
            ``x_lengths - shrink``.

        Raises:
            ValueError: the wrong number of features; lengths beyond ``x``; utterances too short, each named.
        """
        if x.dim() != 3 or x.shape[2] != self.num_features:
            raise ValueError(f"x must have shape (batch, time, {self.num_features}); got {tuple(x.shape)}")
        check_lengths(x_lengths, "x_lengths", batch_size=x.shape[0], max_length=x.shape[1], min_length=0)
        self._check_long_enough(x_lengths)
        # a NaN in padding would pass through a convolution's weight gradient as 0 * NaN
        x = _clear_padding(x, x_lengths).transpose(1, 2)
        lengths = x_lengths
        for layer in self.tdnn:
            if isinstance(layer, MaskedBatchNorm1d):
                x = layer(x, lengths)
            else:
                x = layer(x)
                lengths = (lengths - _shrink(layer)).clamp(min=0)
        logits = self.output_linear(x.transpose(1, 2))
        return Padded(_clear_padding(logits, lengths), lengths)

    def _check_long_enough(self, lengths: Tensor) -> None:
        if not values_are_checkable(lengths):
            return
        short = (lengths <= self.shrink).nonzero().flatten().tolist()
        if short:
            named = ", ".join(f"x_lengths[{index}] is {int(lengths[index])}" for index in short)
            raise ValueError(f"{named}; the network needs at least {self.shrink + 1} frames")


def _clear_padding(x: Tensor, lengths: Tensor) -> Tensor:
    if has_no_padding(lengths, x.shape[1]):
        return x
    return torch.where(sequence_mask(lengths, x.shape[1]).unsqueeze(2), x, 0.0)


def _shrink(layer: nn.Module) -> int:
    if not isinstance(layer, nn.Conv1d):
        return 0
    return layer.dilation[0] * (layer.kernel_size[0] - 1)
