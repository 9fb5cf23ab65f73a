"""The yesno corpus (OpenSLR 1): one speaker, 60 recordings at 8 kHz, up to eight Hebrew words each.

A file name tells the words: 1 is YES ("ken"), 0 is NO ("lo"). One name tells too much: ``0_1_0_1_0_0_0_0.wav`` (in the
test half) holds only seven spoken words, as its energy shows, so one deletion there is the right answer.
"""

from pathlib import Path
from typing import NamedTuple

from sonorant.data.download import cache_directory, fetch, find_corpus, unpack
from sonorant.data.facts import CorpusFacts
from sonorant.data.manifest import Utterance

__all__ = ["FACTS", "LEXICON", "SILENCE", "YesnoCorpus", "load_yesno"]

URL = "https://www.openslr.org/resources/1/waves_yesno.tar.gz"
# the archive was packed anew once; the recordings are the same
SHA256 = (
    "c3f49e0cca421f96b75b41640749167b52118f232498667ca7a5f9416aef8e73",
    "30301975fd8c5cac4040c261c0852f57cfa8adbbad2ce78e77e4986957445f27",
)
NUM_RECORDINGS = 60
SILENCE = "SIL"
LEXICON = {"NO": [["N"]], "YES": [["Y"]]}
FACTS = CorpusFacts(
    name="yesno",
    source="https://www.openslr.org/1/",
    licence="Creative Commons Attribution (CC BY)",
    description='60 recordings at 8 kHz of one speaker, each of up to eight Hebrew words: "ken" (YES) and "lo" (NO).',
    split="Sorted by name, the even 30 recordings train and the odd 30 test.",
    limits="One speaker, one microphone and one room: nothing is known about how it does on others, or in noise. "
    "The test half is of the same speaker.",
)


class YesnoCorpus(NamedTuple):
    """The two halves of the corpus."""

    train: list[Utterance]
    test: list[Utterance]


def load_yesno(url: str = URL, sha256: str | tuple[str, ...] = SHA256) -> YesnoCorpus:
    """Find the corpus, or download it to the user's cache.

    Sorted by name, the even files are the training half and the odd ones the test half, as in Kaldi.

    Raises:
        ValueError: the folder does not hold the 60 recordings, or a name that tells no words.
    """
    folder = find_corpus("yesno") or _download(url, sha256)
    paths = sorted(folder.glob("*.wav"))
    if len(paths) != NUM_RECORDINGS:
        raise ValueError(f"{folder}: holds {len(paths)} recordings; yesno has {NUM_RECORDINGS}")
    utterances = [Utterance(path.stem, path, _transcript(path)) for path in paths]
    return YesnoCorpus(train=utterances[::2], test=utterances[1::2])


def _download(url: str, sha256: str | tuple[str, ...]) -> Path:
    cache = cache_directory()
    archive = fetch(url, cache / "waves_yesno.tar.gz", sha256)
    unpacked = unpack(archive, cache / "yesno-archive")
    folder = cache / "yesno"
    (unpacked / "waves_yesno").rename(folder)
    return folder


def _transcript(path: Path) -> str:
    words = {"0": "NO", "1": "YES"}
    try:
        return " ".join(words[digit] for digit in path.stem.split("_"))
    except KeyError as error:
        raise ValueError(f"{path}: the name should be digits 0 and 1 joined by '_'") from error
