"""Masks."""

import torch
from torch import Tensor

from sonorant import sequence_mask
from tests.cases.case import Case, Inputs, Rng


def _make(lengths: dict[str, Tensor], rng: Rng) -> Inputs:
    return dict(lengths)


def _reference(lengths: Tensor, max_length: int) -> Tensor:
    return torch.tensor([[t < int(length) for t in range(max_length)] for length in lengths])


CASES = [
    Case(
        name="sequence_mask",
        make=_make,
        lengths={"lengths": (0, 7)},
        reference=_reference,
        function=sequence_mask,
        options={"max_length": 7},
        per_utterance={},
    )
]
