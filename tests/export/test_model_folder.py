"""Model folders, and what is not one."""

import json
import pickle
from pathlib import Path

import pytest
import torch

from sonorant.export.model_folder import ModelFolderError, read_model_folder, write_model_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "model"
    write_model_folder(path, "recognizer", {"answer": 42}, {"w": torch.arange(3.0)}, {"tokens.txt": "<blk> 0\n"})
    return path


def test_round_trip(folder: Path) -> None:
    for path in (folder, folder.parent, str(folder)):
        contents = read_model_folder(path)
        assert contents.config["answer"] == 42
        assert contents.config["kind"] == "recognizer"
        assert contents.weights["w"].tolist() == [0.0, 1.0, 2.0]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["model"]


def test_writing_again_replaces_the_folder(folder: Path) -> None:
    write_model_folder(folder, "recognizer", {"answer": 43}, {"w": torch.zeros(1)}, {})
    assert read_model_folder(folder).config["answer"] == 43
    assert not (folder / "tokens.txt").exists()


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("exploded"),))


def test_pickled_weights_are_refused_and_never_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (folder / "model.safetensors").write_bytes(pickle.dumps({"w": Bomb()}))
    with pytest.raises(ModelFolderError, match=r"model\.safetensors: not a safetensors file.*pickled"):
        read_model_folder(folder)
    torch.save({"w": torch.zeros(1)}, tmp_path / "model.pt")
    with pytest.raises(ModelFolderError, match=r"model\.pt: a file"):
        read_model_folder(tmp_path / "model.pt")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("not json", "not JSON"),
        (json.dumps({"architectures": ["Wav2Vec2ForCTC"]}), "not a configuration of sonorant"),
        (json.dumps([1]), "not a configuration of sonorant"),
        (json.dumps({"kind": "recognizer", "format_version": 99}), "format_version is 99; this release reads 1"),
    ],
)
def test_a_foreign_configuration_is_refused(folder: Path, config: str, message: str) -> None:
    (folder / "config.json").write_text(config)
    with pytest.raises(ModelFolderError, match=message):
        read_model_folder(folder)


def test_what_is_not_there_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere: no such folder"):
        read_model_folder(tmp_path / "nowhere")
    with pytest.raises(ModelFolderError, match=r"neither a model folder nor a run directory|not a model folder"):
        read_model_folder(tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        read_model_folder(folder)
