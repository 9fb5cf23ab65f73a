"""Speech to text with a trained CTC model."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from sonorant.data.audio import AudioError, Samples
from sonorant.data.facts import CorpusFacts
from sonorant.data.features import Fbank, FbankConfig
from sonorant.data.frontend import Frontend, RecordingConfig
from sonorant.decoding.arpa import uniform_unigram
from sonorant.decoding.ctc import TokenSpan, WordSpan, ctc_greedy_decode
from sonorant.decoding.spelling import join_words, read_words, symbol_confidence
from sonorant.decoding.wfst import WfstDecoder
from sonorant.export.model_folder import ModelFolder, ModelFolderError, write_model_folder
from sonorant.inference.recordings import Recording, load_recording
from sonorant.inference.transcript import RecognizedWord, Transcript
from sonorant.lengths import Padded, pad_sequences
from sonorant.models import TdnnCtc, TdnnCtcConfig
from sonorant.text import Lexicon, SymbolTable

__all__ = ["DecoderName", "Recognizer"]

DecoderName = Literal["greedy", "wfst"]


class Recognizer:
    """A CTC model with all that is needed to turn recordings into words.

    Args:
        model: features to log probabilities.
        features: how the features are computed.
        symbols: the model's classes.
        lexicon: the words.
        arpa: the language model of the WFST decoder.
        silence: the symbol between words, or None.
        open_vocabulary: words are spelled with their characters, so that the greedy decoder can read any; the WFST
            decoder knows those of the lexicon.
        recordings: how recordings are brought into the model's form.
        recipe: the recipe that trained the model, or None.
        corpus: what it was trained on, or None where that is not known.

    Example:
        >>> import sonorant  # doctest: +SKIP
        >>> sonorant.load("runs/yesno").transcribe("recording.wav")  # doctest: +SKIP
        'YES NO NO'
    """

    KIND = "recognizer"
    DECODERS: tuple[DecoderName, ...] = get_args(DecoderName)

    def __init__(
        self,
        model: TdnnCtc,
        features: FbankConfig,
        symbols: SymbolTable,
        lexicon: Lexicon,
        arpa: str,
        *,
        silence: str | None = None,
        open_vocabulary: bool = False,
        recordings: RecordingConfig | None = None,
        recipe: str | None = None,
        corpus: CorpusFacts | None = None,
    ) -> None:
        self.model = model.eval()
        self.frontend = Frontend(features, recordings)
        self.open_vocabulary = open_vocabulary
        self.symbols = symbols
        self.lexicon = lexicon
        self.arpa = arpa
        self.silence = silence
        self.recipe = recipe
        self.corpus = corpus
        self._word_of = {tuple(symbols.encode(pron)): word for word, prons in lexicon.entries.items() for pron in prons}

    @property
    def fbank(self) -> Fbank:
        """The filterbanks."""
        return self.frontend.extractor

    @cached_property
    def _wfst(self) -> WfstDecoder:
        return WfstDecoder(self.symbols, self.lexicon, self.arpa, silence=self.silence)

    def transcribe(
        self,
        audio: Recording,
        sample_rate: int | None = None,
        *,
        decoder: DecoderName = "wfst",
    ) -> str:
        """The words of one recording.

        Args:
            audio: a file, an utterance of a corpus, or samples ``(samples,)`` in [-1, 1].
            sample_rate: of the samples, in Hz; must be the model's, unless the model was trained on resampled
                recordings. A file knows its own.
            decoder: ``"wfst"`` (lexicon and language model) or ``"greedy"``.

        Returns:
            Words separated by spaces; empty when nothing was recognised.

        Raises:
            FileNotFoundError: no such file.
            AudioError: a recording that cannot be used (it is named, and the value).
        """
        log_probs = self.log_probs([self.extract(audio, sample_rate)])
        return " ".join(self.decode(log_probs, decoder)[0])

    def recognize(
        self,
        audio: Recording,
        sample_rate: int | None = None,
        *,
        decoder: DecoderName = "wfst",
    ) -> Transcript:
        """The words of one recording with their times and confidences.

        The confidence of the greedy decoder is the probability of the word's least probable symbol, averaged over the
        symbol's frames. That of the WFST decoder is this times the word's posterior probability in its place, against
        all competing words (see :meth:`sonorant.decoding.wfst.WfstDecoder.decode_words`).

        Args:
            audio: as in :meth:`transcribe`.
            sample_rate: as in :meth:`transcribe`.
            decoder: as in :meth:`transcribe`.

        Returns:
            ``Transcript``: the text of :meth:`transcribe`, the words, and the recording's duration in seconds.

        Raises:
            FileNotFoundError: no such file.
            AudioError: a recording that cannot be used (it is named, and the value).
        """
        name, samples = load_recording(self.frontend, audio, sample_rate)
        log_probs = self.log_probs([self._checked_features(name, samples)])
        duration = len(samples) / self.fbank.config.sample_rate
        words = [self._timed(span, duration) for span in self.decode_words(log_probs, decoder)[0]]
        return Transcript(" ".join(word.word for word in words), words, duration)

    def with_language(
        self, *, lexicon: str | Path | None = None, language_model: str | Path | None = None
    ) -> "Recognizer":
        """The same model with other words or another language model.

        Args:
            lexicon: a file of ``word symbol symbol ...`` lines, over the model's symbols; None keeps the model's words.
            language_model: a file in ARPA format; None keeps the model's, or with another lexicon takes every word to
                be as likely.

        Raises:
            FileNotFoundError: no such file.
            ValueError: a file that cannot be used (it is named): not UTF-8, unknown symbols, not a language model, or
                one without any word of the lexicon.
        """
        words = self.lexicon if lexicon is None else Lexicon.read(Path(lexicon))
        for word, prons in words.entries.items() if lexicon is not None else ():
            for pron in prons:
                try:
                    self.symbols.encode(pron)
                except ValueError as error:
                    raise ValueError(f"{lexicon}: word {word!r}: {error}") from error
        if language_model is not None:
            arpa = _read_arpa(Path(language_model))
        else:
            arpa = self.arpa if lexicon is None else uniform_unigram(words)
        other = Recognizer(
            self.model,
            self.fbank.config,
            self.symbols,
            words,
            arpa,
            silence=self.silence,
            open_vocabulary=self.open_vocabulary,
            recordings=self.frontend.recordings,
            recipe=self.recipe,
            corpus=self.corpus,
        )
        try:
            _ = other._wfst  # so that files that cannot be used are named here
        except ValueError as error:
            raise ValueError(f"{language_model or lexicon}: {error}") from error
        return other

    def extract(self, audio: Recording, sample_rate: int | None = None) -> Tensor:
        """The features of one recording, float32 ``(frames, n_mels)``; see :meth:`transcribe` for the arguments."""
        return self._checked_features(*load_recording(self.frontend, audio, sample_rate))

    def num_frames(self, num_samples: int) -> int:
        """Output frames of the model for a recording of so many samples."""
        frames = torch.tensor([self.frontend.num_frames(num_samples)])
        return int(self.model.output_lengths(frames)[0])

    def log_probs(self, features: Sequence[Tensor]) -> Padded:
        """Log probabilities of a batch of utterances.

        Args:
            features: for each utterance ``(frames, n_mels)``.

        Returns:
            ``Padded``: ``(batch, frames, classes)`` and lengths.
        """
        with torch.inference_mode():
            output: Padded = self.model(*pad_sequences(features))
        return output

    def decode(self, log_probs: Padded, decoder: DecoderName = "wfst") -> list[list[str]]:
        """The words of each utterance of a batch of log probabilities."""
        if decoder == "wfst":
            return [self._wfst.decode(row.numpy()) for row in _rows(log_probs)]
        return [[word.word for word in words] for words in self.decode_words(log_probs, decoder)]

    def decode_words(self, log_probs: Padded, decoder: DecoderName = "wfst") -> list[list[WordSpan]]:
        """The words of each utterance of a batch of log probabilities, with output frames and confidences."""
        if decoder not in self.DECODERS:
            raise ValueError(f"decoder must be one of {', '.join(self.DECODERS)}; got {decoder!r}")
        if decoder == "wfst":
            return [self._wfst.decode_words(row.numpy()) for row in _rows(log_probs)]
        silence = None if self.silence is None else self.symbols.encode([self.silence])[0]
        all_spans = ctc_greedy_decode(log_probs.values, log_probs.lengths, blank=self.symbols.blank)
        result = []
        for row, spans in zip(_rows(log_probs), all_spans, strict=True):
            words = [
                WordSpan(word, symbols[0].start, symbols[-1].end, symbol_confidence(row.numpy(), symbols))
                for word, symbols in self._read_words(spans, silence)
            ]
            result.append(words)
        return result

    def target(self, words: Sequence[str]) -> Tensor:
        """The class ids that a text is trained and scored with, int64 ``(labels,)``."""
        spelling = Lexicon({word: [list(word)] for word in words}) if self.open_vocabulary else self.lexicon
        return torch.tensor(self.symbols.encode(spelling.spell(words, self.silence)))

    def save(self, folder: Path) -> None:
        """Write the model folder that :func:`sonorant.load` reads."""
        config: dict[str, Any] = {
            "recipe": self.recipe,
            "model": asdict(self.model.config),
            "features": asdict(self.fbank.config),
            "silence": self.silence,
            "open_vocabulary": self.open_vocabulary,
            "recordings": asdict(self.frontend.recordings),
            "corpus": None if self.corpus is None else asdict(self.corpus),
        }
        write_model_folder(folder, self.KIND, config, self.model.state_dict(), self.files())

    def files(self) -> dict[str, str | bytes]:
        """The other files of the model folder, content by name."""
        return {"tokens.txt": self.symbols.to_text(), "lexicon.txt": self.lexicon.to_text(), "lm.arpa": self.arpa}

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> "Recognizer":
        """Rebuild a recognizer from the contents of its folder.

        Raises:
            ModelFolderError: a part is missing or does not fit the others.
        """
        path, config, weights = folder
        try:
            symbols, lexicon = SymbolTable.read(path / "tokens.txt"), Lexicon.read(path / "lexicon.txt")
            arpa = (path / "lm.arpa").read_text(encoding="utf-8")
            features = FbankConfig(**config["features"])
            recordings = RecordingConfig(**config.get("recordings", {}))
            corpus = CorpusFacts(**config["corpus"]) if config.get("corpus") else None
            model = TdnnCtc(TdnnCtcConfig(**config["model"]), features.n_mels, len(symbols))
            model.load_state_dict(weights, strict=True)
        except (KeyError, TypeError, OSError, ValueError, RuntimeError) as error:
            raise ModelFolderError(f"{path}: damaged or incomplete: {error}") from error
        return cls(
            model,
            features,
            symbols,
            lexicon,
            arpa,
            silence=config.get("silence"),
            open_vocabulary=bool(config.get("open_vocabulary")),
            recordings=recordings,
            recipe=config.get("recipe"),
            corpus=corpus,
        )

    def _read_words(self, spans: list[TokenSpan], silence: int | None) -> list[tuple[str, list[TokenSpan]]]:
        if self.open_vocabulary:
            return join_words(spans, self.symbols.symbols, silence)
        return read_words(spans, self._word_of, silence)

    def _timed(self, span: WordSpan, duration: float) -> RecognizedWord:
        """An output frame is about the input frame in the middle of those that it sees; edges are not counted."""
        shift = self.fbank.config.frame_shift_ms / 1000
        edge = self.frontend.recordings.edge_seconds
        start, end = ((frame + self.model.first_center) * shift - edge for frame in (span.start, span.end))
        # a word that was emitted on the edge is put on the recording's first or last frame
        start = min(max(start, 0.0), max(duration - shift, 0.0))
        end = min(max(end, start + shift), duration)
        return RecognizedWord(span.word, start, end, span.confidence)

    def _checked_features(self, name: str, samples: Samples) -> Tensor:
        features = self.frontend(samples)
        needed = self.model.min_frames
        if len(features) < needed:
            raise AudioError(f"{name}: too short: {len(features)} frames, and the model needs at least {needed}")
        return features


def _rows(log_probs: Padded) -> Iterator[Tensor]:
    for row, length in zip(log_probs.values, log_probs.lengths.tolist(), strict=True):
        yield row[:length]


def _read_arpa(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        return unicodedata.normalize("NFC", path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 (byte {error.start})") from error
