"""Pictures of what models do."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sonorant.data.audio import load_audio
from sonorant.decoding.ctc import ctc_greedy_decode
from sonorant.inference import Recognizer
from sonorant.lengths import Padded

__all__ = ["plot_posteriors"]


def plot_posteriors(recognizer: Recognizer, recording: Path, output: Path) -> None:
    """Draw a recording's waveform and, under it, the probability of each symbol, with the words marked.

    Args:
        recognizer: a CTC recognizer.
        recording: the audio file.
        output: the PNG file.
    """
    samples, sample_rate = load_audio(recording, recognizer.fbank.config.sample_rate)
    log_probs = recognizer.log_probs([recognizer.extract(recording)])
    figure = Figure(figsize=(12, 5), layout="constrained")
    wave, posteriors = figure.subplots(2, 1, sharex=True)
    seconds = np.arange(len(samples)) / sample_rate
    wave.plot(seconds, samples, linewidth=0.4, color="0.35")
    wave.set(ylabel="amplitude", title=f"{recording.name}: {' '.join(recognizer.decode(log_probs)[0])}")
    _draw_posteriors(posteriors, recognizer, log_probs)
    _mark_tokens(wave, posteriors, recognizer, log_probs)
    posteriors.set(xlabel="seconds", ylabel="probability", xlim=(0, seconds[-1]), ylim=(-0.02, 1.1))
    posteriors.legend(loc="center right", framealpha=0.9)
    figure.savefig(output, dpi=120)


def _draw_posteriors(axes: Axes, recognizer: Recognizer, log_probs: Padded) -> None:
    probs = log_probs.values[0].exp().numpy()
    times = np.arange(len(probs)) * _shift(recognizer) + _delay(recognizer)
    for index, symbol in enumerate(recognizer.symbols.symbols):
        style = {"color": "0.75", "linewidth": 1.0} if index == recognizer.symbols.blank else {"linewidth": 1.6}
        axes.plot(times, probs[:, index], label=symbol, **style)


def _mark_tokens(wave: Axes, posteriors: Axes, recognizer: Recognizer, log_probs: Padded) -> None:
    """A line through both panels where the greedy path emits a symbol other than silence."""
    (spans,) = ctc_greedy_decode(log_probs.values, log_probs.lengths, blank=recognizer.symbols.blank)
    spelled = {prons[0][0]: word for word, prons in recognizer.lexicon.entries.items()}
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
    return (recognizer.model.encoder.shrink / 2 + 0.5) * _shift(recognizer)
