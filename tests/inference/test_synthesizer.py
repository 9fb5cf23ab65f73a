"""A synthesizer in use: what each control changes and what it leaves alone, long texts, and what it refuses."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor

import sonorant
from sonorant.export.model_folder import ModelFolderError
from sonorant.inference import Sentence, Speech, Synthesizer
from sonorant.inference.rendering import round_durations
from sonorant.text import Lexicon
from tests.untrained_speech import ACCENTS, FEATURES, STATISTICS, untrained_synthesizer


def durations(speech: Speech) -> list[int]:
    """Frames of each token."""
    return [round((token.end - token.start) * 100) for token in speech.tokens]


def same_features(mine: Speech, other: Speech) -> list[bool]:
    """Mel, energy, f0, voicing; shortened to the shorter one."""
    size = min(len(mine.features.f0), len(other.features.f0))
    pairs = zip(mine.features, other.features, strict=True)
    return [torch.equal(a[:size], b[:size]) for a, b in pairs]


def alike(mine: np.ndarray, other: np.ndarray) -> None:
    """But for rounding, which Griffin-Lim makes larger where the spectrum is as rough as that of an untrained model."""
    assert mine.shape == other.shape
    assert np.abs(mine - other).mean() < 1e-4
    assert np.abs(mine - other).max() < 0.05


def test_what_speech_is(synthesizer: Synthesizer) -> None:
    speech = synthesizer.synthesize("Seven, three.", speaker="ann")
    assert [token.token for token in speech.tokens] == ["SIL", *"seven", "SIL", *"three", "SIL"]
    assert speech.tokens[0].start == 0
    assert speech.tokens[-1].end == pytest.approx(speech.duration)
    for before, after in zip(speech.tokens, speech.tokens[1:], strict=False):
        assert before.end == after.start > before.start
    frames = len(speech.features.f0)
    assert speech.features.log_mel.shape == (frames, FEATURES.n_mels)
    assert speech.features.energy.shape == speech.features.voiced.shape == (frames,)
    assert torch.equal(speech.features.voiced, speech.features.f0 > 0)
    assert speech.samples.dtype == np.float32
    assert speech.samples.shape == (80 * frames,)
    assert 0 < np.abs(speech.samples).max() <= 1
    assert speech.sample_rate == 8000
    data = speech.to_json()
    assert data["duration"] == round(speech.duration, 3)
    assert data["tokens"][1] == {"token": "s", "start": speech.tokens[1].start, "end": speech.tokens[1].end}


CONTROLS: list[tuple[dict[str, Any], list[bool] | None]] = [
    # what stays: mel, energy, f0, voicing; None where the rhythm is another one
    ({"seed": 1}, [False, True, True, True]),
    ({"temperature": 0.3}, [False, True, True, True]),
    ({"pitch_shift": 2}, [False, True, False, True]),
    ({"f0_speaker": "cem"}, [False, True, False, False]),
    ({"energy_speaker": "cem"}, [False, False, True, True]),
    ({"duration_speaker": "cem"}, None),
    ({"accent": "south"}, None),
    ({"speaker": "ben"}, None),
    ({"pace": 0.8}, None),
]


@pytest.mark.parametrize(("control", "stays"), CONTROLS, ids=str)
def test_each_control_changes_what_it_should(
    synthesizer: Synthesizer, control: dict[str, Any], stays: list[bool] | None
) -> None:
    plain = synthesizer.synthesize("seven three", speaker="ann")
    other = synthesizer.synthesize("seven three", **{"speaker": "ann", **control})
    if stays is None:
        assert durations(other) != durations(plain)
    else:
        assert durations(other) == durations(plain)
        assert same_features(other, plain) == stays


def test_defaults_are_the_speakers_own(synthesizer: Synthesizer) -> None:
    plain = synthesizer.synthesize("nine", speaker="ben")
    own = dict.fromkeys(("speaker", "duration_speaker", "f0_speaker", "energy_speaker"), "ben")
    full = synthesizer.synthesize("nine", **own, accent="south", pace=1, pitch_shift=0, temperature=0.667, seed=0)
    assert np.array_equal(plain.samples, full.samples)


def test_pace_divides_durations_and_keeps_the_total(synthesizer: Synthesizer) -> None:
    plain, slow, fast = (
        synthesizer.synthesize("seven three nine zero", speaker="ann", pace=pace) for pace in (1.0, 0.5, 2.0)
    )
    assert slow.duration == pytest.approx(2 * plain.duration, abs=0.02)
    assert fast.duration == pytest.approx(plain.duration / 2, abs=0.02)
    hurried = synthesizer.synthesize("seven three", speaker="ann", pace=10)
    assert durations(hurried) == [1] * 13


def test_pitch_shifts_are_semitones_within_what_the_features_know(synthesizer: Synthesizer) -> None:
    plain, octave, high, low = (
        synthesizer.synthesize("seven three", speaker="ben", pitch_shift=shift) for shift in (0, 12, 48, -48)
    )
    voiced = plain.features.voiced
    assert voiced.any()
    torch.testing.assert_close(octave.features.f0[voiced], 2 * plain.features.f0[voiced])
    assert set(high.features.f0[voiced].tolist()) == {400.0}
    assert set(low.features.f0[voiced].tolist()) == {80.0}
    assert not low.features.f0[~voiced].any()


def test_another_melody_stays_in_the_range_of_the_voice(synthesizer: Synthesizer) -> None:
    """What is predicted for a speaker counts in that speaker's deviations, and sounds in those of the voice."""
    own = synthesizer.synthesize("seven three", speaker="cem", accent="north")
    borrowed = synthesizer.synthesize(
        "seven three", speaker="ann", accent="north", f0_speaker="cem", energy_speaker="cem", duration_speaker="cem"
    )
    voiced = own.features.voiced
    assert voiced.any()
    assert torch.equal(borrowed.features.voiced, voiced)
    ann, cem = STATISTICS.of("ann"), STATISTICS.of("cem")
    contour = (own.features.f0[voiced].log() - cem.log_f0_mean) / cem.log_f0_std
    torch.testing.assert_close(
        borrowed.features.f0[voiced].log(), contour * ann.log_f0_std + ann.log_f0_mean, rtol=0, atol=1e-4
    )
    torch.testing.assert_close(
        ann.normalize_energy(borrowed.features.energy), cem.normalize_energy(own.features.energy), rtol=0, atol=1e-4
    )


def test_the_decoder_hears_what_the_corpus_is_normalised_by(
    synthesizer: Synthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Tensor] = []
    sample = synthesizer.model.sample

    def listen(text: Tensor, lengths: Tensor, attributes: Any, *others: Any, **options: Any) -> Tensor:
        heard.extend(attributes)
        return sample(text, lengths, attributes, *others, **options)

    monkeypatch.setattr(synthesizer.model, "sample", listen)
    features = synthesizer.synthesize("seven three", speaker="ben").features
    f0, energy, voiced = (column[0] for column in heard)
    assert torch.equal(voiced.bool(), features.voiced)
    torch.testing.assert_close(f0, STATISTICS.corpus.normalize_f0(features.f0))
    torch.testing.assert_close(energy, (features.energy - -3.0) / 0.8)


SENTENCES = [
    Sentence("seven", "ann"),
    Sentence("three nine zero seven. Zero!", "ben", "north", pace=0.7, seed=4),
    Sentence("nine", "cem", temperature=0.2),
    Sentence("nine", "ann", pitch_shift=-3, energy_speaker="ben"),
    Sentence("zero three", "ann", f0_speaker="ben", seed=9),
    Sentence("seven", "ann"),
]


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_the_batch_changes_nothing(synthesizer: Synthesizer, batch_size: int) -> None:
    together = synthesizer.synthesize_all(SENTENCES, batch_size=batch_size)
    for sentence, speech in zip(SENTENCES, together, strict=True):
        (alone,) = synthesizer.synthesize_all([sentence])
        assert alone.tokens == speech.tokens
        alike(alone.samples, speech.samples)
        torch.testing.assert_close(alone.features.log_mel, speech.features.log_mel, rtol=0, atol=1e-4)
    assert np.array_equal(together[0].samples, together[-1].samples)


def test_no_sentences_and_no_batches(synthesizer: Synthesizer) -> None:
    assert synthesizer.synthesize_all([]) == []
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        synthesizer.synthesize_all(SENTENCES, batch_size=0)


def test_the_same_seed_is_the_same_whatever_else_is_drawn(synthesizer: Synthesizer) -> None:
    first = synthesizer.synthesize("seven", speaker="ann", seed=5)
    torch.manual_seed(99)
    assert np.array_equal(synthesizer.synthesize("seven", speaker="ann", seed=5).samples, first.samples)
    still = [synthesizer.synthesize("seven", speaker="ann", seed=seed, temperature=0) for seed in (1, 2)]
    assert np.array_equal(still[0].samples, still[1].samples)


def test_a_model_has_a_temperature_of_its_own(synthesizer: Synthesizer, tmp_path: Path) -> None:
    synthesizer.temperature = 0.3
    synthesizer.save(tmp_path / "model")
    loaded = sonorant.load(tmp_path)
    assert isinstance(loaded, Synthesizer)
    own, same, other = (
        loaded.synthesize("seven", speaker="ann", temperature=temperature).samples for temperature in (None, 0.3, 0.6)
    )
    assert np.array_equal(own, same)
    assert not np.array_equal(own, other)


def test_5000_characters_are_spoken_in_sentences_with_pauses(synthesizer: Synthesizer) -> None:
    sentence = "Seven three nine zero, " * 9 + "nine. "
    text = (sentence * 25)[:4999] + "e"
    assert len(text) == 5000
    synthesizer.vocoder = lambda log_mel, f0: np.zeros(80 * len(f0), dtype=np.float32)
    speech = synthesizer.synthesize(text, speaker="ben", pace=3)
    letters = "".join(character for character in text.lower() if character.isalpha())
    spoken = "".join(token.token for token in speech.tokens if token.token != "SIL")
    assert spoken == letters
    assert len(speech.samples) == 80 * len(speech.features.f0)
    assert speech.tokens[-1].end == pytest.approx(speech.duration)
    assert all(token.end > token.start for token in speech.tokens)


def test_pauses_between_sentences_are_silent(synthesizer: Synthesizer) -> None:
    speech = synthesizer.synthesize("Seven. ... Three!", speaker="ann")
    first = synthesizer.synthesize("Seven.", speaker="ann")
    second = speech.tokens[len(first.tokens)]
    assert second.start - first.duration == pytest.approx(0.3)
    gap = slice(len(first.samples), round(second.start * 8000))
    assert not speech.samples[gap].any()
    alike(speech.samples[: gap.start], first.samples)
    silent = slice(len(first.features.f0), round(second.start * 100))
    assert torch.allclose(speech.features.log_mel[silent], torch.tensor(math.log(1e-5)))
    assert not speech.features.voiced[silent].any()
    faster = synthesizer.synthesize("Seven. Three!", speaker="ann", pace=2)
    (gap_frames,) = {
        round(100 * (after.start - before.end))
        for before, after in zip(faster.tokens, faster.tokens[1:], strict=False)
        if after.start != before.end
    }
    assert gap_frames == 15


def test_edges_of_training_are_cut_away() -> None:
    """The boundary tokens of a model that was trained with edges have become longer by them."""
    plain = untrained_synthesizer().synthesize("seven", speaker="ann")
    first, *inner, last = durations(plain)
    assert first > 5
    cut = untrained_synthesizer(edge_seconds=0.02).synthesize("seven", speaker="ann")
    assert durations(cut) == [max(first - 2, 5), *inner, max(last - 2, 5)]
    whole = untrained_synthesizer(edge_seconds=0.5).synthesize("seven", speaker="ann")
    assert durations(whole) == [5, *inner, min(last, 5)]
    assert len(whole.samples) == 80 * sum(durations(whole))
    assert whole.tokens[0].start == 0


def test_a_passage_begins_and_ends_without_a_click(synthesizer: Synthesizer) -> None:
    synthesizer.vocoder = lambda log_mel, f0: np.ones(80 * len(f0), dtype=np.float32)
    samples = synthesizer.synthesize("seven", speaker="ann").samples
    assert max(samples[0], samples[-1]) < 0.01
    assert np.abs(np.diff(samples)).max() < 0.05
    assert samples[40:-40].min() == 1


@pytest.mark.parametrize(
    ("given", "rounded"),
    [
        ([2.0, 3.0], [2, 3]),
        ([0.4] * 10, [1] * 10),
        ([1.4] * 10, [1, 2, 1, 2, 1, 1, 2, 1, 2, 1]),
        ([0.0, 0.0, 5.0], [1, 1, 3]),
        ([5.0, 0.0, 0.0, 4.0], [5, 1, 1, 2]),
        ([0.2], [1]),
    ],
)
def test_durations_are_rounded_and_keep_their_sum(given: list[float], rounded: list[int]) -> None:
    assert round_durations(torch.tensor(given)).tolist() == rounded


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "speaker: none was given; known are ann, ben, cem"),
        ({"speaker": "bob"}, "speaker: 'bob' is not known; known are ann, ben, cem"),
        ({"speaker": "ann", "accent": "west"}, "accent: 'west' is not known; known are north, south"),
        ({"speaker": "ann", "f0_speaker": "x"}, "f0_speaker: 'x' is not known; known are ann, ben, cem"),
        ({"speaker": "ann", "duration_speaker": "x"}, "duration_speaker: 'x' is not known"),
        ({"speaker": "ann", "energy_speaker": "x"}, "energy_speaker: 'x' is not known"),
        ({"speaker": "ann", "pace": 0}, r"pace must lie in \[0.1, 10\]; got 0"),
        ({"speaker": "ann", "pace": math.nan}, r"pace must lie in \[0.1, 10\]; got nan"),
        ({"speaker": "ann", "pitch_shift": 50}, r"pitch_shift must lie in \[-48, 48\]; got 50"),
        ({"speaker": "ann", "temperature": -0.1}, r"temperature must lie in \[0, 10\]; got -0.1"),
        ({"speaker": "ann", "seed": -1}, r"seed must lie in \[0, 2\^63\); got -1"),
    ],
)
def test_what_cannot_be_is_named(synthesizer: Synthesizer, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        synthesizer.synthesize("seven", **arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing in it that is spoken"),
        (" \n ", "nothing in it that is spoken"),
        ("?! ...", "nothing in it that is spoken"),
        (
            "seven zwölf. five",
            "'zwölf' has graphemes that the model does not know: 'w' at position 2, 'ö' at position 3, 'l' at position "
            "4, 'f' at position 5; 'five' has",
        ),
    ],
)
def test_texts_that_cannot_be_spoken(synthesizer: Synthesizer, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        synthesizer.synthesize(text, speaker="ann")


def test_words_that_the_lexicon_lacks_are_named() -> None:
    model = untrained_synthesizer(Lexicon({"seven": [["S", "EH", "V"]], "nine": [["N", "AY", "N"]]}))
    speech = model.synthesize("Seven nine", speaker="ann")
    assert [token.token for token in speech.tokens] == ["SIL", "S", "EH", "V", "SIL", "N", "AY", "N", "SIL"]
    with pytest.raises(ValueError, match="the lexicon lacks 'three'; the lexicon lacks 'zero'"):
        model.synthesize("seven three zero", speaker="ann")


def test_a_model_without_predictors_says_so() -> None:
    with pytest.raises(ValueError, match="were not trained, so that it cannot speak; train its predictors"):
        untrained_synthesizer(predictors_trained=False).synthesize("seven", speaker="ann")


def test_one_speaker_needs_no_name(tmp_path: Path) -> None:
    from sonorant.data.speaker_statistics import AcousticStatistics
    from sonorant.models.flow_tts import FlowTts
    from tests.untrained_speech import CONFIG

    many = untrained_synthesizer()
    own = AcousticStatistics(STATISTICS.corpus, {"": STATISTICS.of("ann")})
    model = FlowTts(CONFIG, FEATURES.n_mels, len(many.speller.symbols), 1, 1)
    alone = Synthesizer(model, FEATURES, many.speller, own, speakers=[""], accents=[""], speaker_accents={"": ""})
    assert alone.synthesize("nine").duration > 0
    with pytest.raises(ValueError, match="speaker: 'ann' is not known; known are ''"):
        alone.synthesize("nine", speaker="ann")
    with pytest.raises(ValueError, match="speaker_accents: '' has None"):
        Synthesizer(model, FEATURES, many.speller, own, speakers=[""], accents=[""], speaker_accents={})


def test_extreme_predictions_are_bounded(synthesizer: Synthesizer) -> None:
    with torch.no_grad():
        for predictor in synthesizer.model.predictors:
            predictor.output.bias += 50.0
    speech = synthesizer.synthesize("ee", speaker="ann")
    assert durations(speech) == [500] * 4
    assert set(speech.features.f0.tolist()) == {400.0}
    assert float(speech.features.energy.max()) == 0
    assert np.isfinite(speech.samples).all()
    with torch.no_grad():
        synthesizer.model.duration_predictor.output.bias -= 100.0
        synthesizer.model.energy_predictor.output.bias -= 100.0
    speech = synthesizer.synthesize("ee", speaker="ann")
    assert durations(speech) == [1] * 4
    assert float(speech.features.energy.min()) == pytest.approx(math.log(1e-5))


def test_written_files_hold_what_was_said(synthesizer: Synthesizer, tmp_path: Path) -> None:
    speech = synthesizer.synthesize("seven", speaker="ann")
    for ending in ("wav", "flac"):
        speech.write(tmp_path / f"a.{ending}")
        samples, rate = soundfile.read(tmp_path / f"a.{ending}")
        assert rate == 8000
        np.testing.assert_allclose(samples, speech.samples, atol=1 / 32768)
    assert {path.name for path in tmp_path.iterdir()} == {"a.wav", "a.flac"}


def test_a_folder_keeps_everything(synthesizer: Synthesizer, tmp_path: Path) -> None:
    model = untrained_synthesizer(Lexicon({"seven": [["S", "EH", "V"]]}), edge_seconds=0.02)
    model.save(tmp_path / "model")
    loaded = sonorant.load(tmp_path)
    assert isinstance(loaded, Synthesizer)
    sentence = Sentence("seven", "ben", "north", seed=3)
    (mine,), (other,) = model.synthesize_all([sentence]), loaded.synthesize_all([sentence])
    assert np.array_equal(mine.samples, other.samples)
    assert (loaded.statistics, loaded.recordings, loaded.prior) == (STATISTICS, model.recordings, model.prior)
    assert (loaded.speaker_accents, loaded.recipe, loaded.predictors_trained) == (ACCENTS, "tts", True)
    untrained_synthesizer(predictors_trained=False).save(tmp_path / "half")
    half = sonorant.load(tmp_path / "half")
    assert isinstance(half, Synthesizer)
    assert not half.predictors_trained


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('"cem"\n', '"cem", "dan"\n'),
        ('"n_mels": 16', '"n_mels": 17'),
        ('"south"\n  ],', '"west"\n  ],'),
        ('"boundary": "SIL"', '"boundary": "PAU"'),
        ('"statistics"', '"other"'),
        ('"num_flows": 3', '"num_flows": 4'),
    ],
)
def test_damaged_folders_are_named(synthesizer: Synthesizer, tmp_path: Path, wrong: str, right: str) -> None:
    synthesizer.save(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    text = config.read_text()
    assert wrong in text
    config.write_text(text.replace(wrong, right))
    with pytest.raises(ModelFolderError, match="model: damaged or incomplete"):
        sonorant.load(tmp_path / "model")


def test_a_folder_without_tokens_is_named(synthesizer: Synthesizer, tmp_path: Path) -> None:
    synthesizer.save(tmp_path / "model")
    (tmp_path / "model" / "tokens.txt").unlink()
    with pytest.raises(ModelFolderError, match=r"model: damaged or incomplete: .*tokens\.txt"):
        sonorant.load(tmp_path / "model")


def test_runs_without_the_training_extras(synthesizer: Synthesizer, tmp_path: Path) -> None:
    """Nor with what f0 is estimated with: nothing is estimated here."""
    synthesizer.save(tmp_path / "model")
    code = (
        "import sys\n"
        "for name in ('lightning', 'jsonargparse', 'rich', 'tensorboard', 'matplotlib', 'pyworld'):\n"
        "    sys.modules[name] = None\n"
        "import sonorant\n"
        "sonorant.load(sys.argv[1]).synthesize('seven', speaker='ann').write(sys.argv[2])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model"), str(tmp_path / "a.wav")], check=True)
    assert soundfile.info(tmp_path / "a.wav").samplerate == 8000
