"""Pictures of what models do."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.manifest import Utterance
from sonorant.decoding.ctc import ctc_greedy_decode
from sonorant.inference import Aligner, Alignment, Recognizer
from sonorant.lengths import Padded

__all__ = ["plot_acoustic", "plot_alignment", "plot_attention", "plot_posteriors"]

_MANY_SYMBOLS = 8  # of more only those are drawn that are
_VISIBLE = 0.05  # probable somewhere
_DECIBELS_PER_NAT = 20 / math.log(10)
_OCTAVES = (125, 250, 500, 1000, 2000, 4000, 8000, 16000)  # Hz


def plot_posteriors(recognizer: Recognizer, recording: Path | Utterance, output: Path) -> None:
    """Draw a recording's waveform and, under it, the probability of each symbol, with the words marked.

    Args:
        recognizer: a CTC recognizer.
        recording: the audio file, or an utterance. Edges that the model needs are drawn too.
        output: the PNG file.
    """
    utterance = recording if isinstance(recording, Utterance) else Utterance(recording.name, recording, "")
    samples, sample_rate = recognizer.frontend.load(utterance)
    samples = recognizer.frontend.pad(samples)
    log_probs = recognizer.log_probs([recognizer.extract(recording)])
    figure = Figure(figsize=(12, 5), layout="constrained")
    wave, posteriors = figure.subplots(2, 1, sharex=True)
    seconds = np.arange(len(samples)) / sample_rate
    wave.plot(seconds, samples, linewidth=0.4, color="0.35")
    wave.set(ylabel="amplitude", title=f"{utterance.path.name}: {' '.join(recognizer.decode(log_probs)[0])}")
    _draw_posteriors(posteriors, recognizer, log_probs)
    _mark_tokens(wave, posteriors, recognizer, log_probs)
    posteriors.set(xlabel="seconds", ylabel="probability", xlim=(0, seconds[-1]), ylim=(-0.02, 1.1))
    posteriors.legend(loc="center right", framealpha=0.9)
    figure.savefig(output, dpi=120)


def plot_alignment(aligner: Aligner, utterance: Utterance, alignment: Alignment, output: Path) -> None:
    """Draw an utterance's spectrum over time with the tokens and words that were found in it.

    Args:
        aligner: that found them.
        utterance: the recording.
        alignment: of it.
        output: the PNG file.
    """
    samples, sample_rate = aligner.frontend.load(utterance)
    energies = aligner.fbank(samples).numpy()
    figure = Figure(figsize=(min(max(4 * alignment.duration, 8), 60), 4.5), layout="constrained")
    wave, mel = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    wave.plot(np.arange(len(samples)) / sample_rate, samples, linewidth=0.4, color="0.35")
    loudest = energies.max()
    extent = (0, len(energies) * aligner.fbank.config.frame_shift_ms / 1000, -0.5, energies.shape[1] - 0.5)
    mel.imshow(energies.T, origin="lower", aspect="auto", cmap="Greys", vmin=loudest - 14, vmax=loudest, extent=extent)
    top, high = wave.get_ylim()[1], energies.shape[1] - 1
    for word in alignment.words:
        wave.text((word.start + word.end) / 2, top, word.word, color="tab:blue", ha="center", va="top", fontsize=9)
        for edge in (word.start, word.end):
            wave.axvline(edge, color="tab:blue", linewidth=1)
        for token in word.tokens:
            mel.axvline(token.start, color="tab:red", linewidth=0.8)
            mel.text(
                (token.start + token.end) / 2, high, token.token, color="tab:red", ha="center", va="top", fontsize=8
            )
        mel.axvline(word.end, color="tab:red", linewidth=0.8)
    wave.set(ylabel="amplitude", title=f"{utterance.path.name}: {utterance.text}")
    mel.set(xlabel="seconds", ylabel="mel bin", xlim=(0, alignment.duration))
    figure.savefig(output, dpi=100)


def plot_attention(
    attention: Float[Tensor, "query key"],
    hard: Float[Tensor, "query key"] | Bool[Tensor, "query key"] | None = None,
    *,
    path: Path,
    lengths: tuple[int, int] | None = None,
    tokens: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> None:
    """Draw the attention of one utterance, output frames from left to right and input tokens from bottom to top.

    Args:
        attention: ``(query, key)``, probabilities.
        hard: ``(query, key)`` of 0 and 1, such as the path of a monotonic alignment search; drawn as a line over the
            attention, with gaps where it selects nothing.
        path: the PNG file.
        lengths: the utterance's frames and tokens; None: the whole matrix is valid.
        tokens: a label for each valid token; None: tokens are numbered.
        outputs: a label for each valid frame; None: frames are numbered.

    Raises:
        ValueError: matrices of other or different shapes, lengths beyond them, another number of labels.
    """
    num_queries, num_keys = _attention_sizes(attention, hard, lengths, tokens, outputs)
    figure = Figure(figsize=(12, min(max(2.5 + 0.18 * num_keys, 4), 16)), layout="constrained")
    axes = figure.subplots()
    weights = attention[:num_queries, :num_keys].detach().float().cpu().numpy()
    image = axes.imshow(weights.T, origin="lower", aspect="auto", interpolation="nearest", cmap="Greys", vmin=0)
    figure.colorbar(image, label="weight", pad=0.01)
    if hard is not None:
        _draw_path(axes, hard[:num_queries, :num_keys])
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if tokens is not None:
        axes.set_yticks(range(num_keys), tokens, fontsize=min(10, 600 / num_keys))
    axes.set(xlabel="output frame" if outputs is None else "output", ylabel="input token")
    if outputs is not None:
        axes.set_xticks(range(num_queries), outputs, fontsize=min(10, 900 / num_queries))
    figure.savefig(path, dpi=120)


def plot_acoustic(features: AcousticFeatures, config: AcousticConfig, *, path: Path, title: str = "") -> None:
    """Draw the log mel spectrum of one recording and, under it, its f0 and its energy.

    Args:
        features: without padding.
        config: what they were computed with.
        path: the PNG file.
        title: over the picture.

    Raises:
        ValueError: no frames, or another number of mel bins than the configuration has.
    """
    num_frames, n_mels = features.log_mel.shape
    if num_frames == 0 or n_mels != config.n_mels:
        raise ValueError(f"log_mel is ({num_frames}, {n_mels}); frames of {config.n_mels} mel bins are needed")
    log_mel, energy, f0, voiced = (field.detach().cpu().numpy() for field in features)
    shift = config.hop_length / config.sample_rate
    figure = Figure(figsize=(12, 6), layout="constrained")
    spectrum, pitch = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    extent = (0, num_frames * shift, -0.5, n_mels - 0.5)
    image = spectrum.imshow(log_mel.T, origin="lower", aspect="auto", interpolation="nearest", extent=extent)
    figure.colorbar(image, ax=spectrum, label="log magnitude", pad=0.01)
    peaks = config.mel_frequencies
    octaves = [frequency for frequency in _OCTAVES if peaks[0] <= frequency <= peaks[-1]]
    spectrum.set_yticks(np.interp(octaves, peaks, np.arange(n_mels)), [str(frequency) for frequency in octaves])
    spectrum.set(ylabel="Hz", title=title)

    seconds = (np.arange(num_frames) + 0.5) * shift
    pitch.plot(seconds, np.where(voiced, f0, np.nan), ".-", color="tab:red", linewidth=1.2, markersize=3)
    pitch.set(xlabel="seconds", xlim=(0, num_frames * shift))
    pitch.set_ylabel("f0 in Hz", color="tab:red")
    loudness = pitch.twinx()
    loudness.plot(seconds, energy * _DECIBELS_PER_NAT, color="0.5", linewidth=1.0)
    loudness.set_ylabel("energy in dB of full scale", color="0.35")
    figure.savefig(path, dpi=120)


def _attention_sizes(
    attention: Tensor,
    hard: Tensor | None,
    lengths: tuple[int, int] | None,
    tokens: Sequence[str] | None,
    outputs: Sequence[str] | None,
) -> tuple[int, int]:
    if attention.dim() != 2 or (hard is not None and hard.shape != attention.shape):
        shapes = f"{tuple(attention.shape)} and {None if hard is None else tuple(hard.shape)}"
        raise ValueError(f"attention and hard must have one shape (query, key); got {shapes}")
    num_queries, num_keys = attention.shape if lengths is None else lengths
    if not (0 < num_queries <= attention.shape[0] and 0 < num_keys <= attention.shape[1]):
        raise ValueError(f"lengths are ({num_queries}, {num_keys}) for attention of {tuple(attention.shape)}")
    if tokens is not None and len(tokens) != num_keys:
        raise ValueError(f"tokens has {len(tokens)} labels for {num_keys} tokens")
    if outputs is not None and len(outputs) != num_queries:
        raise ValueError(f"outputs has {len(outputs)} labels for {num_queries} output frames")
    return int(num_queries), int(num_keys)


def _draw_path(axes: Axes, hard: Tensor) -> None:
    """A staircase along the tokens that the frames select."""
    selected = (hard.detach() == 1).cpu().numpy()
    keys = np.where(selected.any(1), selected.argmax(1), np.nan)
    edges = np.arange(len(keys) + 1) - 0.5
    axes.stairs(keys, edges, baseline=None, color="tab:red", linewidth=1.6, label="hard path")
    axes.legend(loc="upper left", framealpha=0.9)


def _draw_posteriors(axes: Axes, recognizer: Recognizer, log_probs: Padded) -> None:
    probs = log_probs.values[0].exp().numpy()
    times = np.arange(len(probs)) * _shift(recognizer) + _delay(recognizer)
    many = len(recognizer.symbols) > _MANY_SYMBOLS
    for index, symbol in enumerate(recognizer.symbols.symbols):
        if many and probs[:, index].max() < _VISIBLE:
            continue
        style = {"color": "0.75", "linewidth": 1.0} if index == recognizer.symbols.blank else {"linewidth": 1.6}
        axes.plot(times, probs[:, index], label=symbol, **style)


def _mark_tokens(wave: Axes, posteriors: Axes, recognizer: Recognizer, log_probs: Padded) -> None:
    """A line through both panels where the greedy path emits a symbol other than silence."""
    (spans,) = ctc_greedy_decode(log_probs.values, log_probs.lengths, blank=recognizer.symbols.blank)
    entries = recognizer.lexicon.entries.items()
    spelled = {prons[0][0]: word for word, prons in entries if len(prons[0]) == 1 and not recognizer.open_vocabulary}
    for span in spans:
        symbol = recognizer.symbols.symbols[span.token]
        if symbol == recognizer.silence:
            continue
        middle = (span.start + span.end - 1) / 2 * _shift(recognizer) + _delay(recognizer)
        for axes in (wave, posteriors):
            axes.axvline(middle, color="tab:red", linewidth=0.8, alpha=0.5)
        top = wave.get_ylim()[1]
        wave.text(middle, top, spelled.get(symbol, symbol), color="tab:red", ha="center", va="top", fontsize=9)


def _shift(recognizer: Recognizer) -> float:
    return recognizer.fbank.config.frame_shift_ms / 1000


def _delay(recognizer: Recognizer) -> float:
    """The time of the first output frame: it looks at as many frames before it as after it."""
    return (recognizer.model.first_center + 0.5) * _shift(recognizer)
