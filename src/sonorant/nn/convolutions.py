"""Stacks of convolutions over padded batches."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sonorant.lengths import sequence_mask

__all__ = ["MaskedConvolutions"]


class MaskedConvolutions(nn.Module):
    """Convolutions over ``(batch, time, channels)``, each with layer normalisation, ReLU and dropout.

    Each frame is normalised by itself, and padding is 0 before every convolution: neither padding nor what else is in
    the batch changes anything. Dropout takes whole channels of an utterance away.

    Args:
        channels: of input and output.
        kernel_size: taps, an odd number.
        num_layers: at least 1.

    Example:
        >>> import torch
        >>> from sonorant.nn.convolutions import MaskedConvolutions
        >>> MaskedConvolutions(4, kernel_size=3, num_layers=2)(torch.randn(2, 5, 4), torch.tensor([5, 3])).shape
        torch.Size([2, 5, 4])
    """

    def __init__(self, channels: int, *, kernel_size: int, num_layers: int) -> None:
        super().__init__()
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be an odd number; got {kernel_size}")
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1; got {num_layers}")
        self.convolutions = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel_size, padding=kernel_size // 2) for _ in range(num_layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(num_layers))

    def forward(
        self,
        x: Float[Tensor, "batch time channels"],
        lengths: Int[Tensor, " batch"],
        masks: Sequence[Tensor] | None = None,
    ) -> Float[Tensor, "batch time channels"]:
        """Run all layers.

        Args:
            x: ``(batch, time, channels)``.
            lengths: ``(batch,)``.
            masks: what the output of each layer is multiplied with, as dropout does: one for each layer,
                ``(batch, 1, channels)``; None multiplies with nothing.

        Returns:
            ``(batch, time, channels)``, 0 beyond the lengths.
        """
        valid = sequence_mask(lengths, x.shape[1]).unsqueeze(2)
        for index, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            x = convolution(torch.where(valid, x, 0.0).transpose(1, 2)).transpose(1, 2)
            x = norm(x).relu()
            if masks is not None:
                x = x * masks[index].to(x.dtype)
        return torch.where(valid, x, 0.0)
