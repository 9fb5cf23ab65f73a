"""Features that are computed once: on disk under a name that tells what they are of, or in memory."""

import hashlib
import io
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sonorant.data.audio import Samples, change_speed
from sonorant.data.frontend import Frontend
from sonorant.data.manifest import Utterance
from sonorant.data.parallel import map_in_order

__all__ = ["FeatureStore", "StoredFeatures"]

_VERSION = 1  # goes up whenever the same samples and settings give other features, or files of another form
_CHECKSUM_BYTES = 4


class StoredFeatures(NamedTuple):
    """Where the features of an utterance at a speed are: in a file, or right here."""

    utterance: Utterance
    speed: float
    num_frames: int
    path: Path | None
    features: Tensor | None

    @property
    def id(self) -> str:
        """The utterance's, with the speed if that is not 1."""
        return self.utterance.id if self.speed == 1 else f"{self.utterance.id} at speed {self.speed:g}"


class FeatureStore:
    """Computes features and keeps them.

    A file's name is a digest of the samples, of the settings and of the speed, so that whatever changes is computed
    anew. It holds an array in NumPy's format and a checksum; it is written aside and renamed, so that several runs may
    share the folder; and one that is damaged is computed again when it is read.

    Args:
        frontend: samples to features, of any kind: those of several kinds may share a folder.
        folder: where files are kept; None keeps the features in memory.
    """

    def __init__(self, frontend: Frontend[Any], folder: Path | None) -> None:
        self._frontend = frontend
        self._folder = folder

    def collect(
        self,
        utterances: Sequence[Utterance],
        speeds: Sequence[float],
        *,
        jobs: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> list[StoredFeatures]:
        """The features of every utterance at every speed, computed where they are not there yet.

        Args:
            utterances: the corpus.
            speeds: factors, see :func:`~sonorant.data.audio.change_speed`.
            jobs: threads; None takes one for each core.
            progress: called with the number of utterances done, after each of them.
        """
        stored: list[StoredFeatures] = []
        of_each = map_in_order(lambda utterance: list(self._collect(utterance, speeds)), utterances, jobs)
        for number, of_one in enumerate(of_each, start=1):
            stored += of_one
            if progress is not None:
                progress(number)
        return stored

    def read(self, stored: StoredFeatures) -> Tensor:
        """The features, float32 ``(frames, num_features)``.

        Raises:
            ValueError: the file is damaged, and the recording is no longer the one that it was made of.
        """
        if stored.path is None:
            assert stored.features is not None
            return stored.features
        features = _read(stored.path, (stored.num_frames, self._frontend.extractor.num_features))
        if features is None:
            samples = self._frontend.load(stored.utterance).samples
            if self._path(samples, stored.speed) != stored.path:
                raise ValueError(f"{stored.utterance.path}: the recording has changed since training began")
            features = self._compute(samples, stored.speed)
            _write(stored.path, features)
        return features

    def _collect(self, utterance: Utterance, speeds: Iterable[float]) -> Iterator[StoredFeatures]:
        samples = self._frontend.load(utterance).samples
        for speed in speeds:
            path = self._path(samples, speed)
            num_frames = None if path is None else _read_length(path)
            features = None
            if num_frames is None:
                features = self._compute(samples, speed)
                num_frames = len(features)
                if path is not None:
                    _write(path, features)
            yield StoredFeatures(utterance, speed, num_frames, path, features if path is None else None)

    def _compute(self, samples: Samples, speed: float) -> Tensor:
        return self._frontend(change_speed(samples, speed))

    def _path(self, samples: Samples, speed: float) -> Path | None:
        if self._folder is None:
            return None
        settings = {"version": _VERSION, "speed": speed, **self._frontend.settings}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        digest.update(np.ascontiguousarray(samples).tobytes())
        name = digest.hexdigest()
        return self._folder / name[:2] / f"{name[2:]}.npy"


def _write(path: Path, features: Tensor) -> None:
    """An array, and a checksum behind it, which NumPy passes over. Not synced: what a crash damages is found out."""
    content = io.BytesIO()
    np.save(content, features.numpy())
    data = content.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=path.stem[:8], suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data + zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little"))
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _read(path: Path, shape: tuple[int, int]) -> Tensor | None:
    """What is in a file, or None where it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    data = content[:-_CHECKSUM_BYTES]
    if zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little") != content[-_CHECKSUM_BYTES:]:
        return None
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError):
        return None
    if array.dtype != np.float32 or array.shape != shape:
        return None
    return torch.from_numpy(array)


def _read_length(path: Path) -> int | None:
    """The number of frames that a file says it holds, or None; whether that is true is seen when it is read."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            shape, _, _ = np.lib.format.read_array_header_1_0(file)
    except (OSError, ValueError, EOFError):
        return None
    return int(shape[0]) if len(shape) == 2 else None
