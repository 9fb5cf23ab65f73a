"""Shared fixtures: real data, recordings written on the spot, and an untrained recognizer."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from sonorant.cli import main
from sonorant.data.download import find_corpus
from sonorant.data.features import FbankConfig
from sonorant.data.fsdd import FsddCorpus, load_fsdd
from sonorant.data.yesno import YesnoCorpus, load_yesno
from sonorant.decoding.arpa import uniform_unigram
from sonorant.inference import Pronouncer, Recognizer, Synthesizer
from sonorant.models import G2p, G2pConfig, TdnnCtc, TdnnCtcConfig
from sonorant.text import Lexicon, SymbolTable
from tests.dictionaries import made_up_words, write_dictionary
from tests.tones import ToneCorpus, write_tones
from tests.untrained_speech import untrained_synthesizer
from tests.voices import VoiceCorpus, write_voices


def need_corpus(name: str, remedy: str) -> None:
    """Skip where real data cannot be had, but never silently in CI, where it can."""
    if find_corpus(name) is not None:
        return
    if os.environ.get("CI"):
        pytest.fail(f"the {name} corpus must be there in CI (SONORANT_DATA, or shared/data beside the checkout)")
    pytest.skip(f"the {name} corpus is not on this machine: set SONORANT_DATA, or {remedy}")


@pytest.fixture(scope="session")
def yesno() -> YesnoCorpus:
    need_corpus("yesno", "run `sonorant train yesno` once")
    return load_yesno()


@pytest.fixture(scope="session")
def fsdd() -> FsddCorpus:
    need_corpus("fsdd", "call sonorant.data.fsdd.load_fsdd()")
    return load_fsdd()


@pytest.fixture(scope="session")
def trained_run(yesno: YesnoCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small yesno recognizer that makes few errors: the run directory of some seconds of training."""
    run = tmp_path_factory.mktemp("trained") / "run"
    options = ["--speeds=[1.0]", "--trainer.max_epochs=20", "--model.hidden_channels=16"]
    assert main(["train", "yesno", "--output", str(run), *options]) == 0
    return run


TINY_G2P = [
    *(f"--model.{name}=16" for name in ("embedding_dim", "attention_dim")),
    *(f"--model.{name}=24" for name in ("encoder_dim", "decoder_dim")),
    "--model.encoder_layers=1",
    "--model.dropout=0",
    "--model.ctc_frames=2",
    "--batch_size=16",
    "--optimizer.learning_rate=0.02",
    "--trainer.precision=32-true",
]


@pytest.fixture(scope="session")
def dictionaries(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The arguments of the g2p recipe for a made-up language of 500 words."""
    folder, words = tmp_path_factory.mktemp("dictionaries"), made_up_words(500)
    parts = {"train": words[:400], "dev": words[400:450], "test": words[450:]}
    return [f"--data.{name}={write_dictionary(folder / f'{name}.tsv', part)}" for name, part in parts.items()]


@pytest.fixture(scope="session")
def g2p_run(dictionaries: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pronouncer of the made-up language that makes few errors: the run directory of some seconds of training."""
    run = tmp_path_factory.mktemp("g2p") / "run"
    assert main(["train", "g2p", "--output", str(run), *dictionaries, *TINY_G2P, "--trainer.max_epochs=8"]) == 0
    return run


TINY_ALIGNER = [
    "--units.kind=lexicon",
    "--batch_size=4",
    "--data.n_mels=20",
    "--data.cache=false",
    "--model.hidden_channels=32",
    "--model.attention_dim=16",
    "--trainer.accelerator=cpu",
]


@pytest.fixture(scope="session")
def tones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ToneCorpus]:
    """Recordings of words that are tones, with the times of all words."""
    folder = tmp_path_factory.mktemp("tones")
    return {"train": write_tones(folder / "train", 60), "test": write_tones(folder / "test", 30, 1)}


@pytest.fixture(scope="session")
def aligner_run(tones: dict[str, ToneCorpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An aligner that finds tones: the run directory of some seconds of training."""
    run, corpus = tmp_path_factory.mktemp("aligner") / "run", tones["train"]
    options = [
        f"--data.train={corpus.table}",
        f"--units.lexicon={corpus.lexicon}",
        "--trainer.max_epochs=12",
        "--seed=1",
    ]
    assert main(["train", "aligner", "--output", str(run), *options, *TINY_ALIGNER]) == 0
    return run


TINY_TTS = [
    "--units.kind=lexicon",
    "--batch_size=4",
    "--data.cache=false",
    *(f"--features.{name}" for name in ("sample_rate=8000", "n_fft=256", "hop_length=80", "n_mels=20")),
    *(f"--model.{name}_dim=4" for name in ("speaker", "accent")),
    *(f"--model.{part}.hidden_channels=16" for part in ("text", "aligner", "decoder", "predictors")),
    *(f"--model.{part}.lstm_dim=8" for part in ("text", "predictors")),
    "--model.aligner.attention_dim=8",
    *(f"--model.decoder.{name}" for name in ("num_flows=3", "num_layers=2", "encoder_dim=8")),
    "--optimizer.learning_rate=0.005",
    "--trainer.max_epochs=3",
    *(
        f"--{stage}.{name}"
        for stage in ("regression", "predictors")
        for name in ("max_epochs=2", "optimizer.learning_rate=0.005")
    ),
    "--temperature=0.4",
    "--trainer.accelerator=cpu",
    "--trainer.checkpoint_every=4",
]


@pytest.fixture(scope="session")
def voices(tmp_path_factory: pytest.TempPathFactory) -> VoiceCorpus:
    """Recordings of two voices with an accent each."""
    return write_voices(tmp_path_factory.mktemp("voices") / "corpus", 35)


@pytest.fixture(scope="session")
def tts_run(voices: VoiceCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthesizer that was hardly trained: the run directory."""
    run = tmp_path_factory.mktemp("tts") / "run"
    options = [f"--data.train={voices.table}", f"--units.lexicon={voices.lexicon}", *TINY_TTS]
    assert main(["train", "tts", "--output", str(run), *options]) == 0
    return run


@pytest.fixture
def pronouncer() -> Pronouncer:
    """Two untrained models: enough to test everything but accuracy."""
    torch.manual_seed(0)
    graphemes, phones = SymbolTable("abc'é"), SymbolTable(["AA", "B", "K"])
    config = G2pConfig(embedding_dim=4, encoder_dim=6, encoder_layers=1, decoder_dim=6, attention_dim=4, ctc_frames=2)
    models = [G2p(config, len(graphemes), len(phones)) for _ in range(2)]
    return Pronouncer(models, graphemes, phones, train_words=["ab", "ba"], recipe="g2p")


@pytest.fixture
def write_wav(tmp_path: Path) -> Callable[..., Path]:
    """write_wav(name, seconds=1.0, sample_rate=8000, channels=1) writes noise and returns the path."""

    def write(
        name: str, seconds: float = 1.0, sample_rate: int = 8000, channels: int = 1, subtype: str = "PCM_16"
    ) -> Path:
        shape = (round(seconds * sample_rate), channels)
        samples = np.random.default_rng(0).uniform(-0.5, 0.5, shape)
        path = tmp_path / name
        soundfile.write(path, samples, sample_rate, subtype=subtype)
        return path

    return write


@pytest.fixture
def recognizer() -> Recognizer:
    """Enough to test everything but accuracy."""
    torch.manual_seed(0)
    symbols, lexicon = SymbolTable(["SIL", "N", "Y"]), Lexicon({"YES": [["Y"]], "NO": [["N"]]})
    features = FbankConfig(sample_rate=8000, n_mels=23)
    model = TdnnCtc(TdnnCtcConfig(hidden_channels=8), features.n_mels, len(symbols))
    return Recognizer(model, features, symbols, lexicon, uniform_unigram(lexicon), silence="SIL", recipe="yesno")


@pytest.fixture
def synthesizer() -> Synthesizer:
    """An untrained model of three speakers with two accents, in which everything has an effect."""
    return untrained_synthesizer()
