"""Attention layers."""

from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from sonorant import functional
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import check_lengths, sequence_mask

__all__ = ["AttentionMemory", "AttentionOutput", "LocationAttention", "SequenceAttentionOutput"]

StateInit = Literal["zeros", "uniform", "first"]


class AttentionMemory(NamedTuple):
    """What is attended to, prepared once a batch by :meth:`LocationAttention.precompute`.

    ``values`` ``(batch, time, memory_dim)``, 0 beyond ``lengths``; ``keys`` ``(batch, time, attention_dim)``, the
    projected values; ``lengths`` int64 ``(batch,)``.
    """

    values: Tensor
    keys: Tensor
    lengths: Tensor

    def index_select(self, rows: Int[Tensor, " rows"]) -> "AttentionMemory":
        """The memory of other rows of the batch, as beam search reorders and repeats them."""
        return AttentionMemory(self.values[rows], self.keys[rows], self.lengths[rows])


class AttentionOutput(NamedTuple):
    """One step: ``context`` ``(batch, memory_dim)`` and ``weights`` ``(batch, time)``."""

    context: Tensor
    weights: Tensor


class SequenceAttentionOutput(NamedTuple):
    """All steps: ``contexts`` ``(batch, query, memory_dim)``, ``weights`` ``(batch, query, time)``, last ``state``."""

    contexts: Tensor
    weights: Tensor
    state: Tensor


class LocationAttention(nn.Module):
    r"""Attention that sees where it looked before.

    .. math:: e = v^\top \tanh(W_{enc} h + W_{dec} s + U f) + b, \quad f = \mathrm{conv}(\text{state}), \quad
              w = \mathrm{softmax}(\lambda e), \quad c = \sum_k w_k h_k

    over the valid positions of the memory. Where it departs from fairseq's: nothing is cached on the module (there, a
    second batch silently gets the first one's projection); a memory of length 0 gives zero weights and a zero context
    instead of NaN; padding in the memory changes nothing. Its checkpoints load strictly.

    All is computed in float32 for half precision and under autocast; context and weights come in the dtype of the
    memory, while the state starts as float32 and stays in its own dtype.

    Args:
        attention_dim: the width of the energies' hidden layer.
        memory_dim: features of the memory.
        query_dim: features of a query.
        state_channels: 1: the state is the weights before; 2: and their sum over all steps.
        conv_channels: the width of the location features.
        kernel_size: taps of the convolution over the state, an odd number.
        scaling: sharpens the softmax.

    Raises:
        ValueError: an even ``kernel_size``, ``state_channels`` other than 1 or 2.

    References:
        Chorowski, Bahdanau, Serdyuk, Cho and Bengio 2015, arXiv 1506.07503.

    Example:
        >>> import torch
        >>> from sonorant.nn import LocationAttention
        >>> attention = LocationAttention(attention_dim=8, memory_dim=6, query_dim=5)
        >>> memory = attention.precompute(torch.randn(2, 9, 6), torch.tensor([9, 4]))
        >>> state = attention.initial_state(memory, "first")
        >>> context, weights = attention(torch.randn(2, 5), memory, state)
        >>> context.shape, weights.shape
        (torch.Size([2, 6]), torch.Size([2, 9]))
        >>> attention.next_state(state, weights).shape
        torch.Size([2, 2, 9])
    """

    def __init__(
        self,
        attention_dim: int,
        memory_dim: int,
        query_dim: int,
        *,
        state_channels: int = 2,
        conv_channels: int = 32,
        kernel_size: int = 31,
        scaling: float = 2.0,
    ) -> None:
        super().__init__()
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, so that the output lines up with the state; got {kernel_size}")
        if state_channels not in (1, 2):
            raise ValueError(f"state_channels must be 1 or 2; got {state_channels}")
        self.scaling = scaling
        self.proj_enc = nn.Linear(memory_dim, attention_dim)
        self.proj_dec = nn.Linear(query_dim, attention_dim, bias=False)
        self.proj_attn = nn.Linear(conv_channels, attention_dim, bias=False)
        self.conv = nn.Conv1d(state_channels, conv_channels, kernel_size, padding=kernel_size // 2, bias=False)
        self.proj_out = nn.Sequential(nn.Tanh(), nn.Linear(attention_dim, 1))

    def precompute(
        self, memory: Float[Tensor, "batch time memory"], memory_lengths: Int[Tensor, " batch"]
    ) -> AttentionMemory:
        """Project the memory, once for all steps.

        Args:
            memory: ``(batch, time, memory_dim)``, for example an encoder's output.
            memory_lengths: ``(batch,)``; 0 is allowed.

        Returns:
            What :meth:`forward` and :meth:`attend_sequence` take.

        Raises:
            ValueError: a memory of the wrong shape, lengths that do not fit it.
        """
        memory_dim = self.proj_enc.in_features
        if memory.dim() != 3 or memory.shape[2] != memory_dim:
            raise ValueError(f"memory must have shape (batch, time, {memory_dim}); got {tuple(memory.shape)}")
        batch_size, max_length = memory.shape[:2]
        check_lengths(memory_lengths, "memory_lengths", batch_size=batch_size, max_length=max_length, min_length=0)
        values = torch.where(sequence_mask(memory_lengths, max_length).unsqueeze(2), memory, 0.0)
        with torch.autocast(memory.device.type, enabled=False):
            dtype = compute_dtype(values)
            assert self.proj_enc.bias is not None
            keys = F.linear(values.to(dtype), self.proj_enc.weight.to(dtype), self.proj_enc.bias.to(dtype))
        return AttentionMemory(values, keys, memory_lengths.long())

    def initial_state(self, memory: AttentionMemory, init: StateInit = "zeros") -> Float[Tensor, "batch channels time"]:
        """The state before the first step: as if all looked nowhere, everywhere alike, or at the first position.

        Args:
            memory: from :meth:`precompute`.
            init: ``"zeros"``, ``"uniform"`` over each memory's length, or ``"first"``.

        Returns:
            ``(batch, state_channels, time)``; both channels start alike.

        Raises:
            ValueError: another ``init``.
        """
        if init not in get_args(StateInit):
            raise ValueError(f"init must be one of {', '.join(get_args(StateInit))}; got {init!r}")
        # so many of the first positions share the weight
        looked_at = memory.lengths if init == "uniform" else memory.lengths.clamp(max=int(init == "first"))
        mask = sequence_mask(looked_at, memory.keys.shape[1])
        weights = mask / looked_at.clamp(min=1).to(memory.keys.dtype).unsqueeze(1)
        return weights.unsqueeze(1).repeat(1, self.conv.in_channels, 1)

    def forward(
        self,
        query: Float[Tensor, "batch query"] | None,
        memory: AttentionMemory,
        state: Float[Tensor, "batch channels time"],
    ) -> AttentionOutput:
        """Attend once.

        Args:
            query: ``(batch, query_dim)``, the decoder's state; None means zeros.
            memory: from :meth:`precompute`.
            state: ``(batch, state_channels, time)``, from :meth:`initial_state` or :meth:`next_state`, which leave 0
                beyond a memory's length; the convolution sees what another state holds there, as in the original.

        Returns:
            ``AttentionOutput``: context ``(batch, memory_dim)`` and weights ``(batch, time)``.

        Raises:
            ValueError: shapes that do not fit.
        """
        self._check_shapes(memory, state, "query", query)
        dtype = memory.keys.dtype
        with torch.autocast(state.device.type, enabled=False):
            half = self.conv.kernel_size[0] // 2
            # one column more, since torch refuses a convolution over nothing
            location = F.conv1d(F.pad(state.to(dtype), (half, half + 1)), self.conv.weight.to(dtype))[:, :, :-1]
            hidden = F.linear(location.transpose(1, 2), self.proj_attn.weight.to(dtype)) + memory.keys
            hidden = hidden + self._project_queries(query, memory).unsqueeze(1)
            scores = F.linear(hidden.tanh(), self._energy.weight.to(dtype), self._energy.bias.to(dtype)).squeeze(2)
            weights = functional.masked_softmax(self.scaling * scores, sequence_mask(memory.lengths, scores.shape[1]))
            context = torch.bmm(weights.unsqueeze(1), memory.values.to(dtype)).squeeze(1)
        return AttentionOutput(context.to(memory.values.dtype), weights.to(memory.values.dtype))

    def next_state(
        self, state: Float[Tensor, "batch channels time"], weights: Float[Tensor, "batch time"]
    ) -> Float[Tensor, "batch channels time"]:
        """The state after a step: its weights and, with two channels, the sum of all so far.

        Args:
            state: ``(batch, state_channels, time)``, which the step saw.
            weights: ``(batch, time)``, which it gave.

        Returns:
            ``(batch, state_channels, time)``.
        """
        weights = weights.to(state.dtype)
        if state.shape[1] == 1:
            return weights.unsqueeze(1)
        return torch.stack([weights, state[:, 1] + weights], 1)

    def attend_sequence(
        self,
        queries: Float[Tensor, "batch length query"],
        memory: AttentionMemory,
        state: Float[Tensor, "batch channels time"],
        query_lengths: Int[Tensor, " batch"] | None = None,
    ) -> SequenceAttentionOutput:
        """Attend with all queries of a target sequence: equal to a loop of single steps, several times faster.

        It serves decoders whose queries do not depend on the contexts, such as a first attention layer or a prenet
        under teacher forcing. Where the query of a step is made from the context of the step before, as in an
        attention LSTM, only single steps can be used.

        Args:
            queries: ``(batch, length, query_dim)``.
            memory: from :meth:`precompute`.
            state: ``(batch, state_channels, time)``, what the first query sees; ignored beyond a memory's length.
            query_lengths: ``(batch,)``, at least 0; all are ``length`` if None.

        Returns:
            ``SequenceAttentionOutput``: contexts ``(batch, length, memory_dim)`` and weights ``(batch, length,
            time)``, 0 beyond the query lengths, and the state after each sequence's last step.

        Raises:
            ValueError: shapes or lengths that do not fit.
        """
        batch_size, num_queries = memory.keys.shape[0], queries.shape[1]
        self._check_shapes(memory, state, "queries", queries, num_queries)
        if query_lengths is None:
            query_lengths = torch.full((batch_size,), num_queries, device=queries.device)
        check_lengths(query_lengths, "query_lengths", batch_size=batch_size, max_length=num_queries, min_length=0)
        query_mask = sequence_mask(query_lengths, num_queries).unsqueeze(2)
        dtype = memory.keys.dtype
        energy = self._energy
        with torch.autocast(queries.device.type, enabled=False):
            projected = self._project_queries(torch.where(query_mask, queries, 0.0), memory)
            # the energies' bias does nothing to a softmax; here it gets its gradient of 0
            projected = projected + 0.0 * energy.bias.to(dtype)
            filters = torch.einsum("ac,cst->ast", self.proj_attn.weight.to(dtype), self.conv.weight.to(dtype))
            weights = functional.location_attention_weights(
                projected,
                memory.keys,
                filters,
                energy.weight[0].to(dtype),
                state,
                query_lengths,
                memory.lengths,
                scaling=self.scaling,
            )
            contexts = torch.bmm(weights, memory.values.to(dtype))
        values_dtype = memory.values.dtype
        last = self._last_state(state.to(dtype), weights, query_lengths, memory)
        return SequenceAttentionOutput(contexts.to(values_dtype), weights.to(values_dtype), last.to(state.dtype))

    @property
    def _energy(self) -> nn.Linear:
        layer = self.proj_out[1]
        assert isinstance(layer, nn.Linear)
        return layer

    def _project_queries(self, queries: Tensor | None, memory: AttentionMemory) -> Tensor:
        if queries is None:
            # the product keeps the unused weight in the graph, with a gradient of 0
            queries = memory.keys.new_zeros(memory.keys.shape[0], self.proj_dec.in_features)
        return F.linear(queries.to(memory.keys.dtype), self.proj_dec.weight.to(memory.keys.dtype))

    def _check_shapes(
        self, memory: AttentionMemory, state: Tensor, name: str, queries: Tensor | None, *num_queries: int
    ) -> None:
        batch_size, max_length = memory.keys.shape[:2]
        expected = (
            ("state", state, (batch_size, self.conv.in_channels, max_length)),
            (name, queries, (batch_size, *num_queries, self.proj_dec.in_features)),
        )
        for argument, tensor, shape in expected:
            if tensor is not None and tensor.shape != shape:
                raise ValueError(f"{argument} must have shape {shape}; got {tuple(tensor.shape)}")

    def _last_state(self, state: Tensor, weights: Tensor, query_lengths: Tensor, memory: AttentionMemory) -> Tensor:
        """The state after the last valid step of each sequence; the given one where there is none."""
        state = torch.where(sequence_mask(memory.lengths, state.shape[2]).unsqueeze(1), state, 0.0)
        if weights.shape[1] == 0:
            return state
        last = (query_lengths.long() - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, weights.shape[2])
        previous = torch.where(query_lengths.view(-1, 1, 1) > 0, weights.gather(1, last), state[:, :1])
        if state.shape[1] == 1:
            return previous
        return torch.cat([previous, state[:, 1:] + weights.sum(1, keepdim=True)], 1)
