"""The Asterisk prompts: what is said, what is left out, and where they come from."""

import gzip
import os
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest
import soundfile

from sonorant.data.asterisk import AsteriskCorpus, load_asterisk, spoken_text
from sonorant.data.download import cache_directory, find_corpus

TEXTS = """\ufeff; Core Asterisk Sounds in English

digits/1: one
hello: Hello...
beep: [this is a simple beep tone]
gone: This has no recording.
letters/at: at [@]
odd: Press  * or (maybe) 2.
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please enter a new extension, followed by pound.", "please enter a new extension followed by pound"),
        ("... for ...", "for"),
        ("press 1 to accept this call, or 2 to reject it", "press one to accept this call or two to reject it"),
        ("press * to pause, # or just # to exit", "press star to pause pound or just pound to exit"),
        ("extension 1234, dial 500, a 28.8 kilobit modem", None),
        ("H.323", "h three two three"),
        ("3D audio", "three d audio"),
        ("A.M.", "a m"),
        ("visit www.asterisk.org.", "visit www dot asterisk dot org"),
        ("Call-Forward on No Answer.", "call forward on no answer"),
        ("I\u2019m sorry, your party's 'line' is busy", "i'm sorry your party's line is busy"),
        ('IAX (note: does not say "2")', "iax"),
        ("at [@]", "at"),
        ("Un-indentified or witheld", "unidentified or withheld"),
    ],
)
def test_text_is_put_as_it_is_spoken(text: str, expected: str | None) -> None:
    expected = expected or "extension one two three four dial five zero zero a twenty eight point eight kilobit modem"
    assert spoken_text(text) == (expected, "")


@pytest.mark.parametrize(
    ("text", "language", "reason"),
    [
        ("[ascending tones]", "en", "no speech"),
        ("<beep ascending>", "en", "no speech"),
        ("(1 second of silence)", "en", "no speech"),
        (" ", "en", "no transcript"),
        ("Il [suo] messaggio", "it", "a remark inside the text, which may be spoken or not"),
        ("marque 500 para", "es", "'500' may be read in several ways"),
        ("appuyez sur * pour", "fr", "'*' may be read in several ways"),
        ("50% off", "en", "'%' may be read in several ways"),
    ],
)
def test_text_that_does_not_tell_is_refused(text: str, language: str, reason: str) -> None:
    assert spoken_text(text, language) == ("", reason)


def test_other_languages_read_digits_their_own_way() -> None:
    assert spoken_text("Appuyez sur 0 à présent.", "fr") == ("appuyez sur zéro à présent", "")
    assert spoken_text("Нажмите 4, чтобы", "ru") == ("нажмите четыре чтобы", "")


def package(folder: Path, texts: str = TEXTS, suffix: str = "wav") -> Path:
    """A tree as Debian's packages have it, with a recording of 5 ms for every line but one."""
    document = folder / "usr" / "share" / "doc" / "asterisk-core-sounds-en" / "core-sounds-en.txt.gz"
    document.parent.mkdir(parents=True)
    document.write_bytes(gzip.compress(texts.encode()))
    sounds = folder / "usr" / "share" / "asterisk" / "sounds" / "en_US_f_Allison"
    keys = [line.partition(":")[0] for line in texts.splitlines() if ":" in line and not line.startswith("gone")]
    for key in [*keys, "extra"]:
        path = sounds / f"{key}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == "wav":
            soundfile.write(path, np.zeros(40), 8000)
        else:
            path.write_bytes(bytes(40))
    return folder


def test_a_folder_that_is_given(tmp_path: Path) -> None:
    corpus = load_asterisk(folder=package(tmp_path))
    assert {utterance.id: utterance.text for utterance in corpus.train} == {
        "digits/1": "one",
        "hello": "hello",
        "letters/at": "at",
    }
    assert corpus.test == []
    assert corpus.texts["hello"] == "Hello..."
    assert corpus.left_out == {
        "beep": "no speech",
        "gone": "no recording",
        "odd": "a remark inside the text, which may be spoken or not",
        "extra": "no transcript",
    }
    one = corpus.train[0]
    assert (one.speaker, one.accent, one.path.is_file()) == ("allison", "american", True)


def test_sixteen_khz_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = package(tmp_path / "packages", suffix="g722")
    corpus = load_asterisk(sample_rate=16000, folder=folder)
    samples, sample_rate = soundfile.read(corpus.train[0].path)
    assert (len(samples), sample_rate) == (80, 16000)
    assert corpus.train[0].speaker == "allison"
    written = corpus.train[0].path.stat().st_mtime_ns
    assert load_asterisk(sample_rate=16000, folder=folder) == corpus
    assert corpus.train[0].path.stat().st_mtime_ns == written
    assert "no recording" in corpus.left_out["gone"]


def test_sentences_are_held_out_by_their_key(tmp_path: Path) -> None:
    twice = "twice-{}: please hold the line while I look for someone who is there\n"
    texts = TEXTS + twice.format("a") + twice.format("b")
    texts += "".join(f"s{i}: " + " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}x" for _ in range(5)) + "\n"
                     for i in range(70))  # fmt: skip
    first = load_asterisk(folder=package(tmp_path / "a", texts))
    assert len(first.test) == 50
    assert len(first.train) == 70 - 50 + 3 + 2
    assert {utterance.id[0] for utterance in first.test} == {"s"}
    fewer = load_asterisk(folder=package(tmp_path / "b", "\n".join(texts.splitlines()[:-5])))
    assert len({u.id for u in first.test} & {u.id for u in fewer.test}) >= 45


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"language": "de"}, "no language 'de'; known are en, es"), ({"sample_rate": 44100}, "must be 8000 or 16000")],
)
def test_wrong_arguments_are_named(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_asterisk(**arguments)  # type: ignore[arg-type]


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no core-sounds-en\.txt"):
        load_asterisk(folder=tmp_path)
    (tmp_path / "core-sounds-en.txt").write_text(TEXTS, encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="no folder with recordings"):
        load_asterisk(folder=tmp_path)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without the prompts, on which only the programs in the folder returned can be run."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("SONORANT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return programs


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_machine_without_apt_says_what_to_do(bare: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"asterisk-core-sounds-en-wav.*no apt-get.*SONORANT_DATA"):
        load_asterisk()


def test_apt_downloads_once_into_the_cache(bare: Path, tmp_path: Path) -> None:
    package(tmp_path / "tree")
    log = tmp_path / "log"
    program(bare / "apt-get", f'echo "$@" >> {log}; : > one.deb')
    program(bare / "dpkg", f'/bin/cp -r {tmp_path / "tree"} "$3"')
    corpus = load_asterisk()
    assert len(corpus.train) == 3
    assert load_asterisk() == corpus
    assert log.read_text() == "download asterisk-core-sounds-en asterisk-core-sounds-en-wav\n"
    assert [path.name for path in (cache_directory() / "asterisk").iterdir()] == ["en-8000"]


def test_a_failure_of_apt_is_told_and_leaves_nothing(bare: Path) -> None:
    program(bare / "apt-get", "echo 'E: Unable to locate package' >&2; exit 100")
    program(bare / "dpkg", "exit 1")
    with pytest.raises(ConnectionError, match=r"E: Unable to locate package \(does `apt-get update` help\?\)"):
        load_asterisk()
    assert list((cache_directory() / "asterisk").iterdir()) == []


@pytest.fixture(scope="module")
def real() -> AsteriskCorpus:
    """The real prompts: where they are there, and in CI from Debian if need be."""
    if not os.environ.get("CI") and find_corpus("asterisk", strict=False) is None:
        pytest.skip("the asterisk prompts are not on this machine: call sonorant.data.asterisk.load_asterisk()")
    try:
        return load_asterisk()
    except (FileNotFoundError, ConnectionError) as error:
        warnings.warn(f"the asterisk prompts cannot be had here, their tests are skipped: {error}", stacklevel=1)
        pytest.skip(str(error))


def test_551_real_prompts(real: AsteriskCorpus) -> None:
    assert (len(real.train), len(real.test)) == (501, 50)
    reasons = list(real.left_out.values())
    assert (reasons.count("no speech"), reasons.count("no recording"), len(reasons)) == (17, 1, 18)
    letters = set("".join(utterance.text for utterance in [*real.train, *real.test]))
    assert letters == set("abcdefghijklmnopqrstuvwxyz' ")
    seconds = sum(soundfile.info(utterance.path).duration for utterance in [*real.train, *real.test])
    assert seconds / 60 == pytest.approx(24.3, abs=0.1)


def test_real_held_out_sentences_are_not_in_the_train_part(real: AsteriskCorpus) -> None:
    train = " | ".join(utterance.text for utterance in real.train)
    for utterance in real.test:
        assert 5 <= len(utterance.words) <= 40
        assert not any(" ".join(utterance.words[i : i + 5]) in train for i in range(len(utterance.words) - 4))
