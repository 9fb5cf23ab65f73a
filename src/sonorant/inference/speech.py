"""What is to be said, by whom and how; and what was said."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sonorant.data.acoustic import AcousticFeatures
from sonorant.data.audio import Samples, write_audio

__all__ = ["Sentence", "Speech", "SpokenToken"]


@dataclass(frozen=True)
class Sentence:
    """A text, and how it shall be spoken.

    Args:
        text: of any length; see :func:`sonorant.text.split_text`.
        speaker: whose voice; may be None if the model has one speaker alone.
        accent: None is the speaker's own.
        duration_speaker: whose rhythm; None is the speaker's own.
        f0_speaker: whose melody, in the range of the speaker's voice; None is the speaker's own.
        energy_speaker: whose stress, likewise.
        pace: 2 is twice as fast.
        pitch_shift: in semitones.
        temperature: how far renditions are apart: the standard deviation of the noise that they are made of. 0 always
            gives the same; None is the model's own.
        seed: of that noise.
    """

    text: str
    speaker: str | None = None
    accent: str | None = None
    duration_speaker: str | None = None
    f0_speaker: str | None = None
    energy_speaker: str | None = None
    pace: float = 1.0
    pitch_shift: float = 0.0
    temperature: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least, most in (("pace", 0.1, 10), ("pitch_shift", -48, 48), ("temperature", 0, 10)):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and least <= value <= most):
                raise ValueError(f"{name} must lie in [{least}, {most}]; got {value}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must lie in [0, 2^63); got {self.seed}")


class SpokenToken(NamedTuple):
    """A letter, a phone or a boundary, and where it is, in seconds."""

    token: str
    start: float
    end: float


class Speech(NamedTuple):
    """What a :class:`~sonorant.inference.synthesizer.Synthesizer` says.

    ``samples`` float32 ``(samples,)`` in [-1, 1], ``sample_rate`` in Hz; ``features`` what they were made from, frame
    by frame; ``tokens`` what is spoken when. Between the passages of a text there is silence, which has no token.
    """

    samples: Samples
    sample_rate: int
    features: AcousticFeatures
    tokens: list[SpokenToken]

    @property
    def duration(self) -> float:
        """In seconds."""
        return len(self.samples) / self.sample_rate

    def write(self, path: str | Path) -> None:
        """Write a recording of 16 bits, see :func:`sonorant.data.audio.write_audio`."""
        write_audio(path, self.samples, self.sample_rate)

    def to_json(self) -> dict[str, Any]:
        """Plain data, without samples and features; times in milliseconds' precision."""
        tokens = [
            {"token": token.token, "start": round(token.start, 3), "end": round(token.end, 3)} for token in self.tokens
        ]
        return {"duration": round(self.duration, 3), "tokens": tokens}
