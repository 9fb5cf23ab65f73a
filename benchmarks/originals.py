"""The operations in the forms in common use: loops over the batch, stored masks, targets and weights.

Written from the mathematics, with this library's arguments. Further ones are in tests/reference.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from tests.reference.classification import linear_label_smoothing_by_logits
from tests.reference.normalization import batch_norm_by_frames
from tests.reference.spectral import stft_loss_by_utterance
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.inputs import RESOLUTIONS
from sonorant.nn import LocationAttention, Tdnn

Maps = list[list[Tensor]]


def mask_of(lengths: Tensor, size: int) -> Tensor:
    """1 inside, 0 outside, as floats: the originals multiply with it."""
    return (torch.arange(size) < lengths.unsqueeze(1)).float()


def forward_sum_by_index(log_attention: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    """A loop over ``padded[b]``, whose gradient has the size of the batch each time."""
    padded, losses = F.pad(log_attention, (1, 0), value=-1.0), []
    for b, (frames, tokens) in enumerate(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True)):
        log_probs = padded[b, :frames, : tokens + 1].log_softmax(1).unsqueeze(1)
        targets = torch.arange(1, tokens + 1).unsqueeze(0)
        losses.append(F.ctc_loss(log_probs, targets, query_lengths[b : b + 1], key_lengths[b : b + 1]))
    return torch.stack(losses).mean()


def forward_sum_by_torch(log_attention: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    """The whole batch in one call of torch's CTC."""
    num_keys = log_attention.shape[2]
    outside = torch.arange(num_keys) >= key_lengths.view(-1, 1, 1)
    scores = F.pad(log_attention.masked_fill(outside, -1e4), (1, 0), value=-1.0)
    log_probs = scores.log_softmax(2).transpose(0, 1)
    targets = torch.arange(1, num_keys + 1).expand(len(scores), -1)
    return F.ctc_loss(log_probs, targets, query_lengths, key_lengths, zero_infinity=True)


def ctc_by_torch(logits: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
    log_probs = logits.log_softmax(2).transpose(0, 1)
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, zero_infinity=True)


@cache
def _compiled_search() -> Any:
    import numba
    import numpy as np

    @numba.njit
    def search(scores: Any) -> Any:
        frames, tokens = scores.shape
        best = scores.copy()
        advanced = np.zeros((frames, tokens), np.int64)
        best[0, 1:] = -np.inf
        for q in range(1, frames):
            for k in range(tokens):
                before = best[q - 1, k]
                if k > 0 and best[q - 1, k - 1] >= before:
                    before = best[q - 1, k - 1]
                    advanced[q, k] = 1
                best[q, k] += before
        path = np.zeros((frames, tokens), scores.dtype)
        k = tokens - 1
        for q in range(frames - 1, -1, -1):
            path[q, k] = 1
            k -= advanced[q, k]
        return path

    return search


def search_by_utterance(log_attention: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    """A loop over the batch, each utterance by a compiled dynamic program."""
    scores, paths = log_attention.numpy(), torch.zeros_like(log_attention)
    for b, (frames, tokens) in enumerate(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True)):
        paths[b, :frames, :tokens] = torch.from_numpy(_compiled_search()(scores[b, :frames, :tokens]))
    return paths


def search_by_package(scores: Tensor, mask: Tensor) -> Tensor:
    from monotonic_alignment_search import maximum_path

    return maximum_path(scores, mask).transpose(1, 2)


def durations_by_utterance(**inputs: Tensor) -> Tensor:
    return search_by_utterance(**inputs).sum(1).long()


def durations_by_package(**inputs: Tensor) -> Tensor:
    return search_by_package(**inputs).sum(1).long()


def search_inputs_of_package(inputs: dict[str, Any]) -> dict[str, Any]:
    """Keys before queries, and a mask."""
    scores = inputs["log_attention"].transpose(1, 2).contiguous()
    keys, queries = mask_of(inputs["key_lengths"], scores.shape[1]), mask_of(inputs["query_lengths"], scores.shape[2])
    return {"scores": scores, "mask": keys.unsqueeze(2) * queries.unsqueeze(1)}


def binarization(alignment: Tensor, attention: Tensor) -> Tensor:
    return -attention[alignment == 1].clamp(min=1e-12).log().sum() / alignment.sum()


def prior_by_row(query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    """One distribution a frame, in a loop over utterances and frames."""
    prior = torch.zeros(len(query_lengths), int(query_lengths.max()), int(key_lengths.max()))

    def log_beta(a: Tensor, b: Tensor) -> Tensor:
        return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)

    for b, (frames, tokens) in enumerate(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True)):
        k = torch.arange(tokens, dtype=torch.float64)
        log_binomial = -torch.log(torch.tensor(float(tokens))) - log_beta(k + 1, tokens - k)
        for q in range(frames):
            alpha, beta = torch.tensor([q + 1.0, frames - q], dtype=torch.float64)
            prior[b, q, :tokens] = (
                log_binomial + log_beta(k + alpha, tokens - 1 - k + beta) - log_beta(alpha, beta)
            ).exp()
    return prior


def attend_by_step(queries: Tensor, **others: Any) -> Tensor:
    """Convolution, projection, tanh, softmax and context for each query in turn."""
    return _attend(queries.unbind(1), **others)


def attend_by_slice(queries: Tensor, **others: Any) -> Tensor:
    """The same, but the gradient of every ``queries[:, step]`` has the size of all queries."""
    return _attend((queries[:, step] for step in range(queries.shape[1])), **others)


def _attend(queries: Iterable[Tensor], attention: LocationAttention, memory: Tensor, memory_lengths: Tensor) -> Tensor:
    keys = attention.proj_enc(memory)
    padding = torch.arange(memory.shape[1]) >= memory_lengths.unsqueeze(1)
    weights = torch.zeros(memory.shape[:2])
    weights[:, 0] = 1
    cumulative, contexts = weights, []
    for query in queries:
        location = attention.conv(torch.stack([weights, cumulative], 1)).transpose(1, 2)
        hidden = attention.proj_attn(location) + keys + attention.proj_dec(query).unsqueeze(1)
        energies = attention.proj_out(hidden).squeeze(2).masked_fill(padding, -torch.inf)
        weights = torch.softmax(attention.scaling * energies, 1)
        cumulative = cumulative + weights
        contexts.append((memory * weights.unsqueeze(2)).sum(1))
    return torch.stack(contexts, 1)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def guided_attention(attention: Tensor, query_lengths: Tensor, key_lengths: Tensor, sigma: float = 0.2) -> Tensor:
    """Weights made utterance by utterance on a grid of keys by queries, then stored."""
    weights = torch.zeros(len(attention), attention.shape[2], attention.shape[1])
    for b, (frames, tokens) in enumerate(zip(query_lengths.tolist(), key_lengths.tolist(), strict=True)):
        k, q = torch.meshgrid(torch.arange(tokens) / tokens, torch.arange(frames) / frames, indexing="ij")
        weights[b, :tokens, :frames] = 1 - torch.exp(-((k - q) ** 2) / (2 * sigma**2))
    return (weights.transpose(1, 2) * attention).sum() / (query_lengths * key_lengths).sum()


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """torch's label smoothing, which gives the target its share of the smoothed mass as well."""
    classes = logits.shape[-1]
    mass = smoothing * classes / (classes - 1)
    entropy = torch.tensor([smoothing / (classes - 1)] * (classes - 1) + [1 - smoothing], dtype=torch.float64)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, label_smoothing=mass)
    return loss + float((entropy * entropy.log()).sum())


def linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(F.linear(hidden, weight, bias), targets)


def linear_by_targets(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    return linear_label_smoothing_by_logits(hidden, weight, targets, bias)


def _masked_mean(values: Tensor, length_ratios: Tensor, axis: int) -> Tensor:
    """Mean over valid steps, with a mask of the size of the values."""
    lengths = (length_ratios * values.shape[axis]).ceil().long()
    shape = [len(values)] + [1] * (values.dim() - 1)
    shape[axis] = values.shape[axis]
    mask = mask_of(lengths, values.shape[axis]).view(shape).expand_as(values)
    return (values * mask).sum() / mask.sum()


def feature_matching(real_maps: Maps, fake_maps: Maps, length_ratios: Tensor) -> Tensor:
    pairs = [pair for real, fake in zip(real_maps, fake_maps, strict=True) for pair in zip(real, fake, strict=True)]
    return torch.stack([_masked_mean((real - fake).abs(), length_ratios, 2) for real, fake in pairs]).sum()


def discriminator(real_scores: list[Tensor], fake_scores: list[Tensor], length_ratios: Tensor) -> Tensor:
    real = [_masked_mean((1 - scores) ** 2, length_ratios, 1) for scores in real_scores]
    return torch.stack(real + [_masked_mean(scores**2, length_ratios, 1) for scores in fake_scores]).sum()


def generator(fake_scores: list[Tensor], length_ratios: Tensor) -> Tensor:
    return torch.stack([_masked_mean((1 - scores) ** 2, length_ratios, 1) for scores in fake_scores]).sum()


def _magnitude(wave: Tensor, resolution: tuple[int, int, int]) -> Tensor:
    n_fft, hop_length, win_length = resolution
    spectrum = torch.stft(wave, n_fft, hop_length, win_length, torch.hann_window(win_length), return_complex=True)
    return (spectrum.real**2 + spectrum.imag**2).clamp(min=1e-7).sqrt().transpose(1, 2)


def stft_by_frame(prediction: Tensor, target: Tensor, length_ratios: Tensor) -> Tensor:
    """All frames are transformed; masks leave out those beyond the ratios."""
    total = torch.zeros(())
    for resolution in RESOLUTIONS:
        ours, theirs = _magnitude(prediction, resolution), _magnitude(target, resolution)
        total = total + _masked_mean((theirs - ours).norm(dim=2) / theirs.norm(dim=2), length_ratios, 1)
        total = total + _masked_mean((theirs.log() - ours.log()).abs(), length_ratios, 1)
    return total / len(RESOLUTIONS)


def stft_of_batch(prediction: Tensor, target: Tensor) -> Tensor:
    total = torch.zeros(())
    for resolution in RESOLUTIONS:
        ours, theirs = _magnitude(prediction, resolution), _magnitude(target, resolution)
        convergence = ((theirs - ours).norm(dim=(1, 2)) / theirs.norm(dim=(1, 2))).mean()
        total = total + convergence + (theirs.log() - ours.log()).abs().mean()
    return total / len(RESOLUTIONS)


def stft_by_utterance(**others: Tensor) -> Tensor:
    return torch.stack(stft_loss_by_utterance(**others, resolutions=list(RESOLUTIONS))).sum()


@cache
def _auraloss() -> nn.Module:
    from auraloss.freq import MultiResolutionSTFTLoss

    n_fft, hop_length, win_length = map(list, zip(*RESOLUTIONS, strict=True))
    return MultiResolutionSTFTLoss(n_fft, hop_length, win_length, eps=1e-7)


def stft_by_auraloss(prediction: Tensor, target: Tensor) -> Tensor:
    return _auraloss()(prediction.unsqueeze(1), target.unsqueeze(1))


def batch_norm(x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """torch's, which takes padding for frames."""
    return F.batch_norm(x, None, None, weight, bias, training=True)


def batch_norm_of_cut_out(x: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return batch_norm_by_frames(x, lengths, None, None, weight, bias, training=True)


def tdnn(model: Tdnn, x: Tensor, x_lengths: Tensor) -> Tensor:
    """The network without a thought of lengths."""
    x = x.transpose(1, 2)
    for layer in model.tdnn:
        is_norm = isinstance(layer, nn.BatchNorm1d)
        x = F.batch_norm(x, layer.running_mean, layer.running_var, training=True) if is_norm else layer(x)
    return model.output_linear(x.transpose(1, 2))


def flow(z: Tensor, log_scales: list[Tensor], log_dets: list[Tensor], lengths: Tensor) -> Tensor:
    mask = mask_of(lengths, z.shape[1]).unsqueeze(2)
    scales = torch.stack([(log_scale * mask).sum() for log_scale in log_scales]).sum()
    prior = ((z * mask) ** 2).sum() / 2
    return (prior - scales - lengths.sum() * torch.stack(log_dets).sum()) / (lengths.sum() * z.shape[2])


def regression(prediction: Tensor, target: Tensor, lengths: Tensor, loss: Callable[..., Tensor]) -> Tensor:
    mask = mask_of(lengths, prediction.shape[1]).unsqueeze(2)
    return (loss(prediction, target, reduction="none") * mask).sum() / (mask.sum() * prediction.shape[2])


def variance(embeddings: Tensor) -> Tensor:
    return F.relu(1 - (embeddings.var(0) + 1e-4).sqrt()).mean()


def covariance(embeddings: Tensor) -> Tensor:
    centred, dim = embeddings - embeddings.mean(0), embeddings.shape[1]
    covariances = centred.T @ centred / (len(centred) - 1)
    return covariances.flatten()[:-1].view(dim - 1, dim + 1)[:, 1:].pow(2).sum() / dim


def cross_covariance(a: Tensor, b: Tensor) -> Tensor:
    covariances = (a - a.mean(0)).T @ (b - b.mean(0)) / (len(a) - 1)
    return covariances.pow(2).sum() / (a.shape[1] * b.shape[1])


def invariance(a: Tensor, b: Tensor) -> Tensor:
    return F.mse_loss(a, b)
