"""Pack CMUdict, as the ``pocketsphinx`` wheel ships it, into the library: ``python tools/pack_cmudict.py FOLDER``.

FOLDER holds the unpacked wheel (``pip download --no-deps pocketsphinx`` and ``unzip``). Stress digits, if there are
any, are removed. The result is the same, byte for byte, on every machine with the same zlib.
"""

import gzip
import re
import sys
from pathlib import Path

from sonorant.data.cmudict import DICTIONARY, NOTICE
from sonorant.data.pronunciations import read_pronunciations
from sonorant.text import Lexicon


def main(folder: Path) -> None:
    """Write dictionary and notice into the package."""
    source = read_pronunciations(folder / "pocketsphinx" / "model" / "en-us" / "cmudict-en-us.dict")
    plain = {
        word: [[re.sub(r"\d$", "", phone) for phone in pron] for pron in prons]
        for word, prons in source.entries.items()
    }
    lines = [f"{word}\t{' '.join(pron)}\n" for word, prons in Lexicon(plain).entries.items() for pron in prons]
    DICTIONARY.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    (licence,) = folder.glob("pocketsphinx-*.dist-info/licenses/LICENSE")
    # the wheel's other notices are about code that is not in the dictionary
    NOTICE.write_text(licence.read_text().partition("WebRTC VAD code")[0].strip() + "\n", encoding="utf-8")
    print(f"{DICTIONARY}: {len(plain)} words, {len(lines)} pronunciations, {DICTIONARY.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
