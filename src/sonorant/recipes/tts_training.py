"""What all recipes that learn to speak do the same way."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities import rank_zero_only
from torch.utils.tensorboard import SummaryWriter

from sonorant.data.download import cache_directory
from sonorant.data.facts import CorpusFacts
from sonorant.data.manifest import Corpus
from sonorant.inference.speech import Sentence
from sonorant.inference.synthesizer import Synthesizer
from sonorant.recipes.tts_corpus import TtsCorpus, TtsDataConfig, prepare_corpus
from sonorant.recipes.tts_stages import TtsStages, TtsTrainingConfig
from sonorant.tasks.tts_samples import write_speech
from sonorant.text import Lexicon

__all__ = ["report", "train_tts"]


def train_tts(
    config: TtsTrainingConfig,
    data: TtsDataConfig,
    run: Path,
    train: Corpus,
    dev: Corpus | None = None,
    *,
    recipe: str,
    facts: CorpusFacts | None = None,
    words: Lexicon | None = None,
) -> dict[str, Any]:
    """Train in stages, and write model, metrics and samples into the run directory.

    Args:
        config: the settings.
        data: which recordings are used.
        run: the run directory.
        train: to train on.
        dev: to choose weights with; None holds a part of ``train`` out.
        recipe: its name.
        facts: what is known about the corpus.
        words: beside those of the lexicon, if there is one.

    Returns:
        What ``metrics.json`` holds; nothing in processes other than the first.

    Raises:
        ValueError: faults of the corpus, all of them listed; see :func:`~sonorant.recipes.tts_corpus.prepare_corpus`
            and :class:`~sonorant.recipes.tts_stages.TtsStages`.
    """
    group_size = config.model.decoder.group_size
    corpus = prepare_corpus(data, config.units, config.features, config.recordings, group_size, train, dev, words)
    tell = rank_zero_only(print)
    tell(_summary(corpus), flush=True)
    stages = TtsStages(config, corpus, run, cache_directory() / "features" if data.cache else None)
    seconds = {}
    for name in stages.names:
        tell(f"stage {name}", flush=True)
        seconds[name] = round(stages.fit(name), 2)
    if rank_zero_only.rank:  # type: ignore[attr-defined]
        return {}
    synthesizer = _synthesizer(stages, recipe, facts)
    synthesizer.save(run / "model")
    metrics = {
        "utterances": {"train": len(corpus.train), "dev": len(corpus.dev)},
        "speakers": dict(Counter(utterance.speaker or "" for utterance in corpus.train)),
        "accents": dict(Counter(utterance.accent or "" for utterance in corpus.train)),
        "parameters": sum(parameter.numel() for parameter in stages.model.parameters()),
        "dev": {name: round(value, 5) for name, value in stages.dev_terms().items()},
        "train_seconds": seconds,
    }
    (run / "metrics.json").write_text(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _speak(synthesizer, stages)
    return metrics


def report(metrics: Mapping[str, Any], run: Path) -> str:
    """What is printed at the end of a run."""
    seconds = metrics["train_seconds"]
    stages = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    terms = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in metrics["dev"].items())
    speakers = [name for name in metrics["speakers"] if name]
    speaker = f" --speaker {speakers[0]}" if len(metrics["speakers"]) > 1 else ""
    return "\n".join(
        [
            *([f"dev {terms}"] if terms else []),
            f"trained in {sum(seconds.values()):.1f} s ({stages})",
            f"model    {run / 'model'}\nsamples  {run / 'samples'}\nmetrics  {run / 'metrics.json'}",
            f"speak    sonorant synthesize {run} --text '...'{speaker} -o out.wav",
        ]
    )


def _summary(corpus: TtsCorpus) -> str:
    counts = {"speaker": len(corpus.speakers), "accent": len(corpus.accents), "symbol": len(corpus.speller.symbols) - 1}
    known = ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for name, number in counts.items())
    return f"{len(corpus.train)} utterances train, {len(corpus.dev)} dev; {known}"


def _synthesizer(stages: TtsStages, recipe: str, facts: CorpusFacts | None) -> Synthesizer:
    config, corpus = stages.config, stages.corpus
    return Synthesizer(
        stages.model,
        config.features,
        corpus.speller,
        stages.statistics,
        speakers=corpus.speakers,
        accents=corpus.accents,
        speaker_accents=corpus.speaker_accents,
        prior=config.prior,
        recordings=config.recordings,
        temperature=config.temperature,
        recipe=recipe,
        corpus=facts,
    )


def _speak(synthesizer: Synthesizer, stages: TtsStages) -> None:
    """The sentences that are watched, from their texts alone: ``N.wav`` and ``N.png``, also in TensorBoard."""
    utterances, last = stages.watched, stages.run / "stages" / stages.names[-1]
    spoken = synthesizer.synthesize_all([Sentence(u.text, u.speaker or "", u.accent or "") for u in utterances])
    with SummaryWriter(str(last / "logs")) as writer:
        for number, (utterance, speech) in enumerate(zip(utterances, spoken, strict=True), start=1):
            folder = stages.run / "samples"
            write_speech(speech, stages.config.features, folder, str(number), utterance.text, writer, 0)
