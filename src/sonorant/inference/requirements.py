"""What a recognizer asks of recordings and transcripts."""

from collections.abc import Sequence

from sonorant.data.check import Requirements
from sonorant.inference.recognizer import Recognizer

__all__ = ["requirements"]


def requirements(
    recognizer: Recognizer,
    speeds: Sequence[float] = (1.0,),
    *,
    any_words: bool = False,
    min_duration: float = 0.0,
    max_duration: float = 30.0,
) -> Requirements:
    """What a corpus must fulfil to be trained on at these speeds, or evaluated on.

    Args:
        recognizer: says what can be spelled, and how many frames there are.
        speeds: of which the fastest leaves the fewest frames.
        any_words: for evaluation words that cannot be spelled will do; they count as errors.
        min_duration: of an utterance, in seconds.
        max_duration: of an utterance, in seconds.
    """
    return recognizer.frontend.requirements(
        lambda words: [] if any_words else recognizer.target(words).tolist(),
        num_frames=lambda samples: recognizer.num_frames(int(samples / max(speeds))),
        min_duration=min_duration,
        max_duration=max_duration,
    )
