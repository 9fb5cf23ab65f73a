"""What an aligner knows before it learns: the diagonal of the sound, and where silence is."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from sonorant.data.features import Fbank, FbankConfig
from sonorant.functional import beta_binomial_prior
from sonorant.lengths import pad_sequences
from sonorant.models import AlignmentPrior
from sonorant.models.alignment_prior import SoundAndSilence, sound_and_silence

RATE = 8000
Samples = npt.NDArray[np.float32]


def recording(*parts: tuple[float, float], noise: float = 1e-3, seed: int = 0) -> Samples:
    """Stretches of (seconds, amplitude of a buzz), with noise over all."""
    random = np.random.default_rng(seed)
    pieces = [level * (np.arange(round(length * RATE)) * 150 / RATE % 1 - 0.5) for length, level in parts]
    samples = np.concatenate(pieces)
    return (samples + random.normal(0, noise, len(samples))).astype(np.float32)


def features(samples: Samples) -> Tensor:
    return Fbank(FbankConfig(sample_rate=RATE, n_mels=23, frame_length_ms=16.0))(samples)


def found(samples: Samples, prior: AlignmentPrior | None = None) -> SoundAndSilence:
    energies = features(samples)
    result = sound_and_silence(energies[None], torch.tensor([len(energies)]), prior or AlignmentPrior())
    return SoundAndSilence(*(values[0] for values in result))


PARTS = ((0.3, 0), (0.2, 0.3), (0.08, 0), (0.2, 0.3), (0.3, 0), (0.2, 0.2), (0.3, 0))
WORDS = recording(*PARTS)


def test_sound_and_long_silences() -> None:
    sound, silence = found(WORDS)
    is_sound = torch.zeros(158, dtype=torch.bool)
    for start, stop in ((30, 50), (58, 78), (108, 128)):
        is_sound[start:stop] = True
    inside = is_sound.clone()
    for edge in is_sound.diff().nonzero().flatten().tolist():
        inside[edge : edge + 2] = False
    assert sound[inside].min() > 0.95
    off = ~is_sound & ~(is_sound.roll(1) | is_sound.roll(-1))
    assert sound[off].max() < 0.5
    assert silence[:29].min() > 0.9
    assert silence[80:106].min() > 0.9
    assert silence[30:78].max() < 0.1  # with the closure of 0.08 s in the middle


def test_level_and_steady_noise_do_not_matter() -> None:
    expected = found(WORDS)
    for changed in (WORDS / 30, WORDS * 3, recording(*PARTS, noise=4e-3)):
        for got, wanted in zip(found(changed), expected, strict=True):
            assert ((got > 0.5) == (wanted > 0.5)).float().mean() > 0.97


def test_digital_silence_is_no_background() -> None:
    zeros = np.zeros(RATE // 2, dtype=np.float32)
    padded = found(np.concatenate([zeros, WORDS, zeros]))
    for got, wanted in zip(padded, found(WORDS), strict=True):
        assert ((got[50:-50] > 0.5) == (wanted > 0.5)).float().mean() > 0.97
    assert padded.sound[:50].max() < 0.01
    assert padded.silence[:49].min() > 0.9


def test_a_hum_hides_nothing() -> None:
    random = np.random.default_rng(1)
    hum = 0.2 * np.sin(2 * np.pi * 50 * np.arange(RATE) / RATE)
    hiss = np.zeros(RATE)
    hiss[2400:4800] = 0.02 * np.diff(random.normal(size=2401))
    sound = found((hum + hiss + random.normal(0, 1e-3, RATE)).astype(np.float32)).sound
    assert sound[32:58].min() > 0.9
    assert sound[1:28].max() < 0.3


def test_where_the_background_is_not_steady_nothing_is_said() -> None:
    random = np.random.default_rng(2)
    swell = 10 ** np.interp(np.arange(2 * RATE), np.linspace(0, 2 * RATE, 9), random.uniform(-3, -1, 9))
    found_in_noise = found((swell * random.normal(size=2 * RATE)).astype(np.float32))
    assert found_in_noise.sound.max() < 0.5
    assert found_in_noise.silence.max() < 0.5


@pytest.mark.parametrize(
    "samples", [np.zeros(RATE, dtype=np.float32), np.full(RATE, 0.1, dtype=np.float32), WORDS[:100]]
)
def test_recordings_without_any_difference(samples: Samples) -> None:
    energies = features(samples)
    frames, keys = torch.tensor([len(energies)]), torch.tensor([1])
    log_prior = AlignmentPrior().log_prior(energies[None], frames, torch.tensor([[True]]), keys)
    assert log_prior.isfinite().all()


def log_prior(samples: Samples, num_keys: int, prior: AlignmentPrior) -> Tensor:
    energies = features(samples)
    boundaries = torch.zeros(1, num_keys, dtype=torch.bool)
    boundaries[0, [0, -1]] = True
    return prior.log_prior(energies[None], torch.tensor([len(energies)]), boundaries, torch.tensor([num_keys]))[0]


def test_the_diagonal_is_that_of_the_sound() -> None:
    prior = AlignmentPrior(penalty=0.0)
    log_probs = log_prior(WORDS, 5, prior)
    assert log_probs[:29, 0].exp().min() > 0.99
    assert log_probs[131:, 4].exp().min() > 0.99
    sound = found(WORDS).sound > 0.5
    assert sound.sum() <= prior.steps
    spread = beta_binomial_prior(sound.sum().view(1), torch.tensor([5]))[0]
    torch.testing.assert_close(log_probs[sound].exp(), spread, rtol=1e-3, atol=1e-5)
    edges = np.zeros(2 * RATE, dtype=np.float32) + np.random.default_rng(5).normal(0, 1e-3, 2 * RATE).astype(np.float32)
    longer = log_prior(np.concatenate([edges, WORDS, edges]), 5, prior)
    torch.testing.assert_close(longer[200:-200][sound], log_probs[sound], atol=0.2, rtol=0.1)


def test_the_width_of_the_diagonal_does_not_depend_on_the_length() -> None:
    prior = AlignmentPrior(penalty=0.0, steps=50)
    narrow = log_prior(recording((1.0, 0.3)), 20, prior).exp()
    long = log_prior(recording((20.0, 0.3)), 20, prior).exp()
    torch.testing.assert_close(long[20 * 50 + 10], narrow[50], atol=0.02, rtol=0)
    assert log_prior(recording((60.0, 0.3)), 600, prior).isfinite().all()


def test_what_is_less_likely_where() -> None:
    with_levels, without = (log_prior(WORDS, 5, AlignmentPrior(penalty=penalty)) for penalty in (12.0, 0.0))
    penalty = without - with_levels
    assert penalty[35:45, [0, 4]].min() > 11
    assert penalty[35:45, 1:4].max() < 0.5
    assert penalty[85:100, 1:4].min() > 10
    assert (penalty[85:100, 1:4].amin(1) - penalty[85:100][:, [0, 4]].amax(1)).min() > 5
    assert penalty[52:56].abs().max() < 1.5  # a closure may be both


def test_a_batch_equals_its_utterances() -> None:
    prior, keys = AlignmentPrior(), (5, 2)
    energies = [features(WORDS), features(recording((0.2, 0), (0.3, 0.3), (0.25, 0)))]
    padded, lengths = pad_sequences(energies, torch.nan)
    boundaries = torch.tensor([[True, False, True, False, True], [True, True, False, False, False]])
    together = prior.log_prior(padded, lengths, boundaries, torch.tensor(keys))
    for row, (alone, number) in enumerate(zip(energies, keys, strict=True)):
        expected = prior.log_prior(
            alone[None], lengths[row : row + 1], boundaries[row : row + 1, :number], torch.tensor([number])
        )
        torch.testing.assert_close(together[row, : len(alone), :number], expected[0])


@pytest.mark.parametrize("name", ["steps", "penalty", "margin", "softness", "longest_closure", "largest_range"])
def test_impossible_settings(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*; got -1"):
        AlignmentPrior(**{name: -1})
