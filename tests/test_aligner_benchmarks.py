"""The benchmarks of the aligner: two forms of a training step agree; boundaries are exact, and stay so."""

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import aligner_step
from benchmarks.aligner_boundaries import held_out, row, train_and_measure

from sonorant.data.fsdd import FsddCorpus
from sonorant.models import AlignmentEncoder, AlignmentEncoderConfig
from sonorant.recipes import aligner as recipe


def test_both_forms_of_a_training_step_agree() -> None:
    torch.manual_seed(0)
    sizes = aligner_step.NUM_FEATURES, aligner_step.NUM_TOKENS
    model = AlignmentEncoder(AlignmentEncoderConfig(hidden_channels=8), *sizes)
    batch = aligner_step.make_batch(3, 40, 7)
    ours, theirs = (aligner_step.step(model, batch, form) for form in (aligner_step.ours, aligner_step.theirs))
    assert len(ours) == len(list(model.parameters())) + 1
    for found, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = aligner_step.theirs
    monkeypatch.setattr(aligner_step, "theirs", lambda model, batch: 1.01 * wrong(model, batch))
    with pytest.raises(SystemExit, match="the two steps differ by"):
        aligner_step.compare((2, 20, 5), repeats=1)


def test_held_out_recordings_are_others(fsdd: FsddCorpus) -> None:
    parts = held_out()
    first, second = ({utterance.id for utterance in part} for part in parts)
    assert not first & second
    assert first | second == {utterance.id for utterance in fsdd.train}
    assert 0.15 < len(second) / len(fsdd.train) < 0.25


def test_rows() -> None:
    assert row("0", [1.0, 3.0, 200.0, 4.0], 61.2) == "| 0 | 52.0 | 3.5 | 141.2 | 170.6 | 25.00% | 61 |"


@pytest.mark.slow
def test_boundaries_are_exact_and_stay_so(fsdd: FsddCorpus, tmp_path: Path) -> None:
    """As published, an aligner gets worse with training; here the error may not grow after the first minute."""
    default = recipe.Config(data=recipe.DataConfig(train="")).trainer.max_epochs
    short, long = (train_and_measure(tmp_path, 0, fsdd, epochs=epochs).all for epochs in (3, default))
    assert long.mean() <= short.mean() + 2
    assert long.mean() < 14
    for share, limit in ((50, 10), (90, 22), (95, 35)):
        assert np.percentile(long, share) < limit
    assert (long > 100).mean() < 0.02
