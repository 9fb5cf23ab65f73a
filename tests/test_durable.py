"""Files that appear only when they are whole."""

from pathlib import Path

import pytest

from sonorant.durable import written_durably


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with written_durably(path) as file:
        file.write(b"all of it")
        assert not path.exists()
    assert path.read_bytes() == b"all of it"
    assert list(path.parent.iterdir()) == [path]


def test_what_was_there_stays_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match="not 'str'"), written_durably(path) as file:
        file.write("half")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
