"""How fast speech is made: the model, from text to spectra, and the vocoder by itself.

    python -m benchmarks.tts_speed [RUN] [--threads N] [--json OUT]

Without a model folder: a model that was never trained, of the default size at 22,050 Hz, whose tokens last as long as
letters do in read speech. The real-time factor is seconds of the clock for a second of speech; on a machine that does
something else too, the CPU time tells more. Both are the best of some rounds.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

import sonorant
from sonorant.data.acoustic import AcousticConfig
from sonorant.data.speaker_statistics import AcousticStatistics, SpeakerStatistics
from sonorant.inference import Sentence, Synthesizer
from sonorant.inference.rendering import Part, SpeechRenderer
from sonorant.models.flow_tts import FlowTts, FlowTtsConfig
from sonorant.text import Speller

TEXTS = (
    "the birch canoe slid on the smooth planks",
    "glue the sheet to the dark blue background",
    "it is easy to tell the depth of a well",
    "these days a chicken leg is a rare dish",
    "rice is often served in round bowls",
    "the juice of lemons makes fine punch",
    "the box was thrown beside the parked truck",
    "the hogs were fed chopped corn and garbage",
)  # IEEE 1969, "Recommended practice for speech quality measurements", list 1
LETTER_SECONDS = 0.07
BATCH = 16


class Speed(NamedTuple):
    """What was measured: seconds of the clock and of CPU time for so many seconds of speech."""

    name: str
    seconds: float
    cpu_seconds: float
    speech: float

    @property
    def factor(self) -> float:
        return self.seconds / self.speech


def untrained() -> Synthesizer:
    """Of the default size, with one speaker."""
    torch.manual_seed(0)
    features, speller = AcousticConfig(), Speller.of_letters(" ".join(TEXTS).split(" "))
    model = FlowTts(FlowTtsConfig(), features.n_mels, len(speller.symbols), 1, 1)
    model.decoder.fit_whitening([torch.randn(1000, features.n_mels) - 6])
    frames = LETTER_SECONDS * features.sample_rate / features.hop_length
    with torch.no_grad():
        model.duration_predictor.output.weight.zero_()
        model.duration_predictor.output.bias.fill_(torch.tensor(frames).log1p().item())
    own = SpeakerStatistics(1000, 5.0, 0.2, -3.0, 0.5)
    return Synthesizer(
        model,
        features,
        speller,
        AcousticStatistics(own, {"": own}),
        speakers=[""],
        accents=[""],
        speaker_accents={"": ""},
    )


def sentences(synthesizer: Synthesizer, words: int = 8) -> list[Sentence]:
    """Speakers take turns. Of a model whose lexicon lacks these words, sentences of the words that it has."""
    texts: Sequence[str] = TEXTS
    if synthesizer.speller.missing(" ".join(TEXTS).split(" ")):
        known = synthesizer.speller.lexicon.words if synthesizer.speller.lexicon else known_letters(synthesizer)
        texts = [" ".join(known[(i * words + j) % len(known)] for j in range(words)) for i in range(len(TEXTS))]
    speakers = synthesizer.speakers
    return [Sentence(texts[i % len(texts)], speakers[i % len(speakers)], seed=i) for i in range(BATCH)]


def known_letters(synthesizer: Synthesizer) -> list[str]:
    """Words of five letters each, of those that the model knows."""
    letters = [symbol for symbol in synthesizer.speller.symbols.symbols[1:] if symbol != synthesizer.speller.boundary]
    return ["".join(letters[(i + 3 * j) % len(letters)] for j in range(5)) for i in range(len(letters))]


def timed(name: str, speech: float, call: Callable[[], object], rounds: int) -> Speed:
    seconds, cpu_seconds = [], []
    for _ in range(rounds):
        start, cpu_start = time.perf_counter(), time.process_time()
        call()
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    return Speed(name, min(seconds), min(cpu_seconds), speech)


def measure(synthesizer: Synthesizer, rounds: int = 5) -> list[Speed]:
    parts: list[Part] = [part for s in sentences(synthesizer) for part, _ in synthesizer.prepare(s)]
    renderer = SpeechRenderer(synthesizer.model, synthesizer.features, synthesizer.statistics.corpus)
    rendered = renderer(parts)
    frame = synthesizer.features.hop_length / synthesizer.features.sample_rate
    speech = [len(part.features.f0) * frame for part in rendered]
    found = rendered[0].features
    return [
        timed("model, one sentence", speech[0], lambda: renderer(parts[:1]), rounds),
        timed(f"model, {len(parts)} sentences at once", sum(speech), lambda: renderer(parts), rounds),
        timed("vocoder", speech[0], lambda: synthesizer.vocoder(found.log_mel, found.f0), rounds),
    ]


def table(speeds: Sequence[Speed]) -> str:
    rows = [
        f"| {s.name} | {s.speech:.2f} s | {1000 * s.cpu_seconds:.0f} ms | {1000 * s.seconds:.0f} ms | {s.factor:.3f} |"
        for s in speeds
    ]
    return "\n".join(["| what | speech | CPU time | time | real-time factor |", "|---|---|---|---|---|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", nargs="?", help="a run or model folder of a synthesizer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    synthesizer = untrained() if options.run is None else sonorant.load(options.run)
    if not isinstance(synthesizer, Synthesizer):
        parser.error(f"{options.run} is not a synthesizer")
    speeds = measure(synthesizer, options.rounds)
    parameters = sum(parameter.numel() for parameter in synthesizer.model.parameters())
    rate = synthesizer.features.sample_rate
    print(f"{parameters:,} parameters, {rate} Hz, {options.threads} threads\n\n{table(speeds)}")
    if options.json is not None:
        options.json.write_text(json.dumps([{**s._asdict(), "factor": s.factor} for s in speeds], indent=2) + "\n")


if __name__ == "__main__":
    main()
