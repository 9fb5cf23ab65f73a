"""Complete models: a configuration and a Module each."""

from sonorant.models.aligner import AlignmentEncoder, AlignmentEncoderConfig
from sonorant.models.alignment_prior import AlignmentPrior
from sonorant.models.flow_decoder import FlowDecoder, FlowDecoderConfig, FlowOutput
from sonorant.models.flow_tts import FlowTts, FlowTtsConfig
from sonorant.models.g2p import G2p, G2pConfig
from sonorant.models.g2p_ensemble import G2pEnsemble
from sonorant.models.tdnn_ctc import TdnnCtc, TdnnCtcConfig
from sonorant.models.text_encoder import TextEncoder, TextEncoderConfig

__all__ = [
    "AlignmentEncoder",
    "AlignmentEncoderConfig",
    "AlignmentPrior",
    "FlowDecoder",
    "FlowDecoderConfig",
    "FlowOutput",
    "FlowTts",
    "FlowTtsConfig",
    "G2p",
    "G2pConfig",
    "G2pEnsemble",
    "TdnnCtc",
    "TdnnCtcConfig",
    "TextEncoder",
    "TextEncoderConfig",
]
