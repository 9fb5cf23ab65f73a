"""Training examples."""

import pytest
import torch

from sonorant.data.ctc import CtcExample, check_examples, collate_ctc


def example(name: str, frames: int, target: list[int]) -> CtcExample:
    return CtcExample(name, torch.randn(frames, 3), torch.tensor(target))


def test_collate_pads_features_and_targets() -> None:
    batch = collate_ctc([example("a", 5, [1]), example("b", 3, [1, 2])])
    assert batch.ids == ["a", "b"]
    assert batch.features.shape == (2, 5, 3)
    assert batch.feature_lengths.tolist() == [5, 3]
    assert batch.targets.tolist() == [[1, 0], [1, 2]]
    assert batch.target_lengths.tolist() == [1, 2]


def test_every_example_that_cannot_be_learned_is_named() -> None:
    broken = example("nan", 50, [1])
    broken.features[7, 1] = torch.nan
    examples = [example("fine", 30, [1, 2]), example("long", 30, [1, 1, 1]), broken, example("short", 26, [1])]
    with pytest.raises(ValueError, match="3 of 4 utterances") as caught:
        check_examples(examples, lambda lengths: (lengths - 26).clamp(min=0))
    message = str(caught.value)
    assert "long: 30 frames leave 4 after the model, and its 3 labels need at least 5" in message
    assert "nan: the features of frame 7 are not finite" in message
    assert "short: 26 frames leave 0" in message
    assert "fine" not in message
    check_examples(examples[:1], lambda lengths: lengths - 26)
