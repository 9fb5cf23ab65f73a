"""tts-prompts: the voice of the Asterisk telephone exchange, from about 500 prompts of one professional speaker. Fifty
sentences are held out, and never trained on.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonorant.data.acoustic import AcousticConfig
from sonorant.data.asterisk import load_asterisk
from sonorant.data.facts import CorpusFacts
from sonorant.data.manifest import Corpus, Utterance
from sonorant.models import AlignmentEncoderConfig, FlowDecoderConfig, FlowTtsConfig, TextEncoderConfig
from sonorant.nn.predictors import AttributePredictorConfig
from sonorant.recipes.spelling import CMUDICT, UnitsConfig
from sonorant.recipes.tts_corpus import TtsDataConfig
from sonorant.recipes.tts_stages import PredictorsConfig, RegressionConfig, TtsTrainingConfig
from sonorant.recipes.tts_training import report, train_tts
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.tasks.training import TrainerConfig
from sonorant.text import Lexicon

__all__ = ["Config", "report", "test_set", "train"]

FACTS = CorpusFacts(
    name="Asterisk's core sounds",
    source="https://www.asterisk.org",
    licence="CC BY-SA 3.0",
    description="Prompts of a telephone exchange, sentences, words and letters, by one professional American speaker.",
    split="50 sentences, which share no five words in a row with any other prompt, are not trained on; of the others a "
    "share chooses the weights.",
    limits="One voice, in the tone of announcements, from about half an hour of recordings.",
)

# that CMUdict lacks
WORDS = Lexicon(
    {
        word: [phones.split()]
        for word, phones in {
            "backtick": "B AE K T IH K",
            "caret": "K AE R AH T",
            "dahdi": "D AA D IY",
            "digium": "D IH JH IY AH M",
            "forevermore": "F ER EH V ER M AO R",
            "ivr": "AY V IY AA R",
            "lowercase": "L OW ER K EY S",
            "mgcp": "EH M JH IY S IY P IY",
            "pbx": "P IY B IY EH K S",
            "prepend": "P R IY P EH N D",
            "prepending": "P R IY P EH N D IH NG",
            "rerecord": "R IY R IH K AO R D",
            "semicolon": "S EH M IY K OW L AH N",
            "touchtone": "T AH CH T OW N",
            "undelete": "AH N D IH L IY T",
            "undeleted": "AH N D IH L IY T IH D",
            "unistim": "Y UW N IH S T IH M",
            "unmute": "AH N M Y UW T",
            "unmuted": "AH N M Y UW T IH D",
            "uppercase": "AH P ER K EY S",
            "waldo's": "W AO L D OW Z",
            "www": "D AH B AH L Y UW D AH B AH L Y UW D AH B AH L Y UW",
            "xray": "EH K S R EY",
        }.items()
    }
)


@dataclass(frozen=True, kw_only=True)
class Config(TtsTrainingConfig):
    """What can be chosen.

    Args:
        data: which recordings are used; prompts with words that the lexicon lacks are left out.
        folder: holds the prompts; by default they are looked for, or apt downloads them.
    """

    folder: str | None = None
    data: TtsDataConfig = field(default_factory=lambda: TtsDataConfig(skip_bad=True, max_duration=35.0))
    units: UnitsConfig = field(default_factory=lambda: UnitsConfig(kind="lexicon", lexicon=CMUDICT))
    features: AcousticConfig = field(
        default_factory=lambda: AcousticConfig(sample_rate=16000, n_fft=1024, win_length=800, hop_length=200)
    )
    model: FlowTtsConfig = field(
        default_factory=lambda: FlowTtsConfig(
            speaker_dim=8,
            accent_dim=8,
            text=TextEncoderConfig(hidden_channels=192, lstm_dim=96, dropout=0.2),
            aligner=AlignmentEncoderConfig(),
            decoder=FlowDecoderConfig(num_flows=8, hidden_channels=160, num_layers=4, encoder_dim=128),
            predictors=AttributePredictorConfig(hidden_channels=192, lstm_dim=96),
        )
    )
    batch_size: int = 4
    regression: RegressionConfig = field(default_factory=lambda: RegressionConfig(max_epochs=14))
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=1e-3))
    predictors: PredictorsConfig = field(
        default_factory=lambda: PredictorsConfig(max_epochs=6, optimizer=OptimizerConfig(learning_rate=2e-3))
    )
    temperature: float = 0.0
    trainer: TrainerConfig = field(
        default_factory=lambda: TrainerConfig(max_epochs=8, precision="auto", checkpoint_every=200)
    )


def train(config: Config, run: Path) -> dict[str, Any]:
    """Train, and write model, metrics and samples into the run directory.

    Returns:
        What ``metrics.json`` holds; nothing in processes other than the first.
    """
    prompts = load_asterisk(sample_rate=config.features.sample_rate, folder=config.folder)
    return train_tts(config, config.data, run, Corpus(prompts.train), recipe="tts-prompts", facts=FACTS, words=WORDS)


def test_set() -> list[Utterance]:
    """The sentences that are never trained on, at 16 kHz."""
    return load_asterisk(sample_rate=16000).test
