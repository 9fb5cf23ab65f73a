"""The case table: one entry for every public operation."""

from tests.cases import alignment, ctc, lengths, normalization, tdnn
from tests.cases.case import Case

CASES: list[Case] = [*lengths.CASES, *ctc.CASES, *alignment.CASES, *normalization.CASES, *tdnn.CASES]
