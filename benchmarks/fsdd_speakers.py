"""The tables of docs/ctc-asr.md: spoken digits by known speakers, and by each speaker in turn who was left out.

    python -m benchmarks.fsdd_speakers [--speakers theo lucas] [--epochs N]

"known" is the official split; the others train on five speakers and test on all 500 recordings of the sixth.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from sonorant.data.fsdd import ACCENTS, leave_out_speaker, load_fsdd
from sonorant.data.manifest import Corpus
from sonorant.inference.evaluation import Evaluation, evaluate
from sonorant.recipes import ctc_asr

KNOWN = "known"
LEXICON = """\
zero Z IH R OW
zero Z IY R OW
one W AH N
two T UW
three TH R IY
four F AO R
five F AY V
six S IH K S
seven S EH V AH N
eight EY T
nine N AY N
"""


def train_and_evaluate(speaker: str, epochs: int = 8) -> tuple[Evaluation, float]:
    """How a model does that was trained without the speaker, and the seconds of features and training."""
    corpus = load_fsdd() if speaker == KNOWN else leave_out_speaker(load_fsdd(), speaker)
    with tempfile.TemporaryDirectory() as run:
        lexicon = Path(run) / "digits.txt"
        lexicon.write_text(LEXICON, encoding="utf-8")
        units = ctc_asr.UnitsConfig(kind="lexicon", lexicon=str(lexicon))
        config = ctc_asr.Config(data=ctc_asr.DataConfig(train="", test=""), units=units)
        config = replace(config, trainer=replace(config.trainer, max_epochs=epochs))
        task = ctc_asr.prepare(config, Corpus(corpus.train), Corpus(corpus.test))
        start = time.monotonic()
        ctc_asr.fit_recognizer(config, task, Path(run))
        seconds = time.monotonic() - start
    return evaluate(task.recognizer, task.test), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speakers", nargs="+", choices=[KNOWN, *ACCENTS], default=[KNOWN, *ACCENTS])
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    rows = [
        "| speaker | recordings | wrong, greedy | WER, greedy | wrong, WFST | WER, WFST | seconds |",
        "|---" * 7 + "|",
    ]
    for speaker in options.speakers:
        result, seconds = train_and_evaluate(speaker, options.epochs)
        cells = [speaker, str(len(result.losses))]
        for decoder in ("greedy", "wfst"):
            rate = result.error_rates[decoder]
            low, high = rate.interval or (float("nan"), float("nan"))
            cells += [str(rate.errors), f"{rate.rate:.2%} ({low:.2%} to {high:.2%})"]
        rows.append(f"| {' | '.join(cells)} | {seconds:.0f} |")
        print(rows[-1], flush=True)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
