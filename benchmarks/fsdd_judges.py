"""Judges of synthesized digits that have heard real speech alone: what is said, and who says it.

    python -m benchmarks.fsdd_judges [--judges DIR]  # trains those that are not in DIR, and shows how good they are

Two small networks, trained on the train part of fsdd. What they hear is the spectrum down to 35 dB below its loudest
bin: level changes nothing, and background below that is not heard. So that they do not go by tricks of the recordings
they are trained with disturbances: other tempo, edges of silence, noise, other microphones.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.shares import Share, table
from sonorant.data.acoustic import AcousticConfig, AcousticFeatures
from sonorant.data.audio import Samples, change_speed
from sonorant.data.features import Fbank, FbankConfig
from sonorant.data.frontend import pad_edges
from sonorant.data.fsdd import ACCENTS, DIGITS, SAMPLE_RATE, load_fsdd
from sonorant.data.manifest import Utterance
from sonorant.functional import subtract_floor
from sonorant.inference.vocoder import GriffinLim
from sonorant.lengths import pad_sequences, sequence_mask
from sonorant.nn import Tdnn
from sonorant.recipes.tts_digits import Config

__all__ = ["Judge", "JudgeConfig", "Judges", "load_judges", "resynthesize"]

_SCALE = 4.0  # nats, about the deviation of speech
_LONGEST_EDGE = 0.2  # seconds


@dataclass(frozen=True)
class JudgeConfig:
    """What can be chosen; whoever changes how they are trained in any other way raises ``revision``.

    Args:
        dynamic_range: log energies count from a floor so many nats below the loudest.
        noise: the standard deviation of what training adds to every log energy, in nats.
        channel_noise: of what it adds to every mel bin of a recording.
        variants: copies of a recording, itself among them.
        speeds: how far their tempo and pitch are from the recording's, at most.
        snr: from how many to how many dB the noise lies below the recording.
    """

    n_mels: int = 40
    hidden_channels: int = 64
    output_dim: int = 64
    dropout: float = 0.3
    dynamic_range: float = 8.0
    noise: float = 1.0
    channel_noise: float = 0.5
    variants: int = 4
    speeds: float = 0.05
    snr: tuple[float, float] = (15.0, 45.0)
    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 3e-3
    seed: int = 0
    revision: int = 1


class ClipClassifier(nn.Module):
    """Log energies of a clip to class logits: a TDNN whose outputs are averaged, and their largest taken."""

    def __init__(self, config: JudgeConfig, num_classes: int) -> None:
        super().__init__()
        self.config = config
        self.encoder = Tdnn(config.n_mels, config.output_dim, config.hidden_channels)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(2 * config.output_dim, num_classes)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """``(batch, time, mels)`` to ``(batch, classes)``."""
        features = subtract_floor(features, lengths, self.config.dynamic_range)
        if self.training:
            channel = self.config.channel_noise * torch.randn_like(features[:, :1])
            features = features + channel + self.config.noise * torch.randn_like(features)
        features = torch.where(sequence_mask(lengths, features.shape[1]).unsqueeze(2), features, 0.0)
        edge = self.encoder.shrink // 2
        x, lengths = self.encoder(nn.functional.pad(features, (0, 0, edge, edge)) / _SCALE, lengths + 2 * edge)
        x = x.relu()  # 0 in padding
        pooled = torch.cat([x.sum(1) / lengths.unsqueeze(1), x.amax(1)], 1)
        logits: Tensor = self.output(self.dropout(pooled))
        return logits


class Judge:
    """A trained network, and the names of its classes."""

    def __init__(self, network: ClipClassifier, names: Sequence[str]) -> None:
        self.network = network.eval()
        self.names = list(names)
        self._fbank = _fbank(network.config)

    def __call__(self, clips: Sequence[Samples]) -> list[str]:
        """The most probable class of each clip, float32 ``(samples,)`` at 8 kHz."""
        found: list[str] = []
        with torch.inference_mode():
            for start in range(0, len(clips), 64):
                batch = pad_sequences([self._fbank(clip) for clip in clips[start : start + 64]])
                found += [self.names[index] for index in self.network(*batch).argmax(1).tolist()]
        return found


class Judges(NamedTuple):
    """``digit`` says what is said, ``speaker`` who says it."""

    digit: Judge
    speaker: Judge


def load_judges(folder: Path | None, config: JudgeConfig | None = None) -> Judges:
    """The judges that lie in a folder; those that do not, or were made otherwise, are trained and put there.

    Args:
        folder: None trains them and keeps nothing.
        config: see :class:`JudgeConfig`.
    """
    config = config or JudgeConfig()
    train, features = load_fsdd().train, None
    judges = []
    for name, names, label in (("digit", DIGITS, _text), ("speaker", tuple(ACCENTS), _speaker)):
        network = ClipClassifier(config, len(names))
        path = None if folder is None else folder / f"{name}.safetensors"
        if path is None or not _load(network, path):
            features = features or training_features(config, train)
            fit(network, features, [names.index(label(utterance)) for utterance in train])
            if path is not None:
                _save(network, path)
        judges.append(Judge(network, names))
    return Judges(*judges)


def training_features(config: JudgeConfig, utterances: Sequence[Utterance]) -> list[list[Tensor]]:
    """Of each utterance, the features of the recording as it is and of disturbed copies."""
    fbank, random = _fbank(config), np.random.default_rng(config.seed)
    features = []
    for utterance in utterances:
        samples = utterance.load_audio(SAMPLE_RATE).samples
        copies = [samples, *(disturb(samples, config, random) for _ in range(config.variants - 1))]
        features.append([fbank(copy) for copy in copies])
    return features


def fit(network: ClipClassifier, features: Sequence[Sequence[Tensor]], labels: Sequence[int]) -> None:
    """Train a network to tell the labels of utterances from any of their copies."""
    config = network.config
    torch.manual_seed(config.seed)
    network.apply(lambda module: module.reset_parameters() if hasattr(module, "reset_parameters") else None)
    targets = torch.tensor(labels)
    steps = -(-len(features) // config.batch_size)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, config.learning_rate, epochs=config.epochs, steps_per_epoch=steps
    )
    network.train()
    for _ in range(config.epochs):
        for batch in torch.randperm(len(features)).split(config.batch_size):
            copies = torch.randint(config.variants, (len(batch),)).tolist()
            chosen = [features[index][copy] for index, copy in zip(batch.tolist(), copies, strict=True)]
            loss = nn.functional.cross_entropy(network(*pad_sequences(chosen)), targets[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()


def disturb(samples: Samples, config: JudgeConfig, random: np.random.Generator) -> Samples:
    """A recording a little faster or slower, with edges of its own background, and noise."""
    samples = change_speed(samples, float(random.uniform(1 - config.speeds, 1 + config.speeds)))
    edge = round(_LONGEST_EDGE * SAMPLE_RATE)
    left, right = random.integers(edge, size=2, endpoint=True)
    padded = pad_edges(samples, SAMPLE_RATE, edge)[edge - left : edge + len(samples) + right]
    level = np.sqrt(np.mean(samples.astype(np.float64) ** 2)) * 10 ** (-random.uniform(*config.snr) / 20)
    noise = random.standard_normal(len(padded))
    return (padded + level * noise).astype(np.float32)


def resynthesize(samples: Samples, features: AcousticConfig) -> Samples:
    """What is left of a recording once a vocoder has made it again from its features: the ceiling of synthesis."""
    found = AcousticFeatures.from_columns(features.extractor()(samples))
    return GriffinLim(features)(found.log_mel, found.f0)


def _fbank(config: JudgeConfig) -> Fbank:
    return FbankConfig(sample_rate=SAMPLE_RATE, n_mels=config.n_mels).extractor()


def _save(network: ClipClassifier, path: Path) -> None:
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".part")
    save_file(network.state_dict(), scratch, metadata={"config": json.dumps(asdict(network.config))})
    scratch.replace(path)


def _load(network: ClipClassifier, path: Path) -> bool:
    """Whether there is a judge of these settings, whose weights the network then has."""
    from safetensors import safe_open

    if not path.is_file():
        return False
    with safe_open(path, "pt") as file:
        if (file.metadata() or {}).get("config") != json.dumps(asdict(network.config)):
            return False
        network.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    return True


def _text(utterance: Utterance) -> str:
    return utterance.text


def _speaker(utterance: Utterance) -> str:
    return str(utterance.speaker)


def conditions(features: AcousticConfig) -> dict[str, Callable[[Samples], Samples]]:
    """What judges have to bear, by name."""
    silence = np.zeros(round(_LONGEST_EDGE * SAMPLE_RATE), np.float32)
    random = np.random.default_rng(0)

    def with_noise(samples: Samples) -> Samples:
        noise = 0.1 * np.sqrt(np.mean(samples**2)) * random.standard_normal(len(samples))
        return (samples + noise).astype(np.float32)

    return {
        "as it is": lambda samples: samples,
        "10 dB louder": lambda samples: samples * np.float32(10**0.5),
        "10 dB softer": lambda samples: samples * np.float32(10**-0.5),
        "0.2 s of digital silence at both ends": lambda samples: np.concatenate([silence, samples, silence]),
        "with white noise 20 dB below": with_noise,
        "through the vocoder": lambda samples: resynthesize(samples, features),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judges", type=Path, metavar="DIR", help="where they are kept")
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        judges = load_judges(options.judges or Path(scratch))
    print(f"ready after {time.monotonic() - start:.0f} s")
    test = load_fsdd().test
    recordings = [utterance.load_audio(SAMPLE_RATE).samples for utterance in test]
    for name, change in conditions(Config().features).items():
        clips = [change(samples) for samples in recordings]
        columns = {}
        for heading, judge, label in (
            ("digits right", judges.digit, _text),
            ("speaker named", judges.speaker, _speaker),
        ):
            shares = dict.fromkeys(ACCENTS, Share())
            for utterance, found in zip(test, judge(clips), strict=True):
                shares[_speaker(utterance)] += found == label(utterance)
            columns[heading] = shares
        print(f"\nreal test recordings, {name}\n\n{table('speaker', columns)}", flush=True)


if __name__ == "__main__":
    main()
