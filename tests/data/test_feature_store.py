"""Features on disk."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from sonorant.data.acoustic import AcousticConfig, AcousticExtractor
from sonorant.data.audio import change_speed
from sonorant.data.feature_store import FeatureStore, StoredFeatures
from sonorant.data.features import FbankConfig
from sonorant.data.frontend import Extractor, Frontend, RecordingConfig
from sonorant.data.manifest import Utterance

FEATURES = FbankConfig(sample_rate=8000, n_mels=23)
ACOUSTIC = AcousticConfig(sample_rate=8000, n_fft=256, hop_length=80, n_mels=23)


class CountingFrontend(Frontend[Extractor]):
    """Counts what is computed."""

    computed = 0

    def __call__(self, samples: np.ndarray) -> torch.Tensor:
        self.computed += 1
        return super().__call__(samples)


@pytest.fixture
def utterances(write_wav: Callable[..., Path]) -> list[Utterance]:
    return [Utterance(f"{i}", write_wav(f"{i}.wav", seconds=0.3 + i / 10), "x") for i in range(3)]


def collect(
    folder: Path | None, utterances: Sequence[Utterance], speeds: Sequence[float] = (1.0, 0.9), **options: Any
) -> tuple[FeatureStore, list[StoredFeatures], CountingFrontend]:
    kind = options.pop("kind", FEATURES)
    frontend = CountingFrontend(replace(kind, **options.pop("features", {})), RecordingConfig(**options))
    store = FeatureStore(frontend, folder)
    return store, store.collect(utterances, speeds, jobs=2), frontend


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.parametrize("kind", [FEATURES, ACOUSTIC], ids=["fbank", "acoustic"])
def test_features_are_those_of_the_frontend(
    tmp_path: Path, utterances: list[Utterance], kind: FbankConfig | AcousticConfig, on_disk: bool
) -> None:
    done: list[int] = []
    frontend: Frontend[Extractor] = Frontend(kind)
    store = FeatureStore(frontend, tmp_path / "cache" if on_disk else None)
    stored = store.collect(utterances, [1.0, 0.9], progress=done.append)
    assert done == [1, 2, 3]
    assert [entry.id for entry in stored][:3] == ["0", "0 at speed 0.9", "1"]
    for entry in stored:
        samples = change_speed(entry.utterance.load_audio().samples, entry.speed)
        assert torch.equal(store.read(entry), frontend(samples))
        assert entry.num_frames == len(store.read(entry))
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == (6 if on_disk else 0)
    assert not list(tmp_path.rglob("*.part"))


def test_what_is_there_is_not_computed_again(tmp_path: Path, utterances: list[Utterance]) -> None:
    _, first, frontend = collect(tmp_path / "cache", utterances)
    assert frontend.computed == 6
    _, again, frontend = collect(tmp_path / "cache", utterances)
    assert (frontend.computed, again) == (0, first)
    renamed = utterances[0].path.rename(tmp_path / "other.wav")
    _, _, frontend = collect(tmp_path / "cache", [replace(utterances[0], path=renamed)])
    assert frontend.computed == 0


@pytest.mark.parametrize(
    "changed",
    [{"features": {"n_mels": 20}}, {"features": {"f_min": 60.0}}, {"edge_seconds": 0.1}, {"speeds": (1.05, 0.95)}],
    ids=str,
)
def test_other_settings_give_other_files(tmp_path: Path, utterances: list[Utterance], changed: dict) -> None:
    collect(tmp_path / "cache", utterances)
    _, _, frontend = collect(tmp_path / "cache", utterances, **changed)
    assert frontend.computed == 6


def test_kinds_of_features_share_a_folder(tmp_path: Path, utterances: list[Utterance]) -> None:
    collect(tmp_path / "cache", utterances)
    store, stored, frontend = collect(tmp_path / "cache", utterances, kind=ACOUSTIC)
    assert frontend.computed == 6
    assert all(store.read(entry).shape == (entry.num_frames, 25) for entry in stored)
    for kind in (FEATURES, ACOUSTIC):
        assert collect(tmp_path / "cache", utterances, kind=kind)[2].computed == 0


@pytest.mark.parametrize("name", [field.name for field in fields(ACOUSTIC)])
def test_every_acoustic_setting_gives_other_files(tmp_path: Path, utterances: list[Utterance], name: str) -> None:
    changed = {
        "sample_rate": 16000,
        "n_fft": 512,
        "win_length": 200,
        "hop_length": 100,
        "n_mels": 20,
        "f_min": 50.0,
        "f_max": 3800.0,
        "f0_floor": 70.0,
        "f0_ceiling": 400.0,
    }
    collect(tmp_path / "cache", utterances[:1], [1.0], kind=ACOUSTIC)
    _, _, frontend = collect(
        tmp_path / "cache", utterances[:1], [1.0], kind=ACOUSTIC, features={name: changed[name]}, resample=True
    )
    assert frontend.computed == 1


def test_another_revision_of_the_features_gives_other_files(
    tmp_path: Path, utterances: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(tmp_path / "cache", utterances, kind=ACOUSTIC)
    settings = Frontend(ACOUSTIC).extractor.settings
    monkeypatch.setattr(AcousticExtractor, "settings", {**settings, "revision": 0})
    assert collect(tmp_path / "cache", utterances, kind=ACOUSTIC)[2].computed == 6


def test_names_of_files_stay_as_they_were() -> None:
    samples = np.arange(-400, 400, dtype=np.float32) / 1024
    names = {
        (RecordingConfig(), 1.0): "8c/e486bdfb7480e99c4d4e417d1e43d292c34bd08e0e6c197e35446ef0a457c0",
        (RecordingConfig(edge_seconds=0.2, edge_level_db=-5.0), 0.9): (
            "2a/4bdf1c42d709904dc4788ec3ad7cb9255b3316141cb0cad9941b86ed03a724"
        ),
    }
    for (recordings, speed), name in names.items():
        store = FeatureStore(Frontend(FEATURES, recordings), Path("cache"))
        assert store._path(samples, speed) == Path("cache") / f"{name}.npy"


def test_another_recording_gives_another_file(tmp_path: Path, utterances: list[Utterance]) -> None:
    collect(tmp_path / "cache", utterances)
    samples, rate = soundfile.read(utterances[0].path, dtype="int16")
    samples[100] += 1
    soundfile.write(utterances[0].path, samples, rate)
    _, _, frontend = collect(tmp_path / "cache", utterances)
    assert frontend.computed == 2


def damage_a_bit(content: bytes) -> bytes:
    return content[:200] + bytes([content[200] ^ 1]) + content[201:]


@pytest.mark.parametrize(
    "damage",
    [
        damage_a_bit,
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"not an array",
        lambda content: content[::-1],
    ],
    ids=["bit", "half", "empty", "text", "reversed"],
)
@pytest.mark.parametrize("when", ["before a run", "during a run"])
def test_damaged_files_are_computed_again(
    tmp_path: Path, utterances: list[Utterance], damage: Callable[[bytes], bytes], when: str
) -> None:
    store, stored, frontend = collect(tmp_path / "cache", utterances)
    expected = [store.read(entry) for entry in stored]
    path = stored[1].path
    assert path is not None
    path.write_bytes(damage(path.read_bytes()))
    if when == "before a run":
        store, stored, frontend = collect(tmp_path / "cache", utterances)
    assert all(map(torch.equal, map(store.read, stored), expected))
    computed = frontend.computed
    assert all(map(torch.equal, map(store.read, stored), expected))
    assert frontend.computed == computed  # the file is whole again
    path.unlink()
    assert torch.equal(store.read(stored[1]), expected[1])


def test_a_recording_that_changes_during_a_run_is_named(tmp_path: Path, utterances: list[Utterance]) -> None:
    store, stored, _ = collect(tmp_path / "cache", utterances)
    path = stored[0].path
    assert path is not None
    path.write_bytes(b"")
    soundfile.write(utterances[0].path, np.full(3000, 0.1), 8000)
    with pytest.raises(ValueError, match=r"0\.wav: the recording has changed since training began"):
        store.read(stored[0])


def test_a_file_with_code_in_it_is_not_run(tmp_path: Path, utterances: list[Utterance]) -> None:
    import io
    import zlib

    store, stored, _ = collect(tmp_path / "cache", utterances)
    expected = store.read(stored[0])
    content = io.BytesIO()
    np.save(content, np.array([print], dtype=object), allow_pickle=True)
    data = content.getvalue()
    path = stored[0].path
    assert path is not None
    path.write_bytes(data + zlib.crc32(data).to_bytes(4, "little"))
    assert torch.equal(store.read(stored[0]), expected)
