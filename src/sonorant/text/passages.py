"""Texts of any length in pieces that can be spoken in one breath."""

import re
from typing import NamedTuple

__all__ = ["Passage", "split_text"]

_SPACE = re.compile(r"[ \t\r\n]+")
_SENTENCE_END = re.compile(
    r"""
    (?<![ .][^\W\d_]) (?<!^[^\W\d_])   # not after an initial, as in J. Smith
    [.!?…]+ ["'”’»)\]]* [ ]
    (?=[^a-zß-öø-ÿа-я])               # nor before a small letter, as in approx. five
    | [。！？]+ [」』”’]* [ ]?
    """,
    re.VERBOSE,
)
_CLAUSE_END = re.compile(r"[,;:.!?…–—][\"'”’»)\]]* |[、，；：。！？] ?")
_WORD_END = re.compile(" ")
_SENTENCE_PAUSE, _CLAUSE_PAUSE, _WORD_PAUSE = 0.3, 0.15, 0.0  # seconds


class Passage(NamedTuple):
    """A piece of a text, and the pause after it, in seconds, beside the silence that belongs to it."""

    text: str
    pause: float


def split_text(text: str, longest: int = 300) -> list[Passage]:
    """Take a text apart at the ends of its sentences.

    A sentence that is too long is taken apart further: at the last comma or the like that comes early enough, else at
    the last space, and where there is none, anywhere.

    Args:
        text: white space of any length, no-break spaces excepted, is one space.
        longest: characters of a passage.

    Returns:
        The passages; none of a text that is empty. After the last one there is no pause.

    Raises:
        ValueError: ``longest`` below 1.

    Example:
        >>> from sonorant.text import split_text
        >>> [passage.text for passage in split_text("Dial 1. Or hold, please: we will be with you soon.", 20)]
        ['Dial 1.', 'Or hold, please:', 'we will be with you', 'soon.']
    """
    if longest < 1:
        raise ValueError(f"longest must be at least 1; got {longest}")
    text = _SPACE.sub(" ", text).strip(" ")
    cuts = [match.end() for match in _SENTENCE_END.finditer(text)]
    passages: list[Passage] = []
    for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
        passages += _split_sentence(text[start:stop].strip(" "), longest)
    return [*passages[:-1], passages[-1]._replace(pause=0.0)] if passages else []


def _split_sentence(sentence: str, longest: int) -> list[Passage]:
    passages = []
    while len(sentence) > longest:
        cut, pause = longest, _WORD_PAUSE
        for pattern, silence in ((_CLAUSE_END, _CLAUSE_PAUSE), (_WORD_END, _WORD_PAUSE)):
            # a space may be the first character that is too many
            ends = [match.end() for match in pattern.finditer(sentence, 0, longest + 1)]
            if ends:
                cut, pause = ends[-1], silence
                break
        passages.append(Passage(sentence[:cut].strip(" "), pause))
        sentence = sentence[cut:].lstrip(" ")
    return [*passages, Passage(sentence, _SENTENCE_PAUSE)] if sentence else passages
