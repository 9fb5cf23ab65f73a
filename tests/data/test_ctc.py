"""Training examples."""

import torch

from sonorant.data.ctc import CtcExample, collate_ctc


def example(name: str, frames: int, target: list[int]) -> CtcExample:
    return CtcExample(name, torch.randn(frames, 3), torch.tensor(target), seed=frames)


def test_collate_pads_features_and_targets() -> None:
    batch = collate_ctc([example("a", 5, [1]), example("b", 3, [1, 2])])
    assert batch.ids == ["a", "b"]
    assert batch.features.shape == (2, 5, 3)
    assert batch.feature_lengths.tolist() == [5, 3]
    assert batch.targets.tolist() == [[1, 0], [1, 2]]
    assert batch.target_lengths.tolist() == [1, 2]
    assert batch.seeds.tolist() == [5, 3]
