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
from sonorant.inference import Recognizer
from sonorant.models import TdnnCtc, TdnnCtcConfig
from sonorant.text import Lexicon, SymbolTable


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
