"""Speech from text, with a trained model."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sonorant.data.acoustic import AcousticConfig
from sonorant.data.facts import CorpusFacts
from sonorant.data.frontend import RecordingConfig
from sonorant.data.speaker_statistics import AcousticStatistics
from sonorant.export.model_folder import ModelFolder, ModelFolderError, write_model_folder
from sonorant.inference.rendering import Part, RenderedPart, SpeechRenderer
from sonorant.inference.speech import Sentence, Speech
from sonorant.inference.speech_assembly import SpeechAssembler, SpokenPart, Vocoder
from sonorant.inference.vocoder import GriffinLim
from sonorant.models import AlignmentPrior
from sonorant.models.flow_tts import FlowTts, FlowTtsConfig
from sonorant.text import Speller, is_punctuation, split_text

__all__ = ["Synthesizer"]


class Synthesizer:
    """A speech model with all that is needed to speak with it.

    Args:
        model: tokens, speaker and accent to features.
        features: of the recordings that it was trained on.
        speller: words to tokens.
        statistics: of the corpus and of each speaker.
        speakers: their names, in the order of their numbers; one without a name is ``""``.
        accents: likewise.
        speaker_accents: each speaker's own accent.
        prior: of the alignment, in training.
        recordings: how recordings were brought into the model's form.
        predictors_trained: whether durations, melody and stress can be predicted.
        temperature: that it speaks with, unless it is told another.
        vocoder: from log mel magnitudes and f0 to samples; Griffin-Lim by default.
        recipe: the recipe that trained the model, or None.
        corpus: what it was trained on, or None where that is not known.

    Example:
        >>> import sonorant  # doctest: +SKIP
        >>> sonorant.load("runs/tts").synthesize("seven three", speaker="theo").write("out.wav")  # doctest: +SKIP
    """

    KIND = "synthesizer"

    def __init__(
        self,
        model: FlowTts,
        features: AcousticConfig,
        speller: Speller,
        statistics: AcousticStatistics,
        *,
        speakers: Sequence[str],
        accents: Sequence[str],
        speaker_accents: Mapping[str, str],
        prior: AlignmentPrior | None = None,
        recordings: RecordingConfig | None = None,
        predictors_trained: bool = True,
        temperature: float = 0.667,
        vocoder: Vocoder | None = None,
        recipe: str | None = None,
        corpus: CorpusFacts | None = None,
    ) -> None:
        self.model = model.eval()
        self.features = features
        self.speller = speller
        self.statistics = statistics
        self.speakers = list(speakers)
        self.accents = list(accents)
        self.speaker_accents = dict(speaker_accents)
        self.prior = prior or AlignmentPrior()
        self.recordings = recordings or RecordingConfig()
        self.predictors_trained = predictors_trained
        self.temperature = temperature
        self.vocoder = vocoder or GriffinLim(features)
        self.recipe = recipe
        self.corpus = corpus
        for speaker in self.speakers:
            statistics.of(speaker)
            if speaker_accents.get(speaker) not in self.accents:
                raise ValueError(
                    f"speaker_accents: {speaker!r} has {speaker_accents.get(speaker)!r}, of {self.accents}"
                )

    def synthesize(
        self,
        text: str,
        *,
        speaker: str | None = None,
        accent: str | None = None,
        duration_speaker: str | None = None,
        f0_speaker: str | None = None,
        energy_speaker: str | None = None,
        pace: float = 1.0,
        pitch_shift: float = 0.0,
        temperature: float | None = None,
        seed: int = 0,
    ) -> Speech:
        """Speak a text; the arguments are those of :class:`~sonorant.inference.speech.Sentence`.

        Raises:
            ValueError: as of :meth:`synthesize_all`, or a value out of its range.
        """
        sentence = Sentence(
            text, speaker, accent, duration_speaker, f0_speaker, energy_speaker, pace, pitch_shift, temperature, seed
        )
        return self.synthesize_all([sentence])[0]

    def synthesize_all(self, sentences: Sequence[Sentence], *, batch_size: int = 16) -> list[Speech]:
        """Speak several texts, in batches of passages of similar length; the batch changes nothing.

        Args:
            sentences: the texts, by whom they are spoken, and how.
            batch_size: passages of a batch.

        Raises:
            ValueError: a speaker or an accent that is not known (those known are listed), words that cannot be spelled
                (all of them named), a text in which nothing is spoken, or a model without trained predictors.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {batch_size}")
        prepared = [self.prepare(sentence) for sentence in sentences]
        parts = [part for some in prepared for part, _ in some]
        renderer = SpeechRenderer(self.model, self.features, self.statistics.corpus)
        rendered: dict[int, RenderedPart] = {}
        for batch in _batches(parts, batch_size):
            rendered |= zip(batch, renderer([parts[index] for index in batch]), strict=True)
        results = iter([rendered[index] for index in range(len(parts))])
        assemble = SpeechAssembler(self.features, self.recordings, self.speller.symbols, self.vocoder)
        return [assemble([SpokenPart(part, next(results), pause) for part, pause in some]) for some in prepared]

    def prepare(self, sentence: Sentence) -> list[tuple[Part, float]]:
        """The passages of a text as numbers, each with the pause after it in seconds.

        Raises:
            ValueError: as of :meth:`synthesize_all`.
        """
        self.check_predictors()
        speaker = self._speaker("speaker", sentence.speaker)
        accent = self.speaker_accents[speaker] if sentence.accent is None else sentence.accent
        if accent not in self.accents:
            raise ValueError(f"accent: {accent!r} is not known; known are {_listed(self.accents)}")
        whole = Part(
            tokens=[],
            speaker=self.speakers.index(speaker),
            accent=self.accents.index(accent),
            duration_speaker=self._number("duration_speaker", sentence.duration_speaker, speaker),
            f0_speaker=self._number("f0_speaker", sentence.f0_speaker, speaker),
            energy_speaker=self._number("energy_speaker", sentence.energy_speaker, speaker),
            statistics=self.statistics.of(speaker),
            pace=sentence.pace,
            pitch_shift=sentence.pitch_shift,
            temperature=self.temperature if sentence.temperature is None else sentence.temperature,
            seed=sentence.seed,
        )
        passages = split_text(sentence.text)
        self.speller.spell([word for passage in passages for word in passage.text.split(" ")])  # all of it, or nothing
        parts = []
        for index, (text, pause) in enumerate(passages):
            words = text.split(" ")
            if not all(is_punctuation(word) for word in words):
                tokens = self.speller.tokens(self.speller.spell(words))
                parts.append((whole._replace(tokens=tokens, seed=_seed(sentence.seed, index)), pause / sentence.pace))
        return parts

    def check_predictors(self) -> None:
        """Refuse to speak with what was never trained.

        Raises:
            ValueError: the model has no trained predictors.
        """
        if not self.predictors_trained:
            raise ValueError(
                "the model's predictors of durations, f0 and energy were not trained, so that it cannot speak; train "
                "its predictors, the last stage of its recipe"
            )

    def save(self, folder: Path) -> None:
        """Write the model folder that :func:`sonorant.load` reads."""
        config: dict[str, Any] = {
            "recipe": self.recipe,
            "model": asdict(self.model.config),
            "features": asdict(self.features),
            "recordings": asdict(self.recordings),
            "prior": asdict(self.prior),
            "boundary": self.speller.boundary,
            "speakers": self.speakers,
            "accents": self.accents,
            "speaker_accents": self.speaker_accents,
            "statistics": self.statistics.to_json(),
            "predictors_trained": self.predictors_trained,
            "temperature": self.temperature,
            "corpus": None if self.corpus is None else asdict(self.corpus),
        }
        write_model_folder(folder, self.KIND, config, self.model.state_dict(), self.files())

    def files(self) -> dict[str, str | bytes]:
        """The other files of the model folder, content by name."""
        return self.speller.files()

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> "Synthesizer":
        """Rebuild a synthesizer from the contents of its folder.

        Raises:
            ModelFolderError: a part is missing or does not fit the others.
        """
        path, config, weights = folder
        try:
            speller = Speller.read(path, config["boundary"])
            features, speakers, accents = AcousticConfig(**config["features"]), config["speakers"], config["accents"]
            model = FlowTts(
                FlowTtsConfig.from_json(config["model"]),
                features.n_mels,
                len(speller.symbols),
                len(speakers),
                len(accents),
            )
            model.load_state_dict(weights, strict=True)
            return cls(
                model,
                features,
                speller,
                AcousticStatistics.from_json(config["statistics"]),
                speakers=speakers,
                accents=accents,
                speaker_accents=config["speaker_accents"],
                prior=AlignmentPrior(**config["prior"]),
                recordings=RecordingConfig(**config["recordings"]),
                predictors_trained=bool(config["predictors_trained"]),
                temperature=float(config["temperature"]),
                recipe=config.get("recipe"),
                corpus=CorpusFacts(**config["corpus"]) if config.get("corpus") else None,
            )
        except (KeyError, TypeError, AttributeError, OSError, ValueError, RuntimeError) as error:
            raise ModelFolderError(f"{path}: damaged or incomplete: {error}") from error

    def _speaker(self, label: str, name: str | None) -> str:
        if name is None and len(self.speakers) == 1:
            return self.speakers[0]
        if name is None or name not in self.speakers:
            given = "none was given" if name is None else f"{name!r} is not known"
            raise ValueError(f"{label}: {given}; known are {_listed(self.speakers)}")
        return name

    def _number(self, label: str, name: str | None, default: str) -> int:
        return self.speakers.index(default if name is None else self._speaker(label, name))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name or repr(name) for name in names)


def _seed(seed: int, passage: int) -> int:
    """Of the noise of a passage; that of another text's passage of the same number and seed is the same."""
    return int(np.random.SeedSequence((seed, passage)).generate_state(1, np.uint64)[0] >> 1)


def _batches(parts: Sequence[Part], batch_size: int) -> list[list[int]]:
    """The places of parts that are rendered together: of one temperature, and of similar length."""
    batches: list[list[int]] = []
    for temperature in dict.fromkeys(part.temperature for part in parts):
        alike = [index for index, part in enumerate(parts) if part.temperature == temperature]
        alike.sort(key=lambda index: len(parts[index].tokens))
        batches += [alike[start : start + batch_size] for start in range(0, len(alike), batch_size)]
    return batches
