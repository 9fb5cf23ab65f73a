"""What speech synthesis learns from: recordings that fit their texts, who speaks in them, and with which accent."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sonorant.data.acoustic import AcousticConfig, AcousticExtractor
from sonorant.data.check import Requirements
from sonorant.data.frontend import Frontend, RecordingConfig
from sonorant.data.manifest import Corpus, Fault, Utterance
from sonorant.data.splitting import hold_out
from sonorant.recipes.corpora import usable_utterances
from sonorant.recipes.spelling import UnitsConfig, make_speller, refuse_missing_words, with_used_symbols
from sonorant.text import Lexicon, Speller

__all__ = ["TtsCorpus", "TtsDataConfig", "prepare_corpus"]

MOST_DEV = 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TtsDataConfig:
    """Which recordings are used.

    Args:
        dev_share: of the training recordings of each speaker, held out to choose the best weights with, where no dev
            set is given, but at most 500; 0 holds out nothing.
        skip_bad: leave faulty utterances out; a corpus with any is refused otherwise.
        min_duration: of an utterance, in seconds.
        max_duration: of an utterance, in seconds.
        cache: keep features in the user's cache; they stay in memory otherwise.
    """

    dev_share: float = 0.05
    skip_bad: bool = False
    min_duration: float = 0.0
    max_duration: float = 30.0
    cache: bool = True


class TtsCorpus(NamedTuple):
    """What is learned from.

    ``speakers`` and ``accents`` in the order of their numbers; those of utterances that name none are ``""``.
    ``speaker_accents`` is the accent that each speaker has most often.
    """

    train: list[Utterance]
    dev: list[Utterance]
    speller: Speller
    speakers: list[str]
    accents: list[str]
    speaker_accents: dict[str, str]

    def tokens(self, utterance: Utterance) -> list[int]:
        """The ids of a text's tokens."""
        return self.speller.tokens(self.speller.spell(utterance.words))

    def voice(self, utterance: Utterance) -> tuple[int, int]:
        """The numbers of speaker and accent."""
        return self.speakers.index(utterance.speaker or ""), self.accents.index(utterance.accent or "")


def prepare_corpus(
    data: TtsDataConfig,
    units: UnitsConfig,
    features: AcousticConfig,
    recordings: RecordingConfig,
    group_size: int,
    train: Corpus,
    dev: Corpus | None = None,
    words: Lexicon | None = None,
) -> TtsCorpus:
    """Check all recordings and texts, and find out what the model has to know.

    Args:
        data: which recordings are used.
        units: what words are spelled with.
        features: of the model.
        recordings: how they are brought into the model's form.
        group_size: frames that an utterance must have at least.
        train: to train on.
        dev: to choose weights with; None holds a part of ``train`` out.
        words: beside those of the lexicon, if there is one.

    Raises:
        ValueError: faults, all of them listed, if they are not to be left out; words that the lexicon lacks.
    """
    everything = [*train.utterances, *(dev.utterances if dev else [])]
    speller = make_speller(units, everything, words)
    if not data.skip_bad:
        refuse_missing_words(speller, everything)
    frontend = Frontend(features, recordings)

    def usable(corpus: Corpus, name: str, speller: Speller) -> list[Utterance]:
        needed = _requirements(data, frontend, speller, group_size)
        return usable_utterances(corpus, needed, name, skip_bad=data.skip_bad)

    utterances = usable(train, "train", speller)
    held_out: list[Utterance] = []
    if dev is None:
        utterances, held_out = hold_out(utterances, data.dev_share, MOST_DEV)
        utterances, held_out = _without_strangers(utterances, held_out, speller)
    speller = with_used_symbols(speller, utterances)
    corpus = TtsCorpus(utterances, held_out, speller, *_voices(utterances))
    if dev is not None:
        known = Corpus(dev.utterances, [*dev.faults, *_strangers(corpus, dev.utterances)])
        corpus = corpus._replace(dev=usable(known, "dev", speller))
    _announce(corpus)
    return corpus


def _requirements(
    data: TtsDataConfig, frontend: Frontend[AcousticExtractor], speller: Speller, group_size: int
) -> Requirements:
    def num_frames(samples: int) -> int:
        frames = frontend.num_frames(samples)
        return frames if frames >= group_size else 0

    return frontend.requirements(
        lambda words: speller.tokens(speller.spell(words)),
        num_frames=num_frames,
        min_duration=data.min_duration,
        max_duration=data.max_duration,
    )


def _voices(utterances: Sequence[Utterance]) -> tuple[list[str], list[str], dict[str, str]]:
    pairs = Counter((utterance.speaker or "", utterance.accent or "") for utterance in utterances)
    speakers = sorted({speaker for speaker, _ in pairs})
    # of equally frequent ones the first by name
    ordered = sorted(pairs, key=lambda pair: (pairs[pair], pair), reverse=True)
    own = {speaker: next(accent for name, accent in ordered if name == speaker) for speaker in speakers}
    return speakers, sorted({accent for _, accent in pairs}), own


def _without_strangers(
    train: list[Utterance], held_out: list[Utterance], speller: Speller
) -> tuple[list[Utterance], list[Utterance]]:
    """Whoever, and whatever sound, was only in the part that was held out, is trained on after all."""
    of_each: list[Callable[[Utterance], set[object]]] = [
        lambda utterance: {utterance.speaker or ""},
        lambda utterance: {utterance.accent or ""},
        lambda utterance: set(speller.tokens(speller.spell(utterance.words))),
    ]
    for knows in of_each:
        train, held_out = _move(train, held_out, knows)
    return train, held_out


def _move(
    train: list[Utterance], held_out: list[Utterance], knows: Callable[[Utterance], set[object]]
) -> tuple[list[Utterance], list[Utterance]]:
    known = {thing for utterance in train for thing in knows(utterance)}
    train, kept = list(train), []
    for utterance in held_out:
        if knows(utterance) <= known:
            kept.append(utterance)
        else:
            train.append(utterance)
            known |= knows(utterance)
    return train, kept


def _strangers(corpus: TtsCorpus, utterances: Sequence[Utterance]) -> list[Fault]:
    faults = []
    for utterance in utterances:
        for kind, name, known in (
            ("speaker", utterance.speaker, corpus.speakers),
            ("accent", utterance.accent, corpus.accents),
        ):
            if (name or "") not in known:
                listed = ", ".join(map(repr, known))
                message = f"{utterance.id}: the {kind} {name or ''!r} is not in the training set, which has {listed}"
                faults.append(Fault(utterance.source, utterance.id, kind, message))
    return faults


def _announce(corpus: TtsCorpus) -> None:
    counts = Counter(utterance.speaker or "" for utterance in corpus.train)
    rare = [speaker for speaker in corpus.speakers if counts[speaker] == 1]
    if rare:
        logger.warning(
            "speakers with a single training recording, of whose voice little will be learned: %s",
            ", ".join(map(repr, rare)),
        )
