"""An exponential that vectorises: numba without Intel's library calls the scalar one for every element."""

import math

import numpy as np

from sonorant.functional.kernels import kernel_part

__all__ = ["exp_float32", "exp_float64"]

_LOG2_E = np.float32(math.log2(math.e))
# ln 2 in two parts. The first has so few bits that its product with an exponent is exact.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(math.log(2) - 0.693359375)
_HALF = np.float32(0.5)
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (np.float32(1 / math.factorial(n)) for n in range(7))


@kernel_part()
def exp_float32(x):  # type: ignore[no-untyped-def]
    """exp(x) for x in [-87, 88] in float32, to 2.5e-7 relative; outside of that range the result means nothing.

    With x = n ln 2 + r and |r| <= ln 2 / 2, it is 2^n, made of its bits, times the series of exp(r).
    """
    n = np.floor(x * _LOG2_E + _HALF)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    series = _C5 + r * _C6
    series = _C4 + r * series
    series = _C3 + r * series
    series = _C2 + r * series
    series = _C1 + r * series
    series = _C0 + r * series
    power_of_two = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return series * power_of_two


_TERMS = tuple(1 / math.factorial(n) for n in range(13))
_LN2_UPPER = 0.693147180369123816490  # 32 bits, so that its product with an exponent is exact
_LN2_LOWER = 1.90821492927058770002e-10


@kernel_part()
def exp_float64(x):  # type: ignore[no-untyped-def]
    """exp(x) for x in [-700, 700] in float64, to 5e-16 relative; outside of that range the result means nothing."""
    n = np.floor(x * math.log2(math.e) + 0.5)
    r = (x - n * _LN2_UPPER) - n * _LN2_LOWER
    # by pairs and fours: one long chain of terms would wait for each of them
    square = r * r
    fourth = square * square
    terms_0_to_3 = (_TERMS[0] + r * _TERMS[1]) + square * (_TERMS[2] + r * _TERMS[3])
    terms_4_to_7 = (_TERMS[4] + r * _TERMS[5]) + square * (_TERMS[6] + r * _TERMS[7])
    terms_8_to_11 = (_TERMS[8] + r * _TERMS[9]) + square * (_TERMS[10] + r * _TERMS[11])
    series = terms_0_to_3 + fourth * (terms_4_to_7 + fourth * (terms_8_to_11 + fourth * _TERMS[12]))
    # by way of int32, into which processors without AVX-512 can convert several at once
    power_of_two = np.int64((np.int64(np.int32(n)) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return series * power_of_two
