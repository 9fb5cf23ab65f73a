"""Pronunciation models as ONNX files: one that reads words, and one that writes the next phone."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim

from sonorant.export.onnx import OPSET, write_onnx
from sonorant.models import G2pEnsemble
from sonorant.models.g2p import G2pState
from sonorant.nn import AttentionMemory

__all__ = ["DecoderStep", "Encoder", "export_g2p_onnx"]


class Encoder(nn.Module):
    """Words to the state before their first phone, all as single tensors.

    Args:
        model: the model or models.
    """

    def __init__(self, model: G2pEnsemble) -> None:
        super().__init__()
        self.model = model

    def forward(self, graphemes: Tensor, lengths: Tensor) -> list[Tensor]:
        """Read words.

        Args:
            graphemes: ids ``(batch, grapheme)``.
            lengths: ``(batch,)``.

        Returns:
            The tensors that :func:`state_names` and then :func:`memory_names` name.
        """
        states, memories = self.model.start(graphemes, lengths)
        return [tensor for part in (*states, *memories) for tensor in part]


class DecoderStep(nn.Module):
    """The next phone, from single tensors.

    Args:
        model: the model or models.
    """

    def __init__(self, model: G2pEnsemble) -> None:
        super().__init__()
        self.model = model

    def forward(self, phones: Tensor, tensors: list[Tensor]) -> list[Tensor]:
        """Take a step.

        Args:
            phones: ids ``(batch,)``, 0 at the beginning.
            tensors: as :class:`Encoder` gives them.

        Returns:
            Log probabilities ``(batch, phones)``, of which that of 0 is the end, and the next states.
        """
        count, size = len(self.model.members), len(G2pState._fields)
        states = [G2pState(*tensors[index * size : (index + 1) * size]) for index in range(count)]
        rest, size = tensors[count * size :], len(AttentionMemory._fields)
        memories = [AttentionMemory(*rest[index * size : (index + 1) * size]) for index in range(count)]
        output = self.model.step(phones, states, memories)
        return [output.log_probs, *(tensor for state in output.state for tensor in state)]


class _OnnxLstm(nn.Module):
    """A unidirectional LSTM as ONNX's operator: torch's own exports for sequences of one fixed length."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor

    def __init__(self, lstm: nn.LSTM) -> None:
        super().__init__()
        self.hidden_size = lstm.hidden_size
        # torch has the gates as input, forget, cell, output; ONNX as input, output, forget, cell
        order = torch.arange(4 * lstm.hidden_size).view(4, -1)[[0, 3, 1, 2]].flatten()
        weights = {name: weight.detach()[order] for name, weight in lstm.named_parameters()}
        self.register_buffer("weight_ih", weights["weight_ih_l0"].unsqueeze(0))
        self.register_buffer("weight_hh", weights["weight_hh_l0"].unsqueeze(0))
        self.register_buffer("bias", torch.cat([weights["bias_ih_l0"], weights["bias_hh_l0"]]).unsqueeze(0))

    def forward(
        self, values: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """As :class:`torch.nn.LSTM` with the batch first."""
        batch_size, length = values.shape[:2]
        hidden, cell = state or (None, None)
        output, hidden, cell = torch.onnx.ops.symbolic_multi_out(
            "LSTM",
            [values.transpose(0, 1), self.weight_ih, self.weight_hh, self.bias, None, hidden, cell],
            {"hidden_size": self.hidden_size},
            dtypes=[values.dtype] * 3,
            shapes=[(length, 1, batch_size, self.hidden_size), *[(1, batch_size, self.hidden_size)] * 2],
            version=OPSET,
        )
        return output.squeeze(1).transpose(0, 1), (hidden, cell)


def _with_onnx_lstms(model: G2pEnsemble) -> G2pEnsemble:
    """A copy of a model whose LSTMs are ONNX's."""
    model = copy.deepcopy(model).eval()
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.LSTM):
                setattr(module, name, _OnnxLstm(child))
    return model


class OnnxFiles(NamedTuple):
    """What :func:`export_g2p_onnx` writes."""

    encoder: Path
    decoder: Path


def onnx_files(path: Path) -> OnnxFiles:
    """The names of both files: ``g2p.onnx`` stands for ``g2p-encoder.onnx`` and ``g2p-decoder.onnx``."""
    return OnnxFiles(*(path.with_name(f"{path.stem}-{part}{path.suffix}") for part in OnnxFiles._fields))


def export_g2p_onnx(model: G2pEnsemble, path: Path, metadata: Mapping[str, object]) -> OnnxFiles:
    """Write encoder and decoder step as ONNX files; batch and number of graphemes are dynamic.

    What the encoder puts out is what the decoder takes, under the same names. Of the decoder's outputs, ``log_probs``
    are of the next phone, and each ``next_NAME`` is the input ``NAME`` of the next step.

    Args:
        model: the model or models.
        path: see :func:`onnx_files`.
        metadata: written into both files.
    """
    files, count = onnx_files(path), len(model.members)
    exported = _with_onnx_lstms(model)
    states = _names(G2pState._fields, count)
    memories = _names([f"memory_{field}" for field in AttentionMemory._fields], count)
    example = torch.ones(3, 5, dtype=torch.int64), torch.tensor([5, 2, 4])
    batch, time = Dim("batch"), Dim("time")
    write_onnx(
        Encoder(exported),
        example,
        files.encoder,
        metadata,
        input_names=["graphemes", "lengths"],
        output_names=[*states, *memories],
        dynamic_shapes=({0: batch, 1: time}, {0: batch}),
    )
    with torch.no_grad():
        # copies, since inputs that are one tensor in the example are taken for one input
        tensors = [tensor.clone() for tensor in Encoder(model.eval())(*example)]
    has_time = {"attention": 2, "memory_values": 1, "memory_keys": 1}
    shapes = [
        {0: batch} | ({has_time[field]: time} if (field := name.rstrip("0123456789")) in has_time else {})
        for name in [*states, *memories]
    ]
    write_onnx(
        DecoderStep(exported),
        (torch.zeros(3, dtype=torch.int64), tensors),
        files.decoder,
        metadata,
        input_names=["phones", *states, *memories],
        output_names=["log_probs", *(f"next_{name}" for name in states)],
        dynamic_shapes=({0: batch}, shapes),
    )
    return files


def _names(fields: list[str] | tuple[str, ...], count: int) -> list[str]:
    """Of the tensors of all members; with one member without numbers."""
    if count == 1:
        return list(fields)
    return [f"{field}{number}" for number in range(1, count + 1) for field in fields]
