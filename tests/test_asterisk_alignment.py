"""What compares the aligner with pocketsphinx, which is not needed here."""

import math
from pathlib import Path

import pytest
from benchmarks.agreement import agreement, differences, joined
from benchmarks.asterisk_alignment import Compared, evenly, table
from benchmarks.pocketsphinx_alignment import Entry, UnalignedError, dictionary_text, to_alignment

from sonorant.data.manifest import Utterance
from sonorant.inference import AlignedWord, Alignment
from sonorant.text import Lexicon


def words(*marks: float, names: str = "abc") -> list[AlignedWord]:
    """Words that start and end at marks, in milliseconds."""
    spans = zip(marks[::2], marks[1::2], strict=True)
    return [AlignedWord(name, start / 1000, end / 1000, []) for name, (start, end) in zip(names, spans, strict=False)]


def compared(key: str, apart: float) -> Compared:
    ours, theirs = words(0, 100 + apart, 200, 300), words(0, 100, 200, 300)
    return Compared(Utterance(key, Path(key), "a b"), *(Alignment(mine, [], 0.4, 0.0) for mine in (ours, theirs)))


def test_differences_are_signed_and_the_edges_of_an_utterance_are_no_inner_marks() -> None:
    found = differences(words(50, 100, 130, 200, 210, 300), words(0, 90, 150, 200, 200, 400))
    assert found.starts == pytest.approx([0.05, -0.02, 0.01])
    assert found.ends == pytest.approx([0.01, 0.0, -0.1])
    assert sorted(found.inner) == pytest.approx([-0.02, 0.0, 0.01, 0.01])
    assert differences(words(0, 10), words(0, 20)).inner == []


def test_other_words_are_not_compared() -> None:
    with pytest.raises(ValueError, match=r"the words differ: 'a b' and 'a x'"):
        differences(words(0, 1, 2, 3), words(0, 1, 2, 3, names="ax"))


def test_agreement_is_over_all_utterances() -> None:
    both = joined([differences(words(0, 10), words(30, 10)), differences(words(0, 10), words(0, 0))])
    assert both.starts == pytest.approx([-0.03, 0.0])
    assert both.ends == pytest.approx([0.0, 0.01])
    result = agreement([-0.03, 0.01, 0.02, 0.5, -0.1])
    assert result.count == 5
    assert result.median == pytest.approx(0.03)
    assert result.percentile_90 == pytest.approx(0.34)  # between 0.1 and 0.5
    assert result.beyond == pytest.approx(0.2)  # 100 ms are not beyond 100 ms
    assert result.shift == pytest.approx(0.01)


def test_a_difference_of_100_ms_in_steps_of_10_is_not_beyond_it() -> None:
    assert agreement([1.1 - 1.0, 0.3 - 0.2]).beyond == 0


def test_agreement_of_nothing() -> None:
    assert agreement([]).count == 0
    assert math.isnan(agreement([]).median)


def test_the_table_has_starts_ends_and_inner_marks() -> None:
    lines = table([("some", [compared("one", 0), compared("two", 120)])]).splitlines()
    assert lines[2:] == [
        "| some | word starts | 4 | 0 ms | 0 ms | 0.0% | 0 ms |",
        "| some | word ends | 4 | 0 ms | 84 ms | 25.0% | 0 ms |",
        "| some | between words | 4 | 0 ms | 84 ms | 25.0% | 0 ms |",
    ]


def test_pictures_are_spread_from_the_worst_to_the_best() -> None:
    items = [compared(str(apart), apart) for apart in (30, 0, 90, 60, 120)]
    assert [item.utterance.id for item in evenly(items, 3)] == ["120", "60", "0"]
    assert [item.utterance.id for item in evenly(items, 9)] == ["120", "90", "60", "30", "0"]
    assert [item.utterance.id for item in evenly(items, 1)] == ["120"]
    assert evenly([], 3) == []


ENTRIES = [
    Entry("<s>", 0, 3),
    Entry("the(2)", 3, 9, [Entry("DH", 3, 4), Entry("IY", 7, 5)]),
    Entry("[NOISE]", 12, 5),
    Entry("end", 17, 20, [Entry("EH", 17, 8), Entry("N", 25, 4), Entry("D", 29, 8)]),
    Entry("<sil>", 37, 10),
]


def test_frames_are_where_the_middle_of_their_window_is() -> None:
    alignment = to_alignment(ENTRIES, ["the", "end"], 0.48)
    assert [word.word for word in alignment.words] == ["the", "end"]
    marks = [mark for word in alignment.words for mark in (word.start, word.end)]
    assert marks == pytest.approx([0.0378, 0.1278, 0.1778, 0.3778], abs=1e-4)
    assert [token.token for token in alignment.words[0].tokens] == ["DH", "IY"]
    assert alignment.words[0].tokens[0].end == alignment.words[0].tokens[1].start == pytest.approx(0.0778, abs=1e-4)
    assert alignment.duration == 0.48


def test_without_silence_at_the_edges_words_fill_the_recording() -> None:
    alignment = to_alignment([Entry("no", 0, 20), Entry("end", 20, 26)], ["no", "end"], 0.48)
    assert (alignment.words[0].start, alignment.words[1].end) == (0.0, 0.48)


@pytest.mark.parametrize(
    ("entries", "message"),
    [([], "found nothing"), (ENTRIES[:1], "found nothing"), (ENTRIES[:3], r"it found 'the'")],
)
def test_words_that_were_not_found_are_an_error(entries: list[Entry], message: str) -> None:
    with pytest.raises(UnalignedError, match=message):
        to_alignment(entries, ["the", "end"], 0.48)


def test_the_dictionary_marks_further_pronunciations() -> None:
    lexicon = Lexicon({"the": [["DH", "AH"], ["DH", "IY"]], "i'm": [["AY", "M"]]})
    assert dictionary_text(lexicon) == "i'm AY M\nthe DH AH\nthe(2) DH IY\n"
