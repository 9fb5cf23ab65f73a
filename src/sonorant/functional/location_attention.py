"""Location-aware attention over a whole sequence of queries."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from sonorant.functional import kernels
from sonorant.functional.attention import masked_softmax
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["location_attention_weights"]


def location_attention_weights(
    queries: Float[Tensor, "batch query attention"],
    keys: Float[Tensor, "batch key attention"],
    location_filters: Float[Tensor, "attention channels taps"],
    energy_weight: Float[Tensor, " attention"],
    state: Float[Tensor, "batch channels key"],
    query_lengths: Int[Tensor, " batch"],
    key_lengths: Int[Tensor, " batch"],
    *,
    scaling: float = 2.0,
) -> Float[Tensor, "batch query key"]:
    r"""Attention weights of a sequence of queries, each of which sees where the ones before it looked.

    .. math:: w_t = \mathrm{softmax}_k\left(\lambda \, v^\top \tanh(q_t + h_k + (U * s_t)_k)\right),
              \quad s_t = (w_{t-1}, \textstyle\sum_{i<t} w_i)

    The bias of the energies is left out, since a softmax does not see it. One call stands for the loop of single
    steps: nothing but the weights is kept for the gradient, the rest is computed again. A key length of 0 gives zero
    weights and zero gradients.

    Args:
        queries: ``(batch, query, attention)``, projected: :math:`W_{dec} s`.
        keys: ``(batch, key, attention)``, projected: :math:`W_{enc} h`.
        location_filters: ``(attention, channels, taps)``, an odd number of taps; ``channels`` is 1 (the weights
            before) or 2 (and their sum).
        energy_weight: ``(attention,)``, v.
        state: ``(batch, channels, key)``, what the first query sees; ignored beyond a key length.
        query_lengths: ``(batch,)``, at least 0; weights beyond are 0.
        key_lengths: ``(batch,)``, at least 0.
        scaling: sharpens the softmax.

    Returns:
        ``(batch, query, key)`` in the dtype of ``keys``; half precision is computed in float32.

    Raises:
        ValueError: shapes that do not fit, an even number of taps, lengths beyond the tensors.

    References:
        Chorowski, Bahdanau, Serdyuk, Cho and Bengio 2015, arXiv 1506.07503.

    Example:
        >>> import torch
        >>> from sonorant.functional import location_attention_weights
        >>> queries, keys, state = torch.zeros(1, 3, 8), torch.zeros(1, 4, 8), torch.zeros(1, 2, 4)
        >>> filters, energy = torch.zeros(8, 2, 31), torch.ones(8)
        >>> lengths = torch.tensor([3]), torch.tensor([4])
        >>> location_attention_weights(queries, keys, filters, energy, state, *lengths)
        tensor([[[0.2500, 0.2500, 0.2500, 0.2500],
                 [0.2500, 0.2500, 0.2500, 0.2500],
                 [0.2500, 0.2500, 0.2500, 0.2500]]])
    """
    batch_size, num_queries, num_keys = queries.shape[0], queries.shape[1], keys.shape[1]
    _check_shapes(queries, keys, location_filters, energy_weight, state)
    check_lengths(query_lengths, "query_lengths", batch_size=batch_size, max_length=num_queries, min_length=0)
    check_lengths(key_lengths, "key_lengths", batch_size=batch_size, max_length=num_keys, min_length=0)
    query_mask = sequence_mask(query_lengths, num_queries)
    key_mask = sequence_mask(key_lengths, num_keys)
    dtype = compute_dtype(keys)
    weights: Tensor = torch.ops.sonorant.location_attention(
        torch.where(query_mask.unsqueeze(2), queries.to(dtype), 0.0),
        torch.where(key_mask.unsqueeze(2), keys.to(dtype), 0.0),
        location_filters.to(dtype),
        energy_weight.to(dtype),
        torch.where(key_mask.unsqueeze(1), state.to(dtype), 0.0),
        query_lengths.long(),
        key_lengths.long(),
        scaling,
    )
    return weights.to(keys.dtype)


def _check_shapes(queries: Tensor, keys: Tensor, filters: Tensor, energy_weight: Tensor, state: Tensor) -> None:
    attention_dim, channels, taps = filters.shape
    if channels not in (1, 2):
        raise ValueError(f"location_filters must have 1 or 2 channels; got {channels}")
    if taps % 2 == 0:
        raise ValueError(f"location_filters must have an odd number of taps; got {taps}")
    batch_size, num_keys = keys.shape[:2]
    expected = {
        "queries": (queries, (batch_size, queries.shape[1], attention_dim)),
        "keys": (keys, (batch_size, num_keys, attention_dim)),
        "energy_weight": (energy_weight, (attention_dim,)),
        "state": (state, (batch_size, channels, num_keys)),
    }
    for name, (tensor, shape) in expected.items():
        if tensor.shape != shape:
            raise ValueError(f"{name} must have shape {shape}; got {tuple(tensor.shape)}")


@torch.library.custom_op("sonorant::location_attention", mutates_args=())
def _location_attention(
    queries: Tensor,
    keys: Tensor,
    filters: Tensor,
    energy_weight: Tensor,
    state: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float,
) -> Tensor:
    """The weights; padding in the floating tensors is 0."""
    if not queries.shape[1] or not keys.numel():
        return keys.new_zeros(queries.shape[0], queries.shape[1], keys.shape[1])
    form = _attend_by_steps
    if _has_kernel(keys):
        from sonorant.functional.kernels.location_attention import attend as form
    with torch.autocast(keys.device.type, enabled=False):
        return form(queries, keys, filters, energy_weight, state, query_lengths, key_lengths, scaling)


@torch.library.custom_op("sonorant::location_attention_backward", mutates_args=())
def _location_attention_backward(
    grad_weights: Tensor,
    weights: Tensor,
    queries: Tensor,
    keys: Tensor,
    filters: Tensor,
    energy_weight: Tensor,
    state: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of queries, keys, filters, energy weight and initial state."""
    if not weights.numel():
        zeros = [
            torch.zeros_like(x, memory_format=torch.contiguous_format)
            for x in (queries, keys, filters, energy_weight, state)
        ]
        return zeros[0], zeros[1], zeros[2], zeros[3], zeros[4]
    form = _attend_backward_by_steps
    if _has_kernel(keys):
        from sonorant.functional.kernels.location_attention import attend_backward as form
    with torch.autocast(keys.device.type, enabled=False):
        states = _states(weights, state)
        return form(
            grad_weights, weights, states, queries, keys, filters, energy_weight, query_lengths, key_lengths, scaling
        )


def _has_kernel(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and kernels.available()


@_location_attention.register_fake
def _(queries: Tensor, keys: Tensor, *_: object) -> Tensor:
    return keys.new_empty(queries.shape[0], queries.shape[1], keys.shape[1])


@_location_attention_backward.register_fake
def _(grad_weights: Tensor, weights: Tensor, *arguments: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in arguments[:5])


def _setup_context(ctx: Any, inputs: tuple[object, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs[:7])
    ctx.scaling = inputs[7]


def _backward(ctx: Any, grad_weights: Tensor) -> tuple[Tensor | None, ...]:
    gradients = torch.ops.sonorant.location_attention_backward(
        grad_weights,
        *ctx.saved_tensors,
        ctx.scaling,
    )
    return *gradients, None, None, None


_location_attention.register_autograd(_backward, setup_context=_setup_context)


def _attend_by_steps(
    queries: Tensor,
    keys: Tensor,
    filters: Tensor,
    energy_weight: Tensor,
    state: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float,
) -> Tensor:
    """The batched form for devices without a kernel: a loop over the steps."""
    masks = _step_masks(queries, keys, query_lengths, key_lengths)
    keys = keys.transpose(1, 2).contiguous()
    weights = []
    for query, mask in zip(queries.unbind(1), masks.unbind(1), strict=True):
        hidden = F.conv1d(state, filters, padding=filters.shape[2] // 2) + keys + query.unsqueeze(2)
        step = masked_softmax(scaling * torch.matmul(energy_weight, hidden.tanh_()), mask)
        weights.append(step)
        state = torch.stack([step, state[:, 1] + step], 1) if state.shape[1] == 2 else step.unsqueeze(1)
    return torch.stack(weights, 1)


def _attend_backward_by_steps(
    grad_weights: Tensor,
    weights: Tensor,
    states: Tensor,
    queries: Tensor,
    keys: Tensor,
    filters: Tensor,
    energy_weight: Tensor,
    query_lengths: Tensor,
    key_lengths: Tensor,
    scaling: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    grad_weights = torch.where(_step_masks(queries, keys, query_lengths, key_lengths), grad_weights, 0.0)
    keys = keys.transpose(1, 2).contiguous()
    half = filters.shape[2] // 2
    grad_queries, grad_keys = torch.empty_like(queries), torch.zeros_like(keys)
    grad_filters, grad_energy = torch.zeros_like(filters), torch.zeros_like(energy_weight)
    grad_state = torch.zeros_like(states[:, 0])  # of the state after the step
    for step in reversed(range(queries.shape[1])):
        hidden = F.conv1d(states[:, step], filters, padding=half) + keys + queries[:, step].unsqueeze(2)
        hidden.tanh_()
        # the weights of this step are both channels of the next step's state
        grad_step, step_weights = grad_weights[:, step] + grad_state.sum(1), weights[:, step]
        centred = grad_step - (grad_step * step_weights).sum(1, keepdim=True)
        grad_scores = (scaling * step_weights * centred).unsqueeze(1)
        grad_energy += (hidden * grad_scores).sum((0, 2))
        grad_hidden = (1 - hidden.square()) * grad_scores * energy_weight.view(-1, 1)
        grad_queries[:, step] = grad_hidden.sum(2)
        grad_keys += grad_hidden
        windows = F.pad(states[:, step], (half, half)).unfold(2, filters.shape[2], 1)
        grad_filters += torch.einsum("bak,bckt->act", grad_hidden, windows)
        carried = grad_state[:, 1:]  # the sum goes on to the step before
        grad_state = F.conv_transpose1d(grad_hidden, filters, padding=half)
        grad_state[:, 1:] += carried
    return grad_queries, grad_keys.transpose(1, 2).contiguous(), grad_filters, grad_energy, grad_state


def _step_masks(queries: Tensor, keys: Tensor, query_lengths: Tensor, key_lengths: Tensor) -> Tensor:
    return sequence_mask(query_lengths, queries.shape[1]).unsqueeze(2) & sequence_mask(
        key_lengths, keys.shape[1]
    ).unsqueeze(1)


def _states(weights: Tensor, state: Tensor) -> Tensor:
    """The state that each step saw, ``(batch, query, channels, key)``."""
    channels = [torch.cat([state[:, :1], weights[:, :-1]], 1)]
    if state.shape[1] == 2:
        channels.append(torch.cat([state[:, 1:], weights[:, :-1]], 1).cumsum(1))
    return torch.stack(channels, 2)
