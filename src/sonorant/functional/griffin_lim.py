"""From mel magnitudes back to a waveform: Griffin and Lim's iteration, and where it starts."""

import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.nn import functional as F

__all__ = ["FrameGrid", "fit_mel", "griffin_lim", "pulse_excitation"]

_TINY = 1e-9  # of a magnitude, for divisions


class FrameGrid:
    r"""The transform of the frames of a recording with mirrored edges, and its least-squares inverse.

    Frame i is centred at sample :math:`i h + \lfloor h / 2 \rfloor`, as those of
    :class:`sonorant.data.acoustic.AcousticExtractor`. Mirroring copies samples, windowing scales them, so that the
    normal equations of "find the samples whose frames are nearest to these" are diagonal: the inverse adds up windowed
    frames, copies included, and divides by the squared windows over each sample.

    Args:
        num_frames: at least 1.
        window: ``(n_fft,)``.
        hop_length: in samples, at most ``n_fft``.

    References:
        Griffin and Lim 1984, "Signal estimation from modified short-time Fourier transform".

    Example:
        >>> import torch
        >>> from sonorant.functional.griffin_lim import FrameGrid
        >>> grid, samples = FrameGrid(10, torch.hann_window(64), 16), torch.randn(160)
        >>> grid.synthesize(grid.analyze(samples)).sub(samples).abs().max() < 1e-5
        tensor(True)
    """

    def __init__(self, num_frames: int, window: Float[Tensor, " n_fft"], hop_length: int) -> None:
        n_fft = len(window)
        if num_frames < 1 or not 1 <= hop_length <= n_fft:
            raise ValueError(
                f"num_frames must be at least 1 and hop_length in [1, {n_fft}]; got {num_frames}, {hop_length}"
            )
        self.window = window
        self.hop_length = hop_length
        self.num_frames = num_frames
        self.num_samples = num_frames * hop_length
        left = n_fft // 2 - hop_length // 2
        places = torch.arange(-left, (num_frames - 1) * hop_length + n_fft - left, device=window.device)
        places = places.remainder(2 * self.num_samples)
        self._sources = torch.where(places < self.num_samples, places, 2 * self.num_samples - 1 - places)
        weight = self._gather(window.square().expand(num_frames, n_fft))
        # where hardly a window reaches, nothing is known of the sample
        self._weight = weight.clamp(min=1e-6 * float(weight.max()))

    def analyze(self, samples: Float[Tensor, " samples"]) -> Complex[Tensor, "frames bins"]:
        """The spectra of all frames.

        Args:
            samples: ``(num_frames * hop_length,)``.
        """
        frames = samples[self._sources].unfold(0, len(self.window), self.hop_length)
        spectra: Tensor = torch.fft.rfft(frames * self.window)
        return spectra

    def synthesize(self, spectra: Complex[Tensor, "frames bins"]) -> Float[Tensor, " samples"]:
        """The samples whose spectra are nearest to these in the mean square.

        Args:
            spectra: ``(num_frames, n_fft // 2 + 1)``.
        """
        frames = torch.fft.irfft(spectra, len(self.window))
        return self._gather(frames * self.window) / self._weight

    def _gather(self, frames: Tensor) -> Tensor:
        """Add up overlapping frames, and mirrored samples to those that they are copies of."""
        hop, count = self.hop_length, -(-len(self.window) // self.hop_length)
        pieces = F.pad(frames, (0, count * hop - len(self.window))).view(self.num_frames, count, hop)
        added = frames.new_zeros(self.num_frames + count - 1, hop)
        for index in range(count):
            added[index : index + self.num_frames] += pieces[:, index]
        summed = frames.new_zeros(self.num_samples)
        return summed.index_add_(0, self._sources, added.view(-1)[: len(self._sources)])


def fit_mel(
    magnitudes: Float[Tensor, "frames bins"],
    mel: Float[Tensor, "frames mels"],
    filters: Float[Tensor, "bins mels"],
    *,
    iterations: int,
) -> Float[Tensor, "frames bins"]:
    r"""Scale magnitudes, none below 0, until their mel spectrum is the given one.

    .. math::
        s_j \leftarrow s_j \sum_k \frac{w_{jk}}{\sum_l w_{jl}} \frac{m_k}{\sum_i w_{ik} s_i}

    the multiplicative steps of expectation maximisation towards the smallest Kullback-Leibler divergence from
    :math:`m` to the mel spectrum of :math:`s`. There are fewer mel bins than bins of the transform, so that many
    spectra fit: this one keeps the fine structure, the harmonics, say, of the one it starts from. Bins that no filter
    reaches become 0.

    Args:
        magnitudes: where to start; at least 0.
        mel: what the mel spectrum should be; at least 0.
        filters: see :func:`sonorant.functional.mel_filterbank`.
        iterations: steps; about 0.1 of the logarithm is left to fit after two, 2e-5 after fifty.

    Returns:
        The scaled magnitudes.

    References:
        Richardson 1972, "Bayesian-based iterative method of image restoration"; Lee and Seung 2000, "Algorithms for
        non-negative matrix factorization".

    Example:
        >>> import torch
        >>> from sonorant.functional.griffin_lim import fit_mel
        >>> filters = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
        >>> fit_mel(torch.ones(1, 3), torch.tensor([[3.0, 1.5]]), filters, iterations=20)
        tensor([[2.2843, 1.4315, 0.7843]])
    """
    spread = (filters / filters.sum(1, keepdim=True).clamp(min=_TINY)).T
    for _ in range(iterations):
        magnitudes = magnitudes * ((mel / (magnitudes @ filters).clamp(min=_TINY)) @ spread)
    return magnitudes


def griffin_lim(
    start: Complex[Tensor, "frames bins"],
    mel: Float[Tensor, "frames mels"],
    filters: Float[Tensor, "bins mels"],
    grid: FrameGrid,
    *,
    iterations: int,
    momentum: float,
) -> Float[Tensor, " samples"]:
    r"""A waveform that has a given mel spectrum, by the fast Griffin-Lim algorithm.

    .. math::
        t_n = S(S^+(c_{n-1})), \quad c_n = P(t_n + \alpha (t_n - t_{n-1}))

    :math:`S` is the transform of the frames, :math:`S^+` its inverse (:class:`FrameGrid`). It departs from the
    published algorithm in :math:`P`: that sets the magnitudes of all bins to given ones; here they are only scaled, by
    two steps of :func:`fit_mel`, so that the mel spectrum becomes the given one. The mel spectrum does not say more,
    and magnitudes guessed from it would be none that any waveform has.

    Args:
        start: spectra whose phases and fine structure the waveform shall have.
        mel: ``(frames, mels)``, magnitudes.
        filters: see :func:`sonorant.functional.mel_filterbank`.
        grid: the frames.
        iterations: 0 keeps the phases of ``start``.
        momentum: :math:`\alpha`, in [0, 1).

    Returns:
        ``(frames * hop_length,)``, zeros where the mel spectrum is 0.

    References:
        Griffin and Lim 1984; Perraudin, Balazs and Soendergaard 2013, "A fast Griffin-Lim algorithm".
    """
    current = _project(start, mel, filters, 5)
    before = None
    for _ in range(iterations):
        consistent = grid.analyze(grid.synthesize(current))
        moved = consistent if before is None else consistent + momentum * (consistent - before)
        current, before = _project(moved, mel, filters, 2), consistent
    return grid.synthesize(current)


def pulse_excitation(
    f0: Float[Tensor, " frames"], sample_rate: int, hop_length: int, *, generator: torch.Generator | None = None
) -> Float[Tensor, " samples"]:
    """What vocal folds do, with a flat spectrum: pulses of the given frequency, and noise where there is none.

    Both have a power of about 1. Between the centres of voiced frames the logarithm of the frequency is interpolated;
    a pulse between two samples is shared by them.

    Args:
        f0: in Hz, 0 in unvoiced frames; frame i is centred at ``i * hop_length + hop_length // 2``.
        sample_rate: in Hz.
        hop_length: in samples.
        generator: of the noise.

    Returns:
        ``(frames * hop_length,)``.

    Example:
        >>> import torch
        >>> from sonorant.functional.griffin_lim import pulse_excitation
        >>> pulse_excitation(torch.tensor([2.0, 2.0]), 8, 4)
        tensor([0., 0., 0., 2., 0., 0., 0., 2.])
    """
    num_samples = len(f0) * hop_length
    noise = torch.randn(num_samples, generator=generator, dtype=torch.float64, device=f0.device)
    voiced = f0.gt(0).nonzero().squeeze(1)
    if len(voiced) == 0:
        return noise.to(f0.dtype)
    per_sample = _interpolate_log(f0, voiced, hop_length) / sample_rate  # cycles
    cycles = per_sample.cumsum(0)
    starts = torch.diff(cycles.floor(), prepend=cycles.new_zeros(1)).gt(0).nonzero().squeeze(1)
    late = (cycles[starts] - cycles[starts].floor()) / per_sample[starts]  # samples since the pulse
    heights = per_sample[starts].rsqrt()
    pulses = torch.zeros_like(noise)
    pulses.index_add_(0, starts, heights * (1 - late))
    pulses.index_add_(0, (starts - 1).clamp(min=0), heights * late)
    return torch.where(f0.gt(0).repeat_interleave(hop_length), pulses, noise).to(f0.dtype)


def _project(spectra: Tensor, mel: Tensor, filters: Tensor, steps: int) -> Tensor:
    magnitudes = spectra.abs().clamp(min=_TINY)
    return spectra * (fit_mel(magnitudes, mel, filters, iterations=steps) / magnitudes)


def _interpolate_log(f0: Tensor, voiced: Tensor, hop_length: int) -> Tensor:
    """The frequency at every sample, float64, straight in the logarithm between voiced frames."""
    centres = (voiced * hop_length + hop_length // 2).double()
    logs = f0[voiced].double().log()
    times = torch.arange(len(f0) * hop_length, dtype=torch.float64, device=f0.device)
    after = torch.searchsorted(centres, times).clamp(max=len(centres) - 1)
    before = (after - 1).clamp(min=0)
    width = (centres[after] - centres[before]).clamp(min=1)
    weight = ((times - centres[before]) / width).clamp(0, 1)
    return torch.lerp(logs[before], logs[after], weight).exp()
