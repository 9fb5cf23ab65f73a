"""What judges synthesized speech: shares, the judges of digits, comparisons with real recordings."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import digit_grammar, fsdd_judges, tts_digits, tts_prompts
from benchmarks.fsdd_judges import Judge, JudgeConfig, Judges, disturb, fit, load_judges, training_features
from benchmarks.shares import Share, table
from benchmarks.spectral_comparison import Mean, compare

from sonorant.data.acoustic import AcousticConfig
from sonorant.data.fsdd import ACCENTS, DIGITS, FsddCorpus
from sonorant.data.manifest import Utterance
from sonorant.inference import Recognizer, Synthesizer
from tests.judged_speech import buzz, without_module

SMALL = JudgeConfig(hidden_channels=16, output_dim=16, variants=2, epochs=2)
FEATURES = AcousticConfig(sample_rate=8000, n_fft=512, win_length=320, hop_length=80, n_mels=40)


def untrained(names: Any = DIGITS) -> Judge:
    torch.manual_seed(0)
    return Judge(fsdd_judges.ClipClassifier(SMALL, len(names)), names)


# shares


def test_intervals_of_shares() -> None:
    # the example of Newcombe 1998, and what is left of the formula where none or all are right
    assert Share(81, 263).interval == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert Share(0, 10).interval == pytest.approx((0, 1.959964**2 / (10 + 1.959964**2)))
    assert Share(10, 10).interval == pytest.approx((10 / (10 + 1.959964**2), 1))
    assert math.isnan(Share().rate)
    assert str(Share()) == "-"
    assert str(Share(1, 4)) == "1/4 = 25.0% (4.6% to 69.9%)"
    assert all(map(math.isnan, Share().interval))


def test_shares_add_up() -> None:
    share = Share()
    share += True
    share += False
    assert share == Share(1, 2)
    assert share + Share(3, 4) == Share(4, 6)
    assert Share.of([True, False, True]) == Share(2, 3)


def test_a_table_ends_with_all_together() -> None:
    lines = table("who", {"right": {"a": Share(1, 1), "b": Share(0, 1)}}).splitlines()
    assert lines[0] == "| who | right |"
    assert [line.split(" = ")[0] for line in lines[2:]] == ["| a | 1/1", "| b | 0/1", "| all | 1/2"]


# the judges of digits


def test_level_silence_and_company_change_no_judgement() -> None:
    judge = untrained()
    clips = [buzz(100 + 30 * index, 0.1 + 0.05 * index) for index in range(6)]
    together, found = judge(clips), []
    for clip in clips:
        features = [judge._fbank(clip * gain) for gain in (0.3, 1.0)]
        logits = [judge.network(each[None], torch.tensor([len(each)])) for each in features]
        torch.testing.assert_close(*logits, rtol=1e-3, atol=1e-3)
        found += judge([clip])
    assert found == together


def test_padding_changes_no_logit() -> None:
    network = untrained().network
    features, padded = torch.randn(1, 20, 40), torch.full((1, 30, 40), torch.nan)
    padded[:, :20] = features
    torch.testing.assert_close(network(features, torch.tensor([20])), network(padded, torch.tensor([20])))


def test_a_judge_learns_who_buzzes(tmp_path: Path) -> None:
    import soundfile

    utterances, labels = [], []
    for index in range(48):
        path = tmp_path / f"{index}.wav"
        soundfile.write(path, buzz(120 + index, brightness=0.9 if index % 2 else 0.5), 8000)
        utterances.append(Utterance(str(index), path, "one"))
        labels.append(index % 2)
    config = replace(SMALL, epochs=12, batch_size=8)
    network = fsdd_judges.ClipClassifier(config, 2)
    fit(network, training_features(config, utterances), labels)
    judge = Judge(network, ["dull", "bright"])
    assert judge([buzz(131, 0.4, 0.5), buzz(157, 0.2, 0.9)]) == ["dull", "bright"]


def test_disturbed_recordings_have_edges_noise_and_another_tempo() -> None:
    clip, lengths = buzz(150, 0.5), []
    for seed in range(20):
        disturbed = disturb(clip, JudgeConfig(), np.random.default_rng(seed))
        assert disturbed.dtype == np.float32
        assert np.abs(disturbed[:100]).max() > 0
        lengths.append(len(disturbed) / 8000)
    assert min(lengths) > 0.5 / 1.05
    assert max(lengths) < 0.5 / 0.95 + 0.4
    assert np.std(lengths) > 0.05


def test_judges_are_kept_and_trained_again_when_settings_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []
    monkeypatch.setattr(fsdd_judges, "load_fsdd", lambda: FsddCorpus([Utterance("1", Path(), "one", "theo")], []))
    monkeypatch.setattr(fsdd_judges, "training_features", lambda config, train: [[torch.zeros(1, 40)]])
    monkeypatch.setattr(fsdd_judges, "fit", lambda network, train, labels: trained.extend(labels))
    first = load_judges(tmp_path, SMALL)
    assert trained == [DIGITS.index("one"), list(ACCENTS).index("theo")]
    assert (first.digit.names, first.speaker.names) == (list(DIGITS), list(ACCENTS))
    again = load_judges(tmp_path, SMALL)
    assert len(trained) == 2
    for before, after in zip(first, again, strict=True):
        clips = [buzz(100), buzz(200)]
        assert before(clips) == after(clips)
        assert all(map(torch.equal, before.network.state_dict().values(), after.network.state_dict().values()))
    (tmp_path / "speaker.safetensors").unlink()
    load_judges(tmp_path, SMALL)
    assert len(trained) == 3
    load_judges(tmp_path, replace(SMALL, revision=2))
    assert len(trained) == 5


def test_a_vocoder_keeps_length_and_spectrum() -> None:
    clip = buzz(140)
    made = fsdd_judges.resynthesize(clip, FEATURES)
    assert len(made) == len(clip)
    distance = compare({("a", "b"): [made]}, {("a", "b"): [clip]}, FEATURES).average["a", "b"]
    assert distance < compare({("a", "b"): [buzz(140, 0.3, 0.95)]}, {("a", "b"): [clip]}, FEATURES).average["a", "b"]


@pytest.mark.slow
def test_judges_know_real_digits_and_speakers(fsdd: FsddCorpus) -> None:
    judges = load_judges(None)
    clips = [utterance.load_audio().samples for utterance in fsdd.test]
    digits = Share.of(found == utterance.text for found, utterance in zip(judges.digit(clips), fsdd.test, strict=True))
    speakers = Share.of(
        found == utterance.speaker for found, utterance in zip(judges.speaker(clips), fsdd.test, strict=True)
    )
    assert digits.rate >= 0.985
    assert speakers.rate >= 0.985


# pocketsphinx


def test_without_pocketsphinx_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without_module("pocketsphinx", monkeypatch)
    with pytest.raises(ModuleNotFoundError, match="pip install pocketsphinx"):
        digit_grammar.DigitGrammar()


def test_pocketsphinx_knows_digits_and_forgets_what_it_heard(fsdd: FsddCorpus) -> None:
    pytest.importorskip("pocketsphinx")
    judge = digit_grammar.DigitGrammar()
    some = [utterance for utterance in fsdd.train if utterance.speaker == "theo"][::90]
    found = [judge.recognize(*utterance.load_audio()) for utterance in some]
    assert Share.of(word == utterance.text for word, utterance in zip(found, some, strict=True)).rate >= 0.6
    assert [judge.recognize(*utterance.load_audio()) for utterance in reversed(some)] == found[::-1]


# comparisons


def test_means_and_their_intervals() -> None:
    mean = Mean.over([1.0, 3.0, math.nan])
    assert mean.value == 2
    assert (mean.low, mean.high) == (1, 3)
    assert Mean.over([0.5] * 9).show(" %", 100) == "50.0 % (50.0 to 50.0)"
    assert math.isnan(Mean.over([math.nan]).value)


def test_comparison_with_real_recordings() -> None:
    low, high = ("low", "a"), ("high", "a")
    references = {low: [buzz(100), buzz(100, 0.4)], high: [buzz(200)] * 2}
    same = compare(references, references, FEATURES)
    assert list(same.average) == [low, high]
    assert same.nearest[low] == pytest.approx(0, abs=1e-4)
    assert same.variety[high] == pytest.approx(0, abs=1e-4)
    octave = compare({low: [buzz(200)], high: [buzz(200)]}, references, FEATURES)
    assert octave.pitch[low] == pytest.approx(12, abs=0.3)
    assert octave.pitch[high] == pytest.approx(0, abs=1e-3)
    assert octave.average[low] > octave.average[high]
    assert math.isnan(octave.variety[low])
    assert octave.voicing[high] == 0
    assert octave.to_json()["pitch"]["speakers"]["low"][0] == octave.pitch[low]
    assert len(octave.row()) == len(octave.HEADINGS) == len(octave)


class Names:
    """A judge that is told what to say."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def __call__(self, clips: list[Any]) -> list[str]:
        return [self.answer] * len(clips)


class Grammar:
    def recognize(self, samples: Any, sample_rate: int) -> str | None:
        assert sample_rate == 8000
        return "two" if samples.max() else None


def jury(word: str = "one", speaker: str = "theo") -> tts_digits.Jury:
    return tts_digits.Jury(Judges(Names(word), Names(speaker)), Grammar())  # type: ignore[arg-type]


def test_a_jury_counts_by_intended_speaker() -> None:
    silent, loud = np.zeros(800, np.float32), np.ones(800, np.float32)
    clips = [
        tts_digits.Clip("theo", "one", silent),
        tts_digits.Clip("theo", "two", loud),
        tts_digits.Clip("lucas", "two", silent),
    ]
    found = jury()(clips)
    assert found[tts_digits.DIGITS_RIGHT] == {"theo": Share(1, 2), "lucas": Share(0, 1)}
    assert found[tts_digits.SPEAKER] == {"theo": Share(2, 2), "lucas": Share(0, 1)}
    assert found[tts_digits.GRAMMAR] == {"theo": Share(1, 2), "lucas": Share(0, 1)}
    assert tts_digits.GRAMMAR not in jury()(clips, with_grammar=False)


def test_stand_ins_are_the_first_train_recordings(fsdd: FsddCorpus) -> None:
    chosen = tts_digits.stand_ins(fsdd, 2)
    assert len(chosen) == 120
    assert {utterance.id.rpartition("_")[2] for utterance in chosen} == {"5", "6"}


def test_figures_of_a_model(
    synthesizer: Synthesizer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import soundfile

    words = ["seven", "three"]
    recordings = []
    for number, speaker in enumerate(synthesizer.speakers):
        for take, word in enumerate(words):
            path = tmp_path / f"{word}_{speaker}.wav"
            soundfile.write(path, buzz(100 + 20 * number + take), 8000)
            recordings.append(Utterance(path.stem, path, word, speaker))
    monkeypatch.setattr(tts_digits, "DIGITS", words)
    monkeypatch.setattr(tts_digits, "ACCENTS", synthesizer.speaker_accents)
    monkeypatch.setattr(tts_digits, "load_fsdd", lambda: FsddCorpus(recordings, recordings))
    monkeypatch.setattr(tts_digits, "load_judges", lambda folder: Judges(untrained(words), untrained(["x", "y"])))
    monkeypatch.setattr(tts_digits, "DigitGrammar", Grammar)
    synthesizer.save(tmp_path / "model")
    argv = ["tts_digits", str(tmp_path / "model"), "--seeds", "2", "--temperature", "0.5", "1"]
    monkeypatch.setattr("sys.argv", [*argv, "--json", str(tmp_path / "out.json")])
    tts_digits.main()

    figures = json.loads((tmp_path / "out.json").read_text())
    conditions = ["real", "real, through the vocoder", "temperature 0.5", "temperature 1"]
    for question in (tts_digits.DIGITS_RIGHT, tts_digits.SPEAKER, tts_digits.GRAMMAR):
        assert list(figures["judged"][question]) == conditions
        for condition, shares in figures["judged"][question].items():
            numbers = {speaker: share["number"] for speaker, share in shares.items()}
            assert numbers == dict.fromkeys(synthesizer.speakers, 4 if "temperature" in condition else 2)
    assert list(figures["compared"]) == conditions
    assert figures["compared"]["real"]["nearest"]["all"][0] == pytest.approx(0, abs=0.01)
    assert figures["compared"]["temperature 1"]["variety"]["all"][0] > 0
    foreign = figures["accents"][tts_digits.SPEAKER]
    assert list(foreign) == synthesizer.accents
    for accent, shares in foreign.items():
        for speaker, share in shares.items():
            assert share["number"] == (0 if synthesizer.speaker_accents[speaker] == accent else 4)
    assert capsys.readouterr().out.count("| all |") == 5


def test_each_clip_has_noise_of_its_own(synthesizer: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tts_digits, "DIGITS", ["seven"])
    clips = tts_digits.speak(synthesizer, 2, 0.7)
    assert [clip.cell for clip in clips[::2]] == [(speaker, "seven") for speaker in synthesizer.speakers]
    assert len({clip.samples.tobytes() for clip in clips}) == 6
    seeds = [synthesizer.synthesize("seven", speaker="ben", temperature=0.7, seed=seed).samples for seed in (2, 3)]
    for found, expected in zip([clip.samples for clip in clips if clip.speaker == "ben"], seeds, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_the_benchmarks_refuse_other_models(
    recognizer: Recognizer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recognizer.save(tmp_path / "model")
    monkeypatch.setattr("sys.argv", ["benchmark", str(tmp_path / "model")])
    for benchmark in (tts_digits, tts_prompts):
        with pytest.raises(SystemExit):
            benchmark.main()
        assert "is not a synthesizer" in capsys.readouterr().err
