"""What models in use take for a recording: a file, an utterance of a corpus, or samples."""

from pathlib import Path
from typing import Any

import numpy.typing as npt

from sonorant.data.audio import AudioError, Samples, check_samples, resample
from sonorant.data.frontend import Frontend
from sonorant.data.manifest import Utterance

__all__ = ["Recording", "load_recording"]

Recording = str | Path | Utterance | npt.ArrayLike


def load_recording(frontend: Frontend[Any], audio: Recording, sample_rate: int | None = None) -> tuple[str, Samples]:
    """The name of a recording, for messages, and its samples at the model's rate.

    Args:
        frontend: of the model.
        audio: a file, an utterance of a corpus, or samples ``(samples,)`` in [-1, 1].
        sample_rate: of the samples, in Hz; must be the model's, unless it takes resampled recordings. A file knows its
            own.

    Raises:
        FileNotFoundError: no such file.
        AudioError: a recording that cannot be used (it is named, and the value).
    """
    needed = frontend.extractor.sample_rate
    if isinstance(audio, str | Path):
        audio = Utterance(str(audio), Path(audio), "")
    if isinstance(audio, Utterance):
        return str(audio.path), frontend.load(audio).samples
    samples = check_samples(audio, "audio")
    if sample_rate is not None and sample_rate != needed and frontend.recordings.resample:
        return "audio", resample(samples, sample_rate, needed)
    if sample_rate != needed:
        raise AudioError(f"audio: sample_rate is {sample_rate}; the model needs {needed} Hz")
    return "audio", samples
