"""Choose the settings of the yesno recipe by cross-validation inside its 30 training recordings.

    python -m benchmarks.yesno_settings --seeds 100 101

Every setting is trained on each fold's remainder and scored on the fold; the test half of the corpus is not touched.
The folds are hard: sorted by how many of their words are "yes", so that each end is held out together. Held-out
recordings are also played slower and faster.
"""

import argparse
import contextlib
import io
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch

from sonorant.data.audio import change_speed, load_audio
from sonorant.data.manifest import Utterance
from sonorant.data.yesno import load_yesno
from sonorant.inference.evaluation import evaluate
from sonorant.inference.recognizer import Recognizer
from sonorant.metrics import error_rate
from sonorant.recipes import yesno

BASE = yesno.Config()
SETTINGS = {
    "as shipped": BASE,
    "speeds 0.9, 1, 1.1": replace(BASE, speeds=(0.9, 1.0, 1.1), trainer=replace(BASE.trainer, max_epochs=20)),
    "16 epochs": replace(BASE, trainer=replace(BASE.trainer, max_epochs=16)),
    "floor at 6 nats": replace(BASE, model=replace(BASE.model, dynamic_range=6.0)),
    "floor at 10 nats": replace(BASE, model=replace(BASE.model, dynamic_range=10.0)),
    "noise 0.8": replace(BASE, model=replace(BASE.model, noise=0.8)),
    "no channel noise": replace(BASE, model=replace(BASE.model, channel_noise=0.0)),
    "batches of 8": replace(BASE, batch_size=8),
}
FOLDS = 5
OTHER_SPEEDS = (0.8, 1.25, 1.4)


def folds() -> list[list[Utterance]]:
    """The training recordings by how often they say yes."""
    utterances = sorted(load_yesno().train, key=lambda utterance: (utterance.words.count("YES"), utterance.id))
    size = len(utterances) // FOLDS
    return [utterances[start : start + size] for start in range(0, len(utterances), size)]


def errors_at(recognizer: Recognizer, utterances: Sequence[Utterance], speed: float) -> int:
    """Errors of the WFST on recordings played at another speed."""
    rate = recognizer.fbank.config.sample_rate
    played = [change_speed(load_audio(utterance.path).samples, speed) for utterance in utterances]
    log_probs = recognizer.log_probs([recognizer.extract(samples, rate) for samples in played])
    return error_rate(
        [utterance.words for utterance in utterances], recognizer.decode(log_probs), replications=0
    ).errors


def cross_validate(config: yesno.Config, seed: int) -> list[float]:
    """Over all folds: errors greedy and with the WFST, the mean loss of a recording, and errors at other speeds."""
    greedy, wfst, losses, others = 0, 0, [], [0] * len(OTHER_SPEEDS)
    for held_out in folds():
        rest = [utterance for utterance in load_yesno().train if utterance not in held_out]
        with tempfile.TemporaryDirectory() as run, contextlib.redirect_stdout(io.StringIO()):
            recognizer, _ = yesno.fit_recognizer(replace(config, seed=seed), rest, Path(run))
        result = evaluate(recognizer, held_out)
        greedy += result.error_rates["greedy"].errors
        wfst += result.error_rates["wfst"].errors
        losses += result.losses
        errors = (errors_at(recognizer, held_out, speed) for speed in OTHER_SPEEDS)
        others = [total + more for total, more in zip(others, errors, strict=True)]
    return [greedy, wfst, mean(losses), *others]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101])
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = ["greedy", "WFST", "loss", *(f"WFST at speed {speed:g}" for speed in OTHER_SPEEDS)]
    print(f"| setting | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    for label in options.only:
        runs = [cross_validate(SETTINGS[label], seed) for seed in options.seeds]
        cells = [" + ".join(f"{value:.3g}" for value in values) for values in zip(*runs, strict=True)]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
