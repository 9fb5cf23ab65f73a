"""Choose the settings of the yesno recipe by cross-validation inside its 30 training recordings.

    python -m benchmarks.yesno_settings --folds 5 --seeds 100 101 102 103

Every setting is trained on each fold's remainder and scored on the fold; the test half of the corpus is not touched.
"""

import argparse
import contextlib
import io
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import torch

from sonorant.data.yesno import load_yesno
from sonorant.decoding.wfst import WfstDecoder
from sonorant.metrics import error_rate
from sonorant.recipes import yesno

BASE = yesno.Config()
SETTINGS = {
    "as shipped": BASE,
    "batches of 3": replace(BASE, batch_size=3),
    "batches of 8": replace(BASE, batch_size=8),
    "statistics of the whole utterance": replace(BASE, model=replace(BASE.model, statistics_fraction=1.0)),
    "no channel noise": replace(BASE, model=replace(BASE.model, channel_noise=0.0)),
    "no noise": replace(BASE, model=replace(BASE.model, noise=0.0)),
    "noise 0.6": replace(BASE, model=replace(BASE.model, noise=0.6)),
    "no floor": replace(BASE, model=replace(BASE.model, dynamic_range=1000.0)),
    "peak rate 5e-3": replace(BASE, optimizer=replace(BASE.optimizer, learning_rate=5e-3)),
    "peak rate 2e-2": replace(BASE, optimizer=replace(BASE.optimizer, learning_rate=2e-2)),
    "no speed copies": replace(BASE, speeds=(1.0,), trainer=replace(BASE.trainer, max_epochs=45)),
}
SCALES = (0.5, 1.0, 2.0, 4.0)


def cross_validate(config: yesno.Config, folds: int, seed: int) -> Counter[str]:
    """Errors over all folds, by decoder."""
    utterances = load_yesno().train
    errors: Counter[str] = Counter()
    for fold in range(folds):
        held_out = utterances[fold::folds]
        rest = [utterance for utterance in utterances if utterance not in held_out]
        with tempfile.TemporaryDirectory() as run, contextlib.redirect_stdout(io.StringIO()):
            recognizer, _ = yesno.fit_recognizer(replace(config, seed=seed), rest, Path(run))
        log_probs = recognizer.log_probs([recognizer.extract(utterance.path) for utterance in held_out])
        references = [utterance.words for utterance in held_out]
        decoded = {"greedy": recognizer.decode(log_probs, "greedy")}
        rows = list(zip(log_probs.values, log_probs.lengths.tolist(), strict=True))
        parts = (recognizer.symbols, recognizer.lexicon, recognizer.arpa)
        for scale in SCALES:
            decoder = WfstDecoder(*parts, silence=recognizer.silence, acoustic_scale=scale)
            decoded[f"wfst x{scale:g}"] = [decoder.decode(row[:length].numpy()) for row, length in rows]
        for name, words in decoded.items():
            errors[name] += error_rate(references, words, replications=0).errors
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102, 103])
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = ["greedy", *(f"wfst x{scale:g}" for scale in SCALES)]
    print(f"| setting | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    for label in options.only:
        runs = [cross_validate(SETTINGS[label], options.folds, seed) for seed in options.seeds]
        cells = [" + ".join(str(run[name]) for run in runs) for name in names]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
