"""Decoding of G.722 recordings (64 kbit/s, 16 kHz): telephone prompts come in it, and libsndfile does not know it.

References:
    ITU-T Recommendation G.722 (2012), "7 kHz audio-coding within 64 kbit/s"; names in comments are its block names.
"""

import numpy as np
import numpy.typing as npt

from sonorant.functional.kernels import kernel

__all__ = ["G722_SAMPLE_RATE", "decode_g722"]

G722_SAMPLE_RATE = 16000

# inverse quantizers of 2, 4 and 6 bits
_INVERSE_2 = np.array([-7408, -1616, 7408, 1616])
_INVERSE_4 = np.array(
    [0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584, 1200, 0]
)
_STEPS_6 = [24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456]
_STEPS_6 += [4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728]
_INVERSE_6 = np.array([-136] * 4 + [-step for step in _STEPS_6] + _STEPS_6 + [432, 136, -432, -136])
# how the logarithm of the step changes with the code, and the step from the logarithm's fraction
_LOG_LOW = np.array([-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60])
_LOG_HIGH = np.array([798, -214, 798, -214])
_STEP = np.floor(2 ** (11 + np.arange(32) / 32) + 0.5).astype(np.int64)
_MIRROR = np.array([3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11])  # every other tap of the filter


def decode_g722(data: bytes) -> npt.NDArray[np.int16]:
    """The samples of a G.722 stream, 16-bit at 16 kHz: two for every byte.

    Bit-exact. In plain Python, without the extra ``fast``, it takes one to two times as long as the recording lasts.

    Args:
        data: one code word a byte.

    Example:
        >>> from sonorant.data.g722 import decode_g722
        >>> decode_g722(bytes([0xFA, 0x3A, 0x91])).shape
        (6,)
    """
    codes = np.frombuffer(data, dtype=np.uint8).astype(np.int64)
    output = np.zeros(2 * len(codes), dtype=np.int16)
    tables = (_INVERSE_2, _INVERSE_4, _INVERSE_6, _LOG_LOW, _LOG_HIGH, _STEP, _MIRROR)
    _decode(0, len(codes), codes, output, *tables)
    return output


@kernel
def _decode(
    start: int,
    stop: int,
    codes: npt.NDArray[np.int64],
    output: npt.NDArray[np.int16],
    inverse_2: npt.NDArray[np.int64],
    inverse_4: npt.NDArray[np.int64],
    inverse_6: npt.NDArray[np.int64],
    log_low: npt.NDArray[np.int64],
    log_high: npt.NDArray[np.int64],
    step_table: npt.NDArray[np.int64],
    mirror: npt.NDArray[np.int64],
) -> None:
    # row 0 is the lower band, row 1 the upper
    step = np.array([32, 8])  # the quantizer's step
    log_step = np.zeros(2, dtype=np.int64)
    predicted = np.zeros(2, dtype=np.int64)
    from_zeros = np.zeros(2, dtype=np.int64)  # the part of the prediction that the zeros give
    poles = np.zeros((2, 2), dtype=np.int64)
    zeros = np.zeros((2, 6), dtype=np.int64)
    differences = np.zeros((2, 7), dtype=np.int64)
    rebuilt = np.zeros((2, 3), dtype=np.int64)
    partial = np.zeros((2, 3), dtype=np.int64)
    decoded = np.zeros(2, dtype=np.int64)
    history = np.zeros(24, dtype=np.int64)

    for position in range(start, stop):
        low, high = codes[position] & 63, codes[position] >> 6
        for band in range(2):
            # the output takes all bits, the adaptation of the lower band only the four that cannot be robbed
            if band == 0:
                fine = (step[0] * inverse_6[low]) >> 15
                coarse = (step[0] * inverse_4[low >> 2]) >> 15
                change, most, shift = log_low[low >> 2], 18432, 8
            else:
                fine = coarse = (step[1] * inverse_2[high]) >> 15
                change, most, shift = log_high[high], 22528, 10
            decoded[band] = min(max(predicted[band] + fine, -16384), 16383)
            # LOGSCL, SCALEL
            log_step[band] = min(max(((log_step[band] * 127) >> 7) + change, 0), most)
            mantissa, exponent = step_table[(log_step[band] >> 6) & 31], shift - (log_step[band] >> 11)
            step[band] = (mantissa << -exponent if exponent < 0 else mantissa >> exponent) << 2

            # RECONS, PARREC
            differences[band, 0] = coarse
            rebuilt[band, 0] = min(max(predicted[band] + coarse, -32768), 32767)
            partial[band, 0] = min(max(from_zeros[band] + coarse, -32768), 32767)
            # UPPOL2, UPPOL1
            agree = (partial[band, 0] < 0) == (partial[band, 1] < 0)
            agree_before = (partial[band, 0] < 0) == (partial[band, 2] < 0)
            lean = min(max(poles[band, 0] << 2, -32768), 32767)
            second = (min(-lean if agree else lean, 32767) >> 7) + (128 if agree_before else -128)
            second = min(max(second + ((poles[band, 1] * 32512) >> 15), -12288), 12288)
            first = (192 if agree else -192) + ((poles[band, 0] * 32640) >> 15)
            limit = 15360 - second
            poles[band, 0], poles[band, 1] = min(max(first, -limit), limit), second
            # UPZERO
            for tap in range(6):
                towards = 0
                if coarse != 0:
                    towards = 128 if (differences[band, tap + 1] < 0) == (coarse < 0) else -128
                zeros[band, tap] = min(max(towards + ((zeros[band, tap] * 32640) >> 15), -32768), 32767)
            # DELAYA
            for tap in range(6, 0, -1):
                differences[band, tap] = differences[band, tap - 1]
            for tap in range(2, 0, -1):
                rebuilt[band, tap] = rebuilt[band, tap - 1]
                partial[band, tap] = partial[band, tap - 1]
            # FILTEP, FILTEZ, PREDIC
            from_poles = 0
            for tap in range(2):
                from_poles += (poles[band, tap] * min(max(2 * rebuilt[band, tap + 1], -32768), 32767)) >> 15
            from_poles = min(max(from_poles, -32768), 32767)
            total = 0
            for tap in range(6):
                total += (zeros[band, tap] * min(max(2 * differences[band, tap + 1], -32768), 32767)) >> 15
            from_zeros[band] = min(max(total, -32768), 32767)
            predicted[band] = min(max(from_poles + from_zeros[band], -32768), 32767)

        # the quadrature mirror filter puts the bands together
        for tap in range(22):
            history[tap] = history[tap + 2]
        history[22], history[23] = decoded[0] + decoded[1], decoded[0] - decoded[1]
        even = odd = 0
        for tap in range(12):
            even += history[2 * tap] * mirror[tap]
            odd += history[2 * tap + 1] * mirror[11 - tap]
        output[2 * position] = min(max(odd >> 11, -32768), 32767)
        output[2 * position + 1] = min(max(even >> 11, -32768), 32767)
