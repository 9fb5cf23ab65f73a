"""Weights of trainings that have ended."""

from pathlib import Path

import pytest
import torch
from torch import nn

from sonorant.tasks import finished
from sonorant.tasks.finished import keep_finished, take_finished


def test_a_finished_training_gives_its_weights_and_facts_back(tmp_path: Path) -> None:
    trained, fresh = nn.Linear(3, 2), nn.Linear(3, 2)
    keep_finished(trained, tmp_path, {"train_seconds": "1.5"})
    assert take_finished(fresh, tmp_path) == {"train_seconds": "1.5"}
    assert torch.equal(fresh.weight, trained.weight)
    assert torch.equal(fresh.bias, trained.bias)


def test_it_is_finished_without_facts_too(tmp_path: Path) -> None:
    keep_finished(nn.Linear(3, 2), tmp_path)
    assert take_finished(nn.Linear(3, 2), tmp_path) == {}


def test_a_training_that_has_not_ended_leaves_the_model_as_it_is(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    before = model.weight.clone()
    assert take_finished(model, tmp_path) is None
    assert torch.equal(model.weight, before)


def test_a_kill_while_writing_leaves_nothing_that_looks_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(finished, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        keep_finished(nn.Linear(3, 2), tmp_path)
    assert take_finished(nn.Linear(3, 2), tmp_path) is None
