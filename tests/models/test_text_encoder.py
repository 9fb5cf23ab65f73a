"""The text encoder: padding, accents, dropout."""

import pytest
import torch
from torch import Tensor

from sonorant.models import TextEncoder, TextEncoderConfig

CONFIG = TextEncoderConfig(hidden_channels=8, lstm_dim=5, dropout=0.5)
TOKENS, LENGTHS = torch.tensor([[1, 2, 3, 1, 2, 1], [1, 4, 1, 5, 5, 5]]), torch.tensor([6, 3])


@pytest.fixture
def encoder() -> TextEncoder:
    torch.manual_seed(0)
    return TextEncoder(CONFIG, num_tokens=6, accent_dim=3).double()


@pytest.fixture
def accents() -> Tensor:
    return torch.randn(2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_a_batch_equals_its_texts_whatever_the_padding(encoder: TextEncoder, accents: Tensor) -> None:
    encoder.eval()
    together = encoder(TOKENS, LENGTHS, accents)
    assert together.shape == (2, 6, CONFIG.text_dim)
    assert not together[1, 3:].any()
    torch.testing.assert_close(together[1:, :3], encoder(TOKENS[1:, :3], LENGTHS[1:], accents[1:]))


def test_an_accent_changes_every_token(encoder: TextEncoder, accents: Tensor) -> None:
    """An instance norm would take it out again, except at the edges."""
    encoder.eval()
    tokens, lengths = torch.ones(1, 30, dtype=torch.long), torch.tensor([30])
    with torch.no_grad():
        for lstm in (*encoder.lstm.forwards, *encoder.lstm.backwards):
            lstm.weight_hh_l0.zero_()  # so that nothing but the convolutions reaches the middle
        plain, other = (encoder(tokens, lengths, accents[index : index + 1]) for index in range(2))
    differences = (plain - other)[0].norm(dim=1)
    assert differences[15] > 0.01 * plain[0, 15].norm()


def test_dropout_belongs_to_the_text(encoder: TextEncoder, accents: Tensor) -> None:
    seeds = torch.tensor([5, 6])
    together = encoder(TOKENS, LENGTHS, accents, seeds)
    torch.testing.assert_close(together[1:, :3], encoder(TOKENS[1:, :3], LENGTHS[1:], accents[1:], seeds[1:]))
    assert not torch.equal(together, encoder(TOKENS, LENGTHS, accents, seeds + 10))


def test_settings_that_cannot_be(encoder: TextEncoder, accents: Tensor) -> None:
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\); got -1"):
        TextEncoderConfig(dropout=-1)
    with pytest.raises(ValueError, match=r"token_lengths\[0\] is 7"):
        encoder(TOKENS, LENGTHS + 1, accents)
