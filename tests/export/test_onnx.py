"""ONNX models: the numbers of torch for any batch and time, and the same transcripts in onnxruntime and sherpa-onnx."""

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import soundfile
import torch

import sonorant
from sonorant.data.yesno import YesnoCorpus
from sonorant.export.model_folder import ModelFolderError
from sonorant.export.onnx import PADDING_VALUE, OnnxTdnnCtc
from sonorant.inference import Recognizer, export_model
from sonorant.lengths import Padded, pad_sequences
from tests.documentation import all_blocks

NUM_MELS = 23


@pytest.fixture(scope="module")
def trained(trained_run: Path) -> Recognizer:
    return sonorant.load(trained_run)


@dataclass(frozen=True)
class Exported:
    path: Path
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def exported(trained_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    path = tmp_path_factory.mktemp("onnx") / "new" / "model.onnx"
    command = [sys.executable, "-m", "sonorant.cli", "export", str(trained_run), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Exported(path, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def onnx_file(exported: Exported) -> Path:
    return exported.path


@pytest.fixture(scope="module")
def session(onnx_file: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(onnx_file)


def run(session: onnxruntime.InferenceSession, x: torch.Tensor) -> Padded:
    return Padded(*map(torch.from_numpy, session.run(["log_probs", "log_probs_lengths"], {"x": x.numpy()})))


def features(*lengths: int) -> list[torch.Tensor]:
    """Levels as of recordings: were most of them below the floor, float32 statistics would be inexact in torch."""
    generator = torch.Generator().manual_seed(sum(lengths))
    return [1.5 * torch.randn(length, NUM_MELS, generator=generator) - 8 for length in lengths]


@pytest.mark.parametrize("time", [27, 50, 700, 3000])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_equals_torch_for_any_batch_and_time(
    session: onnxruntime.InferenceSession, trained: Recognizer, batch: int, time: int
) -> None:
    utterances = features(*[time] * batch)
    actual, expected = run(session, torch.stack(utterances)), trained.log_probs(utterances)
    assert torch.equal(actual.lengths, expected.lengths)
    torch.testing.assert_close(actual.values, expected.values, atol=1e-4, rtol=0)


@pytest.mark.parametrize("padding", [PADDING_VALUE, -1e30, -torch.inf, torch.nan])
def test_padding_changes_nothing_and_comes_out_as_blank(
    session: onnxruntime.InferenceSession, trained: Recognizer, padding: float
) -> None:
    lengths = (30, 90, 27, 64, 26, 0)
    utterances = features(*lengths)
    x = torch.nn.functional.pad(pad_sequences(utterances, padding).values, (0, 0, 0, 40), value=padding)
    log_probs, output_lengths = run(session, x)
    assert output_lengths.tolist() == [30, 90, 27, 64, 0, 0]
    for row, utterance, length in zip(log_probs, utterances, output_lengths.tolist(), strict=True):
        if length:
            alone = trained.log_probs([utterance]).values[0]
            torch.testing.assert_close(row[:length], alone, atol=1e-4, rtol=0)
        assert (row[length:].argmax(1) == 0).all()
        torch.testing.assert_close(row.exp().sum(1), torch.ones(len(row)))


def test_digital_silence_is_no_padding(session: onnxruntime.InferenceSession, trained: Recognizer) -> None:
    silence = trained.fbank(np.zeros(8000, dtype=np.float32))
    x = torch.cat([*features(50), silence])
    assert run(session, x[None]).lengths.tolist() == [150]


def test_the_module_equals_its_export(session: onnxruntime.InferenceSession, trained: Recognizer) -> None:
    x = pad_sequences(features(80, 40), PADDING_VALUE).values
    expected, actual = OnnxTdnnCtc(trained.model)(x), run(session, x)
    assert torch.equal(actual.lengths, expected.lengths)
    torch.testing.assert_close(actual.values, expected.values, atol=1e-4, rtol=0)


def test_gives_the_same_transcripts(
    session: onnxruntime.InferenceSession, trained: Recognizer, yesno: YesnoCorpus
) -> None:
    utterances = [trained.extract(utterance.path) for utterance in yesno.test]
    expected = trained.log_probs(utterances)
    batch = run(session, pad_sequences(utterances, PADDING_VALUE).values)
    for decoder in ("greedy", "wfst"):
        texts = trained.decode(expected, decoder)
        assert trained.decode(batch, decoder) == texts
        alone = [trained.decode(run(session, utterance[None]), decoder)[0] for utterance in utterances]
        assert alone == texts
        assert len({" ".join(text) for text in texts}) > 20, "the model should have learned something"


def test_metadata_says_what_a_program_needs(session: onnxruntime.InferenceSession, trained: Recognizer) -> None:
    about = session.get_modelmeta().custom_metadata_map
    assert about["tokens"].split(" ") == list(trained.symbols.symbols)
    assert (about["vocab_size"], about["blank"], about["silence"]) == ("4", "0", "SIL")
    assert (about["sample_rate"], about["n_mels"], about["f_min"], about["f_max"]) == ("8000", "23", "20.0", "-400.0")
    assert (about["recipe"], about["sonorant_version"]) == ("yesno", sonorant.__version__)
    assert float(about["padding_value"]) == PADDING_VALUE
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert session.get_inputs()[0].shape == ["batch", "time", NUM_MELS]


def test_the_file_is_small_and_tells_nothing_of_this_machine(onnx_file: Path, trained_run: Path) -> None:
    content = onnx_file.read_bytes()
    assert len(content) < (trained_run / "model" / "model.safetensors").stat().st_size + 16_000
    assert b".py" not in content
    assert sorted(path.name for path in onnx_file.parent.iterdir()) == ["model.onnx", "tokens.txt"]


def test_exporting_says_what_was_written_and_nothing_else(exported: Exported) -> None:
    path, size = exported.path, exported.path.stat().st_size
    assert exported.stdout.splitlines() == [f"{path}  {size:,} bytes", f"{path.with_name('tokens.txt')}  22 bytes"]
    assert exported.stderr == ""


def test_what_would_be_lost_is_not_overwritten(trained_run: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens.txt").write_text("<blk> 0\na 1\n")
    with pytest.raises(ModelFolderError, match=r"tokens\.txt: holds the symbols of another model"):
        export_model(trained_run, tmp_path / "model.onnx")
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "tokens.txt").unlink()
    with pytest.raises(ValueError, match=r"folder\.onnx: a folder"):
        export_model(trained_run, tmp_path / "folder.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.onnx"]


def documented(module: str) -> str:
    """The program of the deployment page that imports a module."""
    (code,) = (b.code for b in all_blocks() if b.page == "docs/deployment.md" and f"import {module}" in b.code)
    return code


@pytest.fixture
def deployed(onnx_file: Path, yesno: YesnoCorpus, tmp_path: Path) -> Path:
    """A folder with all that the documentation's programs open."""
    for file in onnx_file.parent.iterdir():
        shutil.copy(file, tmp_path)
    shutil.copy(yesno.test[0].path, tmp_path / "recording.wav")
    return tmp_path


def spelled(trained: Recognizer, yesno: YesnoCorpus) -> list[str]:
    """What the greedy decoder hears in each recording, a letter a word."""
    texts = [trained.transcribe(utterance.path, decoder="greedy") for utterance in yesno.test]
    return ["".join(word[0] for word in text.split()) for text in texts]


def run_program(program: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_documented_program_needs_no_torch(deployed: Path, trained: Recognizer, yesno: YesnoCorpus) -> None:
    check = "\nimport sys\nassert not {'torch', 'sonorant'} & set(sys.modules)"
    symbols = run_program(documented("kaldi_native_fbank") + check, deployed).split()
    assert "".join(symbol for symbol in symbols if symbol != "SIL") == spelled(trained, yesno)[0] != ""


@pytest.fixture(scope="module")
def sherpa() -> None:
    if importlib.util.find_spec("sherpa_onnx") is None:
        if os.environ.get("CI"):
            pytest.fail("sherpa-onnx must be there in CI: it is in the extra 'dev'")
        pytest.skip("sherpa-onnx is not installed: it is in the extra 'dev'")


def test_the_documented_program_of_sherpa(
    sherpa: None, deployed: Path, trained: Recognizer, yesno: YesnoCorpus
) -> None:
    assert run_program(documented("sherpa_onnx"), deployed) == spelled(trained, yesno)[0] != ""


def test_sherpa_gives_the_same_transcripts(
    sherpa: None, onnx_file: Path, trained: Recognizer, yesno: YesnoCorpus
) -> None:
    import sherpa_onnx

    client = sherpa_onnx.OfflineRecognizer.from_tdnn_ctc(
        model=str(onnx_file), tokens=str(onnx_file.with_name("tokens.txt"))
    )

    def heard(in_one_batch: bool) -> list[str]:
        streams = []
        for utterance in yesno.test:
            samples, rate = soundfile.read(utterance.path, dtype="float32")
            streams.append(client.create_stream())
            streams[-1].accept_waveform(rate, samples)
        if in_one_batch:
            client.decode_streams(streams)
        else:
            for stream in streams:
                client.decode_stream(stream)
        return [stream.result.text for stream in streams]

    assert heard(in_one_batch=False) == heard(in_one_batch=True) == spelled(trained, yesno)
