"""Everything that is wrong with a corpus, in one pass over it."""

import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sonorant.data.audio import Audio, AudioError, Samples
from sonorant.data.manifest import Fault, Utterance, list_faults
from sonorant.data.parallel import map_in_order

__all__ = ["Requirements", "check_corpus", "without_faults"]

logger = logging.getLogger(__name__)

SILENT = 2 / 32768  # two steps of 16 bits: what dither leaves of silence
FULL_SCALE = 127 / 128  # the largest sample of 8 bits
CLIPPED_SHARE = 0.001
LARGEST_PEAK = 10.0  # decoders of compressed audio overshoot 1 a little; samples scaled as integers reach thousands
_JOINERS = "\u200c\u200d"  # which Persian and the scripts of India need


@dataclass(frozen=True)
class Requirements:
    """What a corpus is needed for. Whatever is None is not checked.

    Args:
        sample_rate: the rate of the recordings, in Hz.
        allow_resampling: recordings at other rates are usable.
        mix_channels: recordings with several channels are usable.
        min_duration: of an utterance, in seconds.
        max_duration: of an utterance, in seconds; a longer one is not read any further.
        encode: from words to label ids; raises ValueError where it cannot, and the message becomes the fault.
        num_frames: output frames of the model for a number of samples at a rate in Hz; with ``encode`` it finds
            transcripts that are too long for their recordings.
    """

    sample_rate: int | None = None
    allow_resampling: bool = False
    mix_channels: bool = False
    min_duration: float = 0.0
    max_duration: float = 30.0
    encode: Callable[[Sequence[str]], Sequence[int]] | None = None
    num_frames: Callable[[int, int], int] | None = None


def check_corpus(
    utterances: Sequence[Utterance],
    requirements: Requirements,
    *,
    jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[Fault]:
    """Find the faults of all utterances, in their order. Samples are held for a few utterances at a time.

    Args:
        utterances: the corpus.
        requirements: what it is needed for.
        jobs: threads that read recordings; None takes one for each core.
        progress: called with the number of utterances done, after each of them.
    """
    shared = _shared_stretches(utterances)
    faults: list[Fault] = []
    found = map_in_order(lambda utterance: _check(utterance, requirements), utterances, jobs)
    for index, of_utterance in enumerate(found):
        faults += of_utterance + shared.get(index, [])
        if progress is not None:
            progress(index + 1)
    return faults


def without_faults(utterances: Sequence[Utterance], faults: Sequence[Fault], *, skip_bad: bool) -> list[Utterance]:
    """The utterances that can be used; warnings count for nothing.

    Args:
        utterances: the corpus.
        faults: of its table and of its utterances.
        skip_bad: leave out what is faulty, and log it; it is refused otherwise.

    Raises:
        ValueError: faults, and no ``skip_bad``; or no utterance without them.
    """
    errors = [fault for fault in faults if fault.is_error]
    bad = {(fault.source, fault.id) for fault in errors}
    good = [utterance for utterance in utterances if (utterance.source, utterance.id) not in bad]
    if errors and not (skip_bad and good):
        refused = "cannot be used" if good else "cannot be used, which leaves none"
        raise ValueError(f"utterances that {refused} ({len(bad)}):{list_faults(errors)}")
    if errors:
        logger.warning("utterances left out: %d; used: %d:%s", len(bad), len(good), list_faults(errors))
    return good


def _shared_stretches(utterances: Sequence[Utterance]) -> dict[int, list[Fault]]:
    """Faults, by index, of utterances whose audio is another one's too: no two texts can both be right."""
    sharing: dict[object, list[int]] = {}
    for index, utterance in enumerate(utterances):
        stretch = (utterance.path, utterance.start, utterance.duration, utterance.channel)
        sharing.setdefault(stretch, []).append(index)
    faults: dict[int, list[Fault]] = {}
    for indices in sharing.values():
        for index in indices if len(indices) > 1 else ():
            this, first = utterances[index], utterances[indices[0]]
            other = next((utterances[i] for i in indices if utterances[i].text != this.text), None)
            if other is not None:
                message = f"the audio is that of {other.id} ({other.source}), and their texts differ"
                faults[index] = [_fault(this, "contradiction", message)]
            elif this is not first:
                message = f"the audio and the text are those of {first.id} ({first.source})"
                faults[index] = [_fault(this, "repeated audio", message)]
    return faults


def _fault(utterance: Utterance, kind: str, message: str) -> Fault:
    return Fault(utterance.source, utterance.id, kind, f"{utterance.id}: {message}")


def _check(utterance: Utterance, requirements: Requirements) -> list[Fault]:
    faults = _text_faults(utterance)
    labels = None
    if requirements.encode is not None and utterance.words:
        try:
            labels = requirements.encode(utterance.words)
        except ValueError as error:
            faults.append(_fault(utterance, "vocabulary", str(error)))
    audio = _load(utterance, requirements, faults)
    if audio is not None:
        faults += _signal_faults(utterance, audio.samples)
        faults += _length_faults(utterance, audio, labels, requirements)
    return faults


def _load(utterance: Utterance, requirements: Requirements, faults: list[Fault]) -> Audio | None:
    """Its samples, where there are any: a wrong rate, say, is noted, and does not hide what else is wrong."""
    sample_rate = None if requirements.allow_resampling else requirements.sample_rate
    mix_channels = requirements.mix_channels
    limit = requirements.max_duration
    while True:
        try:
            return utterance.load_audio(sample_rate, mix_channels=mix_channels, max_duration=limit)
        except AudioError as error:
            kind, message = error.kind, str(error)
        except FileNotFoundError as error:
            kind, message = "missing", str(error)
        except OSError as error:
            kind, message = "unreadable", f"{utterance.path}: {error.strerror}"
        faults.append(Fault(utterance.source, utterance.id, kind, message))
        if kind == "channels":
            mix_channels = True
        elif kind == "sample rate":
            sample_rate = None
        else:
            return None


def _text_faults(utterance: Utterance) -> list[Fault]:
    text = utterance.text
    if not utterance.words:
        return [_fault(utterance, "empty text", "the transcript is empty")]
    broken = [sign for sign in text if sign == "\ufffd" or unicodedata.category(sign) in ("Cc", "Cs")]
    if broken:
        return [_fault(utterance, "broken text", f"the transcript holds {_names(broken)}")]
    oddities = []
    if "  " in text:
        oddities.append("several spaces in a row")
    odd = [sign for sign in text if _is_odd(sign)]
    if odd:
        oddities.append(_names(odd))
    if not any(sign.isalnum() for sign in text):
        oddities.append("neither letters nor digits")
    return [_fault(utterance, "odd text", f"the transcript holds {' and '.join(oddities)}")] if oddities else []


def _is_odd(sign: str) -> bool:
    """White space other than a space, and what is not seen or has no meaning of its own."""
    if sign.isspace():
        return sign != " "
    return unicodedata.category(sign) in ("Cf", "Co", "Cn") and sign not in _JOINERS


def _names(signs: Sequence[str]) -> str:
    distinct = dict.fromkeys(signs)
    return ", ".join(f"U+{ord(sign):04X} {unicodedata.name(sign, '')}".strip() for sign in distinct)


def _signal_faults(utterance: Utterance, samples: Samples) -> list[Fault]:
    low, high = float(samples.min()), float(samples.max())
    peak = max(-low, high)
    if high - low <= SILENT:
        return [_fault(utterance, "silence", f"holds nothing but silence (samples from {low:g} to {high:g})")]
    if peak > LARGEST_PEAK:
        return [_fault(utterance, "samples", f"samples reach {peak:g}; [-1, 1] is expected")]
    at_full_scale = np.abs(samples) >= FULL_SCALE
    # one sample at full scale is a well levelled recording; neighbours are a wave that was cut off
    share = float(np.mean(at_full_scale[1:] & at_full_scale[:-1]))
    if share > CLIPPED_SHARE:
        return [_fault(utterance, "clipping", f"{share:.2%} of the samples are clipped")]
    return []


def _length_faults(
    utterance: Utterance, audio: Audio, labels: Sequence[int] | None, requirements: Requirements
) -> list[Fault]:
    num_samples, rate = len(audio.samples), audio.sample_rate
    seconds = num_samples / rate
    if seconds < requirements.min_duration:
        message = f"lasts {seconds:.2f} s; at least {requirements.min_duration:g} s are needed"
        return [_fault(utterance, "duration", message)]
    if labels is None or requirements.num_frames is None:
        return []
    if requirements.sample_rate is not None and rate != requirements.sample_rate:
        num_samples, rate = round(seconds * requirements.sample_rate), requirements.sample_rate
    available = requirements.num_frames(num_samples, rate)
    required = max(len(labels) + sum(a == b for a, b in pairwise(labels)), 1)  # a blank parts two equal labels
    if available >= required:
        return []
    message = f"{seconds:.2f} s give {available} frames, and its {len(labels)} labels need at least {required}"
    return [_fault(utterance, "too short for its text", message)]
