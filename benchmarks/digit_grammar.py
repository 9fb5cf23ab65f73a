"""A judge who has heard none of the speakers: pocketsphinx with its American English model and a grammar of ten words.

    pip install pocketsphinx  # holds the model
    python -m benchmarks.digit_grammar  # how it does on the test recordings of fsdd

What is said, one of the digits, is all that it is asked. Recordings are brought to 16 kHz and get edges of low noise.
"""

from typing import Any

from benchmarks.shares import Share, table
from sonorant.data.audio import Samples, resample
from sonorant.data.frontend import pad_edges
from sonorant.data.fsdd import ACCENTS, DIGITS, load_fsdd

__all__ = ["DigitGrammar"]

SAMPLE_RATE = 16000
GRAMMAR = f"#JSGF V1.0; grammar digits; public <digit> = {' | '.join(DIGITS)};"
EDGE_SECONDS = 0.3  # the decoder wants some silence around a word


class DigitGrammar:
    """The decoder. What it heard before changes nothing.

    Raises:
        ModuleNotFoundError: pocketsphinx is not installed.
    """

    def __init__(self) -> None:
        try:
            from pocketsphinx import Decoder
        except ModuleNotFoundError as error:
            message = "this judge is pocketsphinx, which is no part of sonorant: pip install pocketsphinx"
            raise ModuleNotFoundError(message, name=error.name) from error
        self._decoder: Any = Decoder(lm=None, loglevel="FATAL")
        self._decoder.add_jsgf_string("digits", GRAMMAR)
        self._decoder.activate_search("digits")

    def recognize(self, samples: Samples, sample_rate: int) -> str | None:
        """The digit, or None where the decoder found none.

        Args:
            samples: float32 ``(samples,)`` in [-1, 1].
            sample_rate: in Hz.
        """
        padded = pad_edges(samples, sample_rate, round(EDGE_SECONDS * sample_rate))
        wide = resample(padded, sample_rate, SAMPLE_RATE)
        pcm = (wide * 32768).round().clip(-32768, 32767).astype("<i2").tobytes()
        self._decoder.reinit_feat()  # which forgets the noise of the recordings before
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        return found.hypstr or None if found else None


def main() -> None:
    judge, shares = DigitGrammar(), {speaker: Share() for speaker in ACCENTS}
    for utterance in load_fsdd().test:
        shares[str(utterance.speaker)] += judge.recognize(*utterance.load_audio()) == utterance.text
    print(table("speaker", {"digits right, pocketsphinx": shares}))


if __name__ == "__main__":
    main()
