"""The pronunciation model: training and step-by-step use give the same numbers, and padding changes none."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from sonorant.lengths import pad_sequences
from sonorant.models import G2p, G2pConfig

CONFIG = G2pConfig(embedding_dim=6, encoder_dim=5, decoder_dim=7, attention_dim=4, dropout=0.0, ctc_frames=2)
NUM_GRAPHEMES, NUM_PHONES = 9, 8
WORDS = [[1, 2, 3, 4, 5], [8], [6, 6, 7]]
PHONES = [[1, 2, 0], [3, 4, 5, 6, 7, 0], [0]]


@pytest.fixture
def model() -> G2p:
    torch.manual_seed(0)
    return G2p(CONFIG, NUM_GRAPHEMES, NUM_PHONES).double().eval()


def batch(words: list[list[int]] = WORDS, phones: list[list[int]] = PHONES) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    graphemes, pronunciations = (pad_sequences([torch.tensor(row) for row in rows]) for rows in (words, phones))
    return *graphemes, *pronunciations


@torch.no_grad()
def test_training_and_single_steps_give_the_same_numbers(model: G2p) -> None:
    graphemes, grapheme_lengths, phones, phone_lengths = batch()
    output = model(graphemes, grapheme_lengths, phones, phone_lengths)
    state, memory = model.start(graphemes, grapheme_lengths)
    previous = torch.zeros(len(WORDS), dtype=torch.int64)
    for index in range(phones.shape[1]):
        log_probs, state, attention = model.step(previous, state, memory)
        previous = phones[:, index]
        valid = index < phone_lengths
        expected = output.logits[:, index].log_softmax(1)
        torch.testing.assert_close(log_probs[valid], expected[valid], rtol=0, atol=1e-12)
        torch.testing.assert_close(attention[valid], output.attention[:, index][valid], rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_batch_equals_its_words_whatever_the_padding(model: G2p) -> None:
    graphemes, grapheme_lengths, phones, phone_lengths = batch()
    together = model(graphemes, grapheme_lengths, phones, phone_lengths)
    for index, (word, pronunciation) in enumerate(zip(WORDS, PHONES, strict=True)):
        alone = model(*batch([word], [pronunciation]))
        torch.testing.assert_close(together.logits[index, : len(pronunciation)], alone.logits[0])
        weights = together.attention[index]
        torch.testing.assert_close(weights[: len(pronunciation), : len(word)], alone.attention[0])
        assert weights[len(pronunciation) :].abs().sum() == weights[:, len(word) :].abs().sum() == 0
        assert together.ctc.lengths[index] == 2 * len(word)
        torch.testing.assert_close(together.ctc.values[index, : 2 * len(word)], alone.ctc.values[0])


def test_every_parameter_learns(model: G2p) -> None:
    output = model.train()(*batch())
    (output.logits.square().sum() + output.ctc.values.square().sum() + output.attention.square().sum()).backward()
    # the bias of the energies does nothing to a softmax
    without = [n for n, p in model.named_parameters() if (p.grad is None or not p.grad.any()) and "proj_out" not in n]
    assert not without


def test_a_phone_depends_on_those_before_it_only(model: G2p) -> None:
    graphemes, grapheme_lengths, phones, phone_lengths = batch([[1, 2, 3]], [[1, 2, 3, 0]])
    changed = phones.clone()
    changed[0, 1] = 5
    with torch.no_grad():
        one, other = (model(graphemes, grapheme_lengths, p, phone_lengths).logits[0] for p in (phones, changed))
    assert torch.equal(one[:2], other[:2])
    assert not torch.equal(one[2], other[2])


def test_the_context_is_part_of_the_state(model: G2p) -> None:
    """Another word under the same phones gives another state after a step."""
    phones = torch.zeros(1, dtype=torch.int64)
    with torch.no_grad():
        states = [model.step(phones, *model.start(*batch([word], [[0]])[:2])).state for word in ([1, 2], [3, 4])]
    assert torch.equal(states[0].query_hidden, states[1].query_hidden)
    assert not torch.equal(states[0].hidden, states[1].hidden)


def test_a_model_without_a_ctc_head() -> None:
    model = G2p(G2pConfig(encoder_dim=4, decoder_dim=4), NUM_GRAPHEMES, NUM_PHONES)
    assert model(*batch()).ctc is None
    assert model.ctc_log_probs(model.start(*batch()[:2])[1]) is None


def test_dropout_is_that_of_the_word_in_any_batch(model: G2p) -> None:
    dropping = G2p(replace(CONFIG, dropout=0.4, encoder_layers=2), NUM_GRAPHEMES, NUM_PHONES).double().train()
    seeds = torch.tensor([5, 6, 7])
    together = dropping(*batch(), seeds)
    for index, (word, pronunciation) in enumerate(zip(WORDS, PHONES, strict=True)):
        alone = dropping(*batch([word], [pronunciation]), seeds[index : index + 1])
        torch.testing.assert_close(together.logits[index, : len(pronunciation)], alone.logits[0])
    other = dropping(*batch(), seeds + 1)
    assert not torch.equal(other.logits, together.logits)
    assert torch.equal(dropping.eval()(*batch(), seeds).logits, dropping(*batch()).logits)


def test_dropout_keeps_the_mean_and_its_mask_through_a_word() -> None:
    model = G2p(replace(CONFIG, dropout=0.25, embedding_dim=64), NUM_GRAPHEMES, NUM_PHONES).train()
    seen: list[Tensor] = []
    model.query.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torch.nn.init.ones_(model.phones.weight)
    torch.manual_seed(0)
    words = [[1, 2]] * 50
    model(*batch(words, [[1, 2, 3, 0]] * 50))
    assert torch.equal(seen[0], seen[0][:, :1].expand_as(seen[0]))
    assert seen[0].unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert float(seen[0].mean()) == pytest.approx(1, abs=0.05)
