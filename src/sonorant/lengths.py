"""Padded batches and their lengths: the one convention that everything in the package shares.

Lengths are int64 tensors of shape ``(batch,)`` holding absolute counts. Masks are bool, True = valid, and are
made here and nowhere else.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = [
    "Padded",
    "check_lengths",
    "has_no_padding",
    "pad_sequences",
    "ratio_lengths",
    "sequence_mask",
    "values_are_checkable",
]

_INTEGER_DTYPES = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


class Padded(NamedTuple):
    """A padded batch: ``values`` of shape ``(batch, time, ...)`` and their ``lengths``, int64 ``(batch,)``."""

    values: Tensor
    lengths: Tensor


def sequence_mask(lengths: Int[Tensor, " batch"], max_length: int | None = None) -> Bool[Tensor, "batch time"]:
    """Mark the valid positions of each sequence.

    Args:
        lengths: ``(batch,)``, absolute counts.
        max_length: the number of columns; the longest length if None (which synchronises with a GPU: pass the
            size of the tensor that is masked).

    Returns:
        bool ``(batch, max_length)``, True where ``position < length``.

    Raises:
        ValueError: lengths that are not integers, negative, or beyond ``max_length``.

    Example:
        >>> import torch
        >>> from sonorant import sequence_mask
        >>> sequence_mask(torch.tensor([1, 3]))
        tensor([[ True, False, False],
                [ True,  True,  True]])
    """
    if max_length is None:
        check_lengths(lengths, "lengths", min_length=0)
        max_length = int(lengths.max()) if lengths.numel() else 0
    else:
        check_lengths(lengths, "lengths", max_length=max_length, min_length=0)
    positions = torch.arange(max_length, device=lengths.device)
    return positions.unsqueeze(0) < lengths.unsqueeze(1)


def pad_sequences(sequences: Sequence[Tensor], padding_value: float = 0.0) -> Padded:
    """Put sequences of different lengths into one batch.

    Args:
        sequences: tensors of shape ``(time_i, ...)`` that agree in all but the first size.
        padding_value: what fills the rest.

    Returns:
        ``Padded``: values ``(batch, max time, ...)`` and lengths ``(batch,)`` on the same device.

    Raises:
        ValueError: no sequence at all, or trailing shapes that differ.

    Example:
        >>> import torch
        >>> from sonorant import pad_sequences
        >>> pad_sequences([torch.tensor([5]), torch.tensor([1, 2])])
        Padded(values=tensor([[5, 0],
                [1, 2]]), lengths=tensor([1, 2]))
    """
    if not sequences:
        raise ValueError("sequences: nothing to pad")
    for index, sequence in enumerate(sequences):
        if sequence.dim() == 0 or sequence.shape[1:] != sequences[0].shape[1:]:
            raise ValueError(
                f"sequences[{index}] has shape {tuple(sequence.shape)}; "
                f"expected (time, *{tuple(sequences[0].shape[1:])})"
            )
    values = torch.nn.utils.rnn.pad_sequence(list(sequences), batch_first=True, padding_value=padding_value)
    lengths = torch.tensor([len(sequence) for sequence in sequences], device=values.device)
    return Padded(values, lengths)


def ratio_lengths(length_ratios: Float[Tensor, " batch"], size: int) -> Int[Tensor, " batch"]:
    r"""Turn ratios of a time axis into absolute lengths.

    .. math:: n = \lceil r \cdot T - 2^{-22} T \rceil, \quad 1 \le n \le T

    The tolerance is there because a ratio such as 3 / 7 in float32, times 7, lands just above 3 one time in twenty.

    Args:
        length_ratios: ``(batch,)``, floats in (0, 1]: what part of the axis is valid.
        size: the size ``T`` of the axis.

    Returns:
        int64 ``(batch,)``.

    Raises:
        ValueError: ratios that are not floats of shape ``(batch,)`` (always) or outside (0, 1] (on CPU, outside
            compilation).

    Example:
        >>> import torch
        >>> from sonorant.lengths import ratio_lengths
        >>> ratio_lengths(torch.tensor([1.0, 0.5, 0.3]), 5)
        tensor([5, 3, 2])
    """
    if not length_ratios.is_floating_point():
        raise ValueError(f"length_ratios must be floats in (0, 1]; got {length_ratios.dtype}")
    if length_ratios.dim() != 1:
        raise ValueError(f"length_ratios must have shape (batch,); got {tuple(length_ratios.shape)}")
    if values_are_checkable(length_ratios) and length_ratios.numel():
        smallest, largest = length_ratios.aminmax()  # NaN where there is one
        if not (smallest > 0 and largest <= 1):
            wrong = ~((length_ratios > 0) & (length_ratios <= 1))
            index = int(wrong.nonzero()[0])
            raise ValueError(f"length_ratios[{index}] is {float(length_ratios[index])}; it must be in (0, 1]")
    ratios = length_ratios.detach()
    if ratios.dtype in (torch.float16, torch.bfloat16):
        ratios = ratios.float()
    return (ratios * size - size * 2**-22).ceil().long().clamp(1, size)


def values_are_checkable(tensor: Tensor) -> bool:
    """Whether a tensor's values may be read for a check: on the CPU, outside compilation, tracing and export.

    Elsewhere a look at the values would synchronise with the device, break the graph or become part of it.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return False
    return tensor.device.type == "cpu"


def has_no_padding(lengths: Tensor, max_length: int) -> bool:
    """Whether every sequence is known to fill its row; False where the values may not be read.

    Args:
        lengths: ``(batch,)``.
        max_length: the size of the time axis.
    """
    return values_are_checkable(lengths) and lengths.numel() > 0 and int(lengths.min()) == max_length


def check_lengths(
    lengths: Tensor,
    name: str,
    *,
    batch_size: int | None = None,
    max_length: int | None = None,
    min_length: int = 1,
) -> None:
    """Refuse lengths that cannot be right, naming the argument, the utterance and the value.

    Args:
        lengths: what is checked; expected integer ``(batch,)``.
        name: the argument's name, for the message.
        batch_size: the batch size of the tensor that the lengths belong to.
        max_length: the size of that tensor's time axis.
        min_length: the smallest length allowed.

    Raises:
        ValueError: wrong dtype or shape (always); a value out of range (on CPU, outside compilation).
    """
    if lengths.dtype not in _INTEGER_DTYPES:
        raise ValueError(f"{name} must be integers (absolute counts, not relative lengths); got {lengths.dtype}")
    if lengths.dim() != 1 or (batch_size is not None and lengths.shape[0] != batch_size):
        expected = "(batch,)" if batch_size is None else f"({batch_size},)"
        raise ValueError(f"{name} must have shape {expected}; got {tuple(lengths.shape)}")
    if not values_are_checkable(lengths) or lengths.numel() == 0:
        return
    smallest, largest = lengths.aminmax()
    if int(smallest) < min_length:
        index = int(lengths.argmin())
        raise ValueError(f"{name}[{index}] is {int(smallest)}; the smallest length allowed is {min_length}")
    if max_length is not None and int(largest) > max_length:
        index = int(lengths.argmax())
        raise ValueError(f"{name}[{index}] is {int(largest)}, but the tensor holds only {max_length} positions")
