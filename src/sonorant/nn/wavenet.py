"""WaveNet: gated convolutions that see ever further, conditioned on what goes along with each frame."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["WaveNet"]


class WaveNet(nn.Module):
    r"""Gated dilated convolutions with residual connections; each layer hears the context.

    .. math:: h_0 = W_0 x, \quad
              g_l = \tanh(V_l * h_l + C_l c) \odot \sigma(V'_l * h_l + C'_l c), \quad
              h_{l+1} = h_l + R_l g_l, \quad y = \sum_l S_l g_l

    The convolutions have dilations 1, 2, 4, ... They see zeros beyond the ends of an utterance, before every layer:
    padding changes nothing. It departs from WaveGlow's form in that skip connections lead straight to the output
    (there, into as many hidden channels and through one more linear map, without anything in between), that one linear
    map takes the context to all layers, and that weights are not normalised. The output begins as zero.

    Args:
        in_channels: features of a frame; 0 listens to the context alone.
        out_channels: of the output.
        context_dim: features of a frame of the context.
        hidden_channels: between the layers.
        num_layers: at least 1; the last one has dilation ``2 ** (num_layers - 1)``.
        kernel_size: taps of the convolutions, an odd number.

    Raises:
        ValueError: a size below 1 (below 0 for ``in_channels``), an even number of taps.

    References:
        van den Oord et al. 2016, arXiv 1609.03499; Prenger, Valle and Catanzaro 2018, "WaveGlow", arXiv 1811.00002.

    Example:
        >>> import torch
        >>> from sonorant.nn import WaveNet
        >>> model = WaveNet(4, 6, context_dim=3, hidden_channels=8, num_layers=2)
        >>> model(torch.randn(2, 9, 4), torch.randn(2, 9, 3), torch.tensor([9, 5])).shape
        torch.Size([2, 9, 6])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        context_dim: int,
        hidden_channels: int,
        num_layers: int,
        kernel_size: int = 3,
    ) -> None:
        super().__init__()
        for name, value, least in (
            ("in_channels", in_channels, 0),
            ("out_channels", out_channels, 1),
            ("context_dim", context_dim, 1),
            ("hidden_channels", hidden_channels, 1),
            ("num_layers", num_layers, 1),
        ):
            if value < least:
                raise ValueError(f"{name} must be at least {least}; got {value}")
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be an odd number; got {kernel_size}")
        self.hidden_channels = hidden_channels
        self.start = nn.Linear(in_channels, hidden_channels)
        self.context = nn.Linear(context_dim, 2 * hidden_channels * num_layers)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(hidden_channels, 2 * hidden_channels, kernel_size, padding="same", dilation=2**layer, bias=False)
            for layer in range(num_layers)
        )
        self.residuals = nn.ModuleList(nn.Linear(hidden_channels, hidden_channels) for _ in range(num_layers - 1))
        self.end = nn.Linear(hidden_channels * num_layers, out_channels)
        nn.init.zeros_(self.end.weight)
        nn.init.zeros_(self.end.bias)

    def forward(
        self,
        x: Float[Tensor, "batch time in_channels"],
        context: Float[Tensor, "batch time context"],
        lengths: Int[Tensor, " batch"],
    ) -> Float[Tensor, "batch time out_channels"]:
        """Run all layers.

        Args:
            x: ``(batch, time, in_channels)``.
            context: ``(batch, time, context_dim)``.
            lengths: ``(batch,)``, frames.

        Returns:
            ``(batch, time, out_channels)``, 0 beyond the lengths.

        Raises:
            ValueError: lengths that do not fit.
        """
        check_lengths(lengths, "lengths", batch_size=x.shape[0], max_length=x.shape[1])
        mask = sequence_mask(lengths, x.shape[1]).unsqueeze(2)
        hidden = self.start(torch.where(mask, x, 0.0))
        conditions = self.context(torch.where(mask, context, 0.0)).split(2 * self.hidden_channels, 2)
        gates = []
        for layer, (convolution, condition) in enumerate(zip(self.convolutions, conditions, strict=True)):
            seen = convolution(torch.where(mask, hidden, 0.0).transpose(1, 2)).transpose(1, 2)
            content, gate = (seen + condition).chunk(2, 2)
            gates.append(content.tanh() * gate.sigmoid())
            if layer < len(self.residuals):
                hidden = hidden + self.residuals[layer](gates[-1])
        return torch.where(mask, self.end(torch.cat(gates, 2)), 0.0)
