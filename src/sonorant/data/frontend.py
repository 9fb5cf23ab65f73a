"""From recordings to what a model hears: rate, channels, edges, features; the same in training and in use."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from torch import Tensor

from sonorant.data.audio import Audio, Samples, cut_frames
from sonorant.data.check import Requirements
from sonorant.data.manifest import Utterance

__all__ = ["Extractor", "ExtractorConfig", "Frontend", "RecordingConfig", "pad_edges"]

_STEP = 1 / 32768  # of 16-bit samples: the least noise that is added, for no edge may be digital silence
_HEADROOM_DB = 35.0  # the noise stays this far below the loudest 10 ms: a clip cut tightly shows no background
_FRAMES_PER_SECOND = 100


class Extractor(Protocol):
    """Samples at one rate to features."""

    @property
    def sample_rate(self) -> int:
        """Of the samples, in Hz."""

    @property
    def num_features(self) -> int:
        """Columns."""

    @property
    def settings(self) -> dict[str, object]:
        """All that the features depend on besides the samples, in a form that JSON takes."""

    def num_frames(self, num_samples: int) -> int:
        """Frames of a recording of so many samples."""

    def __call__(self, samples: Samples) -> Tensor:
        """Compute float32 features ``(frames, num_features)`` of samples ``(samples,)``."""


E = TypeVar("E", bound=Extractor)
E_co = TypeVar("E_co", bound=Extractor, covariant=True)


class ExtractorConfig(Protocol[E_co]):
    """The settings of an extractor, which make it."""

    def extractor(self) -> E_co:
        """What computes the features."""


@dataclass(frozen=True)
class RecordingConfig:
    """How recordings are brought into the form that a model takes.

    Args:
        resample: convert other sample rates; they are refused otherwise.
        mix_channels: average the channels of recordings that have several; they are refused otherwise.
        edge_seconds: of low noise put before and after each recording. Clips that are cut tightly become as long as
            the network needs, and have silence around their words.
        edge_level_db: of that noise, relative to the quietest 10 ms of the recording.
    """

    resample: bool = False
    mix_channels: bool = False
    edge_seconds: float = 0.0
    edge_level_db: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.edge_seconds < 60:
            raise ValueError(f"edge_seconds must lie in [0, 60); got {self.edge_seconds}")


class Frontend(Generic[E]):
    """Utterances to samples, and samples to features.

    Args:
        features: which features, such as :class:`~sonorant.data.features.FbankConfig` or
            :class:`~sonorant.data.acoustic.AcousticConfig`.
        recordings: see :class:`RecordingConfig`.
    """

    def __init__(self, features: ExtractorConfig[E], recordings: RecordingConfig | None = None) -> None:
        self.extractor = features.extractor()
        self.recordings = recordings or RecordingConfig()

    @property
    def settings(self) -> dict[str, object]:
        """All that the features depend on besides the samples that :meth:`load` gives."""
        edges = {"edge_seconds": self.recordings.edge_seconds, "edge_level_db": self.recordings.edge_level_db}
        return {**edges, **self.extractor.settings}

    def load(self, utterance: Utterance) -> Audio:
        """The samples of an utterance at the model's rate, without edges."""
        return utterance.load_audio(
            self.extractor.sample_rate,
            allow_resampling=self.recordings.resample,
            mix_channels=self.recordings.mix_channels,
        )

    def num_frames(self, num_samples: int) -> int:
        """Frames of a recording of so many samples, edges included."""
        return self.extractor.num_frames(num_samples + 2 * self._edge)

    def requirements(
        self,
        encode: Callable[[Sequence[str]], Sequence[int]],
        *,
        num_frames: Callable[[int], int] | None = None,
        min_duration: float = 0.0,
        max_duration: float = 30.0,
    ) -> Requirements:
        """What a corpus must fulfil, so that a model can be trained on it or used on it.

        Args:
            encode: from words to label ids; raises ValueError where it cannot.
            num_frames: frames of the model for a number of samples; by default those of the features.
            min_duration: of an utterance, in seconds.
            max_duration: of an utterance, in seconds.
        """
        count = num_frames or self.num_frames
        return Requirements(
            sample_rate=self.extractor.sample_rate,
            allow_resampling=self.recordings.resample,
            mix_channels=self.recordings.mix_channels,
            encode=encode,
            num_frames=lambda samples, _: count(samples),
            min_duration=min_duration,
            max_duration=max_duration,
        )

    def __call__(self, samples: Samples) -> Tensor:
        """Compute the features ``(frames, num_features)`` of samples ``(samples,)``, with their edges."""
        return self.extractor(self.pad(samples))

    def pad(self, samples: Samples) -> Samples:
        """The samples with their edges."""
        rate = self.extractor.sample_rate
        return pad_edges(samples, rate, self._edge, level_db=self.recordings.edge_level_db)

    @property
    def _edge(self) -> int:
        return round(self.recordings.edge_seconds * self.extractor.sample_rate)


def pad_edges(samples: Samples, sample_rate: int, edge: int, *, level_db: float = 0.0) -> Samples:
    """Put white noise before and after a recording.

    Its power is that of the quietest 10 ms of the recording, but at least 35 dB below the loudest, and not below one
    step of 16 bits. The noise is drawn from the samples themselves: the same recording always gets the same.

    Args:
        samples: float32 ``(samples,)``.
        sample_rate: in Hz.
        edge: samples on each side; 0 returns the recording as it is.
        level_db: the power of the noise relative to that of the quietest 10 ms, in decibels.
    """
    if edge == 0:
        return samples
    frame = min(len(samples), max(1, sample_rate // _FRAMES_PER_SECOND))
    powers = (cut_frames(samples, frame) ** 2).mean(1)
    power = min(powers.min(), powers.max() * 10 ** (-_HEADROOM_DB / 10)) * 10 ** (level_db / 10)
    random = np.random.default_rng(zlib.crc32(samples.tobytes()))
    noise = max(float(np.sqrt(power)), _STEP) * random.standard_normal(2 * edge)
    padded = np.concatenate([noise[:edge], samples, noise[edge:]])
    return padded.astype(np.float32)
