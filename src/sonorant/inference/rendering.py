"""From tokens to spectra: rhythm, melody and stress are predicted, and laid on the voice that is asked for."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sonorant.data.acoustic import LOG_FLOOR, AcousticConfig, AcousticFeatures
from sonorant.data.speaker_statistics import SpeakerStatistics
from sonorant.lengths import Padded, pad_sequences
from sonorant.models.flow_tts import Attributes, FlowTts

__all__ = ["Part", "RenderedPart", "SpeechRenderer", "round_durations"]

_LONGEST_TOKEN = 5.0  # seconds: what is predicted for letters that never came in such a row may be anything


class Part(NamedTuple):
    """A passage of a text as numbers: tokens, whose voice, accent, rhythm, melody and stress it has, and how.

    ``statistics`` are those of the voice.
    """

    tokens: list[int]
    speaker: int
    accent: int
    duration_speaker: int
    f0_speaker: int
    energy_speaker: int
    statistics: SpeakerStatistics
    pace: float
    pitch_shift: float
    temperature: float
    seed: int


class RenderedPart(NamedTuple):
    """The features, and the frames of each token, int64 ``(tokens,)``."""

    features: AcousticFeatures
    durations: Tensor


class SpeechRenderer:
    """Makes features of the parts of a batch, which does not change them.

    Args:
        model: in evaluation mode.
        features: the grid of frames, and where f0 has its limits.
        corpus: the statistics by which the decoder's f0 and energy are normalised.
    """

    def __init__(self, model: FlowTts, features: AcousticConfig, corpus: SpeakerStatistics) -> None:
        self.model = model
        self.features = features
        self.corpus = corpus

    @torch.inference_mode()
    def __call__(self, parts: Sequence[Part]) -> list[RenderedPart]:
        """Make the features of some parts, all of the same temperature.

        Args:
            parts: at least one.
        """
        tokens, token_lengths = pad_sequences([torch.tensor(part.tokens) for part in parts])
        speakers, accents, rhythms, melodies, stresses, seeds = (
            torch.tensor([getattr(part, name) for part in parts])
            for name in ("speaker", "accent", "duration_speaker", "f0_speaker", "energy_speaker", "seed")
        )
        text, embedded = self.model.encode(tokens, token_lengths, accents), self.model.embed(tokens, accents)
        logs = self.model.predict_durations(embedded, token_lengths, rhythms, accents)
        durations = [self._durations(row[: len(part.tokens)], part) for row, part in zip(logs, parts, strict=True)]
        frames, lengths = _laid_out(text, durations)
        embedded_frames, _ = _laid_out(embedded, durations)
        melody = self.model.predict_attributes(embedded_frames, lengths, melodies, accents)
        same = torch.equal(melodies, stresses)
        stress = melody if same else self.model.predict_attributes(embedded_frames, lengths, stresses, accents)
        f0 = [self._f0(*row) for row in zip(melody.f0, melody.voiced, parts, strict=True)]
        energy = [self._energy(*row) for row in zip(stress.energy, parts, strict=True)]
        heard = Attributes(
            torch.stack([self.corpus.normalize_f0(row) for row in f0]),
            torch.stack([self.corpus.normalize_energy(row) for row in energy]),
            torch.stack([(row > 0).float() for row in f0]),
        )
        temperature = parts[0].temperature
        mel = self.model.sample(frames, lengths, heard, speakers, accents, temperature=temperature, seeds=seeds)
        return [
            RenderedPart(AcousticFeatures(mel[i, :n].float(), energy[i][:n], f0[i][:n], f0[i][:n] > 0), durations[i])
            for i, n in enumerate(lengths.tolist())
        ]

    def _durations(self, logs: Tensor, part: Part) -> Tensor:
        longest = _LONGEST_TOKEN * self.features.sample_rate / self.features.hop_length
        return round_durations(logs.double().expm1().clamp(0, longest) / part.pace)

    def _f0(self, normalized: Tensor, voiced: Tensor, part: Part) -> Tensor:
        """In Hz, in the range of the part's voice."""
        is_voiced = voiced > 0
        f0 = part.statistics.denormalize_f0(normalized, is_voiced) * 2 ** (part.pitch_shift / 12)
        return torch.where(is_voiced, f0.clamp(self.features.f0_floor, self.features.f0_ceiling), 0.0)

    def _energy(self, normalized: Tensor, part: Part) -> Tensor:
        """Between silence and full scale."""
        return part.statistics.denormalize_energy(normalized).clamp(math.log(LOG_FLOOR), 0.0)


def _laid_out(tokens: Tensor, durations: Sequence[Tensor]) -> Padded:
    """Each token as often as it has frames."""
    rows = zip(tokens, durations, strict=True)
    return pad_sequences([row[: len(counts)].repeat_interleave(counts, 0) for row, counts in rows])


def round_durations(durations: Float[Tensor, " tokens"]) -> Int[Tensor, " tokens"]:
    """Whole frames, at least 1 a token; ends are rounded, and not durations, so that no error adds up.

    Args:
        durations: in frames, at least 0.

    Returns:
        int64 ``(tokens,)``, whose sum is that of the durations, rounded, unless there are more tokens.

    Example:
        >>> import torch
        >>> from sonorant.inference.rendering import round_durations
        >>> round_durations(torch.tensor([1.4, 1.4, 0.1, 2.4]))
        tensor([1, 2, 1, 1])
    """
    places = torch.arange(1, len(durations) + 1, device=durations.device)
    # each end is at least one frame after the one before
    ends = (durations.double().cumsum(0).round().long() - places).clamp(min=0).cummax(0).values + places
    return torch.diff(ends, prepend=ends.new_zeros(1))
