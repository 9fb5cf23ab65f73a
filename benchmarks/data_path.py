"""How much memory a big corpus takes, and how fast its batches come, beside training on them.

    sonorant data digit-strings strings --number 12000    # ten hours
    python -m benchmarks.data_path strings/table.tsv [--batches 100]

Features go through the cache at speed 1; then all batches of an epoch are loaded without training, and some trained on.
"""

import argparse
import resource
import time
from pathlib import Path

import torch

from sonorant.data.batching import BucketBatchSampler, StatefulLoader
from sonorant.data.corpus import scan_corpus
from sonorant.data.ctc import CtcDataset, collate_ctc
from sonorant.data.download import cache_directory
from sonorant.data.feature_store import FeatureStore
from sonorant.data.manifest import Corpus
from sonorant.losses import CtcLoss
from sonorant.recipes import ctc_asr


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--batches", type=int, default=100, help="to train on (default: 100)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"imported: at most {peak_megabytes():.0f} MB so far")
    corpus = scan_corpus(options.table)
    config = ctc_asr.Config(data=ctc_asr.DataConfig(train="", test=""))
    task = ctc_asr.prepare(config, corpus, Corpus(corpus.utterances[:10]))
    print(f"{len(corpus.utterances)} utterances checked: {peak_megabytes():.0f} MB")
    recognizer = task.recognizer
    store = FeatureStore(recognizer.frontend, cache_directory() / "features")
    for when in ("features computed", "features found again"):
        start = time.process_time()
        stored = store.collect(corpus.utterances, [1.0])
        print(f"{when}: {time.process_time() - start:.0f} s of CPU time, {peak_megabytes():.0f} MB")
    dataset = CtcDataset(store, stored, [recognizer.target(utterance.words) for utterance in corpus.utterances])
    sampler = BucketBatchSampler(dataset.lengths, config.batch_size, pool_batches=config.pool_batches)
    loader = StatefulLoader(dataset, sampler, collate_fn=collate_ctc)
    hours = sum(dataset.lengths) / 360_000
    start = time.process_time()
    for _ in loader:
        pass
    loading = (time.process_time() - start) / len(loader)
    print(f"an epoch of {hours:.1f} h loaded: {1000 * loading:.1f} ms a batch, {peak_megabytes():.0f} MB")

    model, loss = recognizer.model.train(), CtcLoss(reduction="batchmean")
    optimizer = torch.optim.AdamW(model.parameters())
    batches = [batch for batch, _ in zip(loader, range(options.batches), strict=False)]
    start = time.process_time()
    for batch in batches:
        log_probs = model(batch.features, batch.feature_lengths)
        optimizer.zero_grad()
        loss(log_probs.values, batch.targets, log_probs.lengths, batch.target_lengths).backward()
        optimizer.step()
    training = (time.process_time() - start) / len(batches)
    print(f"training: {1000 * training:.1f} ms a batch, {training / loading:.1f} times as long as loading")


if __name__ == "__main__":
    main()
