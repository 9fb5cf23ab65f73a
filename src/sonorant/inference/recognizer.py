"""Speech to text with a trained CTC model."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy.typing as npt
import torch
from torch import Tensor

from sonorant.data.audio import AudioError, Samples, check_samples
from sonorant.data.facts import CorpusFacts
from sonorant.data.features import Fbank, FbankConfig
from sonorant.data.manifest import Utterance
from sonorant.decoding.ctc import ctc_greedy_decode
from sonorant.decoding.wfst import WfstDecoder
from sonorant.export.model_folder import ModelFolder, ModelFolderError, write_model_folder
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
        recipe: str | None = None,
        corpus: CorpusFacts | None = None,
    ) -> None:
        self.model = model.eval()
        self.fbank = Fbank(features)
        self.symbols = symbols
        self.lexicon = lexicon
        self.arpa = arpa
        self.silence = silence
        self.recipe = recipe
        self.corpus = corpus
        self._word_of = {tuple(symbols.encode(pron)): word for word, prons in lexicon.entries.items() for pron in prons}

    @cached_property
    def _wfst(self) -> WfstDecoder:
        return WfstDecoder(self.symbols, self.lexicon, self.arpa, silence=self.silence)

    def transcribe(
        self,
        audio: str | Path | Utterance | npt.ArrayLike,
        sample_rate: int | None = None,
        *,
        decoder: DecoderName = "wfst",
    ) -> str:
        """The words of one recording.

        Args:
            audio: a file, an utterance of a corpus, or samples ``(samples,)`` in [-1, 1].
            sample_rate: of the samples, in Hz; must be the model's. A file knows its own.
            decoder: ``"wfst"`` (lexicon and language model) or ``"greedy"``.

        Returns:
            Words separated by spaces; empty when nothing was recognised.

        Raises:
            FileNotFoundError: no such file.
            AudioError: a recording that cannot be used (it is named, and the value).
        """
        log_probs = self.log_probs([self.extract(audio, sample_rate)])
        return " ".join(self.decode(log_probs, decoder)[0])

    def extract(self, audio: str | Path | Utterance | npt.ArrayLike, sample_rate: int | None = None) -> Tensor:
        """The features of one recording, float32 ``(frames, n_mels)``; see :meth:`transcribe` for the arguments."""
        needed = self.fbank.config.sample_rate
        if isinstance(audio, str | Path):
            audio = Utterance(str(audio), Path(audio), "")
        if isinstance(audio, Utterance):
            name, samples = str(audio.path), audio.load_audio(needed).samples
        else:
            name, samples = "audio", check_samples(audio, "audio")
            if sample_rate != needed:
                raise AudioError(f"audio: sample_rate is {sample_rate}; the model needs {needed} Hz")
        return self._checked_features(name, samples)

    def num_frames(self, num_samples: int) -> int:
        """Output frames of the model for a recording of so many samples."""
        frames = torch.tensor([self.fbank.num_frames(num_samples)])
        return int(self.model.encoder.output_lengths(frames)[0])

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
        if decoder not in self.DECODERS:
            raise ValueError(f"decoder must be one of {', '.join(self.DECODERS)}; got {decoder!r}")
        if decoder == "wfst":
            rows = zip(log_probs.values, log_probs.lengths.tolist(), strict=True)
            return [self._wfst.decode(row[:length].numpy()) for row, length in rows]
        spans = ctc_greedy_decode(log_probs.values, log_probs.lengths, blank=self.symbols.blank)
        return [self._words([span.token for span in row]) for row in spans]

    def target(self, words: Sequence[str]) -> Tensor:
        """The class ids that a text is trained and scored with, int64 ``(labels,)``."""
        return torch.tensor(self.symbols.encode(self.lexicon.spell(words, self.silence)))

    def save(self, folder: Path) -> None:
        """Write the model folder that :func:`sonorant.load` reads."""
        config: dict[str, Any] = {
            "recipe": self.recipe,
            "model": asdict(self.model.config),
            "features": asdict(self.fbank.config),
            "silence": self.silence,
            "corpus": None if self.corpus is None else asdict(self.corpus),
        }
        write_model_folder(folder, self.KIND, config, self.model.state_dict(), self.texts())

    def texts(self) -> dict[str, str]:
        """The text files of the model folder, content by name."""
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
            corpus = CorpusFacts(**config["corpus"]) if config.get("corpus") else None
            model = TdnnCtc(TdnnCtcConfig(**config["model"]), features.n_mels, len(symbols))
            model.load_state_dict(weights, strict=True)
        except (KeyError, TypeError, OSError, ValueError, RuntimeError) as error:
            raise ModelFolderError(f"{path}: damaged or incomplete: {error}") from error
        silence, recipe = config.get("silence"), config.get("recipe")
        return cls(model, features, symbols, lexicon, arpa, silence=silence, recipe=recipe, corpus=corpus)

    def _checked_features(self, name: str, samples: Samples) -> Tensor:
        features = self.fbank(samples)
        needed = self.model.encoder.shrink + 1
        if len(features) < needed:
            raise AudioError(f"{name}: too short: {len(features)} frames, and the model needs at least {needed}")
        return features

    def _words(self, tokens: list[int]) -> list[str]:
        """Cut at silences and read the longest known spellings from the left; what spells nothing is passed over."""
        silence = None if self.silence is None else self.symbols.encode([self.silence])[0]
        longest = max(map(len, self._word_of))
        words, start = [], 0
        while start < len(tokens):
            for end in range(min(len(tokens), start + longest), start, -1):
                word = self._word_of.get(tuple(tokens[start:end]))
                if word is not None and silence not in tokens[start:end]:
                    words.append(word)
                    start = end - 1
                    break
            start += 1
        return words
