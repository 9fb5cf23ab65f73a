"""Model folders for others: complete, with a card that says what was recorded, and never in place of something else."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sonorant
from sonorant.cli import main
from sonorant.data.facts import CorpusFacts
from sonorant.data.yesno import FACTS, YesnoCorpus
from sonorant.export.model_folder import ModelFolderError
from sonorant.inference import Recognizer, export_model

FILES = {
    *("README.md", "config.json", "lexicon.txt", "lm.arpa", "metrics.json", "model.safetensors", "tokens.txt"),
    "training.yaml",
}
RATE = {"wer": 0.125, "errors": 3, "words": 24, "wer_interval": [0.05, 0.25]}


@pytest.fixture
def run(recognizer: Recognizer, tmp_path: Path) -> Path:
    """A run directory, as the recipe leaves it."""
    run = tmp_path / "run"
    recognizer.corpus = CorpusFacts("two words", "https://example.org", "CC0", "Noise.", "Half of it.", "No use.")
    recognizer.save(run / "model")
    (run / "metrics.json").write_text(json.dumps({"test": {"greedy": RATE}, "train_seconds": 1.5}))
    (run / "config.yaml").write_text("seed: 7\n")
    (run / "checkpoints").mkdir()
    return run


def test_a_trained_model_becomes_a_folder_that_works(trained_run: Path, yesno: YesnoCorpus, tmp_path: Path) -> None:
    folder = tmp_path / "yesno"
    assert {path.name for path in export_model(trained_run, folder)} == FILES
    recording = yesno.test[0].path
    assert sonorant.load(folder).transcribe(recording) == sonorant.load(trained_run).transcribe(recording) != ""
    card = (folder / "README.md").read_text()
    rates = json.loads((trained_run / "metrics.json").read_text())["test"]
    for rate in rates.values():
        assert f"{rate['wer']:.2%} | {rate['wer_interval'][0]:.2%} to {rate['wer_interval'][1]:.2%}" in card
    for fact in (FACTS.licence, FACTS.source, FACTS.description, FACTS.split, FACTS.limits):
        assert fact in card
    assert (trained_run / "config.yaml").read_text() in card


def test_the_card_says_what_was_recorded(run: Path, tmp_path: Path) -> None:
    export_model(run, tmp_path / "mine")
    card = (tmp_path / "mine" / "README.md").read_text()
    for part in (
        "# mine\n",
        "2 words (NO, YES)",
        f"recipe `yesno`, [sonorant](https://github.com/sonorant/sonorant) {sonorant.__version__}",
        "[two words](https://example.org): Noise. Half of it.",
        "Licence of the data: CC0.",
        "| greedy | 12.50% | 5.00% to 25.00% | 3 | 24 |",
        "one channel at 8000 Hz and last at least 0.27 s",
        "- No use.",
        'sonorant.load("mine")',
        "sonorant transcribe mine recording.wav",
        "sonorant export mine onnx/model.onnx",
        "```yaml\nseed: 7\n```",
    ):
        assert part in card


def test_the_card_says_what_was_not_recorded(recognizer: Recognizer, tmp_path: Path) -> None:
    recognizer.recipe = None
    recognizer.save(tmp_path / "somewhere")
    export_model(tmp_path / "somewhere", tmp_path / "mine")
    card = (tmp_path / "mine" / "README.md").read_text()
    assert "under which licence that is, was not recorded" in card
    assert "None were recorded with this model" in card
    assert "Settings" not in card
    assert "recipe" not in card
    assert {path.name for path in (tmp_path / "mine").iterdir()} == FILES - {"metrics.json", "training.yaml"}


def test_an_interval_that_was_not_computed_is_unknown(run: Path, tmp_path: Path) -> None:
    (run / "metrics.json").write_text(json.dumps({"test": {"wfst": {**RATE, "wer_interval": None}}}))
    export_model(run, tmp_path / "mine")
    assert "| wfst | 12.50% | unknown | 3 | 24 |" in (tmp_path / "mine" / "README.md").read_text()


def test_nothing_is_lost_from_folder_to_folder(run: Path, tmp_path: Path) -> None:
    export_model(run, tmp_path / "a" / "mine")
    export_model(tmp_path / "a" / "mine", tmp_path / "b" / "mine")
    export_model(run / "model", tmp_path / "c" / "mine")
    for other in ("b", "c"):
        for name in FILES:
            assert (tmp_path / other / "mine" / name).read_bytes() == (tmp_path / "a" / "mine" / name).read_bytes()


def test_the_version_is_that_of_the_training(run: Path, tmp_path: Path) -> None:
    config = run / "model" / "config.json"
    config.write_text(config.read_text().replace(f'"{sonorant.__version__}"', '"0.0.7"'))
    export_model(run, tmp_path / "mine")
    assert "sonorant/sonorant) 0.0.7)" in (tmp_path / "mine" / "README.md").read_text()
    assert json.loads((tmp_path / "mine" / "config.json").read_text())["sonorant_version"] == "0.0.7"


def test_a_model_folder_is_replaced_even_by_itself(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    export_model(run, tmp_path / "mine")
    before = (tmp_path / "mine" / "model.safetensors").read_bytes()
    export_model(tmp_path / "mine", tmp_path / "mine")
    assert (tmp_path / "mine" / "model.safetensors").read_bytes() == before
    (run / "config.yaml").write_text("seed: 8\n")
    export_model(run, tmp_path / "mine")
    assert "seed: 8" in (tmp_path / "mine" / "README.md").read_text()


def test_what_is_not_a_model_is_not_overwritten(run: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years")
    with pytest.raises(ModelFolderError, match="precious: holds something, but no model"):
        export_model(run, precious)
    (precious / "config.json").write_text('{"architectures": []}')
    with pytest.raises(ModelFolderError, match=r"precious/config\.json: not a configuration of sonorant"):
        export_model(run, precious)
    shutil.copy(run / "model" / "config.json", precious)
    with pytest.raises(ModelFolderError, match=r"precious: also holds thesis\.tex, which would be lost"):
        export_model(run, precious)
    with pytest.raises(ModelFolderError, match=r"thesis\.tex: a file"):
        export_model(run, precious / "thesis.tex")
    assert (precious / "thesis.tex").read_text() == "years"
    with pytest.raises(ModelFolderError, match="run: holds something, but no model"):
        export_model(run, run)
    assert (run / "checkpoints").is_dir()


def test_what_cannot_be_exported_is_named(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "nowhere"), str(tmp_path / "mine")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err
    (run / "metrics.json").write_text("{")
    with pytest.raises(ModelFolderError, match=r"metrics\.json: not JSON"):
        export_model(run, tmp_path / "mine")
    config = run / "model" / "config.json"
    config.write_text(config.read_text().replace('"kind": "recognizer"', '"kind": "singer"'))
    with pytest.raises(ModelFolderError, match="kind 'singer'"):
        export_model(run, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_the_command_needs_the_extra_audio_alone_and_prints_the_files(run: Path, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "training = {'lightning', 'jsonargparse', 'yaml', 'rich', 'tensorboard', 'matplotlib'}\n"
        "others = {'kaldifst', 'kaldi_decoder', 'kaldilm', 'kaldialign', 'onnx', 'numba'}\n"
        "sys.modules |= dict.fromkeys(training | others)\n"
        "from sonorant.cli import main\n"
        f"sys.exit(main(['export', {str(run)!r}, {str(tmp_path / 'mine')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = [f"{path}  {path.stat().st_size:,} bytes" for path in sorted((tmp_path / "mine").iterdir())]
    assert done.stdout.splitlines() == expected


def test_a_missing_extra_is_named(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import sys\n"
        "sys.modules['onnx'] = None\n"
        "from sonorant.cli import main\n"
        f"sys.exit(main(['export', {str(run)!r}, {str(tmp_path / 'model.onnx')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'sonorant[export]'" in done.stderr
    assert not (tmp_path / "tokens.txt").exists()
