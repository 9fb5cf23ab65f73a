"""One way to read a corpus, whatever its format."""

from pathlib import Path

from sonorant.data.formats.kaldi import scan_kaldi
from sonorant.data.formats.lhotse import scan_lhotse
from sonorant.data.formats.table import scan_ljspeech, scan_table
from sonorant.data.manifest import Corpus, Utterance, list_faults

__all__ = ["read_corpus", "scan_corpus"]


def read_corpus(path: str | Path) -> list[Utterance]:
    """Read a corpus, or refuse it with a list of all its faults; arguments are those of :func:`scan_corpus`.

    Raises:
        FileNotFoundError: no such file or folder, or one of its parts is missing.
        ValueError: lines that give no utterance (each named with its file and number), or no utterance at all.
    """
    corpus = scan_corpus(path)
    if corpus.faults:
        raise ValueError(f"{path}: {len(corpus.faults)} lines cannot be used:{list_faults(corpus.faults)}")
    return corpus.utterances


def scan_corpus(path: str | Path) -> Corpus:
    """Read a corpus to its end, whatever is wrong with some of its lines.

    Args:
        path: a table of ``path<TAB>text[<TAB>speaker[<TAB>accent]]`` lines; a Kaldi data directory; LJSpeech's
            ``metadata.csv`` (any ``.csv``), or the folder that holds it; supervisions or cuts of lhotse (``.jsonl``
            or ``.jsonl.gz``).

    Returns:
        The utterances, and the faults of the lines that gave none.

    Raises:
        FileNotFoundError: no such file or folder, or one of its parts is missing.
        ValueError: a folder of another kind, or nothing in it.
    """
    path = Path(path)
    corpus = _scan(path)
    if not corpus.utterances and not corpus.faults:
        raise ValueError(f"{path}: holds no utterance")
    return corpus


def _scan(path: Path) -> Corpus:
    if path.is_dir():
        if (path / "wav.scp").is_file():
            return scan_kaldi(path)
        if (path / "metadata.csv").is_file():
            return scan_ljspeech(path / "metadata.csv")
        raise ValueError(f"{path}: a folder with neither wav.scp (Kaldi) nor metadata.csv (LJSpeech); give a table")
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        return scan_lhotse(path)
    return scan_ljspeech(path) if path.suffix == ".csv" else scan_table(path)
