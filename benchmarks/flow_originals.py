"""The flow decoder in the form in common use, with the weights of one of ours.

Written from the mathematics, as the public code of RAD-TTS and WaveGlow goes about it: everything is
``(batch, channels, time)``, frames are grouped with ``nn.Unfold``, the context is sorted by length and packed for
cuDNN's kind of bidirectional LSTM, all convolutions are weight-normed ``Conv1d``, each layer has a convolution of its
own for the context and one for residual and skip together, masks are stored as floats and multiplied in before every
convolution, the skips are summed up layer by layer, triangular factors are masked and put together with a stored
permutation matrix, the map is applied as a convolution of one tap, log scales are masked and summed flow by flow.
The determinant of the linear maps is that of their diagonal, as in RAD-TTS; WaveGlow's torch.logdet would cost more.
The first coupling, which keeps no channel, has no place in the originals; it is written here as they would write it.
It has no loop over utterances, since the originals' decoders have none. Gradients with respect to a weight-normed
convolution belong to its direction and length, so that only those of everything else can be compared.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.originals import mask_of
from sonorant.models import FlowDecoder
from sonorant.nn import AffineCoupling, InvertibleLinear, WaveNet
from sonorant.nn.recurrent import BiLstm


def convolution(weight: Tensor, bias: Tensor | None, normed: bool, dilation: int = 1) -> nn.Module:
    """``weight`` is (out, in, taps)."""
    out, channels, taps = weight.shape
    padding = dilation * (taps // 2)
    layer = nn.Conv1d(channels, out, taps, dilation=dilation, padding=padding, bias=bias is not None)
    layer.weight.data.copy_(weight)
    if bias is not None:
        assert layer.bias is not None
        layer.bias.data.copy_(bias)
    return weight_norm(layer) if normed else layer


class CommonWaveNet(nn.Module):
    def __init__(self, ours: WaveNet, normed: bool) -> None:
        super().__init__()
        hidden, out = ours.start.out_features, ours.end.out_features
        self.hidden, self.out = hidden, out
        self.hears_context_alone = ours.in_channels == 0
        self.start = convolution(ours.start.weight.unsqueeze(2), ours.start.bias, normed)
        self.inputs, self.conditions, self.outputs = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for index, (layer, context) in enumerate(zip(ours.convolutions, ours.contexts, strict=True)):
            self.inputs.append(convolution(layer.weight.transpose(1, 2), None, normed, layer.dilation))
            self.conditions.append(convolution(context.weight.unsqueeze(2), context.bias, normed))
            skip, bias = ours.end.weight[:, hidden * index : hidden * (index + 1)], torch.zeros(out)
            if index < len(ours.residuals):
                residual = ours.residuals[index]
                skip, bias = torch.cat([residual.weight, skip]), torch.cat([residual.bias, bias])
            self.outputs.append(convolution(skip.unsqueeze(2), bias, normed))
        self.bias = nn.Parameter(ours.end.bias.detach().clone())

    def forward(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        x = self.start(context if self.hears_context_alone else x)
        output = torch.zeros(x.shape[0], self.out, x.shape[2]) + self.bias.view(1, -1, 1)
        for inputs, condition, outputs in zip(self.inputs, self.conditions, self.outputs, strict=True):
            total = inputs(x * mask) + condition(context)
            gates = torch.tanh(total[:, : self.hidden]) * torch.sigmoid(total[:, self.hidden :])
            both = outputs(gates)
            if both.shape[1] > self.out:
                x = x + both[:, : self.hidden]
            output = output + both[:, -self.out :]
        return output * mask


class CommonCoupling(nn.Module):
    def __init__(self, ours: AffineCoupling, normed: bool) -> None:
        super().__init__()
        self.num_kept = ours.num_kept
        self.wavenet = CommonWaveNet(ours.wavenet, normed)

    def forward(self, z: Tensor, context: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        z_0, z_1 = z[:, : self.num_kept], z[:, self.num_kept :]
        parameters = self.wavenet(z_0, context, mask)
        unbounded, shift = parameters[:, : z_1.shape[1]], parameters[:, z_1.shape[1] :]
        scale = torch.tanh(unbounded) + 1 + 1e-6
        return torch.cat([z_0, scale * z_1 + shift], 1), torch.log(scale)


class CommonLinear(nn.Module):
    def __init__(self, ours: InvertibleLinear) -> None:
        super().__init__()
        size = ours.channels
        self.triangles, self.log_diagonal = ours.triangles, ours.log_diagonal  # the same, so that gradients are
        self.register_buffer("permutation", torch.eye(size)[ours.permutation])
        self.register_buffer("signs", ours.signs.clone())
        self.register_buffer("lower_mask", torch.ones(size, size).tril(-1))
        self.register_buffer("identity", torch.eye(size))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        lower = self.triangles * self.lower_mask + self.identity
        diagonal = self.signs * self.log_diagonal.exp()
        upper = self.triangles * self.lower_mask.T + torch.diag(diagonal)
        weight = self.permutation @ (lower @ upper)
        return F.conv1d(z, weight.T.unsqueeze(2)), torch.sum(torch.log(torch.abs(diagonal)))


class CommonFlow(nn.Module):
    """See above.

    Args:
        ours: whose weights it has.
        normed: with weight normalisation.
    """

    def __init__(self, ours: FlowDecoder, normed: bool = True) -> None:
        super().__init__()
        self.group_size = ours.config.group_size
        widths = ours.config.channels(ours.n_mels * self.group_size)
        self.leaving = [0, *(before - after for before, after in pairwise(widths))]
        self.unfold = nn.Unfold(kernel_size=(self.group_size, 1), stride=self.group_size)
        self.lstm = _lstm(ours.encoder)
        self.register_buffer("mean", ours.whitening.mean.clone())
        self.register_buffer("whitening", ours.whitening.weight.clone())
        self.linears = nn.ModuleList(CommonLinear(linear) for linear in ours.linears)
        self.couplings = nn.ModuleList(CommonCoupling(coupling, normed) for coupling in ours.couplings)

    def forward(self, mel: Tensor, lengths: Tensor, context: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """The arguments are (batch, channels, time), and so are the tensors returned."""
        lengths = lengths // self.group_size
        z, context = self._grouped(mel), self._encoded(self._grouped(context), lengths)
        mask = mask_of(lengths, z.shape[2]).unsqueeze(1)
        done, log_scales, log_dets = [], [], []
        for index, (leaving, coupling) in enumerate(zip(self.leaving, self.couplings, strict=True)):
            if leaving:
                done.append(z[:, :leaving])
                z = z[:, leaving:]
            if index == 0:
                z = F.conv1d(z - self.mean.view(1, -1, 1), self.whitening.T.unsqueeze(2))
                log_det = torch.slogdet(self.whitening)[1]
            else:
                z, log_det = self.linears[index - 1](z)
            z, log_scale = coupling(z, context, mask)
            log_scales.append(log_scale)
            log_dets.append(log_det)
        return torch.cat([*done, z], 1), log_scales, log_dets

    def _grouped(self, x: Tensor) -> Tensor:
        """Unfold gives channel by channel the frames of a group, ours frame by frame its channels."""
        grouped = self.unfold(x.unsqueeze(3))
        channels = x.shape[1]
        return grouped.view(len(x), channels, self.group_size, -1).transpose(1, 2).flatten(1, 2)

    def _encoded(self, context: Tensor, lengths: Tensor) -> Tensor:
        order = lengths.argsort(descending=True)
        packed = pack_padded_sequence(context[order].transpose(1, 2), lengths[order].cpu(), batch_first=True)
        output = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=context.shape[2])[0]
        return output[order.argsort()].transpose(1, 2)


def common_nll(z: Tensor, log_scales: list[Tensor], log_dets: list[Tensor], lengths: Tensor) -> Tensor:
    """The loss over (batch, channels, time), flow by flow; lengths of grouped frames."""
    mask, num_frames = mask_of(lengths, z.shape[2]).unsqueeze(1), lengths.sum()
    total_scale = total_det = torch.zeros(())
    for log_scale, log_det in zip(log_scales, log_dets, strict=True):
        total_scale = total_scale + torch.sum(log_scale * mask)
        total_det = total_det + log_det * num_frames
    return (torch.sum((z * mask) ** 2) / 2 - total_scale - total_det) / (num_frames * z.shape[1])


def _lstm(ours: BiLstm) -> nn.LSTM:
    first = ours.forwards[0]
    lstm = nn.LSTM(first.input_size, first.hidden_size, batch_first=True, bidirectional=True)
    for source, suffix in ((first, ""), (ours.backwards[0], "_reverse")):
        for name, weight in source.named_parameters():
            getattr(lstm, f"{name}{suffix}").data.copy_(weight)
    return lstm
