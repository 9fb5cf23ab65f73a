"""Pictures: that they are written, and show what they are given."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sonorant import plots
from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.functional import beta_binomial_prior, monotonic_alignment_search
from sonorant.inference import Recognizer
from sonorant.plots import plot_acoustic, plot_attention, plot_posteriors

Write = Callable[..., Path]
PNG = b"\x89PNG"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were made, with all that is on them."""
    figures = []

    class Recorded(Figure):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            figures.append(self)

    monkeypatch.setattr(plots, "Figure", Recorded)
    return figures


def aligned(num_queries: int = 30, num_keys: int = 6) -> tuple[Tensor, Tensor]:
    """An attention about the diagonal, padded with NaN, and its best path."""
    lengths = torch.tensor([num_queries]), torch.tensor([num_keys])
    attention = torch.full((num_queries + 4, num_keys + 2), torch.nan)
    attention[:-4, :-2] = beta_binomial_prior(*lengths)[0]
    hard = monotonic_alignment_search(attention.nan_to_num().log().unsqueeze(0), *lengths)[0]
    return attention, hard


def path_of(axes: Axes) -> np.ndarray:
    (stairs,) = axes.patches
    return np.asarray(stairs.get_data().values)  # type: ignore[attr-defined]


def test_attention_shows_frames_from_left_to_right_and_tokens_upwards(tmp_path: Path, drawn: list[Figure]) -> None:
    attention, hard = aligned()
    plot_attention(attention, hard, lengths=(30, 6), tokens=list("abcdef"), path=tmp_path / "attention.png")
    assert (tmp_path / "attention.png").read_bytes().startswith(PNG)
    axes = drawn[0].axes[0]
    (image,) = axes.images
    assert image.origin == "lower"
    np.testing.assert_array_equal(image.get_array(), attention[:30, :6].T)  # nothing of the padding
    np.testing.assert_array_equal(path_of(axes), hard[:30, :6].argmax(1))
    assert [label.get_text() for label in axes.get_yticklabels()] == list("abcdef")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("output frame", "input token")


def test_attention_needs_neither_path_nor_lengths_nor_tokens(tmp_path: Path, drawn: list[Figure]) -> None:
    scores = torch.randn(5, 3, dtype=torch.bfloat16, requires_grad=True)
    plot_attention(scores.softmax(1), path=tmp_path / "attention.png")
    axes = drawn[0].axes[0]
    assert axes.images[0].get_array().shape == (3, 5)  # type: ignore[union-attr]
    assert not axes.patches


def test_frames_that_select_nothing_leave_a_gap(tmp_path: Path, drawn: list[Figure]) -> None:
    hard = torch.tensor([[True, False], [False, False], [False, True]])
    plot_attention(torch.full((3, 2), 0.5), hard, path=tmp_path / "attention.png")
    np.testing.assert_array_equal(path_of(drawn[0].axes[0]), [0, np.nan, 1])


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    attention, hard = aligned()
    path = tmp_path / "attention.png"
    with pytest.raises(ValueError, match=r"one shape \(query, key\); got \(1, 34, 8\)"):
        plot_attention(attention.unsqueeze(0), path=path)
    with pytest.raises(ValueError, match=r"\(34, 8\) and \(33, 8\)"):
        plot_attention(attention, hard[1:], path=path)
    with pytest.raises(ValueError, match=r"lengths are \(35, 6\)"):
        plot_attention(attention, lengths=(35, 6), path=path)
    with pytest.raises(ValueError, match="tokens has 2 labels for 6 tokens"):
        plot_attention(attention, lengths=(30, 6), tokens=["a", "b"], path=path)
    assert not path.exists()


def test_posteriors_show_every_symbol(
    recognizer: Recognizer, write_wav: Write, tmp_path: Path, drawn: list[Figure]
) -> None:
    plot_posteriors(recognizer, write_wav("a.wav", seconds=1), tmp_path / "posteriors.png")
    assert (tmp_path / "posteriors.png").read_bytes().startswith(PNG)
    wave, posteriors = drawn[0].axes
    assert wave.get_title().startswith("a.wav")
    legend = posteriors.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(recognizer.symbols.symbols)


def acoustic(num_frames: int = 50) -> tuple[AcousticFeatures, AcousticConfig]:
    config = AcousticConfig(sample_rate=8000, n_fft=256, hop_length=80, n_mels=20)
    f0 = torch.where(torch.arange(num_frames) < 30, 120.0, 0.0)
    return AcousticFeatures(torch.randn(num_frames, 20), torch.full((num_frames,), -2.0), f0, f0 > 0), config


def test_acoustic_features_lie_over_each_other(tmp_path: Path, drawn: list[Figure]) -> None:
    features, config = acoustic()
    plot_acoustic(features, config, path=tmp_path / "acoustic.png", title="a.wav")
    assert (tmp_path / "acoustic.png").read_bytes().startswith(PNG)
    spectrum, pitch, _, loudness = drawn[0].axes
    (image,) = spectrum.images
    np.testing.assert_array_equal(image.get_array(), features.log_mel.T)
    assert image.get_extent() == [0, 0.5, -0.5, 19.5]
    assert spectrum.get_title() == "a.wav"
    labels = [label.get_text() for label in spectrum.get_yticklabels()]
    assert labels == ["125", "250", "500", "1000", "2000"]
    peaks = dict(zip(labels, spectrum.get_yticks(), strict=True))
    assert config.mel_frequencies[round(peaks["1000"])] == pytest.approx(1000, rel=0.1)
    seconds, hertz = pitch.lines[0].get_data()
    np.testing.assert_allclose(seconds, (np.arange(50) + 0.5) / 100)
    np.testing.assert_array_equal(hertz, np.where(np.arange(50) < 30, 120, np.nan))
    np.testing.assert_allclose(np.asarray(loudness.lines[0].get_data()[1]), -2 * 8.686, rtol=1e-4)


def test_an_utterance_without_voice_is_drawn(tmp_path: Path) -> None:
    features, config = acoustic()
    silent = features._replace(f0=torch.zeros(50), voiced=torch.zeros(50, dtype=torch.bool))
    plot_acoustic(silent, config, path=tmp_path / "silent.png")
    assert (tmp_path / "silent.png").read_bytes().startswith(PNG)


def test_features_of_another_configuration_are_not_drawn(tmp_path: Path) -> None:
    features, config = acoustic()
    with pytest.raises(ValueError, match=r"log_mel is \(50, 19\); frames of 20 mel bins are needed"):
        plot_acoustic(features._replace(log_mel=features.log_mel[:, 1:]), config, path=tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"log_mel is \(0, 20\)"):
        plot_acoustic(AcousticFeatures(*(field[:0] for field in features)), config, path=tmp_path / "a.png")
