"""How a model of the recipe tts-digits speaks, by judges who have heard real speech alone.

    pip install pocketsphinx  # one of the judges
    python -m benchmarks.tts_digits RUN [--judges DIR] [--seeds 10] [--temperature 0.667 1.0] [--json OUT]

Every figure stands beside that of the 300 real test recordings, and of what the vocoder makes of those. Distances are
to the five test recordings of the same digit by the same speaker; there the real speech beside is ten of the train
recordings. Intervals are of 95 %: of shares by Wilson, of means by bootstrap over digits and speakers.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import sonorant
from benchmarks.digit_grammar import DigitGrammar
from benchmarks.fsdd_judges import Judges, load_judges, resynthesize
from benchmarks.shares import Share, markdown, table
from benchmarks.spectral_comparison import Cell, Comparison, compare
from sonorant.data.acoustic import AcousticConfig
from sonorant.data.audio import Samples, resample
from sonorant.data.fsdd import ACCENTS, DIGITS, SAMPLE_RATE, FsddCorpus, load_fsdd
from sonorant.data.manifest import Utterance
from sonorant.inference import Synthesizer
from sonorant.inference.speech import Sentence

DIGITS_RIGHT, SPEAKER, GRAMMAR = "digits right", "intended speaker named", "digits right, pocketsphinx"
REAL, VOCODED = "real", "real, through the vocoder"

Shares = dict[str, Share]  # by speaker


class Clip(NamedTuple):
    """What is to be judged: samples ``(samples,)`` at 8 kHz, and what should be heard in them."""

    speaker: str
    text: str
    samples: Samples

    @property
    def cell(self) -> Cell:
        return self.speaker, self.text


class Jury:
    """All judges.

    Args:
        judges: see :mod:`benchmarks.fsdd_judges`.
        grammar: pocketsphinx, or None to do without.
    """

    def __init__(self, judges: Judges, grammar: DigitGrammar | None) -> None:
        self._judges = judges
        self._grammar = grammar

    def __call__(self, clips: Sequence[Clip], *, with_grammar: bool = True) -> dict[str, Shares]:
        """By question, and by intended speaker, how often the judge heard what was intended."""
        samples = [clip.samples for clip in clips]
        heard: dict[str, Iterable[bool]] = {
            DIGITS_RIGHT: [word == clip.text for word, clip in zip(self._judges.digit(samples), clips, strict=True)],
            SPEAKER: [name == clip.speaker for name, clip in zip(self._judges.speaker(samples), clips, strict=True)],
        }
        if self._grammar is not None and with_grammar:
            grammar = self._grammar
            heard[GRAMMAR] = [grammar.recognize(clip.samples, SAMPLE_RATE) == clip.text for clip in clips]
        result = {}
        for question, answers in heard.items():
            shares = {clip.speaker: Share() for clip in clips}
            for clip, right in zip(clips, answers, strict=True):
                shares[clip.speaker] += right
            result[question] = shares
        return result


def speak(synthesizer: Synthesizer, seeds: int, temperature: float, accent: str | None = None) -> list[Clip]:
    """All digits by all speakers, each so often; no two clips have the same noise.

    Args:
        synthesizer: of the recipe tts-digits.
        seeds: the renditions of a digit by a speaker.
        temperature: see :class:`~sonorant.inference.speech.Sentence`.
        accent: None is each speaker's own; otherwise those who have it do not speak.
    """
    numbers = count()
    sentences = [
        Sentence(digit, speaker, accent, temperature=temperature, seed=next(numbers))
        for speaker in synthesizer.speakers
        if accent is None or accent != synthesizer.speaker_accents[speaker]
        for digit in DIGITS
        for _ in range(seeds)
    ]
    return [
        Clip(str(sentence.speaker), sentence.text, resample(speech.samples, speech.sample_rate, SAMPLE_RATE))
        for sentence, speech in zip(sentences, synthesizer.synthesize_all(sentences), strict=True)
    ]


def real_clips(utterances: Iterable[Utterance], vocoder: AcousticConfig | None = None) -> list[Clip]:
    """Recordings; through the vocoder for these features, if they are given."""
    clips = [
        Clip(str(utterance.speaker), utterance.text, utterance.load_audio(SAMPLE_RATE).samples)
        for utterance in utterances
    ]
    if vocoder is None:
        return clips
    rate = vocoder.sample_rate
    return [
        clip._replace(
            samples=resample(resynthesize(resample(clip.samples, SAMPLE_RATE, rate), vocoder), rate, SAMPLE_RATE)
        )
        for clip in clips
    ]


def by_cell(clips: Iterable[Clip], sample_rate: int) -> dict[Cell, list[Samples]]:
    cells: dict[Cell, list[Samples]] = {}
    for clip in clips:
        cells.setdefault(clip.cell, []).append(resample(clip.samples, SAMPLE_RATE, sample_rate))
    return cells


def stand_ins(corpus: FsddCorpus, seeds: int) -> list[Utterance]:
    """Train recordings in the place of synthesized clips: the first so many of each digit by each speaker."""
    seen: dict[tuple[str | None, str], int] = {}
    chosen = []
    for utterance in corpus.train:
        cell = utterance.speaker, utterance.text
        seen[cell] = seen.get(cell, 0) + 1
        if seen[cell] <= seeds:
            chosen.append(utterance)
    return chosen


def foreign_accents(synthesizer: Synthesizer, jury: Jury, seeds: int, temperature: float) -> dict[str, dict[str, Any]]:
    """By question and accent the shares of those speakers who have another accent, the others counted as nothing."""
    result: dict[str, dict[str, Shares]] = {DIGITS_RIGHT: {}, SPEAKER: {}}
    for accent in synthesizer.accents:
        found = jury(speak(synthesizer, seeds, temperature, accent), with_grammar=False)
        for question, shares in found.items():
            result[question][accent] = {speaker: shares.get(speaker, Share()) for speaker in synthesizer.speakers}
    return result


def evaluate(synthesizer: Synthesizer, jury: Jury, seeds: int, temperatures: Sequence[float]) -> dict[str, Any]:
    """All figures: ``judged`` by question and condition, ``compared`` by condition, ``accents`` by question."""
    corpus, features = load_fsdd(), synthesizer.features
    judged: dict[str, dict[str, Shares]] = {}
    spoken = {f"temperature {temperature:g}": speak(synthesizer, seeds, temperature) for temperature in temperatures}
    clips = {REAL: real_clips(corpus.test), VOCODED: real_clips(corpus.test, features), **spoken}
    for condition, some in clips.items():
        for question, shares in jury(some).items():
            judged.setdefault(question, {})[condition] = shares
    references = by_cell(clips[REAL], features.sample_rate)
    others = stand_ins(corpus, seeds)
    compared: dict[str, Comparison] = {
        condition: compare(by_cell(some, features.sample_rate), references, features)
        for condition, some in {
            REAL: real_clips(others),
            VOCODED: real_clips(others, features),
            **spoken,
        }.items()
    }
    accents = foreign_accents(synthesizer, jury, seeds, temperatures[0])
    return {"judged": judged, "compared": compared, "accents": accents}


def report(figures: dict[str, Any], temperature: float) -> str:
    """All tables."""
    parts = [f"{question}\n\n{table('speaker', columns)}" for question, columns in figures["judged"].items()]
    rows = [[condition, *comparison.row()] for condition, comparison in figures["compared"].items()]
    parts.append(
        "mel-cepstral distance and f0, to the test recordings; variety\n\n"
        + markdown(["speech", *Comparison.HEADINGS], rows)
    )
    names = {accent: f"{accent} accent" for accent in next(iter(figures["accents"].values()))}
    for question, columns in figures["accents"].items():
        own = figures["judged"][question][f"temperature {temperature:g}"]
        everything = {
            "own accent": own,
            **{names[accent]: shares for accent, shares in columns.items()},
            "all foreign ones": {
                speaker: sum((shares[speaker] for shares in columns.values()), Share()) for speaker in own
            },
        }
        heading = f"{question}, with a foreign accent (temperature {temperature:g})"
        parts.append(f"{heading}\n\n{table('speaker', everything)}")
    return "\n\n".join(parts)


def to_json(figures: dict[str, Any]) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, Share | Comparison):
            return value.to_json()
        return {key: plain(item) for key, item in value.items()}

    return {key: plain(value) for key, value in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="a run or model folder of the recipe tts-digits")
    parser.add_argument("--judges", type=Path, metavar="DIR", help="where they are kept, and put if need be")
    parser.add_argument("--seeds", type=int, default=10, help="renditions of each digit by each speaker")
    parser.add_argument("--temperature", type=float, nargs="+", default=[0.667, 1.0])
    parser.add_argument("--without-pocketsphinx", action="store_true")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args()
    synthesizer = sonorant.load(options.run)
    if not isinstance(synthesizer, Synthesizer) or set(ACCENTS) - set(synthesizer.speakers):
        parser.error(f"{options.run} is not a synthesizer with the speakers {', '.join(ACCENTS)}")
    grammar = None if options.without_pocketsphinx else DigitGrammar()
    jury = Jury(load_judges(options.judges), grammar)
    figures = evaluate(synthesizer, jury, options.seeds, options.temperature)
    print(report(figures, options.temperature[0]))
    if options.json is not None:
        options.json.write_text(json.dumps(to_json(figures), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
