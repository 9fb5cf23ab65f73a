"""Mel filters."""

from typing import Any

import torch

from sonorant.functional import mel_filterbank
from tests.cases.case import Case
from tests.reference.mel import mel_filterbank_by_weights


def _mel(name: str, **options: Any) -> Case:
    return Case(
        name=f"mel_filterbank, {name}",
        make=lambda lengths, rng: {},
        lengths={},
        reference=mel_filterbank_by_weights,
        function=mel_filterbank,
        options={"dtype": torch.float64, **options},
    )


CASES = [
    _mel("slaney", n_fft=64, sample_rate=16000, n_mels=8),
    _mel("htk", n_fft=63, sample_rate=8000, n_mels=8, f_min=60.0, f_max=3500.0, mel_scale="htk", norm=None),
]
