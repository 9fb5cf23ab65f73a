"""The inputs that operations are measured on, in float32, with lengths that vary as in real batches."""

from math import prod

import torch
from tests.cases.case import Rng
from torch import Tensor

from benchmarks.harness import Inputs
from sonorant import functional
from sonorant.nn import LocationAttention, Tdnn

RESOLUTIONS = ((1024, 120, 600), (2048, 240, 1200), (512, 50, 240))  # n_fft, hop, window


def rng() -> Rng:
    return Rng(0, torch.float32)


def varied(batch: int, size: int, random: Rng) -> Tensor:
    """Lengths between half the size and the size, which one utterance has."""
    lengths = random.randint(size // 2, size + 1, batch)
    lengths[0] = size
    return lengths


def make_scores(batch: int, frames: int, tokens: int) -> Inputs:
    """Log attention about the diagonal, as of an aligner that has begun to learn."""
    random = rng()
    query_lengths = varied(batch, frames, random)
    key_lengths = (query_lengths * tokens / frames * (0.8 + 0.2 * random.rand(batch))).long().clamp(1, tokens)
    key_lengths[0] = tokens
    distance = torch.arange(frames).view(-1, 1) / query_lengths.view(-1, 1, 1)
    distance = distance - torch.arange(tokens) / key_lengths.view(-1, 1, 1)
    scores = random.randn(batch, frames, tokens) - 30 * distance**2
    scores = scores.masked_fill(torch.arange(tokens) >= key_lengths.view(-1, 1, 1), -1e4).log_softmax(2)
    return {"log_attention": scores, "query_lengths": query_lengths, "key_lengths": key_lengths}


def make_attention(**sizes: int) -> Inputs:
    inputs = make_scores(**sizes)
    return {"attention": inputs.pop("log_attention").exp(), **inputs}


def make_alignment(**sizes: int) -> Inputs:
    inputs = make_scores(**sizes)
    alignment = functional.monotonic_alignment_search(**inputs)
    return {"alignment": alignment, "attention": inputs["log_attention"].exp()}


def make_lengths(**sizes: int) -> Inputs:
    inputs = make_scores(**sizes)
    return {name: inputs[name] for name in ("query_lengths", "key_lengths")}


def make_ctc(batch: int, frames: int, labels: int, classes: int) -> Inputs:
    random = rng()
    return {
        "logits": random.randn(batch, frames, classes),
        "targets": random.randint(1, classes, batch, labels),
        "input_lengths": varied(batch, frames, random),
        "target_lengths": varied(batch, labels, random),
    }


def make_location(batch: int, memory: int, memory_dim: int, attention_dim: int, steps: int) -> Inputs:
    random, query_dim = rng(), 2 * memory_dim
    with torch.random.fork_rng():
        torch.manual_seed(0)
        attention = LocationAttention(attention_dim, memory_dim, query_dim)
    return {
        "attention": attention,
        "memory": random.randn(batch, memory, memory_dim),
        "memory_lengths": varied(batch, memory, random),
        "queries": 0.3 * random.randn(batch, steps, query_dim),
    }


def make_softmax(batch: int, heads: int, queries: int, keys: int) -> Inputs:
    random = rng()
    mask = torch.arange(keys) < varied(batch, keys, random).view(-1, 1, 1, 1)
    return {"scores": random.randn(batch, heads, queries, keys), "mask": mask}


def make_targets(batch: int, length: int, classes: int) -> Inputs:
    random = rng()
    targets = random.randint(0, classes, batch, length)
    targets[torch.arange(length) >= varied(batch, length, random).unsqueeze(1)] = -100
    return {"logits": 3 * random.randn(batch, length, classes), "targets": targets}


def make_hidden(batch: int, length: int, classes: int, hidden: int) -> Inputs:
    random = rng()
    parameters = {"weight": random.randn(classes, hidden) / 16, "bias": random.randn(classes) / 10}
    targets = make_targets(batch, length, classes)["targets"]
    return {"hidden": random.randn(batch, length, hidden), **parameters, "targets": targets}


def map_shapes(samples: int) -> list[list[tuple[int, ...]]]:
    """The feature maps of HiFi-GAN's five multi-period and three multi-scale discriminators."""
    shapes: list[list[tuple[int, ...]]] = []
    for period in (2, 3, 5, 7, 11):
        steps, maps = -(-samples // period), []
        for channels, stride in ((32, 3), (128, 3), (512, 3), (1024, 3), (1024, 1), (1, 1)):
            steps = -(-steps // stride)
            maps.append((channels, steps, period))
        shapes.append(maps)
    for factor in (1, 2, 4):
        steps, maps = samples // factor, []
        for channels, stride in ((128, 1), (128, 2), (256, 2), (512, 4), (1024, 4), (1024, 1), (1024, 1), (1, 1)):
            steps = -(-steps // stride)
            maps.append((channels, steps))
        shapes.append(maps)
    return shapes


def make_maps(batch: int, samples: int) -> Inputs:
    random, generator = rng(), torch.Generator().manual_seed(1)
    ratios = 0.5 + 0.5 * random.rand(batch)
    ratios[0] = 1

    def draw() -> list[list[Tensor]]:
        return [[torch.randn(batch, *shape, generator=generator) for shape in maps] for maps in map_shapes(samples)]

    return {"real_maps": draw(), "fake_maps": draw(), "length_ratios": ratios}


def make_scores_of_discriminators(batch: int, samples: int, kinds: tuple[str, ...] = ("real", "fake")) -> Inputs:
    random = rng()
    ratios = 0.5 + 0.5 * random.rand(batch)
    ratios[0] = 1
    sizes = [prod(maps[-1]) for maps in map_shapes(samples)]
    scores = {f"{kind}_scores": [random.randn(batch, size) for size in sizes] for kind in kinds}
    return {**scores, "length_ratios": ratios}


def make_waves(batch: int, samples: int) -> Inputs:
    """Harmonic tones with some noise."""
    random, time = rng(), torch.arange(samples) / 22050
    tones = [torch.sin(6.2832 * (100 * k + 20 * random.rand(batch, 1)) * time) / k for k in range(1, 9)]
    target = 0.1 * torch.stack(tones).sum(0) + 0.01 * random.randn(batch, samples)
    return {"prediction": 0.8 * target + 0.02 * random.randn(batch, samples), "target": target}


def make_waves_with_ratios(batch: int, samples: int) -> Inputs:
    return make_waves(batch, samples) | {"length_ratios": varied(batch, 64, rng()) / 64}


def make_waves_with_lengths(batch: int, samples: int) -> Inputs:
    return make_waves(batch, samples) | {"lengths": varied(batch, samples, rng())}


def make_frames(batch: int, channels: int, frames: int, equal: bool = False) -> Inputs:
    random = rng()
    lengths = torch.full((batch,), frames) if equal else varied(batch, frames, random)
    x = random.randn(batch, channels, frames)
    return {"x": x, "lengths": lengths, "weight": 1 + random.rand(channels), "bias": random.randn(channels)}


def make_features(batch: int, frames: int, features: int) -> Inputs:
    random = rng()
    return {"features": random.randn(batch, frames, features), "lengths": varied(batch, frames, random)}


def make_tdnn(batch: int, frames: int, features: int, classes: int) -> Inputs:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Tdnn(features, classes)
    return {"model": model, "x": rng().randn(batch, frames, features), "x_lengths": torch.full((batch,), frames)}


def make_flow(batch: int, frames: int, channels: int, flows: int) -> Inputs:
    random = rng()
    return {
        "z": random.randn(batch, frames, channels),
        "log_scales": [0.1 * random.randn(batch, frames, channels // 2) for _ in range(flows)],
        "log_dets": list(random.randn(flows).unbind()),
        "lengths": varied(batch, frames, random),
    }


def make_regression(batch: int, frames: int, features: int) -> Inputs:
    random = rng()
    prediction, target = random.randn(batch, frames, features), random.rand(batch, frames, features)
    return {"prediction": prediction, "target": target, "lengths": varied(batch, frames, random)}


def make_embeddings(number: int, dim: int) -> Inputs:
    return {"embeddings": rng().randn(number, dim)}


def make_pair(number: int, dim: int, other_dim: int) -> Inputs:
    random = rng()
    return {"a": random.randn(number, dim), "b": random.randn(number, other_dim)}
