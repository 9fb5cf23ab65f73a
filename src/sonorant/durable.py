"""Files that appear only when all of them is on disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["sync", "written_durably"]


@contextmanager
def written_durably(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is written aside, synced and renamed when the block ends without an error.

    Args:
        path: the file; its folder is made if need be.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".part")
    with scratch.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
