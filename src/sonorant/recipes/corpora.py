"""What all recipes that learn from recordings do with a corpus first."""

from collections.abc import Sequence

from sonorant.data.audio import AudioError
from sonorant.data.check import Requirements, check_corpus, without_faults
from sonorant.data.manifest import Corpus, Utterance
from sonorant.progress import progress_bar

__all__ = ["first_sample_rate", "usable_utterances"]


def first_sample_rate(utterances: Sequence[Utterance]) -> int:
    """The sample rate, in Hz, of the first recording that can be read.

    Raises:
        ValueError: none can.
    """
    for utterance in utterances:
        try:
            return utterance.load_audio(mix_channels=True).sample_rate
        except (AudioError, OSError):
            continue
    raise ValueError("data: none of the training recordings can be read")


def usable_utterances(corpus: Corpus, requirements: Requirements, name: str, *, skip_bad: bool) -> list[Utterance]:
    """The utterances without faults.

    Args:
        corpus: as it was read.
        requirements: of the model.
        name: of the corpus, for the progress bar.
        skip_bad: leave the others out, and say so.

    Raises:
        ValueError: there are faulty ones, and they are not to be left out; all are listed.
    """
    with progress_bar(f"checking {name}", len(corpus.utterances)) as progress:
        faults = corpus.faults + check_corpus(corpus.utterances, requirements, progress=progress)
    return without_faults(corpus.utterances, faults, skip_bad=skip_bad)
