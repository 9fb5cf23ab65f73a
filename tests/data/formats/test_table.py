"""Tables and LJSpeech's metadata."""

from pathlib import Path

import pytest

from sonorant.data.formats.table import scan_ljspeech, scan_table


def write(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


def test_path_text_speaker_and_accent(tmp_path: Path) -> None:
    table = write(
        tmp_path / "t.tsv", "a.wav\tYES NO\nsub/b.wav\tNO\tann\n/c.wav\tNO\t\tfrench\nd.wav\t\tben\tgreek\r\n"
    )
    corpus = scan_table(table)
    assert corpus.faults == []
    found = [(u.id, u.path, u.text, u.speaker, u.accent) for u in corpus.utterances]
    assert found == [
        ("a.wav", tmp_path / "a.wav", "YES NO", None, None),
        ("sub/b.wav", tmp_path / "sub" / "b.wav", "NO", "ann", None),
        ("/c.wav", Path("/c.wav"), "NO", None, "french"),
        ("d.wav", tmp_path / "d.wav", "", "ben", "greek"),
    ]
    assert corpus.utterances[3].source == f"{table}:4"


def test_text_is_composed_but_a_path_stays_as_it_is(tmp_path: Path) -> None:
    (utterance,) = scan_table(write(tmp_path / "t.tsv", "cafe\u0301.wav\tcafe\u0301\n")).utterances
    assert (utterance.text, utterance.id) == ("caf\u00e9", "caf\u00e9.wav")
    assert utterance.path.name == "cafe\u0301.wav"


def test_every_faulty_line_is_named(tmp_path: Path) -> None:
    corpus = scan_table(
        write(tmp_path / "t.tsv", "a.wav YES\n\tYES\nb.wav\tNO\nb.wav\tYES\nc.wav\tNO\tann\tgreek\tmore\n")
    )
    assert [utterance.id for utterance in corpus.utterances] == ["b.wav"]
    expected = "expected path<TAB>text[<TAB>speaker[<TAB>accent]]; got "
    assert [str(fault).removeprefix(f"{tmp_path}/") for fault in corpus.faults] == [
        f"t.tsv:1: {expected}'a.wav YES'",
        f"t.tsv:2: {expected}'\\tYES'",
        f"t.tsv:4: b.wav is in the table twice (first at {tmp_path}/t.tsv:3)",
        f"t.tsv:5: {expected}'c.wav\\tNO\\tann\\tgreek\\tmore'",
    ]


def test_ljspeech_takes_the_normalised_text_and_knows_no_quotes(tmp_path: Path) -> None:
    content = 'LJ1|"Dr. X, 3|"Doctor X, three\nLJ2|plain\nLJ3|written|\n'
    corpus = scan_ljspeech(write(tmp_path / "metadata.csv", content))
    found = [(utterance.id, utterance.text) for utterance in corpus.utterances]
    assert found == [("LJ1", '"Doctor X, three'), ("LJ2", "plain"), ("LJ3", "written")]
    assert corpus.utterances[0].path == tmp_path / "wavs" / "LJ1.wav"


@pytest.mark.parametrize("line", ["LJ1", "|text", "LJ1|a|b|c"])
def test_ljspeech_lines_of_other_shapes_are_named(tmp_path: Path, line: str) -> None:
    (fault,) = scan_ljspeech(write(tmp_path / "metadata.csv", f"{line}\n")).faults
    assert str(fault) == f"{tmp_path}/metadata.csv:1: expected id|text|normalised text; got {line!r}"
