"""Tables of recordings and transcripts."""

import unicodedata
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Utterance", "read_table"]


@dataclass(frozen=True)
class Utterance:
    """One recording and what is said in it.

    Args:
        id: unique in its corpus.
        path: the recording.
        text: the transcript, words separated by spaces.
        speaker: who says it, where that is known.
        accent: how, where that is known.
    """

    id: str
    path: Path
    text: str
    speaker: str | None = None
    accent: str | None = None

    @property
    def words(self) -> list[str]:
        """The transcript's words. Only ASCII spaces separate: a no-break space belongs to its word."""
        return [word for word in self.text.split(" ") if word]


def read_table(path: str | Path) -> list[Utterance]:
    """Read a table of ``path<TAB>text`` lines.

    UTF-8 with or without byte order mark, any line ends, brought to Unicode NFC. Relative paths start at the table's
    own folder; empty lines are passed over. The id is the path as it stands in the table.

    Raises:
        FileNotFoundError: no such table.
        ValueError: a line without a tab, an empty path, a path that comes twice (naming file and line), or no
            utterance at all.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such table")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines() if path.stat().st_size else []
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 (byte {error.start})") from error
    utterances: dict[str, Utterance] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        name, tab, text = unicodedata.normalize("NFC", line).partition("\t")
        if not tab or not name.strip():
            raise ValueError(f"{path}:{number}: expected path<TAB>text; got {line!r}")
        name = name.strip()
        if name in utterances:
            raise ValueError(f"{path}:{number}: {name} is in the table twice")
        utterances[name] = Utterance(name, path.parent / name, text.strip(" \t"))
    if not utterances:
        raise ValueError(f"{path}: holds no utterance")
    return list(utterances.values())
