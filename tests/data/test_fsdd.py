"""The Free Spoken Digit Dataset: splits, what is refused, and the download."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from sonorant.data import fsdd as module
from sonorant.data.corpus import read_corpus
from sonorant.data.download import ChecksumError, content_digest
from sonorant.data.fsdd import ACCENTS, DIGITS, FsddCorpus, leave_out_speaker, load_fsdd, write_fsdd


@pytest.fixture
def names() -> list[str]:
    return [f"{digit}_{speaker}_{number}.wav" for digit in range(10) for speaker in ACCENTS for number in range(50)]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of a corpus with six recordings of each digit and speaker: 3,000 take seconds to pack and unpack."""
    monkeypatch.setattr(module, "NUM_EACH", 6)
    return [f"{digit}_{speaker}_{number}.wav" for digit in range(10) for speaker in ACCENTS for number in range(6)]


@pytest.fixture
def empty(tmp_path: Path, names: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of empty files."""
    monkeypatch.setenv("SONORANT_DATA", str(tmp_path))
    folder = tmp_path / "fsdd"
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return folder


def test_the_official_split(empty: Path) -> None:
    corpus = load_fsdd()
    assert (len(corpus.train), len(corpus.test)) == (2700, 300)
    assert {utterance.id.split("_")[2] for utterance in corpus.test} == {"0", "1", "2", "3", "4"}
    assert {utterance.text for utterance in corpus.test} == set(DIGITS)
    (one,) = [utterance for utterance in corpus.train if utterance.id == "7_nicolas_32"]
    assert (one.text, one.speaker, one.accent) == ("seven", "nicolas", "french")
    assert one.path == empty / "7_nicolas_32.wav"


def test_a_speaker_is_left_out(empty: Path) -> None:
    split = leave_out_speaker(load_fsdd(), "theo")
    assert (len(split.train), len(split.test)) == (2250, 500)
    assert {utterance.speaker for utterance in split.train} == set(ACCENTS) - {"theo"}
    assert {utterance.speaker for utterance in split.test} == {"theo"}
    with pytest.raises(ValueError, match="no speaker 'bob'; known are george, jackson"):
        leave_out_speaker(load_fsdd(), "bob")


def test_missing_recordings_are_counted(empty: Path) -> None:
    (empty / "3_theo_7.wav").unlink()
    with pytest.raises(ValueError, match=r"1 recordings are missing, such as 3_theo_7\.wav"):
        load_fsdd()


def test_the_real_recordings_have_the_checksum_that_a_download_must_have(fsdd: FsddCorpus) -> None:
    paths = [utterance.path for utterance in [*fsdd.train, *fsdd.test]]
    assert content_digest(paths) == module.CONTENT


def archive(path: Path, names: list[str]) -> str:
    """An archive as GitHub makes them; its URL."""
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(f"free-spoken-digit-dataset-1.0.10/recordings/{name}")
            info.size = len(name)
            tar.addfile(info, io.BytesIO(name.encode()))
    return path.as_uri()


def digest_of(names: list[str]) -> str:
    lines = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in sorted(names)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without the corpus."""
    monkeypatch.delenv("SONORANT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sonorant.data.download.__file__", str(tmp_path / "a" / "b" / "c" / "d" / "download.py"))
    return tmp_path / "cache" / "sonorant"


def test_is_downloaded_to_the_cache_once(cache: Path, tmp_path: Path, few: list[str]) -> None:
    corpus = load_fsdd(archive(tmp_path / "fsdd.tar.gz", few), digest_of(few))
    assert corpus.train[0].path.read_text() == corpus.train[0].path.name
    assert [path.name for path in cache.iterdir()] == ["fsdd"]
    assert load_fsdd("http://127.0.0.1:9/unused") == corpus


def test_other_content_is_refused_and_nothing_is_kept(cache: Path, tmp_path: Path, few: list[str]) -> None:
    expected = digest_of(few)
    with pytest.raises(ChecksumError, match=f"expected {expected}"):
        load_fsdd(archive(tmp_path / "fsdd.tar.gz", few[1:]), expected)
    assert list(cache.iterdir()) == []


def test_half_an_archive_is_refused_and_nothing_is_kept(cache: Path, tmp_path: Path, few: list[str]) -> None:
    path = tmp_path / "fsdd.tar.gz"
    url = archive(path, few)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ChecksumError, match="not a whole archive"):
        load_fsdd(url, digest_of(few))
    assert list(cache.iterdir()) == []


def test_tables_of_the_official_split_and_without_a_speaker(fsdd: FsddCorpus, tmp_path: Path) -> None:
    train, test = write_fsdd(tmp_path / "official", corpus=fsdd)
    assert (train.name, test.name) == ("train.tsv", "test.tsv")
    for table, part in ((train, fsdd.train), (test, fsdd.test)):
        rows = [(row.path.name, row.text, row.speaker, row.accent) for row in read_corpus(table)]
        assert rows == [(row.path.name, row.text, row.speaker, row.accent) for row in part]
        assert read_corpus(table)[0].path.is_file()
    _, strangers = write_fsdd(tmp_path / "theo", leave_out="theo", corpus=fsdd)
    assert {row.speaker for row in read_corpus(strangers)} == {"theo"}
    with pytest.raises(FileExistsError, match=r"train\.tsv: there already"):
        write_fsdd(tmp_path / "official", corpus=fsdd)
    with pytest.raises(ValueError, match="no speaker 'bob'"):
        write_fsdd(tmp_path / "bob", leave_out="bob", corpus=fsdd)
