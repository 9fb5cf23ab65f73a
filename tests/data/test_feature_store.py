"""Features on disk."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from sonorant.data.audio import change_speed
from sonorant.data.feature_store import FeatureStore, StoredFeatures
from sonorant.data.features import FbankConfig
from sonorant.data.frontend import Frontend, RecordingConfig
from sonorant.data.manifest import Utterance

FEATURES = FbankConfig(sample_rate=8000, n_mels=23)


class CountingFrontend(Frontend):
    """Counts what is computed."""

    computed = 0

    def __call__(self, samples: np.ndarray) -> torch.Tensor:
        self.computed += 1
        return super().__call__(samples)


@pytest.fixture
def utterances(write_wav: Callable[..., Path]) -> list[Utterance]:
    return [Utterance(f"{i}", write_wav(f"{i}.wav", seconds=0.3 + i / 10), "x") for i in range(3)]


def collect(
    folder: Path | None, utterances: Sequence[Utterance], speeds: Sequence[float] = (1.0, 0.9), **options: object
) -> tuple[FeatureStore, list[StoredFeatures], CountingFrontend]:
    frontend = CountingFrontend(replace(FEATURES, **options.pop("features", {})), RecordingConfig(**options))
    store = FeatureStore(frontend, folder)
    return store, store.collect(utterances, speeds, jobs=2), frontend


@pytest.mark.parametrize("on_disk", [True, False])
def test_features_are_those_of_the_frontend(tmp_path: Path, utterances: list[Utterance], on_disk: bool) -> None:
    done: list[int] = []
    frontend = Frontend(FEATURES)
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
