"""Where corpora are found, and how they are fetched when they are not there."""

import hashlib
import http.client
import logging
import os
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable
from pathlib import Path

__all__ = ["ChecksumError", "cache_directory", "content_digest", "fetch", "find_corpus", "unpack"]

logger = logging.getLogger(__name__)
_BLOCK = 1 << 16


class ChecksumError(ValueError):
    """A downloaded file is not the one that was expected."""


def cache_directory() -> Path:
    """The user's cache for corpora: ``$XDG_CACHE_HOME/sonorant``, else ``~/.cache/sonorant``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sonorant"


def find_corpus(name: str, *, strict: bool = True) -> Path | None:
    """The folder of a corpus that is already on this machine.

    Looked for in ``$SONORANT_DATA``, else in ``shared/data`` beside the checkout that this package runs from, else in
    the cache.

    Args:
        name: of the folder.
        strict: ``SONORANT_DATA``, where it is set, must hold the folder; otherwise the other places are tried too.

    Raises:
        FileNotFoundError: ``SONORANT_DATA`` is set, but holds no such folder.
    """
    configured = os.environ.get("SONORANT_DATA")
    if configured:
        folder = Path(configured) / name
        if folder.is_dir():
            return folder
        if strict:
            raise FileNotFoundError(f"{folder}: no such folder, but SONORANT_DATA is {configured}")
    checkout = Path(__file__).resolve().parents[3]
    for folder in (checkout.parent / "shared" / "data" / name, cache_directory() / name):
        if folder.is_dir():
            return folder
    return None


def fetch(url: str, path: Path, sha256: str | Collection[str] | None, *, timeout: float = 30.0) -> Path:
    """Download a file, going on where an interrupted download stopped, and check it.

    What has arrived lies in ``path`` + ``.part`` until the checksum is right; only then does ``path`` exist. A file
    that is already there and right is not fetched again.

    Args:
        url: where from.
        path: where to.
        sha256: the hexadecimal digest, or several of which one must match. None for an archive that its server packs
            anew, so that only what is in it can be checked: see :func:`content_digest`.
        timeout: seconds without any data after which the server counts as gone.

    Raises:
        ChecksumError: the whole file arrived, but is another one (it is deleted).
        ConnectionError: the transfer broke off; what arrived is kept for the next call.
    """
    expected = {sha256} if isinstance(sha256, str) else None if sha256 is None else set(sha256)
    if path.is_file() and (expected is None or _digest(path) in expected):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    logger.info("downloading %s", url)
    _transfer(url, part, timeout)
    if expected is not None and (digest := _digest(part)) not in expected:
        part.unlink()
        raise ChecksumError(f"{url}: the checksum is {digest}; expected {' or '.join(sorted(expected))}")
    part.replace(path)
    return path


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a tar archive into a folder that appears only when it is complete.

    Raises:
        tarfile.TarError: not an archive, or one with members that would land outside the folder.
    """
    scratch = folder.with_name(folder.name + ".part")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(scratch, filter="data")
        scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def content_digest(paths: Iterable[Path]) -> str:
    """One checksum of many files, whatever archive they came in.

    The SHA-256 of lines ``digest  name``, sorted by name: what ``sha256sum * | sha256sum`` prints in the C locale.
    """
    whole = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name.encode()):
        whole.update(f"{_digest(path)}  {path.name}\n".encode())
    return whole.hexdigest()


def _transfer(url: str, part: Path, timeout: float) -> None:
    start = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            resumed = response.status == 206
            remaining = response.headers.get("Content-Length")
            written = 0
            with part.open("ab" if resumed else "wb") as file:
                while block := response.read(_BLOCK):
                    written += file.write(block)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:  # nothing is left to send
            return
        raise ConnectionError(f"{url}: the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"{url}: the transfer broke off ({error}); run again to go on") from error
    if remaining is not None and written < int(remaining):
        raise ConnectionError(f"{url}: the transfer broke off after {part.stat().st_size} bytes; run again to go on")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
