"""Where the words of a text are in its recording, with a trained model."""

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sonorant.data.audio import AudioError, Samples
from sonorant.data.check import SILENT, Requirements
from sonorant.data.facts import CorpusFacts
from sonorant.data.features import Fbank, FbankConfig
from sonorant.data.frontend import Frontend, RecordingConfig
from sonorant.data.manifest import Utterance
from sonorant.export.model_folder import ModelFolder, ModelFolderError, write_model_folder
from sonorant.inference.alignment import AlignedToken, AlignedWord, Alignment
from sonorant.inference.alignment_search import AlignmentPath, AlignmentSearch, AlignmentTask
from sonorant.inference.recordings import Recording, load_recording
from sonorant.inference.suspects import Typical
from sonorant.models import AlignmentEncoder, AlignmentEncoderConfig, AlignmentPrior
from sonorant.text import Lexicon, Speller

__all__ = ["Aligner"]


class Aligner:
    """An alignment model with all that is needed to place a text in time.

    Args:
        model: frames and tokens to scores.
        features: how the features are computed.
        speller: words to tokens.
        prior: of the scores, in training and in use.
        usual: what alignments of the training corpus are like, or None.
        speakers: the names of those that the model knows, in the order of their numbers from 1 on.
        recordings: how recordings are brought into the model's form.
        recipe: the recipe that trained the model, or None.
        corpus: what it was trained on, or None where that is not known.

    Example:
        >>> import sonorant  # doctest: +SKIP
        >>> sonorant.load("runs/aligner").align("recording.wav", "seven nine").words  # doctest: +SKIP
        [AlignedWord(word='seven', start=0.11, end=0.52, tokens=[...]), ...]
    """

    KIND = "aligner"

    def __init__(
        self,
        model: AlignmentEncoder,
        features: FbankConfig,
        speller: Speller,
        *,
        prior: AlignmentPrior | None = None,
        usual: Typical | None = None,
        speakers: Sequence[str] = (),
        recordings: RecordingConfig | None = None,
        recipe: str | None = None,
        corpus: CorpusFacts | None = None,
    ) -> None:
        self.model = model.eval()
        self.frontend = Frontend(features, recordings)
        self.speller = speller
        self.prior = prior or AlignmentPrior()
        self.usual = usual
        self.speakers = list(speakers)
        self.recipe = recipe
        self.corpus = corpus

    @property
    def fbank(self) -> Fbank:
        """The filterbanks."""
        return self.frontend.extractor

    def align(
        self, audio: Recording, text: str, sample_rate: int | None = None, *, speaker: str | None = None
    ) -> Alignment:
        """Find the words of a text in its recording.

        Args:
            audio: a file, an utterance of a corpus (of which the text does not count), or samples ``(samples,)`` in
                [-1, 1].
            text: what is said in it, words separated by spaces.
            sample_rate: of the samples, in Hz; must be the model's, unless the model was trained on resampled
                recordings. A file knows its own.
            speaker: who speaks, if the model knows speakers; None is not known.

        Returns:
            ``Alignment``: words and tokens with their times, and how well the text fits.

        Raises:
            FileNotFoundError: no such file.
            AudioError: a recording that cannot be used (it is named, and the value), or too short for the text.
            ValueError: words that cannot be spelled (all of them named).
        """
        name, samples = load_recording(self.frontend, audio, sample_rate)
        task = self._prepare(name, samples, [word for word in text.split(" ") if word], speaker)
        return self._find([task])[0]

    def align_all(self, utterances: Sequence[Utterance], *, batch_size: int = 16) -> list[Alignment]:
        """Align the utterances of a corpus, in batches of similar length; the batch changes nothing.

        Raises:
            ValueError: an utterance that cannot be aligned, as in :meth:`align`; :meth:`requirements` and
                :func:`~sonorant.data.check.check_corpus` find all of them.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {batch_size}")
        tasks = [
            self._prepare(*load_recording(self.frontend, utterance), utterance.words, utterance.speaker)
            for utterance in utterances
        ]
        return self._find(tasks, batch_size)

    def with_words(self, lexicon: Lexicon) -> "Aligner":
        """The same model with further words, see :meth:`sonorant.text.Speller.with_words`.

        Raises:
            ValueError: the model spells words with their letters; or symbols that it does not know.
        """
        other = copy(self)
        other.speller = self.speller.with_words(lexicon)
        return other

    def requirements(self, *, min_duration: float = 0.0, max_duration: float = 30.0) -> Requirements:
        """What a corpus must fulfil to be trained on, or aligned.

        Args:
            min_duration: of an utterance, in seconds.
            max_duration: of an utterance, in seconds.
        """
        return self.frontend.requirements(
            lambda words: self.speller.tokens(self.speller.spell(words)),
            min_duration=min_duration,
            max_duration=max_duration,
        )

    def speaker_number(self, speaker: str | None) -> int:
        """The number of a speaker; 0 if the model does not know them."""
        return self.speakers.index(speaker) + 1 if speaker in self.speakers else 0

    def save(self, folder: Path) -> None:
        """Write the model folder that :func:`sonorant.load` reads."""
        config: dict[str, Any] = {
            "recipe": self.recipe,
            "model": asdict(self.model.config),
            "features": asdict(self.fbank.config),
            "recordings": asdict(self.frontend.recordings),
            "prior": asdict(self.prior),
            "usual": None if self.usual is None else self.usual._asdict(),
            "boundary": self.speller.boundary,
            "speakers": self.speakers,
            "corpus": None if self.corpus is None else asdict(self.corpus),
        }
        write_model_folder(folder, self.KIND, config, self.model.state_dict(), self.files())

    def files(self) -> dict[str, str | bytes]:
        """The other files of the model folder, content by name."""
        return self.speller.files()

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> "Aligner":
        """Rebuild an aligner from the contents of its folder.

        Raises:
            ModelFolderError: a part is missing or does not fit the others.
        """
        path, config, weights = folder
        try:
            speller = Speller.read(path, config["boundary"])
            features, speakers = FbankConfig(**config["features"]), list(config["speakers"])
            model = AlignmentEncoder(
                AlignmentEncoderConfig(**config["model"]), features.n_mels, len(speller.symbols), len(speakers)
            )
            model.load_state_dict(weights, strict=True)
            prior = AlignmentPrior(**config["prior"])
            usual = Typical.from_json(config["usual"]) if config.get("usual") else None
            recordings = RecordingConfig(**config["recordings"])
            corpus = CorpusFacts(**config["corpus"]) if config.get("corpus") else None
        except (KeyError, TypeError, OSError, ValueError, RuntimeError) as error:
            raise ModelFolderError(f"{path}: damaged or incomplete: {error}") from error
        return cls(
            model,
            features,
            speller,
            prior=prior,
            usual=usual,
            speakers=speakers,
            recordings=recordings,
            recipe=config.get("recipe"),
            corpus=corpus,
        )

    def _prepare(self, name: str, samples: Samples, words: Sequence[str], speaker: str | None) -> AlignmentTask:
        if float(samples.max()) - float(samples.min()) <= SILENT:
            raise AudioError(f"{name}: holds nothing but silence", "silence")
        try:
            spelled = self.speller.spell(words)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        tokens = self.speller.tokens(spelled)
        features = self.frontend(samples)
        duration = len(samples) / self.fbank.config.sample_rate
        if len(features) < len(tokens):
            given = f"{duration:.2f} s give {len(features)} frames, and its text has {len(tokens)} tokens"
            raise AudioError(f"{name}: too short for its text: {given}", "too short for its text")
        return AlignmentTask(features, duration, spelled, tokens, self.speaker_number(speaker), {})

    def _find(self, tasks: Sequence[AlignmentTask], batch_size: int = 16) -> list[Alignment]:
        search = AlignmentSearch(self.model, self.prior, self.speller, batch_size)
        return [self._result(task, path) for task, path in search(tasks)]

    def _result(self, task: AlignmentTask, path: AlignmentPath) -> Alignment:
        names = self.speller.symbols.decode(task.tokens)
        shift = self.fbank.config.frame_shift_ms / 1000
        edge = self.frontend.recordings.edge_seconds
        ends = [min(max(end * shift - edge, 0.0), task.duration) for end in path.durations.cumsum(0).tolist()]
        ends[-1] = task.duration
        tokens = [
            AlignedToken(name, start, end, score)
            for name, start, end, score in zip(names, [0.0, *ends], ends, path.scores.tolist(), strict=False)
        ]
        words, position = [], 1
        for index, word in enumerate(task.words):
            if word.pronunciations:
                size = len(word.pronunciations[task.chosen.get(index, 0)])
                own = tokens[position : position + size]
                words.append(AlignedWord(word.word, own[0].start, own[-1].end, own))
                position += size + 1
        return Alignment(words, tokens, task.duration, path.score)
