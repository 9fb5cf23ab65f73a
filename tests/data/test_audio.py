"""Recordings that can be read, and those that are refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from sonorant.data.audio import AudioError, change_speed, check_samples, load_audio, resample, write_audio

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


@pytest.mark.parametrize("extension", ["wav", "flac", "ogg"])
def test_a_stretch_is_what_the_whole_holds_there(write_wav: Write, extension: str) -> None:
    subtype = "VORBIS" if extension == "ogg" else "PCM_16"
    path = write_wav(f"a.{extension}", seconds=2, subtype=subtype)
    whole, _ = load_audio(path)
    for start, duration, stretch in (
        (0.5, 0.25, slice(4000, 6000)),
        (1.5, None, slice(12000, None)),
        (0, 1, slice(8000)),
    ):
        np.testing.assert_allclose(load_audio(path, start=start, duration=duration).samples, whole[stretch], atol=1e-6)


def test_a_stretch_may_end_a_little_late(write_wav: Write) -> None:
    path = write_wav("a.wav")
    assert len(load_audio(path, start=0.5, duration=0.59).samples) == 4000


@pytest.mark.parametrize(
    ("start", "duration", "message"),
    [
        (0.5, 0.7, r"a\.wav: from 0\.5 s to 1\.2 s is needed, and it ends at 1 s"),
        (1.0, None, "from 1 s to its end is needed"),
        (1.0, 0.05, "from 1 s to 1.05 s is needed"),
        (-0.5, 1.0, "from -0.5 s"),
        (0.5, 0.0, r"a\.wav: holds 0 samples"),
    ],
)
def test_a_stretch_outside_is_refused(write_wav: Write, start: float, duration: float | None, message: str) -> None:
    with pytest.raises(AudioError, match=message):
        load_audio(write_wav("a.wav"), start=start, duration=duration)


def test_one_channel_of_several_is_read(write_wav: Write) -> None:
    path = write_wav("stereo.wav", channels=2)
    both, _ = soundfile.read(path)
    np.testing.assert_allclose(load_audio(path, channel=1).samples, both[:, 1], atol=1e-6)
    with pytest.raises(AudioError, match=r"stereo\.wav: has 2 channels; there is no channel 2"):
        load_audio(path, channel=2)


def test_what_is_too_long_is_refused(write_wav: Write) -> None:
    path = write_wav("long.wav", seconds=2)
    with pytest.raises(AudioError, match=r"long\.wav: lasts 2\.00 s; at most 1 s are allowed"):
        load_audio(path, max_duration=1)
    assert len(load_audio(path, duration=1, max_duration=1).samples) == 8000


@pytest.mark.parametrize("extension", ["flac", "ogg", "mp3"])
@pytest.mark.parametrize("keep", [0.6, 0.99])
def test_truncated_compressed_audio_is_refused(write_wav: Write, extension: str, keep: float) -> None:
    subtype = {"flac": "PCM_16", "ogg": "VORBIS", "mp3": "MPEG_LAYER_III"}[extension]
    path = write_wav(f"cut.{extension}", seconds=5, subtype=subtype)
    load_audio(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(AudioError, match=rf"cut\.{extension}: (truncated|not a recording)"):
        load_audio(path)


def test_what_is_written_is_clipped_and_never_wraps(tmp_path: Path) -> None:
    samples = np.array([0.5, 1.5, -1.5, 1.0, -1.0, 1e-5], dtype=np.float32)
    for name in ("a.wav", "a.flac"):
        write_audio(tmp_path / name, samples, 8000)
        found, rate = soundfile.read(tmp_path / name, dtype="int16")
        assert rate == 8000
        assert found.tolist() == [16384, 32767, -32768, 32767, -32768, 0]
    write_audio(tmp_path / "a.wav", np.zeros(3), 8000)
    assert len(soundfile.read(tmp_path / "a.wav")[0]) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"a.wav", "a.flac"}


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"a\.txt: the ending does not tell a format"):
        write_audio(tmp_path / "a.txt", np.zeros(3), 8000)
    with pytest.raises(AudioError, match=r"a\.wav: sample 1 is nan"):
        write_audio(tmp_path / "a.wav", np.array([0.0, np.nan]), 8000)
    with pytest.raises(FileNotFoundError):
        write_audio(tmp_path / "no" / "a.wav", np.zeros(3), 8000)
    assert not list(tmp_path.iterdir())
