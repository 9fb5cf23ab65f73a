"""Recordings that can be read, and those that are refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from sonorant.data.audio import AudioError, change_speed, check_samples, load_audio, resample

Write = Callable[..., Path]


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "PCM_32", "FLOAT", "PCM_U8"])
def test_every_sample_format_gives_the_same_samples(write_wav: Write, subtype: str) -> None:
    samples, sample_rate = load_audio(write_wav("a.wav", subtype=subtype), 8000)
    expected, _ = load_audio(write_wav("b.wav", subtype="DOUBLE"))
    assert (samples.dtype, sample_rate) == (np.float32, 8000)
    np.testing.assert_allclose(samples, expected, atol=1 / 100 if subtype == "PCM_U8" else 1 / 30000)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.wav: no such file"):
        load_audio(tmp_path / "gone.wav")


def test_stereo_is_refused_or_mixed(write_wav: Write) -> None:
    path = write_wav("stereo.wav", channels=2)
    with pytest.raises(AudioError, match=r"stereo\.wav: has 2 channels"):
        load_audio(path)
    both, _ = soundfile.read(path)
    np.testing.assert_allclose(load_audio(path, mix_channels=True).samples, both.mean(1), atol=1e-6)


def test_another_rate_is_refused_or_resampled(write_wav: Write) -> None:
    path = write_wav("fast.wav", sample_rate=16000)
    with pytest.raises(AudioError, match=r"fast\.wav: the sample rate is 16000 Hz; 8000 Hz is needed"):
        load_audio(path, 8000)
    samples, sample_rate = load_audio(path, 8000, allow_resampling=True)
    assert (len(samples), sample_rate) == (8000, 8000)


def test_no_samples_are_refused(write_wav: Write) -> None:
    with pytest.raises(AudioError, match=r"empty\.wav: holds 0 samples"):
        load_audio(write_wav("empty.wav", seconds=0))


@pytest.mark.parametrize("keep", [0.5, 0.999])
def test_a_truncated_wav_is_refused(write_wav: Write, keep: float) -> None:
    path = write_wav("cut.wav")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(AudioError, match=r"cut\.wav: truncated: its header declares 16000 bytes"):
        load_audio(path)


def test_a_header_alone_is_refused(write_wav: Write) -> None:
    path = write_wav("head.wav")
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(AudioError, match=r"head\.wav"):
        load_audio(path)


def test_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.wav"
    path.write_text("Dear recognizer, this is not a recording.")
    with pytest.raises(AudioError, match=r"letter\.wav: not a recording"):
        load_audio(path)


def test_nan_is_refused_with_its_place(tmp_path: Path) -> None:
    samples = np.zeros(100, dtype=np.float32)
    samples[7] = np.nan
    soundfile.write(tmp_path / "nan.wav", samples, 8000, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"nan\.wav: sample 7 is nan"):
        load_audio(tmp_path / "nan.wav")


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros((2, 50), dtype=np.float32), r"shape \(2, 50\)"),
        (np.zeros(50, dtype=np.int16), "int16; floats in"),
        (np.zeros(0, dtype=np.float32), "0 samples"),
    ],
)
def test_arrays_that_are_no_recording_are_refused(samples: np.ndarray, message: str) -> None:
    with pytest.raises(AudioError, match=message):
        check_samples(samples, "audio")


def test_speed_changes_length_and_pitch() -> None:
    tone = np.sin(2 * np.pi * 500 * np.arange(8000) / 8000).astype(np.float32)
    for factor in (0.9, 1.1):
        faster = change_speed(tone, factor)
        assert len(faster) == pytest.approx(8000 / factor, abs=1)
        peak = np.abs(np.fft.rfft(faster)).argmax() * 8000 / len(faster)
        assert peak == pytest.approx(500 * factor, abs=2)
    assert change_speed(tone, 1) is tone
    with pytest.raises(ValueError, match="factor must be positive; got 0"):
        change_speed(tone, 0)


def test_resampling_keeps_a_tone() -> None:
    tone = np.sin(2 * np.pi * 500 * np.arange(16000) / 16000).astype(np.float32)
    expected = np.sin(2 * np.pi * 500 * np.arange(8000) / 8000)
    np.testing.assert_allclose(resample(tone, 16000, 8000)[100:-100], expected[100:-100], atol=1e-3)
