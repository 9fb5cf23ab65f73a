"""Location-aware attention: steps against sequences, beams, batches, bad arguments."""

import pytest
import torch
from torch import Tensor

from sonorant.lengths import sequence_mask
from sonorant.nn import AttentionMemory, LocationAttention


def layer(**options: object) -> LocationAttention:
    torch.manual_seed(0)
    return LocationAttention(6, 4, 3, conv_channels=3, kernel_size=5, **options).double()  # type: ignore[arg-type]


def batch(attention: LocationAttention, seed: int = 0) -> tuple[Tensor, AttentionMemory]:
    generator = torch.Generator().manual_seed(seed)
    memory = torch.randn(3, 7, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    return memory, attention.precompute(memory, torch.tensor([7, 4, 0]))


def by_steps(attention: LocationAttention, queries: Tensor, memory: AttentionMemory, state: Tensor) -> list[Tensor]:
    contexts, weights = [], []
    for query in queries.unbind(1):
        output = attention(query, memory, state)
        state = attention.next_state(state, output.weights)
        contexts.append(output.context)
        weights.append(output.weights)
    return [torch.stack(contexts, 1), torch.stack(weights, 1), state]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("init", ["zeros", "uniform", "first"])
def test_a_sequence_equals_its_steps_in_values_and_every_gradient(channels: int, init: str) -> None:
    attention = layer(state_channels=channels)
    queries = torch.randn(3, 9, 3, dtype=torch.float64, requires_grad=True)
    results = []
    for call in (by_steps, LocationAttention.attend_sequence):
        memory, prepared = batch(attention)
        state = attention.initial_state(prepared, init).requires_grad_()  # type: ignore[arg-type]
        valid = sequence_mask(prepared.lengths, state.shape[2]).unsqueeze(1)
        outputs = list(call(attention, queries, prepared, torch.where(valid, state, 0.0)))
        total = sum((out * torch.cos(torch.arange(out.numel())).view(out.shape)).sum() for out in outputs)
        sources = [queries, memory, state, *attention.parameters()]
        results.append([*outputs, *torch.autograd.grad(total, sources)])
    for step, sequence in zip(*results, strict=True):
        torch.testing.assert_close(sequence, step, atol=1e-12, rtol=0)


def test_the_bias_of_the_energies_gets_a_gradient_of_zero_not_none() -> None:
    attention = layer()
    _, memory = batch(attention)
    outputs = attention.attend_sequence(torch.randn(3, 2, 3).double(), memory, attention.initial_state(memory))
    outputs.contexts.sum().backward()
    assert all(parameter.grad is not None for parameter in attention.parameters())
    assert not attention.proj_out[1].bias.grad.any()


def test_no_query_means_zeros() -> None:
    attention = layer()
    _, memory = batch(attention)
    state = attention.initial_state(memory, "uniform")
    given = attention(torch.zeros(3, 3, dtype=torch.float64), memory, state)
    for mine, theirs in zip(attention(None, memory, state), given, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_initial_states() -> None:
    attention = layer()
    _, memory = batch(attention)
    assert not attention.initial_state(memory).any()
    uniform = attention.initial_state(memory, "uniform")
    assert uniform.shape == (3, 2, 7)
    assert torch.equal(uniform[:, 0], uniform[:, 1])
    assert uniform.sum(2)[:, 0].tolist() == pytest.approx([1, 1, 0])
    assert not uniform[1, :, 4:].any()
    first = attention.initial_state(memory, "first")
    assert first[:, 1, 0].tolist() == [1, 1, 0]
    assert first.sum() == 4


def test_the_state_holds_the_last_weights_and_their_sum() -> None:
    attention = layer()
    state = torch.zeros(1, 2, 2)
    for weights in ([0.25, 0.75], [1.0, 0.0]):
        state = attention.next_state(state, torch.tensor([weights]))
    assert state.tolist() == [[[1, 0], [1.25, 0.75]]]
    assert layer(state_channels=1).next_state(state[:, :1], torch.tensor([[0.5, 0.5]])).tolist() == [[[0.5, 0.5]]]


def test_a_second_batch_does_not_see_the_first_ones_memory() -> None:
    attention = layer()
    query = torch.randn(3, 3, dtype=torch.float64)
    _, first = batch(attention, seed=0)
    attention(query, first, attention.initial_state(first))
    _, second = batch(attention, seed=1)
    after = attention(query, second, attention.initial_state(second))
    fresh = layer()
    _, alone = batch(fresh, seed=1)
    torch.testing.assert_close(after, fresh(query, alone, fresh.initial_state(alone)))


def test_beam_search_reorders_and_repeats_rows() -> None:
    attention = layer()
    _, memory = batch(attention)
    queries = torch.randn(3, 4, 3, dtype=torch.float64)
    _, _, state = by_steps(attention, queries, memory, attention.initial_state(memory))
    rows = torch.tensor([1, 1, 0, 2, 1])
    query = torch.randn(3, 3, dtype=torch.float64)
    whole = attention(query, memory, state)
    beam = attention(query[rows], memory.index_select(rows), state[rows])
    torch.testing.assert_close(beam.context, whole.context[rows])
    torch.testing.assert_close(beam.weights, whole.weights[rows])


def test_padding_and_empty_memories_get_no_weight() -> None:
    attention = layer()
    memory, prepared = batch(attention)
    output = attention(torch.randn(3, 3, dtype=torch.float64), prepared, attention.initial_state(prepared))
    assert not output.weights[1, 4:].any()
    assert output.weights.sum(1).tolist() == pytest.approx([1, 1, 0])
    assert not output.context[2].any()
    output.context.square().sum().backward()
    assert memory.grad is not None
    assert memory.grad.isfinite().all()
    assert not memory.grad[2].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_and_half_keep_float32_inside(dtype: torch.dtype) -> None:
    attention = layer().float()
    memory, lengths = torch.randn(2, 6, 4), torch.tensor([6, 3])
    queries = torch.randn(2, 5, 3)

    def call() -> tuple[Tensor, ...]:
        prepared = attention.precompute(memory, lengths)
        state = attention.initial_state(prepared, "uniform")
        return (*attention(queries[:, 0], prepared, state), *attention.attend_sequence(queries, prepared, state))

    plain = call()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = call()
    for mine, theirs in zip(mixed, plain, strict=True):
        assert torch.equal(mine, theirs)
    half = layer().to(dtype)
    prepared = half.precompute(memory.to(dtype), lengths)
    assert prepared.keys.dtype == torch.float32
    assert half.initial_state(prepared).dtype == torch.float32
    output = half(queries[:, 0].to(dtype), prepared, half.initial_state(prepared))
    assert output.context.dtype == output.weights.dtype == dtype


@pytest.mark.parametrize("kernel_size", [0, 2, 30])
def test_an_even_kernel_is_refused(kernel_size: int) -> None:
    with pytest.raises(ValueError, match="kernel_size must be odd"):
        LocationAttention(6, 4, 3, kernel_size=kernel_size)


def test_arguments_that_cannot_be_right_are_named() -> None:
    attention = layer()
    _, memory = batch(attention)
    state, query = attention.initial_state(memory), torch.zeros(3, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match="state_channels"):
        LocationAttention(6, 4, 3, state_channels=3)
    with pytest.raises(ValueError, match="memory must have shape"):
        attention.precompute(torch.zeros(3, 7, 5), torch.tensor([7, 7, 7]))
    with pytest.raises(ValueError, match="init must be one of"):
        attention.initial_state(memory, "last")  # type: ignore[arg-type]
    for bad in (query[:2], query[:, :2]):
        with pytest.raises(ValueError, match="query must have shape"):
            attention(bad, memory, state)
        with pytest.raises(ValueError, match="queries must have shape"):
            attention.attend_sequence(bad.unsqueeze(1), memory, state)
    for bad in (state[:2], state[:, :1], state[:, :, 1:]):
        with pytest.raises(ValueError, match="state must have shape"):
            attention(query, memory, bad)
        with pytest.raises(ValueError, match="state must have shape"):
            attention.attend_sequence(query.unsqueeze(1), memory, bad)
