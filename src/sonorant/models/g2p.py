"""From letters to phones: an attention encoder-decoder."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sonorant.decoding.step import StepOutput
from sonorant.functional.reduction import compute_dtype
from sonorant.lengths import Padded, check_lengths
from sonorant.nn import AttentionMemory, LocationAttention
from sonorant.nn.randomness import dropout_masks
from sonorant.nn.recurrent import BiLstm

__all__ = ["G2p", "G2pConfig", "G2pOutput", "G2pState"]

MARK = 0  # before the first phone and after the last one; to the CTC head the blank


@dataclass(frozen=True)
class G2pConfig:
    """What can be chosen about :class:`G2p`.

    Args:
        embedding_dim: of a grapheme, and of a phone.
        encoder_dim: of each direction of the encoder's LSTMs.
        encoder_layers: of the encoder.
        decoder_dim: of both LSTMs of the decoder.
        attention_dim: the width of the energies' hidden layer.
        location_taps: of the convolution over where the decoder looked, an odd number.
        dropout: of embeddings and of what the LSTMs give, in training: for each word the same features at all steps.
        ctc_frames: frames of the CTC head a grapheme, for words that have more phones than letters; 0 has no head.
    """

    embedding_dim: int = 128
    encoder_dim: int = 256
    encoder_layers: int = 2
    decoder_dim: int = 256
    attention_dim: int = 128
    location_taps: int = 7
    dropout: float = 0.2
    ctc_frames: int = 0


class G2pOutput(NamedTuple):
    """What training needs: ``logits`` ``(batch, length, phones)`` of each next phone, the ``attention``
    ``(batch, length, graphemes)`` and the CTC head's log probabilities and their lengths, or None.
    """

    logits: Tensor
    attention: Tensor
    ctc: Padded | None


class G2pState(NamedTuple):
    """The decoder between two steps, a row each hypothesis; the contexts live on in ``hidden`` and ``cell``.

    ``attention`` ``(rows, 2, graphemes)``, where it looked; ``query_hidden``, ``query_cell``, ``hidden`` and ``cell``
    ``(rows, decoder_dim)``, of the two LSTMs.
    """

    attention: Tensor
    query_hidden: Tensor
    query_cell: Tensor
    hidden: Tensor
    cell: Tensor


@dataclass(frozen=True)
class _Masks:
    """What layers are multiplied with, ``(batch, 1, features)`` by name; nothing where there is no dropout."""

    of_layer: dict[str, Tensor]

    def apply(self, name: str, values: Tensor) -> Tensor:
        mask = self.of_layer.get(name)
        return values if mask is None else values * mask.to(values.dtype)

    def of_encoder(self) -> list[Tensor] | None:
        return [mask for name, mask in self.of_layer.items() if name.startswith("encoder")] or None


class G2p(nn.Module):
    r"""Letters to phones: a BiLSTM reads the word, two LSTMs and location-aware attention write its pronunciation.

    .. math:: q_t = \mathrm{LSTM}_1(y_{t-1}), \quad c_t = \mathrm{attend}(q_t, h, w_{<t}), \quad
              d_t = \mathrm{LSTM}_2([q_t; c_t]), \quad p(y_t) = \mathrm{softmax}(W \tanh(V [d_t; c_t]))

    The first LSTM knows the phones so far and asks; what it hears goes into the second, so that the contexts are part
    of the decoder's state, while the questions do not depend on them. In training the attention therefore takes the
    whole sequence at once (:meth:`sonorant.nn.LocationAttention.attend_sequence`), with the same numbers as step by
    step.

    Phones have the ids of a :class:`~sonorant.text.SymbolTable`. Its blank, 0, is the CTC head's blank; for the decoder
    it is the mark before the first phone and after the last one.

    Args:
        config: see :class:`G2pConfig`.
        num_graphemes: symbols, the blank (padding) included.
        num_phones: symbols, the blank included.

    References:
        Chorowski et al. 2015, arXiv 1506.07503 (attention); Toshniwal and Livescu 2016, arXiv 1610.06540 (for
        pronunciations); Watanabe et al. 2017, "Hybrid CTC/attention architecture" (the CTC head); Gal and Ghahramani
        2016, arXiv 1512.05287 (dropout).

    Example:
        >>> import torch
        >>> from sonorant.models import G2p, G2pConfig
        >>> model = G2p(G2pConfig(encoder_dim=8, decoder_dim=8), num_graphemes=5, num_phones=6)
        >>> word, phones = torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5, 0]])
        >>> model(word, torch.tensor([3]), phones, torch.tensor([3])).logits.shape
        torch.Size([1, 3, 6])
    """

    def __init__(self, config: G2pConfig, num_graphemes: int, num_phones: int) -> None:
        super().__init__()
        self.config = config
        self.num_phones = num_phones
        dim, hidden_dim = config.embedding_dim, config.decoder_dim
        self.graphemes = nn.Embedding(num_graphemes, dim)
        self.phones = nn.Embedding(num_phones, dim)
        self.encoder = BiLstm(dim, config.encoder_dim, config.encoder_layers)
        memory_dim = self.encoder.output_dim
        self.query = nn.LSTM(dim, hidden_dim, batch_first=True)
        self.attention = LocationAttention(
            config.attention_dim,
            memory_dim,
            hidden_dim,
            conv_channels=16,
            kernel_size=config.location_taps,
            scaling=1.0,
        )
        self.decoder = nn.LSTM(hidden_dim + memory_dim, hidden_dim, batch_first=True)
        self.readout = nn.Linear(hidden_dim + memory_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, num_phones)
        self.ctc = nn.Linear(memory_dim, config.ctc_frames * num_phones) if config.ctc_frames else None

    def forward(
        self,
        graphemes: Int[Tensor, "batch grapheme"],
        grapheme_lengths: Int[Tensor, " batch"],
        phones: Int[Tensor, "batch phone"],
        phone_lengths: Int[Tensor, " batch"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> G2pOutput:
        """Predict each phone of known pronunciations from the ones before it.

        Args:
            graphemes: ids ``(batch, grapheme)``; 0 in padding.
            grapheme_lengths: ``(batch,)``, at least 1.
            phones: ids ``(batch, phone)``, each pronunciation with its end mark 0; 0 in padding.
            phone_lengths: ``(batch,)``, end mark included.
            seeds: int64 ``(batch,)``, of each word's dropout in training, which is then the same in any batch; None
                takes them from torch's global generator.

        Returns:
            ``G2pOutput``; what stands beyond the lengths is of no use, except that the attention is 0.

        Raises:
            ValueError: lengths that do not fit.
        """
        check_lengths(phone_lengths, "phone_lengths", batch_size=phones.shape[0], max_length=phones.shape[1])
        masks = self._dropout_masks(seeds, graphemes)
        memory = self._encode(graphemes, grapheme_lengths, masks)
        previous = nn.functional.pad(phones[:, :-1], (1, 0), value=MARK)
        queries = masks.apply("query", self.query(masks.apply("phones", self.phones(previous)))[0])
        prepared = self.attention.precompute(memory, grapheme_lengths)
        state = self.attention.initial_state(prepared, "first")
        attended = self.attention.attend_sequence(queries.to(memory.dtype), prepared, state, phone_lengths)
        contexts = attended.contexts
        decoded = masks.apply("decoder", self.decoder(torch.cat([queries, contexts.to(queries.dtype)], 2))[0])
        hidden = masks.apply("readout", self._read_out(decoded, contexts.to(decoded.dtype)))
        ctc = None if self.ctc is None else self._ctc_log_probs(memory, grapheme_lengths)
        logits = self.output(hidden)
        return G2pOutput(logits.to(compute_dtype(logits)), attended.weights, ctc)

    def start(
        self, graphemes: Int[Tensor, "batch grapheme"], grapheme_lengths: Int[Tensor, " batch"]
    ) -> tuple[G2pState, AttentionMemory]:
        """Read words.

        Args:
            graphemes: ids ``(batch, grapheme)``.
            grapheme_lengths: ``(batch,)``, at least 1.

        Returns:
            The state before the first phone, and what the words were read as: a row each.
        """
        memory = self.attention.precompute(self._encode(graphemes, grapheme_lengths), grapheme_lengths)
        zeros = memory.values.new_zeros(
            graphemes.shape[0], self.config.decoder_dim
        )  # not len, which export takes for a constant
        return G2pState(self.attention.initial_state(memory, "first"), zeros, zeros, zeros, zeros), memory

    def step(self, phones: Int[Tensor, " rows"], state: G2pState, memory: AttentionMemory) -> StepOutput[G2pState]:
        """Predict the next phone of each hypothesis: a :class:`~sonorant.decoding.step.Step`.

        Args:
            phones: ids ``(rows,)`` of the phones before, 0 at the beginning.
            state: from :meth:`start` or the step before.
            memory: from :meth:`start`.

        Returns:
            Log probabilities ``(rows, phones)``, of which that of 0 is the end; the state after the step; and where
            the step looked.
        """
        asked = (state.query_hidden.unsqueeze(0), state.query_cell.unsqueeze(0))
        queries, (query_hidden, query_cell) = self.query(self.phones(phones).unsqueeze(1), asked)
        context, weights = self.attention(queries[:, 0], memory, state.attention)
        contexts = context.unsqueeze(1)
        said = (state.hidden.unsqueeze(0), state.cell.unsqueeze(0))
        decoded, (hidden, cell) = self.decoder(torch.cat([queries, contexts], 2), said)
        logits = self.output(self._read_out(decoded, contexts))[:, 0]
        attention = self.attention.next_state(state.attention, weights)
        after = G2pState(attention, query_hidden[0], query_cell[0], hidden[0], cell[0])
        return StepOutput(logits.log_softmax(1), after, weights)

    def ctc_log_probs(self, memory: AttentionMemory) -> Padded | None:
        """The CTC head's log probabilities of words that were read; None if the model has no head."""
        return None if self.ctc is None else self._ctc_log_probs(memory.values, memory.lengths)

    @staticmethod
    def max_phones(grapheme_lengths: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        """Where a search gives up: far more phones than any word of so many letters has (``www`` has 21)."""
        return 4 * grapheme_lengths + 12

    def _encode(self, graphemes: Tensor, lengths: Tensor, masks: "_Masks | None" = None) -> Tensor:
        embedded = self.graphemes(graphemes)
        if masks is None:
            encoded: Tensor = self.encoder(embedded, lengths)
        else:
            encoded = self.encoder(masks.apply("graphemes", embedded), lengths, masks.of_encoder())
        return encoded

    def _dropout_masks(self, seeds: Tensor | None, graphemes: Tensor) -> "_Masks":
        config = self.config
        dim, hidden_dim, memory_dim = config.embedding_dim, config.decoder_dim, self.encoder.output_dim
        widths = {"graphemes": dim, "phones": dim, "query": hidden_dim, "decoder": hidden_dim, "readout": hidden_dim}
        widths |= {f"encoder{index}": memory_dim for index in range(config.encoder_layers)}
        if not self.training or config.dropout == 0:
            return _Masks({})
        masks = dropout_masks(seeds, len(graphemes), list(widths.values()), config.dropout, graphemes.device)
        return _Masks(dict(zip(widths, masks, strict=True)))

    def _read_out(self, decoded: Tensor, contexts: Tensor) -> Tensor:
        hidden: Tensor = self.readout(torch.cat([decoded, contexts], 2))
        return hidden.tanh()

    def _ctc_log_probs(self, memory: Tensor, lengths: Tensor) -> Padded:
        assert self.ctc is not None
        logits = self.ctc(memory).unflatten(2, (self.config.ctc_frames, self.num_phones))
        return Padded(logits.to(compute_dtype(logits)).log_softmax(-1).flatten(1, 2), lengths * self.config.ctc_frames)
