"""Transcripts with times, as JSON and as TextGrids."""

from pathlib import Path

from sonorant.data.textgrid import Interval
from sonorant.inference.transcript import RecognizedWord, TextGridNames, Transcript

TRANSCRIPT = Transcript(
    "YES NO", [RecognizedWord("YES", 0.5, 0.75, 0.98765), RecognizedWord("NO", 1.0, 1.5, 0.25)], 2.0
)


def test_json_is_rounded_plain_data() -> None:
    assert TRANSCRIPT.to_json() == {
        "text": "YES NO",
        "duration": 2.0,
        "words": [
            {"word": "YES", "start": 0.5, "end": 0.75, "confidence": 0.9877},
            {"word": "NO", "start": 1.0, "end": 1.5, "confidence": 0.25},
        ],
    }


def test_a_textgrid_has_words_and_confidences() -> None:
    words, confidence = TRANSCRIPT.to_textgrid().tiers
    assert (words.name, confidence.name) == ("words", "confidence")
    assert [i.text for i in words.intervals] == ["", "YES", "", "NO", ""]
    assert confidence.intervals[1] == Interval(0.5, 0.75, "0.9877")
    assert Transcript("", [], 1.0).to_textgrid().tiers[0].intervals == [(0.0, 1.0, "")]


def test_names_are_the_recordings_and_differ() -> None:
    names = TextGridNames(Path("out"))
    recordings = ["x/a.wav", "y/a.flac", "A.wav", "a-2.wav", "x/a.wav", "b.c.wav", ".."]
    paths = [names.path(recording).name for recording in recordings]
    assert paths[:2] == ["a.TextGrid", "a-2.TextGrid"]
    assert paths[5] == "b.c.TextGrid"
    assert len({path.casefold() for path in paths}) == len(recordings)
    assert all(names.path(recording).parent == Path("out") for recording in recordings)
