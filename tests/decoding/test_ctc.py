"""Greedy decoding."""

import pytest
import torch

from sonorant.decoding.ctc import TokenSpan, ctc_greedy_decode


def frames(*classes: int) -> torch.Tensor:
    return torch.eye(4)[torch.tensor(classes)].log()


def test_merges_repeats_and_drops_blanks() -> None:
    batch = torch.stack([frames(1, 1, 0, 1, 2, 2), frames(0, 0, 3, 3, 3, 3)])
    first, second = ctc_greedy_decode(batch, torch.tensor([6, 4]))
    assert first == [TokenSpan(1, 0, 2), TokenSpan(1, 3, 4), TokenSpan(2, 4, 6)]
    assert second == [TokenSpan(3, 2, 4)]


def test_another_blank_and_no_frames() -> None:
    (spans,) = ctc_greedy_decode(frames(3, 0, 3)[None], torch.tensor([3]), blank=3)
    assert spans == [TokenSpan(0, 1, 2)]
    assert ctc_greedy_decode(frames(1, 1)[None], torch.tensor([0])) == [[]]


def test_lengths_are_checked() -> None:
    with pytest.raises(ValueError, match=r"lengths\[0\] is 3"):
        ctc_greedy_decode(frames(1, 1)[None], torch.tensor([3]))
