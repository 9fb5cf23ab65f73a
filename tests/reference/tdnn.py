"""The TDNN run on the valid frames of one utterance at a time."""

import torch
from torch import Tensor
from torch.nn import functional as F

from sonorant.nn import Tdnn


def tdnn_by_utterance(model: Tdnn, x: Tensor, x_lengths: Tensor) -> tuple[Tensor, Tensor]:
    rows = [row[: int(n)].T for row, n in zip(x, x_lengths, strict=True)]
    for conv, norm in ((model.tdnn[0], model.tdnn[2]), (model.tdnn[3], model.tdnn[5]), (model.tdnn[6], model.tdnn[8])):
        rows = [F.relu(F.conv1d(row, conv.weight, conv.bias, dilation=conv.dilation)) for row in rows]
        frames = torch.cat(rows, 1).unsqueeze(0)
        frames = F.batch_norm(
            frames, norm.running_mean.clone(), norm.running_var.clone(), training=model.training, eps=norm.eps
        ).squeeze(0)
        rows = list(frames.split([row.shape[1] for row in rows], 1))
    logits = [model.output_linear(row.T) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(logits, batch_first=True), x_lengths - 26
