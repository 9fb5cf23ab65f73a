"""The letters of a word, in any script, as a model reads them."""

import unicodedata
from collections.abc import Iterator

from sonorant.text.symbols import SymbolTable
from sonorant.text.units import WORD_BOUNDARY

__all__ = ["encode_word", "is_punctuation", "split_graphemes"]

# Final consonants of a Hangul syllable, and those that they sound like at the end of a word or before a consonant.
_SOUNDS_LIKE = str.maketrans("ᆩᆿᆺᆻᆽᆾᇀᇁ", "ᆨᆨᆮᆮᆮᆮᆮᆸ")


def split_graphemes(word: str) -> list[str]:
    """The graphemes of a word: its code points in Unicode's composed form NFC.

    There are two exceptions. A Hangul syllable is its two or three letters, since there are thousands of syllables and
    few letters; and white space of any kind, such as the no-break space in an entry of two words, is one ``▁``.

    Args:
        word: one entry of a dictionary.

    Returns:
        The graphemes; none for an empty word.

    Example:
        >>> from sonorant.text import split_graphemes
        >>> split_graphemes("Cafe\u0301 x"), len(split_graphemes("가"))
        (['C', 'a', 'f', 'é', '▁', 'x'], 2)
    """
    return [grapheme for _, graphemes in _by_character(word) for grapheme in graphemes]


def encode_word(word: str, graphemes: SymbolTable) -> list[int]:
    """The ids of a word's graphemes.

    A letter that the table lacks is taken in lower case, or else in upper case, if the table has that; a final
    consonant of a Hangul syllable, such as the rare one of 부엌, as the one that it sounds like.

    Args:
        word: one entry of a dictionary.
        graphemes: those of a model.

    Raises:
        ValueError: an empty word, or unknown graphemes (each named with its position in the word, counted from 1).

    References:
        National Institute of Korean Language, "Standard pronunciation", article 9 (final consonants).

    Example:
        >>> from sonorant.text import SymbolTable, encode_word
        >>> encode_word("ABBA", SymbolTable("abc"))
        [1, 2, 2, 1]
    """
    if not word.strip():
        raise ValueError("the word is empty: there is nothing to pronounce")
    try:
        return graphemes.encode(unicodedata.normalize("NFC", word))
    except ValueError:  # a letter in another form, a Hangul syllable, a space, or an unknown grapheme
        pass
    ids: list[int] = []
    unknown = []
    for position, spelled in _by_character(word):
        known = _known_form(spelled, graphemes)
        if known is None:
            unknown.append(f"{''.join(spelled)!r} at position {position}")
        else:
            ids += graphemes.encode(known)
    if unknown:
        raise ValueError(f"{word!r} has graphemes that the model does not know: {', '.join(unknown)}")
    return ids


def is_punctuation(word: str) -> bool:
    """Whether a word is nothing but punctuation and spaces.

    Example:
        >>> from sonorant.text import is_punctuation
        >>> is_punctuation("..."), is_punctuation("a.")
        (True, False)
    """
    return bool(word.strip()) and all(unicodedata.category(character)[0] in "PZ" for character in word.strip())


def _by_character(word: str) -> Iterator[tuple[int, list[str]]]:
    """Each character with its position, counted from 1, and the graphemes that it stands for."""
    for position, character in enumerate(" ".join(unicodedata.normalize("NFC", word).split()), start=1):
        if character == " ":
            yield position, [WORD_BOUNDARY]
        elif "\uac00" <= character <= "\ud7a3":
            yield position, list(unicodedata.normalize("NFD", character))
        else:
            yield position, [character]


def _known_form(spelled: list[str], graphemes: SymbolTable) -> list[str] | None:
    text = "".join(spelled)
    forms = (list(form) for form in (text, text.lower(), text.upper(), text.translate(_SOUNDS_LIKE)))
    return next((form for form in forms if all(grapheme in graphemes for grapheme in form)), None)
