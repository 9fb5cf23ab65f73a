"""tts-digits: six voices that say English digits, in four accents, from the training part of the Free Spoken Digit
Dataset. It trains in minutes on a laptop.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonorant.data.acoustic import AcousticConfig
from sonorant.data.facts import CorpusFacts
from sonorant.data.fsdd import SAMPLE_RATE, load_fsdd
from sonorant.data.manifest import Corpus, Utterance
from sonorant.models import AlignmentEncoderConfig, FlowDecoderConfig, FlowTtsConfig, TextEncoderConfig
from sonorant.nn.predictors import AttributePredictorConfig
from sonorant.recipes.spelling import CMUDICT, UnitsConfig
from sonorant.recipes.tts_corpus import TtsDataConfig
from sonorant.recipes.tts_stages import PredictorsConfig, RegressionConfig, TtsTrainingConfig
from sonorant.recipes.tts_training import report, train_tts
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.training import TrainerConfig

__all__ = ["Config", "report", "test_set", "train"]

FACTS = CorpusFacts(
    name="Free Spoken Digit Dataset",
    source="https://github.com/Jakobovski/free-spoken-digit-dataset",
    licence="CC BY-SA 4.0",
    description="Six speakers, two of them German, two American, one Greek and one of Belgium, say each English digit "
    "50 times, at 8 kHz.",
    split="Recordings 0 to 4 of each digit by each speaker, the official test set, are not trained on; of the others a "
    "share of each speaker's chooses the weights.",
    limits="It has heard ten words, each by itself, from microphones of different quality. An accent is that of one or "
    "two speakers: what is the accent's cannot be told from what is theirs.",
)


@dataclass(frozen=True, kw_only=True)
class Config(TtsTrainingConfig):
    """What can be chosen.

    Args:
        data: which recordings are used.
    """

    data: TtsDataConfig = field(default_factory=TtsDataConfig)
    units: UnitsConfig = field(default_factory=lambda: UnitsConfig(kind="lexicon", lexicon=CMUDICT))
    features: AcousticConfig = field(
        default_factory=lambda: AcousticConfig(
            sample_rate=SAMPLE_RATE, n_fft=512, win_length=320, hop_length=80, n_mels=64
        )
    )
    model: FlowTtsConfig = field(
        default_factory=lambda: FlowTtsConfig(
            speaker_dim=32,
            accent_dim=8,
            text=TextEncoderConfig(hidden_channels=96, lstm_dim=48, dropout=0.2),
            aligner=AlignmentEncoderConfig(),
            decoder=FlowDecoderConfig(num_flows=8, hidden_channels=96, num_layers=3, encoder_dim=64),
            predictors=AttributePredictorConfig(hidden_channels=96, lstm_dim=48),
        )
    )
    regression: RegressionConfig = field(default_factory=lambda: RegressionConfig(max_epochs=8))
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=2e-3))
    predictors: PredictorsConfig = field(
        default_factory=lambda: PredictorsConfig(max_epochs=10, optimizer=OptimizerConfig(learning_rate=2e-3))
    )
    trainer: TrainerConfig = field(
        default_factory=lambda: TrainerConfig(max_epochs=12, precision="auto", checkpoint_every=200)
    )


def train(config: Config, run: Path) -> dict[str, Any]:
    """Train, and write model, metrics and samples into the run directory.

    Returns:
        What ``metrics.json`` holds; nothing in processes other than the first.
    """
    return train_tts(config, config.data, run, Corpus(load_fsdd().train), recipe="tts-digits", facts=FACTS)


def test_set() -> list[Utterance]:
    """The official test part of the corpus."""
    return load_fsdd().test
