"""A training step of the aligner against the same step in the form in common use.

    python -m benchmarks.aligner_step [--batch N] [--frames N] [--tokens N]

The other form computes the prior an utterance and frame at a time, as tables of an aligner are often made, takes
distances from a tensor of differences (batch x channels x frames x tokens), loops over the batch for the forward-sum
loss and for the alignment search. Both have the same encoders. Losses and gradients must agree before time is taken.
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.inputs import rng, varied
from benchmarks.originals import binarization, forward_sum_by_index, prior_by_row, search_by_utterance
from sonorant.functional import beta_binomial_prior, monotonic_alignment_search, subtract_floor
from sonorant.losses import AlignmentLoss
from sonorant.models import AlignmentEncoder, AlignmentEncoderConfig

NUM_FEATURES, NUM_TOKENS, SMALLEST = 40, 60, 1e-8
TOLERANCE = 1e-3


class Batch(NamedTuple):
    features: Tensor
    feature_lengths: Tensor
    tokens: Tensor
    token_lengths: Tensor


def make_batch(batch: int, frames: int, tokens: int) -> Batch:
    random = rng()
    features, ids = 3 * random.randn(batch, frames, NUM_FEATURES), random.randint(1, NUM_TOKENS, batch, tokens)
    return Batch(features, varied(batch, frames, random), ids, varied(batch, tokens, random))


def ours(model: AlignmentEncoder, batch: Batch) -> Tensor:
    lengths = batch.feature_lengths, batch.token_lengths
    prior = beta_binomial_prior(
        *lengths, max_query_length=batch.features.shape[1], max_key_length=batch.tokens.shape[1]
    )
    output = model(batch.features, lengths[0], batch.tokens, lengths[1], log_prior=(prior + SMALLEST).log())
    hard = monotonic_alignment_search(output.log_attention, *lengths)
    losses = AlignmentLoss()(hard, output.attention, output.log_attention, *lengths)
    total: Tensor = losses.forward_sum + losses.binarization
    return total


def theirs(model: AlignmentEncoder, batch: Batch) -> Tensor:
    lengths = batch.feature_lengths, batch.token_lengths
    prior = prior_by_row(*lengths)
    energies = subtract_floor(batch.features, lengths[0], model.config.dynamic_range)
    queries = model.mel(energies / 3.0, lengths[0]).transpose(1, 2)
    keys = model.text(model.tokens(batch.tokens), lengths[1]).transpose(1, 2)
    distances = (queries.unsqueeze(3) - keys.unsqueeze(2)).square().sum(1)
    outside = torch.arange(keys.shape[2]) >= lengths[1].view(-1, 1, 1)
    scores = (-model.config.temperature * distances).masked_fill(outside, -torch.inf)
    log_attention = scores.log_softmax(2) + (prior + SMALLEST).log()
    attention = log_attention.masked_fill(outside, -torch.inf).softmax(2)
    hard = search_by_utterance(log_attention.detach(), *lengths)
    return forward_sum_by_index(log_attention, *lengths) + binarization(hard, attention)


def step(model: AlignmentEncoder, batch: Batch, loss: Callable[[AlignmentEncoder, Batch], Tensor]) -> list[Tensor]:
    """The loss and all gradients."""
    model.zero_grad()
    value = loss(model, batch)
    value.backward()
    return [value.detach(), *(parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None)]


def compare(sizes: tuple[int, int, int], repeats: int = 7) -> tuple[float, float]:
    """CPU seconds of a step, the best of some in turn: theirs and ours."""
    torch.manual_seed(0)
    model, batch = AlignmentEncoder(AlignmentEncoderConfig(), NUM_FEATURES, NUM_TOKENS), make_batch(*sizes)
    for expected, found in zip(step(model, batch, theirs), step(model, batch, ours), strict=True):
        error = float((expected - found).abs().max() / expected.abs().max().clamp(min=1e-6))
        if not error < TOLERANCE:
            raise SystemExit(f"the two steps differ by {error:.1e}; there is nothing to compare")
    best = {theirs: float("inf"), ours: float("inf")}
    for _ in range(repeats):
        for loss in best:
            start = time.process_time()
            step(model, batch, loss)
            best[loss] = min(best[loss], time.process_time() - start)
    return best[theirs], best[ours]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--frames", type=int, default=800)
    parser.add_argument("--tokens", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    slow, fast = compare((options.batch, options.frames, options.tokens))
    print(f"in common use {slow * 1000:.0f} ms, sonorant {fast * 1000:.0f} ms: {slow / fast:.1f} times as fast")


if __name__ == "__main__":
    main()
