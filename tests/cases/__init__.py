"""The case table: one entry for every public operation."""

from tests.cases import attention, ctc, lengths, normalization, tdnn
from tests.cases.case import Case

CASES: list[Case] = [*lengths.CASES, *attention.CASES, *ctc.CASES, *normalization.CASES, *tdnn.CASES]
