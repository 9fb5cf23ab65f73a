"""Trained models in use."""

from sonorant.inference.aligner import Aligner
from sonorant.inference.alignment import AlignedToken, AlignedWord, Alignment
from sonorant.inference.exporting import export_model
from sonorant.inference.loading import load
from sonorant.inference.pronouncer import Pronouncer, Pronunciation
from sonorant.inference.recognizer import Recognizer
from sonorant.inference.speech import Sentence, Speech, SpokenToken
from sonorant.inference.synthesizer import Synthesizer
from sonorant.inference.transcript import RecognizedWord, Transcript
from sonorant.inference.vocoder import GriffinLim

__all__ = [
    "AlignedToken",
    "AlignedWord",
    "Aligner",
    "Alignment",
    "GriffinLim",
    "Pronouncer",
    "Pronunciation",
    "RecognizedWord",
    "Recognizer",
    "Sentence",
    "Speech",
    "SpokenToken",
    "Synthesizer",
    "Transcript",
    "export_model",
    "load",
]
