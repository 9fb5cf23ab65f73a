"""Acoustic models as ONNX files, for onnxruntime and sherpa-onnx."""

import logging
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sonorant.durable import written_durably
from sonorant.lengths import Padded, sequence_mask
from sonorant.models import TdnnCtc

if TYPE_CHECKING:
    import onnx

__all__ = ["OPSET", "PADDING_VALUE", "OnnxTdnnCtc", "export_onnx", "write_onnx"]

PADDING_VALUE = math.log(1e-10)  # what sherpa-onnx fills the shorter utterances of a batch with
_LOUDEST_PADDING = -20.0  # Kaldi's filterbanks floor energies at 2 ** -23, so no frame of a recording is below -15.95
_IMPOSSIBLE = -100.0  # a log probability: exp(-100) is 0 in float32
OPSET = 18  # onnxruntime 1.14 and newer


class OnnxTdnnCtc(nn.Module):
    """:class:`sonorant.models.TdnnCtc` with one input, as sherpa-onnx calls it: padding is told from its value.

    A frame is padding where it and all later ones lie wholly below -20 (or are NaN), which no recording does: Kaldi's
    filterbanks are at least -15.95. Beyond an utterance's length the output is a certain blank, so that a decoder
    that knows of no lengths finds nothing there.

    Args:
        model: the acoustic model.
        blank: the id of the blank.

    Example:
        >>> import torch
        >>> from sonorant.export.onnx import PADDING_VALUE, OnnxTdnnCtc
        >>> from sonorant.models import TdnnCtc, TdnnCtcConfig
        >>> model = TdnnCtc(TdnnCtcConfig(), num_features=23, num_classes=4).eval()
        >>> x = torch.zeros(2, 50, 23)
        >>> x[1, 40:] = PADDING_VALUE
        >>> OnnxTdnnCtc(model)(x).lengths
        tensor([50, 40])
    """

    def __init__(self, model: TdnnCtc, blank: int = 0) -> None:
        super().__init__()
        self.model = model
        self.blank = blank

    def forward(self, x: Float[Tensor, "batch time features"]) -> Padded:
        """Compute log probabilities.

        Args:
            x: log energies ``(batch, time, num_features)``.

        Returns:
            ``Padded``: log probabilities ``(batch, frames, num_classes)``, a blank beyond the lengths; lengths
            of 0 where an utterance is too short.
        """
        is_sound = (x > _LOUDEST_PADDING).any(2)
        positions = torch.arange(1, x.shape[1] + 1, device=x.device)
        lengths = torch.where(is_sound, positions, 0).amax(1)
        log_probs, output_lengths = self.model(x, lengths)
        mask = sequence_mask(output_lengths, log_probs.shape[1]).unsqueeze(2)
        is_blank = torch.arange(log_probs.shape[2], device=x.device) == self.blank
        return Padded(torch.where(mask, log_probs, torch.where(is_blank, 0.0, _IMPOSSIBLE)), output_lengths)


def export_onnx(model: TdnnCtc, path: Path, metadata: Mapping[str, object], *, blank: int = 0) -> None:
    """Write an acoustic model as an ONNX file: input ``x``, outputs ``log_probs`` and ``log_probs_lengths``.

    Floor, network and log softmax are all inside; batch and time are dynamic. The lengths of the
    utterances are told from the padding, see :class:`OnnxTdnnCtc`.

    Args:
        model: the model.
        path: the file, which appears only when it is complete.
        metadata: written into the file, for whoever has nothing else.
        blank: the id of the blank.

    Raises:
        ValueError: the path is a folder.
    """
    shortest = model.min_frames
    write_onnx(
        OnnxTdnnCtc(model, blank).eval(),
        (torch.zeros(2, 2 * shortest, model.encoder.num_features),),
        path,
        metadata,
        input_names=["x"],
        output_names=["log_probs", "log_probs_lengths"],
        dynamic_shapes=({0: torch.export.Dim("batch"), 1: torch.export.Dim("time", min=shortest)},),
    )


def write_onnx(
    module: nn.Module,
    example: tuple[Any, ...],
    path: Path,
    metadata: Mapping[str, object],
    *,
    input_names: Sequence[str],
    output_names: Sequence[str],
    dynamic_shapes: tuple[Any, ...],
) -> None:
    """Write any module as an ONNX file, which appears only when it is complete.

    Args:
        module: in inference mode.
        example: its arguments, in sizes other than 1.
        path: the file.
        metadata: written into the file, for whoever has nothing else.
        input_names: of the arguments' tensors.
        output_names: of the outputs' tensors.
        dynamic_shapes: of the arguments, as :func:`torch.export.export` takes them.

    Raises:
        ValueError: the path is a folder.
    """
    import onnx

    if path.is_dir():
        raise ValueError(f"{path}: a folder; an ONNX model is a file")
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module,
            example,
            input_names=input_names,
            output_names=output_names,
            dynamic_shapes=dynamic_shapes,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    proto = program.model_proto
    _forget_origins(proto)
    for key, value in metadata.items():
        proto.metadata_props.add(key=key, value=str(value))
    onnx.checker.check_model(proto, full_check=True)
    with written_durably(path) as file:
        file.write(proto.SerializeToString())


def _forget_origins(proto: "onnx.ModelProto") -> None:
    """Take out the source lines and paths of this machine, which are most of a small file."""
    graph = proto.graph
    graph.ClearField("metadata_props")
    for part in (*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the exporter says about itself and about torchvision from the user."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
