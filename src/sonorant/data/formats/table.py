"""Tables of recordings and transcripts, and LJSpeech's ``metadata.csv``."""

from pathlib import Path

from sonorant.data.manifest import Corpus, Utterance, read_lines, tidy

__all__ = ["scan_ljspeech", "scan_table", "table_line"]


def scan_table(path: Path) -> Corpus:
    """Lines of ``path<TAB>text[<TAB>speaker[<TAB>accent]]``.

    Relative paths start at the table's own folder. The id is the path as it stands in the table.
    """
    corpus = Corpus()
    for source, line in read_lines(path, corpus):
        name, *fields = line.split("\t")
        name = name.strip(" ")
        if not name or not 1 <= len(fields) <= 3:
            corpus.refuse(source, f"expected path<TAB>text[<TAB>speaker[<TAB>accent]]; got {line!r}", tidy(name))
            continue
        text, speaker, accent = [*map(tidy, fields), "", ""][:3]
        corpus.add(
            Utterance(tidy(name), path.parent / name, text, speaker or None, accent or None, source=source),
        )
    return corpus


def table_line(path: str | Path, text: str, speaker: str | None, accent: str | None) -> str:
    """A line that :func:`scan_table` reads."""
    return "\t".join([str(path), text, speaker or "", accent or ""]) + "\n"


def scan_ljspeech(path: Path) -> Corpus:
    """Lines of ``id|text[|normalised text]`` beside a folder ``wavs`` of ``id.wav``; quotes are text like any other.

    The normalised text (numbers and abbreviations spelled out) is taken where there is one.
    """
    corpus = Corpus()
    for source, line in read_lines(path, corpus):
        name, *texts = line.split("|")
        name = name.strip(" ")
        if not name or not 1 <= len(texts) <= 2:
            corpus.refuse(source, f"expected id|text|normalised text; got {line!r}", tidy(name))
            continue
        text = tidy(texts[-1]) or tidy(texts[0])
        corpus.add(Utterance(tidy(name), path.parent / "wavs" / f"{name}.wav", text, source=source))
    return corpus
