"""Pronunciation models in onnxruntime alone: the numbers of torch, and greedy decoding as sonorant does it."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

import sonorant
from sonorant.cli import main
from sonorant.export.g2p_onnx import DecoderStep, Encoder, export_g2p_onnx
from sonorant.inference import Pronouncer, export_model
from sonorant.inference.pronouncer import SearchConfig
from sonorant.lengths import pad_sequences
from sonorant.models import G2p, G2pConfig, G2pEnsemble
from sonorant.recipes.g2p import PRESETS
from tests.dictionaries import made_up_words
from tests.documentation import all_blocks


@pytest.fixture(scope="module")
def exported(g2p_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "new"
    assert main(["export", str(g2p_run), str(folder / "g2p.onnx")]) == 0
    return folder


def test_the_files_that_are_written(exported: Path) -> None:
    names = {path.name for path in exported.iterdir()}
    assert names == {"g2p-encoder.onnx", "g2p-decoder.onnx", "graphemes.txt", "tokens.txt"}


def test_greedy_decoding_in_onnxruntime_alone(exported: Path, g2p_run: Path) -> None:
    """With the program of the documentation."""
    pronouncer = sonorant.load(g2p_run)
    assert isinstance(pronouncer, Pronouncer)
    words = [*made_up_words(20, seed=4), "a", "dakbexid"]
    (program,) = (block.code for block in all_blocks() if "g2p-{part}.onnx" in block.code)
    blocked = "import sys\nsys.modules['torch'] = sys.modules['sonorant'] = None\n"
    command = [sys.executable, "-c", f"{blocked}{program}\nfor word in sys.argv[1:]: print(pronounce(word))", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=exported)
    assert done.returncode == 0, done.stderr
    found = pronouncer.pronounce_all(words, search=SearchConfig(beam_size=1))
    assert done.stdout.splitlines() == [" ".join(best.phones) for (best,) in found]


def test_an_ensemble_equals_torch_for_any_batch_and_length(pronouncer: Pronouncer, tmp_path: Path) -> None:
    files = export_g2p_onnx(pronouncer.model, tmp_path / "g2p.onnx", {"a": 1})
    encoder, decoder = (onnxruntime.InferenceSession(file) for file in files)
    names = [output.name for output in encoder.get_outputs()]
    generator = torch.Generator().manual_seed(0)
    for batch, length in itertools.product([1, 2, 5], [1, 2, 9, 30]):
        words = [torch.randint(1, 6, (max(1, length - index),), generator=generator) for index in range(batch)]
        graphemes, lengths = pad_sequences(words)
        given = encoder.run(None, {"graphemes": graphemes.numpy(), "lengths": lengths.numpy()})
        with torch.no_grad():
            tensors = Encoder(pronouncer.model)(graphemes, lengths)
        compare(given, tensors)
        for step in range(3):
            phones = torch.full((batch,), step)
            inputs = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
            given = decoder.run(None, {"phones": phones.numpy(), **inputs})
            with torch.no_grad():
                expected = DecoderStep(pronouncer.model)(phones, tensors)
            compare(given, expected)
            tensors = [*expected[1:], *tensors[len(expected) - 1 :]]


def compare(given: list[np.ndarray], expected: list[torch.Tensor]) -> None:
    for ours, theirs in zip(given, expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(ours), theirs, atol=1e-5, rtol=0)


def test_the_quick_model_is_smaller_than_3_mb(tmp_path: Path) -> None:
    options = {name.removeprefix("model."): v for name, v in PRESETS["quick"].items() if name.startswith("model.")}
    files = export_g2p_onnx(G2pEnsemble([G2p(G2pConfig(**options), 30, 40)]), tmp_path / "g2p.onnx", {})
    assert sum(file.stat().st_size for file in files) < 3e6


def test_symbols_of_another_model_are_not_overwritten(pronouncer: Pronouncer, tmp_path: Path) -> None:
    pronouncer.save(tmp_path / "model")
    (tmp_path / "graphemes.txt").write_text("<blk> 0\nz 1\n")
    with pytest.raises(ValueError, match=r"graphemes.txt: holds the symbols of another model"):
        export_model(tmp_path / "model", tmp_path / "g2p.onnx")


def test_a_folder_with_a_card(g2p_run: Path, tmp_path: Path) -> None:
    export_model(g2p_run, tmp_path / "mine")
    again = sonorant.load(tmp_path / "mine")
    assert isinstance(again, Pronouncer)
    assert again.pronounce("dak") == "D AA K"
    card = (tmp_path / "mine" / "README.md").read_text()
    for part in (
        "# mine\n",
        "a dictionary of 400 words",
        "was not recorded",
        "| test | 0.00% | 0.00% to 0.00% | 50 |",
        "Words of other graphemes than these are refused: a b d e i k x.",
        "these phones and no others: AA B D EH IY K S.",
        'sonorant.load("mine").pronounce(',
        "sonorant export mine onnx/g2p.onnx",
        "max_epochs: 8",
    ):
        assert part in card
    export_model(tmp_path / "mine", tmp_path / "mine")
    assert (tmp_path / "mine" / "README.md").read_text() == card
