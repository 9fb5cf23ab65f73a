"""From mel magnitudes to waveforms: the inverse on the extractor's frames, magnitudes that fit, and pulses."""

import numpy as np
import pytest
import torch

from sonorant.data.acoustic import AcousticConfig
from sonorant.functional.griffin_lim import FrameGrid, fit_mel, griffin_lim, pulse_excitation

GRIDS = [(256, 256, 80), (256, 200, 80), (512, 400, 100), (64, 64, 64), (65, 31, 7)]  # n_fft, win_length, hop_length


def grid_of(n_fft: int, win_length: int, hop_length: int, num_frames: int) -> tuple[AcousticConfig, FrameGrid]:
    config = AcousticConfig(8000, n_fft=n_fft, win_length=win_length, hop_length=hop_length, n_mels=6)
    return config, FrameGrid(num_frames, config.extractor().window, hop_length)


@pytest.mark.parametrize("sizes", GRIDS)
@pytest.mark.parametrize("num_frames", [1, 2, 30])
def test_frames_are_those_of_the_extractor(sizes: tuple[int, int, int], num_frames: int) -> None:
    config, grid = grid_of(*sizes, num_frames)
    samples = 0.1 * torch.randn(num_frames * sizes[2], generator=torch.Generator().manual_seed(0))
    log_mel = (grid.analyze(samples).abs() @ config.mel_filters()).clamp(min=1e-5).log()
    torch.testing.assert_close(log_mel, config.extractor()(samples.numpy())[:, :6], rtol=0, atol=1e-4)


@pytest.mark.parametrize("sizes", GRIDS[:3])
@pytest.mark.parametrize("num_frames", [1, 3, 30])
def test_the_inverse_gives_the_samples_back(sizes: tuple[int, int, int], num_frames: int) -> None:
    _, grid = grid_of(*sizes, num_frames)
    samples = torch.randn(num_frames * sizes[2], generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(grid.synthesize(grid.analyze(samples)), samples, rtol=0, atol=1e-4)


def test_the_inverse_is_that_of_least_squares() -> None:
    """No change of the samples comes nearer to spectra that no samples have."""
    _, grid = grid_of(64, 64, 16, 4)
    random = torch.Generator().manual_seed(0)
    spectra = torch.fft.rfft(torch.randn(4, 64, generator=random))
    samples = grid.synthesize(spectra).requires_grad_()
    frames = torch.fft.irfft(grid.analyze(samples) - spectra, 64)  # Parseval: as far apart as the spectra
    frames.square().sum().backward()
    assert samples.grad is not None
    assert samples.grad.abs().max() < 1e-4


def test_what_no_window_reaches_is_silent_and_finite() -> None:
    grid = FrameGrid(3, torch.nn.functional.pad(torch.hann_window(4), (30, 30)), 32)
    assert grid.synthesize(grid.analyze(torch.ones(96))).isfinite().all()


@pytest.mark.parametrize(("frames", "hop"), [(0, 4), (3, 0), (3, 65)])
def test_impossible_grids(frames: int, hop: int) -> None:
    with pytest.raises(ValueError, match=f"got {frames}, {hop}"):
        FrameGrid(frames, torch.hann_window(64), hop)


def test_magnitudes_fit_and_are_never_negative() -> None:
    filters = AcousticConfig(8000, n_fft=256, hop_length=80, n_mels=20).mel_filters()
    random = torch.Generator().manual_seed(0)
    truth = torch.rand(50, 129, generator=random).pow(4)
    mel = truth @ filters
    fitted = fit_mel(torch.ones_like(truth), mel, filters, iterations=50)
    assert fitted.min() >= 0
    assert ((fitted @ filters).log() - mel.log()).abs().max() < 5e-3
    pseudo_inverse = (mel @ torch.linalg.pinv(filters)).clamp(min=0)
    assert ((pseudo_inverse @ filters).log() - mel.log()).abs().mean() > 0.01  # what is usual does not fit
    assert torch.equal(fitted[:, 0], torch.zeros(50))  # no filter reaches it


def test_the_fine_structure_stays() -> None:
    filters = AcousticConfig(8000, n_fft=256, hop_length=80, n_mels=20).mel_filters()
    comb = torch.full((1, 129), 0.01)
    comb[:, ::8] = 1.0
    fitted = fit_mel(comb, torch.ones(1, 20), filters, iterations=20)
    assert (fitted[:, 40:121:8] > 5 * fitted[:, 44:125:8]).all()


def test_momentum_and_iterations_come_nearer() -> None:
    config, grid = grid_of(256, 256, 80, 60)
    times = torch.arange(4800) / 8000
    samples = 0.1 * sum(torch.sin(2 * torch.pi * 130 * k * times * (1 + 0.1 * times)) for k in range(1, 12))
    filters = config.mel_filters()
    mel = grid.analyze(samples).abs() @ filters
    start = torch.ones(60, 129, dtype=torch.complex64)

    def error(iterations: int, momentum: float) -> float:
        found = griffin_lim(start, mel, filters, grid, iterations=iterations, momentum=momentum)
        return float((grid.analyze(found).abs() @ filters - mel).norm() / mel.norm())

    assert error(20, 0.5) < 0.8 * error(20, 0.0) < 0.8 * error(0, 0.0)


def test_pulses_come_as_often_as_asked_and_are_as_strong_as_noise() -> None:
    f0 = torch.cat([torch.full((100,), 125.0), torch.zeros(100)])
    excitation = pulse_excitation(f0, 8000, 80, generator=torch.Generator().manual_seed(0))
    voiced, unvoiced = excitation[:8000], excitation[8000:]
    pulses = voiced.gt(1e-3).nonzero().squeeze(1)
    assert len(pulses) == 125
    assert torch.diff(pulses).unique().tolist() == [64]
    for part in (voiced, unvoiced):
        assert float(part.square().mean()) == pytest.approx(1.0, abs=0.05)
    assert unvoiced.count_nonzero() == 8000


def test_pulses_between_samples_keep_the_frequency() -> None:
    spectrum = np.abs(np.fft.rfft(pulse_excitation(torch.full((200,), 137.3), 8000, 80).numpy()))
    assert np.argmax(spectrum[1:400]) + 1 == round(137.3 * 2)


def test_frequencies_are_interpolated_over_unvoiced_frames() -> None:
    f0 = torch.tensor([100.0, 0.0, 0.0, 0.0, 200.0])
    excitation = pulse_excitation(f0, 8000, 400, generator=torch.Generator().manual_seed(0))
    # half a frame of the last one, in which it has all but reached 200 Hz
    pulses = excitation[1600:].gt(3).nonzero().squeeze(1)
    assert torch.diff(pulses)[-5:].tolist() == [40] * 5
    assert 41 <= int(torch.diff(pulses)[0]) <= 44


def test_without_a_voice_there_is_noise() -> None:
    excitation = pulse_excitation(torch.zeros(3), 8000, 80)
    assert excitation.count_nonzero() == 240
