"""The Free Spoken Digit Dataset: six speakers say each English digit 50 times, at 8 kHz.

Licence: CC BY-SA 4.0. A file name tells the digit, the speaker and the number of the recording:
``{digit}_{speaker}_{number}.wav``. Numbers 0 to 4 are the official test set.

References:
    Jackson et al. 2018, "Free Spoken Digit Dataset", doi:10.5281/zenodo.1342401.
"""

import shutil
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sonorant.data.download import ChecksumError, cache_directory, content_digest, fetch, find_corpus, unpack
from sonorant.data.formats.table import table_line
from sonorant.data.manifest import Utterance

__all__ = [
    "ACCENTS",
    "DIGITS",
    "SAMPLE_RATE",
    "FsddCorpus",
    "leave_out_speaker",
    "load_fsdd",
    "of_speakers",
    "write_fsdd",
]

URL = "https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz"
# of the recordings: GitHub packs the archive anew at times, so that its own checksum is no constant
CONTENT = "1801eae019c063377d98f831d3f93574f259475df7332bb0e3d1b080fb5e6959"
SAMPLE_RATE = 8000
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ACCENTS = {
    "george": "greek",
    "jackson": "american",
    "lucas": "german",
    "nicolas": "french",  # of Belgium
    "theo": "american",
    "yweweler": "german",
}
NUM_TEST = 5  # of the recordings of one digit by one speaker
NUM_EACH = 50


class FsddCorpus(NamedTuple):
    """The two parts of the corpus: 2,700 and 300 recordings of one word each, by speaker and digit."""

    train: list[Utterance]
    test: list[Utterance]


def load_fsdd(url: str = URL, content: str = CONTENT) -> FsddCorpus:
    """Find the corpus, or download it to the user's cache.

    Each utterance is one word, in lower case, with its speaker and the speaker's accent.

    Args:
        url: a tar archive with a folder ``recordings``.
        content: the :func:`~sonorant.data.download.content_digest` of the recordings in it.

    Raises:
        ChecksumError: what was downloaded is not the 3,000 recordings.
        ValueError: the folder found lacks some of them.
    """
    folder = find_corpus("fsdd") or _download(url, content)
    names = {path.stem for path in folder.glob("*.wav")}
    corpus = FsddCorpus([], [])
    missing = []
    for speaker, accent in ACCENTS.items():
        for digit, word in enumerate(DIGITS):
            for number in range(NUM_EACH):
                name = f"{digit}_{speaker}_{number}"
                missing += [name] if name not in names else []
                part = corpus.test if number < NUM_TEST else corpus.train
                part.append(Utterance(name, folder / f"{name}.wav", word, speaker, accent))
    if missing:
        raise ValueError(f"{folder}: {len(missing)} recordings are missing, such as {missing[0]}.wav")
    return corpus


def leave_out_speaker(corpus: FsddCorpus, speaker: str) -> FsddCorpus:
    """The split that tells how well a system works for someone it has never heard.

    Returns:
        ``FsddCorpus``: train, the training recordings of the other five speakers (2,250); test, all 500 of this one.

    Raises:
        ValueError: no such speaker (naming those there are).
    """
    return FsddCorpus(
        train=[utterance for utterance in corpus.train if utterance.speaker != speaker],
        test=of_speakers([*corpus.test, *corpus.train], [speaker]),
    )


def write_fsdd(folder: str | Path, *, leave_out: str | None = None, corpus: FsddCorpus | None = None) -> list[Path]:
    """Write ``train.tsv`` and ``test.tsv``: tables of ``path<TAB>text<TAB>speaker<TAB>accent`` with absolute paths.

    Args:
        folder: where to; made if need be.
        leave_out: a speaker to test on, see :func:`leave_out_speaker`; by default the split is the official one.
        corpus: found or downloaded by default.

    Raises:
        ValueError: no such speaker.
        FileExistsError: one of the tables is there already.
    """
    corpus = corpus or load_fsdd()
    if leave_out is not None:
        corpus = leave_out_speaker(corpus, leave_out)
    paths = [Path(folder) / f"{name}.tsv" for name in corpus._fields]
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path}: there already; give another folder, or remove it")
    for path, part in zip(paths, corpus, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [table_line(u.path.resolve(), u.text, u.speaker, u.accent) for u in part]
        path.write_text("".join(rows), encoding="utf-8")
    return paths


def of_speakers(utterances: Sequence[Utterance], speakers: Sequence[str]) -> list[Utterance]:
    """The utterances of some speakers.

    Raises:
        ValueError: one of them has no utterance (naming those who have).
    """
    known = {utterance.speaker for utterance in utterances}
    for speaker in speakers:
        if speaker not in known:
            raise ValueError(f"no speaker {speaker!r}; known are {', '.join(sorted(map(str, known)))}")
    return [utterance for utterance in utterances if utterance.speaker in speakers]


def _download(url: str, content: str) -> Path:
    cache = cache_directory()
    folder, scratch = cache / "fsdd", cache / "fsdd-archive"
    archive = fetch(url, cache / "fsdd.tar.gz", None)
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        recordings = next(unpack(archive, scratch).rglob("recordings"), scratch)
        digest = content_digest(recordings.glob("*.wav"))
        if digest != content:
            raise ChecksumError(f"{url}: the recordings in it have the checksum {digest}; expected {content}")
        recordings.rename(folder)
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ChecksumError(f"{url}: not a whole archive ({error})") from error
    finally:
        archive.unlink()
        shutil.rmtree(scratch, ignore_errors=True)
    return folder
