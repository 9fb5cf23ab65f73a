"""Faults of recordings and transcripts."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from sonorant.data.check import Requirements, check_corpus, without_faults
from sonorant.data.manifest import Fault, Utterance
from sonorant.functional import ctc_required_frames

Write = Callable[..., Path]
RATE = 8000


def faults_of(path: Path, text: str = "YES", requirements: Requirements | None = None, **place: float) -> list[Fault]:
    utterance = Utterance("a", path, text, source="t:1", **place)
    return check_corpus([utterance], requirements or Requirements(sample_rate=RATE), jobs=1)


def kinds_of(path: Path, text: str = "YES", requirements: Requirements | None = None) -> list[str]:
    return [fault.kind for fault in faults_of(path, text, requirements)]


def letters(words: Sequence[str]) -> list[int]:
    return [ord(letter) for letter in "".join(words)]


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[np.ndarray], Path]:
    """Write samples as they are, in float."""

    def write(samples: np.ndarray) -> Path:
        soundfile.write(tmp_path / "x.wav", samples.astype(np.float32), RATE, subtype="FLOAT")
        return tmp_path / "x.wav"

    return write


def test_nothing_is_wrong_with_a_good_utterance(write_wav: Write) -> None:
    requirements = Requirements(sample_rate=RATE, encode=letters, num_frames=lambda samples, rate: samples // 80)
    assert faults_of(write_wav("a.wav"), "YES NO", requirements) == []


def test_a_missing_recording(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path / "a.wav")
    assert (fault.kind, fault.is_error, fault.id) == ("missing", True, "a")
    assert str(fault) == f"t:1: {tmp_path}/a.wav: no such file"


def test_recordings_that_cannot_be_read(write_wav: Write, tmp_path: Path) -> None:
    (tmp_path / "letter.wav").write_text("Dear recognizer")
    assert kinds_of(tmp_path / "letter.wav") == ["unreadable"]
    cut = write_wav("cut.wav")
    cut.write_bytes(cut.read_bytes()[:1000])
    assert kinds_of(cut) == ["truncated"]
    assert kinds_of(write_wav("empty.wav", seconds=0)) == ["no samples"]
    assert [fault.kind for fault in faults_of(write_wav("a.wav"), start=0.5, duration=1.0)] == ["stretch"]


def test_a_system_error_is_a_fault(write_wav: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Utterance, *args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write_wav("a.wav")
    monkeypatch.setattr(Utterance, "load_audio", fail)
    (fault,) = faults_of(path)
    assert (fault.kind, fault.message) == ("unreadable", f"{path}: Permission denied")


def test_wrong_rate_and_channels_hide_nothing_else(write_wav: Write) -> None:
    path = write_wav("a.wav", seconds=0.5, sample_rate=16000, channels=2)
    requirements = Requirements(sample_rate=RATE, min_duration=1.0)
    assert kinds_of(path, "", requirements) == ["empty text", "channels", "sample rate", "duration"]
    allowed = replace(requirements, allow_resampling=True, mix_channels=True, min_duration=0.0)
    assert kinds_of(path, "YES", allowed) == []


def test_durations_out_of_bounds(write_wav: Write) -> None:
    path = write_wav("a.wav", seconds=2)
    (fault,) = faults_of(path, requirements=Requirements(min_duration=2.5))
    assert str(fault) == "t:1: a: lasts 2.00 s; at least 2.5 s are needed"
    (fault,) = faults_of(path, requirements=Requirements(max_duration=1.5))
    assert str(fault) == f"t:1: {path}: lasts 2.00 s; at most 1.5 s are allowed"
    assert kinds_of(write_wav("long.wav", seconds=31)) == ["duration"]


@pytest.mark.parametrize("offset", [0.0, 0.25])
def test_silence(recorded: Callable[[np.ndarray], Path], offset: float) -> None:
    dither = np.random.default_rng(0).integers(0, 2, RATE) / 32768
    assert kinds_of(recorded(dither + offset)) == ["silence"]
    assert kinds_of(recorded(dither * 10 + offset)) == []


def test_clipping_is_a_warning(recorded: Callable[[np.ndarray], Path]) -> None:
    tone = np.sin(2 * np.pi * 200 * np.arange(RATE) / RATE)
    (fault,) = faults_of(recorded(np.clip(tone * 2, -1, 1)))
    assert (fault.kind, fault.is_error) == ("clipping", False)
    assert "% of the samples are clipped" in fault.message
    one_peak = tone / 2
    one_peak[77] = 1.0
    assert kinds_of(recorded(one_peak)) == []


def test_samples_scaled_as_integers(recorded: Callable[[np.ndarray], Path]) -> None:
    (fault,) = faults_of(recorded(np.arange(RATE) % 2000))
    assert (fault.kind, fault.is_error) == ("samples", True)
    assert "samples reach 1999; [-1, 1] is expected" in fault.message


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", "empty text", "the transcript is empty"),
        ("YE\ufffd", "broken text", "the transcript holds U+FFFD REPLACEMENT CHARACTER"),
        ("YES\x07\x07", "broken text", "the transcript holds U+0007"),
        ("YES\ud800", "broken text", "the transcript holds U+D800"),
        ("YES  NO", "odd text", "the transcript holds several spaces in a row"),
        ("YES\u00a0NO", "odd text", "the transcript holds U+00A0 NO-BREAK SPACE"),
        (
            "YES\ufeff \u200b",
            "odd text",
            "the transcript holds U+FEFF ZERO WIDTH NO-BREAK SPACE, U+200B ZERO WIDTH SPACE",
        ),
        ("-  !", "odd text", "the transcript holds several spaces in a row and neither letters nor digits"),
    ],
)
def test_empty_broken_and_odd_transcripts(write_wav: Write, text: str, kind: str, message: str) -> None:
    (fault,) = faults_of(write_wav("a.wav"), text)
    assert (fault.kind, fault.message, fault.is_error) == (kind, f"a: {message}", kind != "odd text")


@pytest.mark.parametrize("text", ["3", "caf\u00e9 d'or!", "\u0645\u06cc\u200c\u062e", "\u0915\u094d\u200d\u0937"])
def test_digits_marks_and_joiners_are_not_odd(write_wav: Write, text: str) -> None:
    assert kinds_of(write_wav("a.wav"), text) == []


def test_what_cannot_be_encoded_is_outside_the_vocabulary(write_wav: Write) -> None:
    def refuse(words: Sequence[str]) -> list[int]:
        raise ValueError(f"word {words[0]!r} is not in the lexicon")

    (fault,) = faults_of(write_wav("a.wav"), "MAYBE", Requirements(encode=refuse))
    assert (fault.kind, str(fault)) == ("vocabulary", "t:1: a: word 'MAYBE' is not in the lexicon")


@pytest.mark.parametrize(("text", "missing"), [("abc", 0), ("abcd", 1), ("aba", 0), ("aab", 1), ("aaaa", 4)])
def test_transcripts_that_do_not_fit(write_wav: Write, text: str, missing: int) -> None:
    requirements = Requirements(encode=letters, num_frames=lambda samples, rate: samples // 2000 - 1)
    found = faults_of(write_wav("a.wav"), text, requirements)
    labels = torch.tensor([letters([text])])
    required = int(ctc_required_frames(labels, torch.tensor([len(text)])))
    assert required == 3 + missing
    if missing:
        message = f"a: 1.00 s give 3 frames, and its {len(text)} labels need at least {required}"
        assert [(fault.kind, fault.message) for fault in found] == [("too short for its text", message)]
    else:
        assert found == []


def test_frames_are_those_after_resampling(write_wav: Write) -> None:
    seen = []

    def num_frames(samples: int, rate: int) -> int:
        seen.append((samples, rate))
        return 100

    requirements = Requirements(sample_rate=RATE, allow_resampling=True, encode=letters, num_frames=num_frames)
    assert faults_of(write_wav("a.wav", sample_rate=16000), "YES", requirements) == []
    assert seen == [(8000, 8000)]


def test_the_same_audio_with_another_text_is_a_contradiction(write_wav: Write) -> None:
    path = write_wav("a.wav")
    first = Utterance("a", path, "YES", source="t:1")
    utterances = [
        first,
        replace(first, id="b", text="NO", source="t:2"),
        replace(first, id="c", source="t:3"),
        replace(first, id="d", duration=0.5, source="t:4"),
    ]
    found = check_corpus(utterances, Requirements())
    assert [(str(fault), fault.is_error) for fault in found] == [
        ("t:1: a: the audio is that of b (t:2), and their texts differ", True),
        ("t:2: b: the audio is that of a (t:1), and their texts differ", True),
        ("t:3: c: the audio is that of b (t:2), and their texts differ", True),
    ]


def test_repeated_audio_is_a_warning(write_wav: Write) -> None:
    first = Utterance("a", write_wav("a.wav"), "YES", source="t:1")
    (fault,) = check_corpus([first, replace(first, id="b", source="t:2")], Requirements())
    assert (str(fault), fault.is_error) == ("t:2: b: the audio and the text are those of a (t:1)", False)


@pytest.mark.parametrize("jobs", [1, 3, None])
def test_faults_come_in_the_order_of_the_table(write_wav: Write, tmp_path: Path, jobs: int | None) -> None:
    good = write_wav("good.wav")
    utterances = [
        Utterance(
            f"u{n}", good if n % 3 else tmp_path / "none.wav", "YES" if n % 2 else "", start=n / 100, source=f"t:{n}"
        )
        for n in range(40)
    ]
    done: list[int] = []
    found = check_corpus(utterances, Requirements(), jobs=jobs, progress=done.append)
    expected = [(n, "empty text") for n in range(0, 40, 2)] + [(n, "missing") for n in range(0, 40, 3)]
    assert [(fault.source, fault.kind) for fault in found] == [(f"t:{n}", kind) for n, kind in sorted(expected)]
    assert done == list(range(1, 41))


def utterances_and_faults() -> tuple[list[Utterance], list[Fault]]:
    utterances = [Utterance(name, Path(name), "YES", source=f"t:{line}") for line, name in enumerate("abc")]
    faults = [
        Fault("t:0", "a", "clipping", "a: clipped"),
        Fault("t:1", "b", "missing", "b: no such file"),
        Fault("t:1", "b", "empty text", "b: the transcript is empty"),
        Fault("t:7", "c", "table", "c is in the table twice"),
    ]
    return utterances, faults


def test_bad_utterances_are_refused_with_all_faults() -> None:
    with pytest.raises(ValueError, match=r"utterances that cannot be used \(2\)") as caught:
        without_faults(*utterances_and_faults(), skip_bad=False)
    assert str(caught.value).splitlines()[1:] == [
        "  t:1: b: no such file",
        "  t:1: b: the transcript is empty",
        "  t:7: c is in the table twice",
    ]


def test_bad_utterances_are_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        good = without_faults(*utterances_and_faults(), skip_bad=True)
    assert [utterance.id for utterance in good] == ["a", "c"]  # the first c is good
    assert len(caplog.records) == 1
    assert "utterances left out: 2; used: 2:\n  t:1: b: no such file" in caplog.text


def test_warnings_refuse_nothing(caplog: pytest.LogCaptureFixture) -> None:
    utterances, faults = utterances_and_faults()
    assert without_faults(utterances, faults[:1], skip_bad=False) == utterances
    assert caplog.records == []


def test_no_good_utterance_is_an_error() -> None:
    utterances, faults = utterances_and_faults()
    with pytest.raises(ValueError, match="cannot be used, which leaves none"):
        without_faults(utterances[1:2], faults[1:2], skip_bad=True)
