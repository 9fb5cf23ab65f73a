"""The case table: one entry for every public operation."""

from tests.cases import adversarial, ctc, lengths, normalization, spectral, tdnn
from tests.cases.case import Case

CASES: list[Case] = [
    *lengths.CASES,
    *ctc.CASES,
    *normalization.CASES,
    *tdnn.CASES,
    *adversarial.CASES,
    *spectral.CASES,
]
