"""The table of docs/yesno.md: the recipe as shipped, with ten seeds.

python -m benchmarks.yesno_seeds
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from sonorant.data.yesno import load_yesno
from sonorant.inference.evaluation import Evaluation, evaluate
from sonorant.inference.recognizer import Recognizer
from sonorant.recipes import yesno


def train_and_evaluate(seed: int, run: Path) -> tuple[Recognizer, Evaluation, float]:
    """The recognizer, how it does on the test half, and the seconds of features and training."""
    corpus = load_yesno()
    start = time.monotonic()
    recognizer, _ = yesno.fit_recognizer(replace(yesno.Config(), seed=seed), corpus.train, run)
    seconds = time.monotonic() - start
    return recognizer, evaluate(recognizer, corpus.test), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    rows = ["| seed | greedy | WFST | seconds |", "|---|---|---|---|"]
    for seed in parser.parse_args().seeds:
        with tempfile.TemporaryDirectory() as run:
            _, result, seconds = train_and_evaluate(seed, Path(run))
        greedy, wfst = (result.error_rates[decoder].errors for decoder in ("greedy", "wfst"))
        rows.append(f"| {seed} | {greedy} | {wfst} | {seconds:.0f} |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
