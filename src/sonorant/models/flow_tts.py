"""RAD-MMM: any speaker in any accent. A flow makes spectra of what an aligner, or predictors, lay out in time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sonorant.models.aligner import AlignmentEncoder, AlignmentEncoderConfig, AlignmentOutput
from sonorant.models.flow_decoder import FlowDecoder, FlowDecoderConfig, FlowOutput
from sonorant.models.text_encoder import TextEncoder, TextEncoderConfig
from sonorant.nn.predictors import AttributePredictor, AttributePredictorConfig

__all__ = ["Attributes", "FlowTts", "FlowTtsConfig", "PredictedAttributes"]

_LOG_POWER = 2.0  # the logarithm of a power, in those of its magnitude


@dataclass(frozen=True)
class FlowTtsConfig:
    """What can be chosen about :class:`FlowTts`.

    Args:
        speaker_dim: of a speaker's vector.
        accent_dim: of an accent's vector.
        accent_in_decoder: the accent's vector goes into the decoder too, and not by way of the text alone. Where each
            speaker has one accent, it then takes part in the timbre.
        text: the text encoder.
        aligner: which token each frame belongs to.
        decoder: the flow.
        predictors: of durations, f0, energy and voicing.
    """

    speaker_dim: int = 16
    accent_dim: int = 8
    accent_in_decoder: bool = False
    text: TextEncoderConfig = field(default_factory=TextEncoderConfig)
    aligner: AlignmentEncoderConfig = field(default_factory=AlignmentEncoderConfig)
    decoder: FlowDecoderConfig = field(default_factory=FlowDecoderConfig)
    predictors: AttributePredictorConfig = field(default_factory=AttributePredictorConfig)

    def __post_init__(self) -> None:
        if self.aligner.speaker_dim:
            raise ValueError(f"aligner.speaker_dim must be 0; got {self.aligner.speaker_dim}: this aligner knows none")
        for name in ("speaker_dim", "accent_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "FlowTtsConfig":
        """What :func:`dataclasses.asdict` made of a configuration."""
        parts = {
            "text": TextEncoderConfig,
            "aligner": AlignmentEncoderConfig,
            "decoder": FlowDecoderConfig,
            "predictors": AttributePredictorConfig,
        }
        return cls(**{name: parts[name](**value) if name in parts else value for name, value in data.items()})


class Attributes(NamedTuple):
    """What the decoder hears of each frame ``(batch, time)``, beside the text.

    ``f0``, log f0 normalised by the statistics of the corpus, 0 where unvoiced; ``energy``, normalised likewise;
    ``voiced``, 0 or 1.
    """

    f0: Tensor
    energy: Tensor
    voiced: Tensor


class PredictedAttributes(NamedTuple):
    """What is predicted of each frame ``(batch, time)``.

    ``f0`` and ``energy``, normalised by the statistics of a speaker: the melody, whatever the voice it is spoken with;
    ``voiced``, logits.
    """

    f0: Tensor
    energy: Tensor
    voiced: Tensor


class FlowTts(nn.Module):
    r"""Text, speaker and accent to spectra, by a flow from noise.

    .. math:: x = f^{-1}(z;\, A\,h(y, a),\, s,\, f_0,\, e), \qquad z \sim \mathcal{N}(0, \sigma^2)

    where h encodes the tokens y in the accent a, A lays them out in time (in training, the aligner's attention or the
    path through it; else predicted durations), and s is the speaker's vector. The accent changes how tokens are spoken
    and the melody; the timbre is the speaker's alone.

    The predictors of durations, f0, energy and voicing hear the embedded tokens and the vectors detached: what they
    learn changes nothing else. They make out by themselves what the tokens mean to each other. It departs from RAD-MMM,
    whose predictors read the encoded text: this has come to know the sentences that it was trained on, and what is
    predicted from it is nearly right for these and wrong for others.

    Args:
        config: see :class:`FlowTtsConfig`.
        n_mels: of the spectra.
        num_tokens: symbols, padding (0) included.
        num_speakers: with the numbers from 0 on; at least 1.
        num_accents: likewise.

    References:
        Shih et al. 2021, "RAD-TTS: parallel flow-based TTS with robust alignment learning and diverse synthesis";
        Badlani et al. 2023, "RAD-MMM: multilingual multiaccented multispeaker TTS", arXiv 2301.10335.

    Example:
        >>> import torch
        >>> from sonorant.models import FlowDecoderConfig, FlowTts, FlowTtsConfig, TextEncoderConfig
        >>> from sonorant.models.flow_tts import Attributes
        >>> text = TextEncoderConfig(hidden_channels=8, lstm_dim=4)
        >>> decoder = FlowDecoderConfig(num_flows=2, hidden_channels=8, encoder_dim=4)
        >>> config = FlowTtsConfig(text=text, decoder=decoder)
        >>> model = FlowTts(config, n_mels=10, num_tokens=5, num_speakers=2, num_accents=1)
        >>> voice, frames = (torch.tensor([1]), torch.tensor([0])), torch.tensor([6])
        >>> encoded = model.encode(torch.tensor([[1, 3, 1]]), torch.tensor([3]), voice[1])
        >>> attributes = Attributes(*(torch.zeros(1, 6) for _ in range(3)))
        >>> model.sample(encoded.repeat_interleave(2, 1), frames, attributes, *voice).shape
        torch.Size([1, 6, 10])
    """

    def __init__(
        self, config: FlowTtsConfig, n_mels: int, num_tokens: int, num_speakers: int, num_accents: int
    ) -> None:
        super().__init__()
        self.config = config
        text_dim, voice_dim = config.text.text_dim, config.speaker_dim + config.accent_dim
        self.aligner = AlignmentEncoder(config.aligner, n_mels, num_tokens)
        self.encoder = TextEncoder(config.text, num_tokens, config.accent_dim)
        self.speakers = nn.Embedding(num_speakers, config.speaker_dim)
        self.accents = nn.Embedding(num_accents, config.accent_dim)
        voice_in_decoder = config.speaker_dim + config.accent_dim * config.accent_in_decoder
        self.decoder = FlowDecoder(config.decoder, n_mels, text_dim + voice_in_decoder + len(Attributes._fields))
        embedded_dim = config.text.hidden_channels
        self.duration_predictor = AttributePredictor(config.predictors, embedded_dim, voice_dim)
        self.f0_predictor = AttributePredictor(config.predictors, embedded_dim, voice_dim)
        self.energy_predictor = AttributePredictor(config.predictors, embedded_dim, voice_dim)
        self.voiced_predictor = AttributePredictor(config.predictors, embedded_dim, voice_dim)

    @property
    def predictors(self) -> list[AttributePredictor]:
        """Of durations, f0, energy and voicing."""
        return [self.duration_predictor, self.f0_predictor, self.energy_predictor, self.voiced_predictor]

    def encode(
        self,
        tokens: Int[Tensor, "batch token"],
        token_lengths: Int[Tensor, " batch"],
        accents: Int[Tensor, " batch"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch token text"]:
        """The text in an accent, see :class:`~sonorant.models.text_encoder.TextEncoder`; accents are numbers here."""
        encoded: Tensor = self.encoder(tokens, token_lengths, self.accents(accents), seeds)
        return encoded

    def embed(
        self, tokens: Int[Tensor, "batch token"], accents: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch token hidden"]:
        """The tokens in an accent, each by itself, detached: what the predictors read. Accents are numbers."""
        embedded: Tensor = self.encoder.embed(tokens, self.accents(accents))
        return embedded.detach()

    def align(
        self,
        mel: Float[Tensor, "batch time mel"],
        mel_lengths: Int[Tensor, " batch"],
        tokens: Int[Tensor, "batch token"],
        token_lengths: Int[Tensor, " batch"],
        log_prior: Float[Tensor, "batch time token"] | None,
    ) -> AlignmentOutput:
        """Score each token in each frame, see :class:`~sonorant.models.AlignmentEncoder`.

        Args:
            mel: log magnitudes; the aligner is given log powers.
            mel_lengths: ``(batch,)``, frames.
            tokens: ids.
            token_lengths: ``(batch,)``.
            log_prior: made of :meth:`log_powers`.
        """
        output: AlignmentOutput = self.aligner(
            self.log_powers(mel), mel_lengths, tokens, token_lengths, log_prior=log_prior
        )
        return output

    @staticmethod
    def log_powers(mel: Tensor) -> Tensor:
        """Of log magnitudes, what the aligner and its prior take."""
        return _LOG_POWER * mel

    def flow(
        self,
        mel: Float[Tensor, "batch time mel"],
        mel_lengths: Int[Tensor, " batch"],
        text_frames: Float[Tensor, "batch time text"],
        attributes: Attributes,
        speakers: Int[Tensor, " batch"],
        accents: Int[Tensor, " batch"],
        num_flows: int | None = None,
    ) -> FlowOutput:
        """From spectra to noise, with what their likelihood is made of.

        Args:
            mel: ``(batch, time, n_mels)``, log magnitudes.
            mel_lengths: ``(batch,)``, frames.
            text_frames: ``(batch, time, text_dim)``: an alignment times the encoded text.
            attributes: see :class:`Attributes`.
            speakers: ``(batch,)``, numbers.
            accents: ``(batch,)``, numbers.
            num_flows: that are gone through; by default all.
        """
        context = self._context(text_frames, attributes, speakers, accents)
        output: FlowOutput = self.decoder(mel, mel_lengths, context, num_flows)
        return output

    def predict_durations(
        self,
        embedded: Float[Tensor, "batch token hidden"],
        token_lengths: Int[Tensor, " batch"],
        speakers: Int[Tensor, " batch"],
        accents: Int[Tensor, " batch"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch token"]:
        """The logarithm of the frames of each token plus 1; 0 beyond the lengths.

        Args:
            embedded: see :meth:`embed`.
            token_lengths: ``(batch,)``.
            speakers: ``(batch,)``, numbers.
            accents: ``(batch,)``, numbers.
            seeds: ``(batch,)``, of each utterance's dropout in training.
        """
        voice = self._voice(speakers, accents)
        predicted: Tensor = self.duration_predictor(embedded, token_lengths, voice, seeds)
        return predicted.squeeze(2)

    def predict_attributes(
        self,
        embedded_frames: Float[Tensor, "batch time hidden"],
        mel_lengths: Int[Tensor, " batch"],
        speakers: Int[Tensor, " batch"],
        accents: Int[Tensor, " batch"],
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> PredictedAttributes:
        """f0, energy and voicing of each frame, 0 beyond the lengths.

        Args:
            embedded_frames: ``(batch, time, hidden)``: an alignment times what :meth:`embed` gives.
            mel_lengths: ``(batch,)``, frames.
            speakers: ``(batch,)``, numbers.
            accents: ``(batch,)``, numbers.
            seeds: ``(batch,)``, of each utterance's dropout in training.
        """
        voice = self._voice(speakers, accents)
        predictors = self.f0_predictor, self.energy_predictor, self.voiced_predictor
        heard = embedded_frames, mel_lengths, voice, seeds
        return PredictedAttributes(*(predictor(*heard).squeeze(2) for predictor in predictors))

    def sample(
        self,
        text_frames: Float[Tensor, "batch time text"],
        mel_lengths: Int[Tensor, " batch"],
        attributes: Attributes,
        speakers: Int[Tensor, " batch"],
        accents: Int[Tensor, " batch"],
        *,
        temperature: float = 0.667,
        seeds: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch time mel"]:
        """Spectra from noise; arguments as for :meth:`flow`, and those of the decoder's ``sample``."""
        context = self._context(text_frames, attributes, speakers, accents)
        sampled: Tensor = self.decoder.sample(mel_lengths, context, temperature=temperature, seeds=seeds)
        return sampled

    def _context(self, text_frames: Tensor, attributes: Attributes, speakers: Tensor, accents: Tensor) -> Tensor:
        vectors = [self.speakers(speakers)]
        if self.config.accent_in_decoder:
            vectors.append(self.accents(accents))
        voice = torch.cat(vectors, 1).unsqueeze(1).expand(-1, text_frames.shape[1], -1)
        heard = torch.stack(list(attributes), 2).to(text_frames.dtype)
        return torch.cat([text_frames, voice.to(text_frames.dtype), heard], 2)

    def _voice(self, speakers: Tensor, accents: Tensor) -> Tensor:
        return torch.cat([self.speakers(speakers), self.accents(accents)], 1).detach()
