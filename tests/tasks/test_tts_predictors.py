"""The task of the predictors: their targets, what stays as it is, ranks, and losses that are not finite."""

import pytest
import torch

from sonorant.data.tts import TtsBatch
from sonorant.tasks.tts_predictors import PREDICTED, PredictorsTask
from tests.tasks.tts import make_batch, make_model, make_task, on_two_ranks, part, record_logs


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    return record_logs(monkeypatch)


@pytest.fixture
def task(logged: dict[str, float]) -> PredictorsTask:
    made: PredictorsTask = make_task(PredictorsTask, make_model())
    made.train()
    return made


@pytest.fixture
def batch() -> TtsBatch:
    return make_batch()


@torch.no_grad()
def test_what_is_predicted(task: PredictorsTask, batch: TtsBatch, logged: dict[str, float]) -> None:
    task.eval()
    losses, counts = task.dev_losses(batch)
    hard = task.align_hard(batch)
    embedded = task.model.embed(batch.tokens, batch.accents)
    sums = dict.fromkeys(PREDICTED, 0.0)
    numbers = dict.fromkeys(PREDICTED, 0)
    for index in range(3):
        n, k = int(batch.mel_lengths[index]), int(batch.token_lengths[index])
        voice = batch.speakers[index : index + 1], batch.accents[index : index + 1]
        path, own = hard[index, :n, :k], embedded[index : index + 1, :k]
        durations = task.model.predict_durations(own, torch.tensor([k]), *voice)[0]
        f0, energy, voiced = (
            value[0] for value in task.model.predict_attributes(path.unsqueeze(0) @ own, torch.tensor([n]), *voice)
        )
        is_voiced = batch.voiced[index, :n] > 0
        sums["duration"] += float((durations - (path.sum(0) + 1).log()).square().sum())
        sums["f0"] += float((f0 - batch.speaker_f0[index, :n]).square()[is_voiced].sum())
        sums["energy"] += float((energy - batch.speaker_energy[index, :n]).square().sum())
        probs = voiced.sigmoid()
        sums["voicing"] -= float(torch.where(is_voiced, probs, 1 - probs).log().sum())
        for name, number in zip(PREDICTED, (k, int(is_voiced.sum()), n, n), strict=True):
            numbers[name] += number
    for name in PREDICTED:
        assert int(counts[name]) == numbers[name]
        assert losses[name].item() == pytest.approx(sums[name] / numbers[name], rel=1e-5)
    for each in (part(batch, 0, 2), part(batch, 1)):
        task.validation_step(each, 0)
    task.on_validation_epoch_end()
    assert logged["dev/f0"] == pytest.approx(sums["f0"] / numbers["f0"], rel=1e-5)
    assert logged["dev_loss"] == pytest.approx(sum(sums[name] / numbers[name] for name in PREDICTED), rel=1e-5)


def test_nothing_else_is_trained_or_disturbed(task: PredictorsTask, batch: TtsBatch) -> None:
    task.train()
    assert not any(
        module.training for part in ("aligner", "encoder", "decoder") for module in getattr(task.model, part).modules()
    )
    assert all(predictor.training for predictor in task.model.predictors)
    task.training_step(batch, 0).backward()
    trained = {id(parameter) for each in task.model.predictors for parameter in each.parameters()}
    for parameter in task.model.parameters():
        assert (parameter.grad is not None) == (id(parameter) in trained)


@pytest.mark.parametrize("split", [((0, 1), (2,)), ((0, 1, 2), ())])
def test_ranks_have_the_loss_of_the_whole_batch_in_the_mean(
    task: PredictorsTask, batch: TtsBatch, split: tuple[tuple[int, ...], ...], logged: dict[str, float]
) -> None:
    whole = task.training_step(batch, 0)
    assert logged["loss"] == pytest.approx(whole.item())
    assert {f"train/{name}" for name in PREDICTED} < logged.keys()
    losses = on_two_ranks(task, [part(batch, *indices) for indices in split])
    torch.testing.assert_close(torch.stack(losses).mean(), whole)


def test_a_rank_without_utterances_takes_part(task: PredictorsTask, batch: TtsBatch) -> None:
    task.training_step(part(batch), 0).backward()
    assert all(value.grad is not None for value in task.model.parameters() if value.requires_grad)


def test_a_batch_without_a_voiced_frame(task: PredictorsTask, batch: TtsBatch) -> None:
    silent = batch._replace(voiced=torch.zeros_like(batch.voiced))
    loss = task.training_step(silent, 0)
    loss.backward()
    assert loss.isfinite()
    assert all(not value.grad.any() for value in task.model.f0_predictor.parameters() if value.grad is not None)


def test_a_loss_that_is_not_finite_names_its_term(task: PredictorsTask, batch: TtsBatch) -> None:
    batch.speaker_energy[1, 3] = torch.nan
    with pytest.raises(FloatingPointError, match=r"step 0: the energy predictor's loss is not finite: a\.wav \(nan\)"):
        task.training_step(batch, 0)
