"""WaveNet: gated convolutions that see ever further, conditioned on what goes along with each frame."""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["WaveNet"]


class WaveNet(nn.Module):
    r"""Gated dilated convolutions with residual connections; each layer hears the context.

    .. math:: h_0 = W_0 x, \quad
              g_l = \tanh(V_l * h_l + C_l c) \odot \sigma(V'_l * h_l + C'_l c), \quad
              h_{l+1} = h_l + R_l g_l, \quad y = \sum_l S_l g_l

    Without an input :math:`h_0` is made of the context. The convolutions have dilations 1, 2, 4, ... They see zeros
    beyond the ends of an utterance, before every layer: padding changes nothing. It departs from WaveGlow's form in
    that skip connections lead straight to the output (there, into as many hidden channels and through one more linear
    map, without anything in between), and that weights are not normalised. The output begins as zero.

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
        layers = range(num_layers)
        self.in_channels = in_channels
        self.start = nn.Linear(in_channels or context_dim, hidden_channels)
        # one for each layer: on CPUs faster than one for all, whose output and gradient are cut up and put together
        self.contexts = nn.ModuleList(nn.Linear(context_dim, 2 * hidden_channels) for _ in layers)
        self.convolutions = nn.ModuleList(
            _Convolution(hidden_channels, 2 * hidden_channels, kernel_size, 2**layer) for layer in layers
        )
        self.residuals = nn.ModuleList(nn.Linear(hidden_channels, hidden_channels) for _ in layers[1:])
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
        return self.run(torch.where(mask, x, 0.0), torch.where(mask, context, 0.0), mask)

    def run(
        self,
        x: Float[Tensor, "batch time in_channels"],
        context: Float[Tensor, "batch time context"],
        mask: Bool[Tensor, "batch time 1"],
    ) -> Float[Tensor, "batch time out_channels"]:
        """What :meth:`forward` does, for padding that is finite: for layers made of this one.

        Args:
            x: ``(batch, time, in_channels)``.
            context: ``(batch, time, context_dim)``.
            mask: ``(batch, time, 1)``, True in valid frames.

        Returns:
            ``(batch, time, out_channels)``, 0 beyond the lengths.
        """
        hidden = self.start(x if self.in_channels else context)
        ones = mask.to(hidden.dtype)  # to multiply takes a tenth of the time of `where`
        gates: list[Tensor] = []
        for layer, (convolution, condition) in enumerate(zip(self.convolutions, self.contexts, strict=True)):
            if layer > 0:
                hidden = hidden + self.residuals[layer - 1](gates[-1])
            gates.append(_Gate.apply(convolution(hidden * ones) + condition(context)))  # type: ignore[no-untyped-call]
        output: Tensor = self.end(torch.cat(gates, 2)) * ones
        return output


class _Convolution(nn.Module):
    """A dilated convolution over ``(batch, time, channels)``, as long as its input.

    The weight is ``(out_channels, taps, in_channels)``: input, weight and output lie in memory as the fast kernels of
    a CPU want them. The bias is that of the context.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.padding = dilation * (kernel_size // 2)
        bound = 1 / math.sqrt(in_channels * kernel_size)  # torch's own
        self.weight = nn.Parameter(torch.empty(out_channels, kernel_size, in_channels).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        output = F.conv2d(
            x.unsqueeze(1).permute(0, 3, 1, 2),
            self.weight.unsqueeze(1).permute(0, 3, 1, 2),
            padding=(0, self.padding),
            dilation=(1, self.dilation),
        )
        return output.permute(0, 2, 3, 1).squeeze(1)


class _Gate(torch.autograd.Function):
    """``tanh(a) * sigmoid(b)`` of the two halves, in float32 for half precision; its gradient in one tensor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        content, gate = x.to(compute_dtype(x)).chunk(2, -1)
        content, gate = content.tanh(), gate.sigmoid()
        ctx.save_for_backward(content, gate)
        return (content * gate).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        content, gate = ctx.saved_tensors
        of_content = grad * gate
        of_gate = of_content * content
        gradients = (
            torch.addcmul(of_content, of_gate, content, value=-1),
            torch.addcmul(of_gate, of_gate, gate, value=-1),
        )
        return torch.cat(gradients, -1).to(grad.dtype)
