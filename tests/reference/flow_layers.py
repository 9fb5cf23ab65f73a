"""Layers of flows: dense matrices and their determinants, networks an utterance and a tap at a time."""

import torch
from torch import Tensor

from sonorant.nn import AffineCoupling, InvertibleLinear, WaveNet, Whitening


def invertible_linear_by_frame(model: InvertibleLinear, x: Tensor) -> tuple[Tensor, Tensor]:
    size = len(model.permutation)
    permutation = torch.zeros(size, size, dtype=x.dtype)
    lower, upper = torch.eye(size, dtype=x.dtype), torch.zeros(size, size, dtype=x.dtype)
    for row in range(size):
        permutation[row, model.permutation[row]] = 1
        lower[row, :row] = model.triangles[row, :row].detach()
        upper[row, row + 1 :] = model.triangles[row, row + 1 :].detach()
        upper[row, row] = model.signs[row] * model.log_diagonal[row].detach().exp()
    weight = permutation @ lower @ upper
    return torch.stack([torch.stack([frame @ weight for frame in row]) for row in x]), weight.det().abs().log()


def whitening_by_frame(model: Whitening, x: Tensor) -> tuple[Tensor, Tensor]:
    # the covariance that belongs to the weight, and what is left of each channel after the ones before it
    covariance = (model.weight @ model.weight.T).inverse()
    frames = []
    for frame in x.flatten(0, 1):
        centred, values = frame - model.mean, []
        for channel in range(len(centred)):
            known = covariance[:channel, :channel]
            weights = covariance[channel, :channel] @ known.inverse()
            variance = covariance[channel, channel] - weights @ covariance[:channel, channel]
            values.append((centred[channel] - weights @ centred[:channel]) / variance.sqrt())
        frames.append(torch.stack(values))
    return torch.stack(frames).view(x.shape), -0.5 * covariance.det().log()


def wavenet_by_utterance(model: WaveNet, x: Tensor, context: Tensor, lengths: Tensor) -> Tensor:
    rows = [
        _wavenet(model, frames[:length], its_context[:length])
        for frames, its_context, length in zip(x, context, lengths.tolist(), strict=True)
    ]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def affine_coupling_by_utterance(
    model: AffineCoupling, x: Tensor, context: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    outputs, log_scales = [], []
    for frames, its_context, length in zip(x, context, lengths.tolist(), strict=True):
        kept, changed = frames[:length, : model.num_kept], frames[:length, model.num_kept :]
        network = _wavenet(model.wavenet, kept, its_context[:length])
        scale = network[:, : changed.shape[1]].tanh() + 1 + 1e-6
        outputs.append(torch.cat([kept, scale * changed + network[:, changed.shape[1] :]], 1))
        log_scales.append(scale.log())
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(outputs, batch_first=True), pad(log_scales, batch_first=True)


def _wavenet(model: WaveNet, x: Tensor, context: Tensor) -> Tensor:
    """Of one utterance, ``(time, channels)``."""
    num_frames, hidden_channels = len(x), model.start.out_features
    hidden, output = model.start(x if x.shape[1] else context), model.end.bias.expand(num_frames, -1)
    for layer, (convolution, of_context) in enumerate(zip(model.convolutions, model.contexts, strict=True)):
        num_taps, frames = convolution.weight.shape[1], []
        for frame in range(num_frames):
            total = of_context(context[frame])
            for tap in range(num_taps):
                seen = frame + (tap - num_taps // 2) * 2**layer
                if 0 <= seen < num_frames:
                    total = total + convolution.weight[:, tap] @ hidden[seen]
            frames.append(total[:hidden_channels].tanh() * total[hidden_channels:].sigmoid())
        gates = torch.stack(frames)
        output = output + gates @ model.end.weight[:, hidden_channels * layer : hidden_channels * (layer + 1)].T
        if layer < len(model.residuals):
            hidden = hidden + model.residuals[layer](gates)
    return output
