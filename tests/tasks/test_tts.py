"""The task of flow and aligner: its terms and when they count, ranks, and losses that are not finite."""

from typing import Any

import pytest
import torch

from sonorant.data.tts import TtsBatch
from sonorant.functional import (
    attention_binarization_loss,
    covariance_loss,
    cross_covariance_loss,
    flow_nll,
    forward_sum_loss,
    monotonic_alignment_search,
    variance_loss,
)
from sonorant.models.flow_tts import Attributes
from sonorant.tasks.tts import FlowTtsLossConfig, FlowTtsTask
from sonorant.tasks.tts_predictors import PREDICTED, predictor_losses
from sonorant.tasks.tts_task import mean_terms
from tests.tasks.tts import make_batch, make_model, make_task, on_two_ranks, part, record_logs

LOSS = FlowTtsLossConfig(
    blank_logprob=-0.5, forward_sum=0.3, binarization=3.0, hard_from=0.2, binarization_from=0.5, variance=0.2
)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    return record_logs(monkeypatch)


@pytest.fixture
def task(logged: dict[str, float]) -> FlowTtsTask:
    made: FlowTtsTask = make_task(FlowTtsTask, make_model(), loss=LOSS, regression=True)
    return made


@pytest.fixture
def later(logged: dict[str, float]) -> FlowTtsTask:
    """The task of the whole flow."""
    made: FlowTtsTask = make_task(FlowTtsTask, make_model(), loss=LOSS)
    return made


@pytest.fixture
def batch() -> TtsBatch:
    return make_batch()


def expected_total(
    task: FlowTtsTask, batch: TtsBatch, *, hard: bool, binarized: bool, num_flows: int | None = None
) -> torch.Tensor:
    model, lengths = task.model, (batch.mel_lengths, batch.token_lengths)
    aligned = task.align(batch)
    path = monotonic_alignment_search(aligned.log_attention, *lengths)
    text = model.encode(batch.tokens, batch.token_lengths, batch.accents, batch.seeds)
    frames = (path if hard else aligned.attention) @ text
    attributes = Attributes(batch.f0, batch.energy, batch.voiced)
    flow = model.flow(batch.log_mel, batch.mel_lengths, frames, attributes, batch.speakers, batch.accents, num_flows)
    total = flow_nll(*flow, batch.mel_lengths // 2).nll
    total = total + 0.3 * forward_sum_loss(aligned.log_attention, *lengths, blank_logprob=-0.5)
    if binarized:
        total = total + 3 * attention_binarization_loss(path, aligned.attention)
    speakers, accents = model.speakers.weight, model.accents.weight
    pairs = speakers[batch.speakers], accents[batch.accents]
    total = total + cross_covariance_loss(*pairs, mean_a=speakers.mean(0), mean_b=accents.mean(0))
    total = total + 0.2 * (variance_loss(speakers) + variance_loss(accents))
    return total + 0.1 * (covariance_loss(speakers) + covariance_loss(accents))


@pytest.mark.parametrize("step", [1, 2, 5, 6])
def test_the_loss_and_when_its_terms_begin(
    task: FlowTtsTask, batch: TtsBatch, step: int, logged: dict[str, float]
) -> None:
    task.trainer.global_step = step
    loss = task.training_step(batch, 0)
    torch.testing.assert_close(loss, expected_total(task, batch, hard=step >= 2, binarized=step >= 6, num_flows=1))
    terms = {"flow_nll", "prior_nll", "forward_sum", "binarization", "cross_covariance", "variance", "covariance"}
    assert logged.keys() == {"loss", *(f"train/{name}" for name in terms)}
    assert logged["loss"] == pytest.approx(logged["train/flow_nll"])


def test_the_whole_flow_trusts_the_aligner_from_the_start(later: FlowTtsTask, batch: TtsBatch) -> None:
    for step in (0, 1):
        later.trainer.global_step = step
        loss = later.training_step(batch, 0)
        torch.testing.assert_close(loss, expected_total(later, batch, hard=True, binarized=step > 0))


def test_the_regression_trains_the_first_flow(task: FlowTtsTask, batch: TtsBatch) -> None:
    decoder = task.model.decoder
    task.training_step(batch, 0).backward()
    later = {id(parameter) for part in (decoder.linears, decoder.couplings[1:]) for parameter in part.parameters()}
    assert later
    for parameter in decoder.parameters():
        assert (parameter.grad is None) == (id(parameter) in later)


def test_predictors_can_be_trained_along(logged: dict[str, float], batch: TtsBatch) -> None:
    task: FlowTtsTask = make_task(FlowTtsTask, make_model(), loss=LOSS, joint=True)
    predicted = predictor_losses(task.model, task.align_hard(batch), batch)
    loss = task.training_step(batch, 0)
    expected = expected_total(task, batch, hard=True, binarized=False) + torch.stack(list(predicted.values())).sum()
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert all(parameter.grad is not None for parameter in task.model.parameters())
    assert {f"train/{name}" for name in PREDICTED} < logged.keys()
    assert task.eval().dev_losses(batch).losses.keys() == {"flow_nll", *PREDICTED}


def test_predictors_stay_as_they_are_otherwise(later: FlowTtsTask, batch: TtsBatch) -> None:
    later.training_step(batch, 0).backward()
    untrained = {id(parameter) for each in later.model.predictors for parameter in each.parameters()}
    for parameter in later.model.parameters():
        assert (parameter.grad is None) == (id(parameter) in untrained)


@pytest.mark.parametrize("step", [0, 9])
@pytest.mark.parametrize("options", [{"regression": True}, {}, {"joint": True}], ids=["regression", "flow", "joint"])
@pytest.mark.parametrize("split", [((0, 1), (2,)), ((0, 1, 2), ())])
def test_ranks_have_the_loss_of_the_whole_batch_in_the_mean(
    logged: dict[str, float],
    batch: TtsBatch,
    step: int,
    options: dict[str, bool],
    split: tuple[tuple[int, ...], ...],
) -> None:
    task: FlowTtsTask = make_task(FlowTtsTask, make_model(), loss=LOSS, **options)
    task.trainer.global_step = step
    whole = task.training_step(batch, 0)
    whole.backward()
    gradients = {name: value.grad for name, value in task.model.named_parameters() if value.grad is not None}
    task.zero_grad()
    losses = on_two_ranks(task, [part(batch, *indices) for indices in split])
    torch.testing.assert_close(torch.stack(losses).mean(), whole)
    torch.stack(losses).mean().backward()
    for name, value in task.model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(value.grad, gradients[name], rtol=1e-4, atol=1e-6)


def test_a_rank_without_utterances_takes_part(task: FlowTtsTask, batch: TtsBatch) -> None:
    empty = part(batch)
    task.training_step(empty, 0).backward()
    assert all(value.grad is not None for value in task.model.parameters() if value.requires_grad)
    task.validation_step(empty, 0)


def test_the_dev_loss_is_the_likelihood_along_the_path(
    later: FlowTtsTask, batch: TtsBatch, logged: dict[str, float]
) -> None:
    task = later.eval()
    parts = [part(batch, 0, 1), part(batch, 2)]
    for each in parts:
        task.validation_step(each, 0)
    task.on_validation_epoch_end()
    text = task.model.encode(batch.tokens, batch.token_lengths, batch.accents)
    attributes = Attributes(batch.f0, batch.energy, batch.voiced)
    frames = task.align_hard(batch) @ text
    flow = task.model.flow(batch.log_mel, batch.mel_lengths, frames, attributes, batch.speakers, batch.accents)
    expected = flow_nll(*flow, batch.mel_lengths // 2).nll.item()
    assert logged["dev_loss"] == logged["dev/flow_nll"] == pytest.approx(expected, rel=1e-5)
    assert mean_terms(task.train(), parts) == {"flow_nll": pytest.approx(expected, rel=1e-5)}


def test_a_loss_that_is_not_finite_names_its_term_and_utterances(task: FlowTtsTask, batch: TtsBatch) -> None:
    batch.log_mel[1, 3] = torch.nan
    with pytest.raises(FloatingPointError, match=r"step 0: the flow-nll loss is not finite: b\.wav \(nan\)$"):
        task.training_step(batch, 0)
    with pytest.raises(FloatingPointError, match=r"step 0: the dev set's flow_nll loss is not finite: a\.wav"):
        task.validation_step(batch, 0)


def test_vectors_that_are_not_finite_are_named(task: FlowTtsTask, batch: TtsBatch) -> None:
    task.model.speakers.weight.data[2, 0] = torch.nan  # of a speaker who is not in the batch
    with pytest.raises(FloatingPointError, match=r"step 0: the cross-covariance loss is not finite: a\.wav"):
        task.training_step(batch, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variance": -1.0}, r"variance must not be negative; got -1\.0"),
        ({"hard_from": 0.6, "binarization_from": 0.5}, r"hard_from <= binarization_from <= 1 is needed; got 0\.6"),
        ({"binarization_from": 1.1}, "is needed"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FlowTtsLossConfig(**changes)
