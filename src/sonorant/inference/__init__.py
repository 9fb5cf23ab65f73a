"""Trained models in use."""

from sonorant.inference.aligner import Aligner
from sonorant.inference.alignment import AlignedToken, AlignedWord, Alignment
from sonorant.inference.exporting import export_model
from sonorant.inference.loading import load
from sonorant.inference.pronouncer import Pronouncer, Pronunciation
from sonorant.inference.recognizer import Recognizer
from sonorant.inference.transcript import RecognizedWord, Transcript

__all__ = [
    "AlignedToken",
    "AlignedWord",
    "Aligner",
    "Alignment",
    "Pronouncer",
    "Pronunciation",
    "RecognizedWord",
    "Recognizer",
    "Transcript",
    "export_model",
    "load",
]
