"""From the spectra of passages to one recording."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sonorant.data.acoustic import LOG_FLOOR, AcousticConfig, AcousticFeatures
from sonorant.data.audio import Samples
from sonorant.data.frontend import RecordingConfig
from sonorant.inference.rendering import Part, RenderedPart
from sonorant.inference.speech import Speech, SpokenToken
from sonorant.text import SymbolTable

__all__ = ["SpeechAssembler", "SpokenPart", "Vocoder"]

Vocoder = Callable[[Tensor, Tensor], Samples]
_SILENCE = 0.05  # seconds that are left at both ends of a passage where training put longer ones
_FADE = 0.005  # seconds over which a passage comes out of the silence around it


class SpokenPart(NamedTuple):
    """A passage, what was made of it, and the pause after it in seconds."""

    part: Part
    rendered: RenderedPart
    pause: float


class SpeechAssembler:
    """Makes samples of passages, and puts them together.

    Args:
        features: of the passages.
        recordings: how long the edges are that training put around recordings; they are cut away.
        symbols: the tokens.
        vocoder: from log mel magnitudes and f0 to samples.
    """

    def __init__(
        self, features: AcousticConfig, recordings: RecordingConfig, symbols: SymbolTable, vocoder: Vocoder
    ) -> None:
        self.features = features
        self.recordings = recordings
        self.symbols = symbols
        self.vocoder = vocoder

    def __call__(self, parts: Sequence[SpokenPart]) -> Speech:
        """Put passages together.

        Args:
            parts: at least one, in their order.
        """
        seconds = self.features.hop_length / self.features.sample_rate
        samples, features, tokens, start = [], [], list[SpokenToken](), 0
        for part, rendered, pause in parts:
            spoken, durations = self._trim(rendered, part.pace)
            ends = (durations.cumsum(0) + start).tolist()
            names = self.symbols.decode(part.tokens)
            tokens += [
                SpokenToken(name, begin * seconds, end * seconds)
                for name, begin, end in zip(names, [start, *ends], ends, strict=False)
            ]
            silence = _silence(round(pause / seconds), self.features.n_mels)
            samples += [self._samples(spoken), np.zeros(len(silence.f0) * self.features.hop_length, dtype=np.float32)]
            features += [spoken, silence]
            start = ends[-1] + len(silence.f0)
        joined = AcousticFeatures(*(torch.cat(columns) for columns in zip(*features, strict=True)))
        return Speech(np.concatenate(samples), self.features.sample_rate, joined, tokens)

    def _trim(self, rendered: RenderedPart, pace: float) -> RenderedPart:
        """Without the edges of training, as far as the boundary tokens have become longer by them."""
        per_second = self.features.sample_rate / self.features.hop_length
        edge, least = round(self.recordings.edge_seconds * per_second / pace), round(_SILENCE * per_second)
        durations = rendered.durations.clone()
        first, last = (min(edge, max(0, int(durations[place]) - least)) for place in (0, -1))
        durations[0] -= first
        durations[-1] -= last
        stop = len(rendered.features.f0) - last
        return RenderedPart(AcousticFeatures(*(column[first:stop] for column in rendered.features)), durations)

    def _samples(self, features: AcousticFeatures) -> Samples:
        """Faded in and out: the background of a recording would begin and end with a click."""
        samples = self.vocoder(features.log_mel, features.f0).copy()
        count = min(round(_FADE * self.features.sample_rate), len(samples) // 2)
        ramp = np.sin(np.pi / 2 * (np.arange(count, dtype=np.float32) + 0.5) / max(count, 1)) ** 2
        samples[:count] *= ramp
        samples[len(samples) - count :] *= ramp[::-1]
        return samples


def _silence(frames: int, n_mels: int) -> AcousticFeatures:
    floor, zeros = float(np.log(LOG_FLOOR)), torch.zeros(frames)
    return AcousticFeatures(torch.full((frames, n_mels), floor), zeros + floor, zeros, zeros > 0)
