"""Downloads against a server on the loopback address that breaks off, resumes, and serves the wrong file."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sonorant.data.download import ChecksumError, content_digest, fetch, find_corpus, unpack
from sonorant.data.yesno import load_yesno

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves ``content``; ``break_after`` bytes it drops the connection, once. Remembers the ranges asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.break_after: int | None = None
        self.ranges: list[str | None] = []
        self.honour_ranges = True
        self.chunked = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        content, start = self.server.content, 0
        if asked and self.server.honour_ranges:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
        else:
            self.send_response(200)
        body = content[start:]
        if self.server.chunked:  # a chunk is promised that never comes whole
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(f"{len(body):x}\r\n".encode() + body[: len(body) // 2])
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.break_after is not None:
            body, self.server.break_after = body[: self.server.break_after], None
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_fetches_once(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    assert fetch(server.url, path, SHA256).read_bytes() == CONTENT
    fetch(server.url, path, SHA256)
    assert len(server.ranges) == 1
    assert [p.name for p in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("honour_ranges", [True, False])
def test_goes_on_after_an_interruption(server: Server, tmp_path: Path, honour_ranges: bool) -> None:
    server.break_after, server.honour_ranges = 100_000, honour_ranges
    path = tmp_path / "file"
    with pytest.raises(ConnectionError, match="broke off"):
        fetch(server.url, path, SHA256)
    assert not path.exists()
    arrived = path.with_name("file.part").stat().st_size
    assert 0 < arrived <= 100_000
    assert fetch(server.url, path, SHA256).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={arrived}-"]


def test_an_interruption_shows_without_a_length_too(server: Server, tmp_path: Path) -> None:
    server.chunked = True
    with pytest.raises(ConnectionError, match="broke off"):
        fetch(server.url, tmp_path / "file", None)
    assert not (tmp_path / "file").exists()


def test_without_a_checksum_what_is_there_is_right(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        assert fetch(server.url, tmp_path / "file", None).read_bytes() == CONTENT
    assert len(server.ranges) == 1


def test_content_has_one_checksum_whatever_the_order(tmp_path: Path) -> None:
    for name in ("b.wav", "B.wav", "a.wav"):
        (tmp_path / name).write_bytes(name.encode())
    paths = list(tmp_path.iterdir())
    digest = content_digest(paths)
    assert content_digest(reversed(paths)) == digest
    lines = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in ("B.wav", "a.wav", "b.wav")]
    assert digest == hashlib.sha256("".join(lines).encode()).hexdigest()
    (tmp_path / "a.wav").rename(tmp_path / "c.wav")
    assert content_digest(tmp_path.iterdir()) != digest


def test_a_complete_part_needs_only_its_checksum(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT)
    assert fetch(server.url, tmp_path / "file", SHA256).read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(server: Server, tmp_path: Path) -> None:
    server.content = b"something else"
    with pytest.raises(ChecksumError, match=f"expected {SHA256}"):
        fetch(server.url, tmp_path / "file", SHA256)
    assert list(tmp_path.iterdir()) == []


def test_errors_of_the_server_are_reported(server: Server, tmp_path: Path) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(ConnectionError, match="run again"):
        fetch(server.url, tmp_path / "file", SHA256, timeout=5)


def archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "evil.tar.gz"
    path.write_bytes(archive({"../outside": b"x"}))
    with pytest.raises(tarfile.TarError):
        unpack(path, tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [path]
    assert not (tmp_path.parent / "outside").exists()


def names() -> list[str]:
    return ["_".join(f"{index:08b}") for index in range(60)]


@pytest.fixture
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without the corpus: an empty cache, and no shared folder beside the checkout."""
    monkeypatch.delenv("SONORANT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sonorant.data.download.__file__", str(tmp_path / "a" / "b" / "c" / "d" / "download.py"))
    return tmp_path


def test_yesno_is_downloaded_to_the_cache_once(server: Server, nothing_here: Path) -> None:
    server.content = archive({f"waves_yesno/{name}.wav": b"RIFF" for name in names()})
    digest = hashlib.sha256(server.content).hexdigest()
    corpus = load_yesno(server.url, digest)
    assert (len(corpus.train), len(corpus.test)) == (30, 30)
    assert load_yesno("http://127.0.0.1:9/unused", digest) == corpus
    assert corpus.train[0].path.parent == nothing_here / "cache" / "sonorant" / "yesno"


def test_sonorant_data_comes_first(nothing_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nothing_here / "mine" / "yesno").mkdir(parents=True)
    monkeypatch.setenv("SONORANT_DATA", str(nothing_here / "mine"))
    assert find_corpus("yesno") == nothing_here / "mine" / "yesno"
    with pytest.raises(FileNotFoundError, match="SONORANT_DATA is"):
        find_corpus("other")
    assert find_corpus("other", strict=False) is None
    (nothing_here / "cache" / "sonorant" / "other").mkdir(parents=True)
    assert find_corpus("other", strict=False) == nothing_here / "cache" / "sonorant" / "other"


def test_a_folder_beside_the_checkout_is_found(nothing_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = nothing_here / "checkout" / "src" / "sonorant" / "data" / "download.py"
    monkeypatch.setattr("sonorant.data.download.__file__", str(module))
    assert find_corpus("yesno") is None
    (nothing_here / "shared" / "data" / "yesno").mkdir(parents=True)
    assert find_corpus("yesno") == nothing_here / "shared" / "data" / "yesno"


def test_an_incomplete_corpus_is_refused(nothing_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = nothing_here / "mine" / "yesno"
    folder.mkdir(parents=True)
    monkeypatch.setenv("SONORANT_DATA", str(nothing_here / "mine"))
    for name in names()[:59]:
        (folder / f"{name}.wav").touch()
    with pytest.raises(ValueError, match="holds 59 recordings; yesno has 60"):
        load_yesno()
    (folder / "1_2.wav").touch()
    with pytest.raises(ValueError, match=r"1_2\.wav: the name should be digits 0 and 1"):
        load_yesno()
