"""The case table: one entry for every public operation."""

from tests.cases import (
    adversarial,
    alignment,
    attention,
    classification,
    composites,
    ctc,
    flow,
    flow_layers,
    lengths,
    mel,
    normalization,
    regression,
    regularization,
    spectral,
    tdnn,
)
from tests.cases.case import Case

CASES: list[Case] = [
    *adversarial.CASES,
    *alignment.CASES,
    *attention.CASES,
    *classification.CASES,
    *composites.CASES,
    *ctc.CASES,
    *flow.CASES,
    *flow_layers.CASES,
    *lengths.CASES,
    *mel.CASES,
    *normalization.CASES,
    *regression.CASES,
    *regularization.CASES,
    *spectral.CASES,
    *tdnn.CASES,
]
