"""What a model makes of a few sentences, to look at and to listen to: in a folder, and in TensorBoard."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from matplotlib.image import imread
from torch.utils.tensorboard import SummaryWriter

from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.audio import write_audio
from sonorant.data.speaker_statistics import SpeakerStatistics
from sonorant.data.tts import TtsBatch
from sonorant.functional import monotonic_alignment_search
from sonorant.inference.speech import Speech
from sonorant.inference.vocoder import GriffinLim
from sonorant.models.flow_tts import Attributes
from sonorant.plots import plot_acoustic, plot_attention
from sonorant.tasks.tts_task import TtsTask

__all__ = ["CopySamples", "Watched", "write_speech"]


class Watched(NamedTuple):
    """Sentences that are watched: their batch, texts, and the names of their tokens."""

    batch: TtsBatch
    texts: list[str]
    tokens: list[list[str]]


class CopySamples(Callback):
    """Speaks sentences again, with the times, the melody and the stress of their recordings, while a flow is trained.

    After some epochs it writes for each sentence the alignment ``N-alignment.png``, the spectrum ``N-copy.png`` and the
    sound ``N-copy.wav``, and all of them to TensorBoard.

    Args:
        watched: the sentences.
        features: of the recordings.
        corpus: the statistics that f0 and energy are normalised by.
        folder: where to.
        every: epochs from one time to the next; the last epoch always counts.
    """

    def __init__(
        self, watched: Watched, features: AcousticConfig, corpus: SpeakerStatistics, folder: Path, every: int
    ) -> None:
        self._watched = watched
        self._features = features
        self._corpus = corpus
        self._folder = folder
        self._every = every
        self._vocoder = GriffinLim(features)

    def on_validation_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Write, if it is time."""
        done = trainer.current_epoch + 1
        is_time = done % self._every == 0 or done == trainer.max_epochs
        if is_time and trainer.is_global_zero and not trainer.sanity_checking and isinstance(module, TtsTask):
            logger = trainer.logger
            writer = logger.experiment if isinstance(logger, TensorBoardLogger) else None
            self._write(module, writer, trainer.global_step)

    @torch.no_grad()
    def _write(self, task: TtsTask, writer: SummaryWriter | None, step: int) -> None:
        watched, model = self._watched, task.model
        batch: TtsBatch = task.transfer_batch_to_device(watched.batch, task.device, 0)
        aligned = task.align(batch)
        hard = monotonic_alignment_search(aligned.log_attention, batch.mel_lengths, batch.token_lengths)
        text_frames = hard @ model.encode(batch.tokens, batch.token_lengths, batch.accents)
        attributes = Attributes(batch.f0, batch.energy, batch.voiced)
        seeds = torch.arange(len(batch.ids))
        mel = model.sample(text_frames, batch.mel_lengths, attributes, batch.speakers, batch.accents, seeds=seeds)
        for index, (text, tokens) in enumerate(zip(watched.texts, watched.tokens, strict=True)):
            number, frames = index + 1, int(batch.mel_lengths[index])
            picture = _path(self._folder, f"{number}-alignment.png")
            sizes = frames, len(tokens)
            plot_attention(aligned.attention[index], hard[index], path=picture, lengths=sizes, tokens=tokens)
            _show(writer, f"alignment/{number}", picture, step)
            is_voiced = watched.batch.voiced[index, :frames] > 0
            spoken = AcousticFeatures(
                mel[index, :frames].float().cpu(),
                self._corpus.denormalize_energy(watched.batch.energy[index, :frames]),
                self._corpus.denormalize_f0(watched.batch.f0[index, :frames], is_voiced),
                is_voiced,
            )
            samples = self._vocoder(spoken.log_mel, spoken.f0)
            speech = Speech(samples, self._features.sample_rate, spoken, [])
            write_speech(speech, self._features, self._folder, f"{number}-copy", text, writer, step)


def write_speech(
    speech: Speech,
    features: AcousticConfig,
    folder: Path,
    name: str,
    text: str,
    writer: SummaryWriter | None,
    step: int,
) -> None:
    """Write a sound and the picture of its spectrum, and both to TensorBoard.

    Args:
        speech: with its features.
        features: how they are made.
        folder: gets ``NAME.wav`` and ``NAME.png``.
        name: of the files and in TensorBoard.
        text: what is said.
        writer: of TensorBoard; None leaves that out.
        step: of training.
    """
    picture = _path(folder, f"{name}.png")
    plot_acoustic(speech.features, features, path=picture, title=text)
    write_audio(_path(folder, f"{name}.wav"), speech.samples, speech.sample_rate)
    _show(writer, f"mel/{name}", picture, step)
    if writer is not None:
        sound = torch.from_numpy(np.asarray(speech.samples)).unsqueeze(0)
        writer.add_audio(f"speech/{name}", sound, step, sample_rate=speech.sample_rate)


def _path(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def _show(writer: SummaryWriter | None, name: str, picture: Path, step: int) -> None:
    if writer is not None:
        writer.add_image(name, imread(picture)[..., :3], step, dataformats="HWC")
