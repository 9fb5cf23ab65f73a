"""The prompts of the Asterisk telephone exchange: about 550 sentences, words and letters by one professional speaker.

Debian packages them in five languages, at 8 kHz and, as G.722, at 16 kHz. Licence: CC BY-SA 3.0 (Russian: CC BY 3.0).
The transcripts come with the package and are what the speaker was asked to read; they are written for people, so that
digits and symbols have to be put into words here. A prompt is left out, with the reason, when it holds no speech, has
no recording or no transcript, or when its transcript does not tell what is said.
"""

import gzip
import hashlib
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sonorant.data.download import cache_directory, find_corpus
from sonorant.data.manifest import Utterance

__all__ = ["LANGUAGES", "AsteriskCorpus", "load_asterisk", "spoken_text"]


@dataclass(frozen=True)
class _Language:
    accent: str
    digits: str
    readings: dict[str, str] = field(default_factory=dict)  # of symbols and numbers, as the speaker says them
    misspelt: dict[str, str] = field(default_factory=dict)
    digit_by_digit: bool = False  # how longer numbers are said, where that is known


LANGUAGES = {
    "en": _Language(
        "american",
        "zero one two three four five six seven eight nine",
        {"*": "star", "#": "pound", "28.8": "twenty eight point eight"},
        {
            "exclaimation": "exclamation",
            "fourtieth": "fortieth",
            "represenatives": "representatives",
            "umute": "unmute",
            "un-indentified": "unidentified",
            "witheld": "withheld",
        },
        digit_by_digit=True,
    ),
    "es": _Language("mexican", "cero uno dos tres cuatro cinco seis siete ocho nueve"),
    "fr": _Language("canadian", "zéro un deux trois quatre cinq six sept huit neuf"),
    "it": _Language("italian", "zero uno due tre quattro cinque sei sette otto nove"),
    "ru": _Language("russian", "ноль один два три четыре пять шесть семь восемь девять"),
}
RATES = {8000: ("wav", "wav"), 16000: ("g722", "g722")}  # name of the package and of the files
NUM_TEST = 50
SENTENCE_WORDS = (5, 40)  # of the prompts that may be held out: no single words, and nothing of a minute's length
SHARED_WORDS = 5  # many prompts say nearly the same; what is held out shares no five words in a row with another
_REMARK = re.compile(r"\([^)]*\)|\[[^]]*\]|<[^>]*>")


class AsteriskCorpus(NamedTuple):
    """The prompts, by their key such as ``digits/1``.

    ``texts`` holds the transcripts as they stand in the package, also of what was left out; ``left_out`` says why.
    """

    train: list[Utterance]
    test: list[Utterance]
    texts: dict[str, str]
    left_out: dict[str, str]


def load_asterisk(language: str = "en", sample_rate: int = 8000, folder: str | Path | None = None) -> AsteriskCorpus:
    """Find the prompts, or have apt download Debian's packages into the user's cache (no root needed).

    The 50 utterances of the test part are sentences of 5 to 40 words that have no five words in a row with any other
    prompt in common, chosen by a hash of their key.

    Args:
        language: ``en``, ``es``, ``fr``, ``it`` or ``ru``.
        sample_rate: 8000, or 16000: then the recordings are decoded from G.722 into the cache.
        folder: holds, at any depth, ``core-sounds-en.txt`` (or ``.txt.gz``) and the recordings. By default the folder
            ``asterisk`` in ``SONORANT_DATA``, then the cache, then apt.

    Raises:
        ValueError: no such language or rate.
        FileNotFoundError: the prompts are not in the folder, or not on this machine, which has no apt either.
        ConnectionError: apt could not fetch them.
    """
    if language not in LANGUAGES:
        raise ValueError(f"no language {language!r}; known are {', '.join(LANGUAGES)}")
    if sample_rate not in RATES:
        raise ValueError(f"sample_rate must be 8000 or 16000; got {sample_rate}")
    base = Path(folder) if folder is not None else _find(language, sample_rate)
    texts = _read_texts(base, language)
    sounds = _sounds(base, language, RATES[sample_rate][1])
    speaker = sounds.name.rpartition("_")[2].lower() if "_" in sounds.name else language
    if sample_rate == 16000:
        sounds = _decoded(sounds, language)
    utterances, left_out = [], {}
    for key, text in texts.items():
        path = sounds / f"{key}.wav"
        spoken, reason = spoken_text(text, language)
        if reason or not path.is_file():
            left_out[key] = reason or "no recording"
        else:
            utterances.append(Utterance(key, path, spoken, speaker, LANGUAGES[language].accent))
    for path in sorted(sounds.rglob("*.wav")):
        if (key := path.relative_to(sounds).with_suffix("").as_posix()) not in texts:
            left_out[key] = "no transcript"
    held_out = _held_out(utterances)
    return AsteriskCorpus(
        train=[utterance for utterance in utterances if utterance.id not in held_out],
        test=[utterance for utterance in utterances if utterance.id in held_out],
        texts=texts,
        left_out=left_out,
    )


def spoken_text(text: str, language: str = "en") -> tuple[str, str]:
    """What is said, in lower case without punctuation, from a transcript of the package.

    Remarks in brackets before or after the text go; digits, and the symbols and numbers whose reading is known, are
    put into words; hyphens part words, apostrophes do not.

    Returns:
        The words, and why they cannot be relied on, which is empty if they can.

    Example:
        >>> from sonorant.data.asterisk import spoken_text
        >>> spoken_text("press 1 to switch to record mode...")
        ('press one to switch to record mode', '')
        >>> spoken_text("[sound of monkeys screaming]")
        ('', 'no speech')
    """
    if not text.strip():
        return "", "no transcript"
    remarks = list(_REMARK.finditer(text))
    words = _REMARK.sub(" ", text)
    if not re.search(r"\w", words):
        return "", "no speech"
    if any(_has_words(text[: remark.start()]) and _has_words(text[remark.end() :]) for remark in remarks):
        return "", "a remark inside the text, which may be spoken or not"
    words = unicodedata.normalize("NFC", words).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    words = _in_words(words, language)
    if unknown := re.search(r"\d+(?:[.,]\d+)?|[*#@$%&+=]", words):
        return "", f"{unknown[0]!r} may be read in several ways"
    return " ".join(word for part in re.findall(r"[\w']+", words) if (word := part.strip("'_"))), ""


def _in_words(text: str, language: str) -> str:
    """Lower case text with all digits and symbols that can be read put into words."""
    voice = LANGUAGES[language]
    digits = voice.digits.split()

    def read(match: re.Match[str]) -> str:
        number = match[0]
        if number in voice.readings:
            return f" {voice.readings[number]} "
        if number.isdecimal() and (len(number) == 1 or voice.digit_by_digit):
            return " ".join(["", *(digits[int(digit)] for digit in number), ""])
        return number

    for wrong, right in voice.misspelt.items():
        text = re.sub(rf"\b{wrong}\b", right, text)
    if language == "en":
        text = re.sub(r"(?<=[a-z]{2})\.(?=[a-z]{2})", " dot ", text)  # of addresses
    return re.sub(r"\d+(?:[.,]\d+)?|[*#]", read, text)


def _has_words(text: str) -> bool:
    return bool(re.search(r"\w", _REMARK.sub("", text)))


def _held_out(utterances: list[Utterance]) -> set[str]:
    def stretches(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[i : i + SHARED_WORDS]) for i in range(len(words) - SHARED_WORDS + 1)}

    prompts_with = Counter(stretch for utterance in utterances for stretch in stretches(utterance.words))
    low, high = SENTENCE_WORDS
    sentences = [
        utterance.id
        for utterance in utterances
        if low <= len(utterance.words) <= high
        and all(prompts_with[stretch] == 1 for stretch in stretches(utterance.words))
    ]
    return set(sorted(sentences, key=lambda key: hashlib.sha256(key.encode()).digest())[:NUM_TEST])


def _read_texts(folder: Path, language: str) -> dict[str, str]:
    paths = sorted(folder.rglob(f"core-sounds-{language}.txt*"))
    if not paths:
        raise FileNotFoundError(f"{folder}: no core-sounds-{language}.txt or core-sounds-{language}.txt.gz in it")
    raw = gzip.decompress(paths[0].read_bytes()) if paths[0].suffix == ".gz" else paths[0].read_bytes()
    entries = [line.partition(":") for line in raw.decode("utf-8-sig").splitlines() if not line.startswith(";")]
    return {key.strip(): text.strip() for key, colon, text in entries if colon}


def _sounds(folder: Path, language: str, suffix: str) -> Path:
    """The folder that keys start from; there may be several languages and formats."""
    roots = [path.parent.parent for path in sorted(folder.rglob(f"digits/1.{suffix}"))]
    named = [root for root in roots if root.name.startswith(f"{language}_")]
    if not roots or (len(roots) > 1 and not named):
        raise FileNotFoundError(f"{folder}: no folder with recordings in it, such as {language}_XX/digits/1.{suffix}")
    return (named or roots)[0]


def _find(language: str, sample_rate: int) -> Path:
    cached = cache_directory() / "asterisk"
    found = find_corpus("asterisk", strict=False)
    if found is not None and found != cached:
        return found
    folder = cached / f"{language}-{sample_rate}"
    if not folder.is_dir():
        _download([f"asterisk-core-sounds-{language}{part}" for part in ("", f"-{RATES[sample_rate][0]}")], folder)
    return folder


def _download(packages: list[str], folder: Path) -> None:
    """Have apt download packages, which it checks against Debian's signatures, and unpack them."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise FileNotFoundError(
            f"the prompts are Debian packages ({', '.join(packages)}), and this machine has no apt-get and dpkg: "
            f"unpack them elsewhere, and set SONORANT_DATA to a folder that has them in its folder asterisk"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fetched = subprocess.run(["apt-get", "download", *packages], cwd=scratch, capture_output=True, text=True)
        if fetched.returncode:
            raise ConnectionError(
                f"apt-get download {' '.join(packages)}: {fetched.stderr.strip()} (does `apt-get update` help?)"
            )
        tree = Path(scratch) / "tree"
        for package in sorted(Path(scratch).glob("*.deb")):
            subprocess.run(["dpkg", "-x", str(package), str(tree)], check=True, capture_output=True)
        tree.rename(folder)


def _decoded(sounds: Path, language: str) -> Path:
    """The cached folder with the G.722 recordings as WAV files; made if need be."""
    import soundfile

    from sonorant.data.g722 import G722_SAMPLE_RATE, decode_g722

    folder = cache_directory() / "asterisk" / f"{language}-{G722_SAMPLE_RATE}-decoded"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        tree = Path(scratch) / "tree"
        for path in sounds.rglob("*.g722"):
            target = (tree / path.relative_to(sounds)).with_suffix(".wav")
            target.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(target, decode_g722(path.read_bytes()), G722_SAMPLE_RATE)
        tree.rename(folder)
    return folder
