"""The case table: one entry for every public operation."""

from tests.cases import (
    adversarial,
    alignment,
    classification,
    composites,
    ctc,
    flow,
    lengths,
    normalization,
    regression,
    regularization,
    spectral,
    tdnn,
)
from tests.cases.case import Case

CASES: list[Case] = [
    *lengths.CASES,
    *ctc.CASES,
    *alignment.CASES,
    *normalization.CASES,
    *tdnn.CASES,
    *classification.CASES,
    *regression.CASES,
    *regularization.CASES,
    *flow.CASES,
    *adversarial.CASES,
    *spectral.CASES,
    *composites.CASES,
]
