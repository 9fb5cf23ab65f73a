"""A synthesizer that was never trained: enough to test everything but what it sounds like."""

import torch

from sonorant.data.acoustic import AcousticConfig
from sonorant.data.frontend import RecordingConfig
from sonorant.data.speaker_statistics import AcousticStatistics, SpeakerStatistics
from sonorant.inference import Synthesizer
from sonorant.models import AlignmentEncoderConfig, FlowDecoderConfig
from sonorant.models.flow_tts import FlowTts, FlowTtsConfig
from sonorant.models.text_encoder import TextEncoderConfig
from sonorant.nn.predictors import AttributePredictorConfig
from sonorant.text import Lexicon, Speller

ACCENTS = {"ann": "north", "ben": "south", "cem": "south"}
FEATURES = AcousticConfig(
    sample_rate=8000, n_fft=256, win_length=200, hop_length=80, n_mels=16, f0_floor=80, f0_ceiling=400
)
STATISTICS = AcousticStatistics(
    SpeakerStatistics(900, 5.0, 0.3, -3.0, 0.8),
    {
        "ann": SpeakerStatistics(300, 5.3, 0.1, -2.5, 0.5),
        "ben": SpeakerStatistics(300, 4.8, 0.1, -3.5, 0.5),
        "cem": SpeakerStatistics(300, 4.9, 0.2, -3.0, 0.7),
    },
)
CONFIG = FlowTtsConfig(
    speaker_dim=4,
    accent_dim=3,
    text=TextEncoderConfig(hidden_channels=8, lstm_dim=6),
    aligner=AlignmentEncoderConfig(hidden_channels=8, attention_dim=4),
    decoder=FlowDecoderConfig(num_flows=3, hidden_channels=8, num_layers=2, encoder_dim=6),
    predictors=AttributePredictorConfig(hidden_channels=8, lstm_dim=6),
)


def untrained_synthesizer(
    lexicon: Lexicon | None = None, *, edge_seconds: float = 0.0, predictors_trained: bool = True
) -> Synthesizer:
    """Of about 60 ms a letter, with every second frame or so voiced."""
    words = ["seven", "three", "nine", "zero"]
    speller = Speller.of_letters(words) if lexicon is None else Speller.of_lexicon(lexicon)
    torch.manual_seed(0)
    model = FlowTts(CONFIG, FEATURES.n_mels, len(speller.symbols), len(ACCENTS), len(set(ACCENTS.values())))
    model.decoder.fit_whitening([torch.randn(400, FEATURES.n_mels) - 7])
    with torch.no_grad():
        for parameter in model.parameters():  # the flow starts as if it heard nothing
            parameter += 0.1 * torch.randn_like(parameter)
        for part in (model.encoder, *model.predictors):  # and tokens as if they were all the same
            for parameter in part.parameters():
                parameter *= 3
        for predictor in model.predictors:
            predictor.output.bias.zero_()
        model.duration_predictor.output.weight /= 4
        model.duration_predictor.output.bias += 2.1
    return Synthesizer(
        model,
        FEATURES,
        speller,
        STATISTICS,
        speakers=list(ACCENTS),
        accents=sorted(set(ACCENTS.values())),
        speaker_accents=ACCENTS,
        recordings=RecordingConfig(edge_seconds=edge_seconds),
        predictors_trained=predictors_trained,
        recipe="tts",
    )
