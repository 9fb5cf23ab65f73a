"""tts: from recordings and their texts, of one speaker or of many with several accents, to a voice that says any text:
a flow, an aligner, and predictors of rhythm, melody and stress (RAD-MMM). Nothing has to be aligned beforehand.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sonorant.data.corpus import scan_corpus
from sonorant.recipes.tts_corpus import TtsDataConfig
from sonorant.recipes.tts_stages import TtsTrainingConfig
from sonorant.recipes.tts_training import report, train_tts

__all__ = ["Config", "DataConfig", "report", "test_set", "train"]


@dataclass(frozen=True, kw_only=True)
class DataConfig(TtsDataConfig):
    """The recordings.

    Args:
        train: a corpus to train on, of any format that ``sonorant data check`` takes, such as the folder of LJSpeech.
        dev: a corpus to choose the best weights with; if there is none, a part of ``train`` is held out.
    """

    train: str
    dev: str | None = None


@dataclass(frozen=True, kw_only=True)
class Config(TtsTrainingConfig):
    """What can be chosen.

    Args:
        data: the recordings.
    """

    data: DataConfig


def train(config: Config, run: Path) -> dict[str, Any]:
    """Train, and write model, metrics and samples into the run directory.

    Returns:
        What ``metrics.json`` holds; nothing in processes other than the first.
    """
    dev = None if config.data.dev is None else scan_corpus(config.data.dev)
    return train_tts(config, config.data, run, scan_corpus(config.data.train), dev, recipe="tts")


def test_set() -> NoReturn:
    """There is none that all models of this recipe share.

    Raises:
        ValueError: always.
    """
    raise ValueError("a voice has no test set of its own; give --data TABLE")
