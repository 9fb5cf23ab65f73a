"""Padding and masks beyond what the contracts check."""

import pytest
import torch

from sonorant import Padded, pad_sequences, sequence_mask


def test_mask_without_a_maximum_is_as_wide_as_the_longest() -> None:
    assert sequence_mask(torch.tensor([2, 0])).tolist() == [[True, True], [False, False]]
    assert sequence_mask(torch.zeros(0, dtype=torch.long)).shape == (0, 0)


def test_pad_sequences_keeps_values_and_counts() -> None:
    padded = pad_sequences([torch.ones(1, 2), torch.full((3, 2), 2.0)], padding_value=-1.0)
    assert isinstance(padded, Padded)
    assert padded.lengths.tolist() == [1, 3]
    assert padded.values[0].tolist() == [[1.0, 1.0], [-1.0, -1.0], [-1.0, -1.0]]


@pytest.mark.parametrize(
    ("sequences", "message"),
    [([], "nothing to pad"), ([torch.ones(2, 3), torch.ones(2, 4)], r"sequences\[1\]"), ([torch.tensor(1.0)], "shape")],
)
def test_what_cannot_be_padded_is_named(sequences: list[torch.Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pad_sequences(sequences)


def test_relative_lengths_are_refused_with_a_hint() -> None:
    with pytest.raises(ValueError, match="absolute counts, not relative"):
        sequence_mask(torch.tensor([0.5, 1.0]), 10)
