"""G.722 decoding, against what FFmpeg's decoder gave for the same bytes."""

import hashlib

import numpy as np
import pytest

from sonorant.data.g722 import decode_g722
from sonorant.functional import kernels

CODES = np.random.default_rng(0).integers(0, 256, 2000, dtype=np.uint8).tobytes()
# of FFmpeg 8's output: 4,000 little-endian 16-bit samples
SHA256 = "54e97b5f7f0fb9211ddbe41fe3903a542e36142803fee8c38f03b204c3061328"


@pytest.mark.parametrize("numba", [True, False])
def test_every_sample_is_that_of_the_reference(monkeypatch: pytest.MonkeyPatch, numba: bool) -> None:
    if numba:
        pytest.importorskip("numba")
    monkeypatch.setattr(kernels, "available", lambda: numba)
    samples = decode_g722(CODES)
    assert hashlib.sha256(samples.astype("<i2").tobytes()).hexdigest() == SHA256


def test_no_bytes_are_no_samples() -> None:
    assert len(decode_g722(b"")) == 0


def test_nothing_is_kept_between_calls() -> None:
    first = decode_g722(CODES[:300])
    np.testing.assert_array_equal(decode_g722(CODES[:300]), first)
    np.testing.assert_array_equal(decode_g722(CODES)[:600], first)
