"""The task of alignment: its losses, when binarization begins, and what it says about a loss that is not finite."""

from types import SimpleNamespace

import pytest
import torch
from torchmetrics import MeanMetric

from sonorant.data.alignment import AlignmentBatch, AlignmentExample, collate_alignment
from sonorant.data.batching import StatefulLoader
from sonorant.functional import attention_binarization_loss, forward_sum_loss, monotonic_alignment_search
from sonorant.losses import AlignmentLossWeights
from sonorant.models import AlignmentEncoder, AlignmentEncoderConfig, AlignmentPrior
from sonorant.tasks.aligner import AlignerLossConfig, AlignerTask
from sonorant.tasks.optimization import OptimizerConfig

BOUNDARY = 1
LOSS = AlignerLossConfig(
    blank_logprob=-0.5, weights=AlignmentLossWeights(forward_sum=2.0, binarization=3.0, binarization_start=5)
)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    values: dict[str, float] = {}

    def log(self: AlignerTask, name: str, value: MeanMetric, **_: object) -> None:
        values[name] = float(value.compute())

    strategy = SimpleNamespace(reduce=lambda count, reduce_op: count)  # of one rank
    monkeypatch.setattr(AlignerTask, "log", log)
    monkeypatch.setattr(AlignerTask, "trainer", SimpleNamespace(global_step=0, strategy=strategy))
    return values


@pytest.fixture
def task(logged: dict[str, float]) -> AlignerTask:
    torch.manual_seed(0)
    model = AlignmentEncoder(AlignmentEncoderConfig(hidden_channels=6, attention_dim=4), 5, 6)

    def make_loader(rank: int, num_ranks: int) -> StatefulLoader:
        raise AssertionError

    return AlignerTask(
        model, OptimizerConfig(), make_loader, total_steps=10, boundary=BOUNDARY, prior=AlignmentPrior(), loss=LOSS
    )


@pytest.fixture
def batch() -> AlignmentBatch:
    generator = torch.Generator().manual_seed(1)
    examples = [
        AlignmentExample(name, torch.randn(frames, 5, generator=generator), torch.tensor(tokens), 0)
        for name, frames, tokens in (("a.wav", 20, [1, 2, 3, 1]), ("b.wav", 9, [1, 4, 1]))
    ]
    return collate_alignment(examples)


def test_examples_are_padded(batch: AlignmentBatch) -> None:
    assert batch.features.shape == (2, 20, 5)
    assert batch.tokens.tolist() == [[1, 2, 3, 1], [1, 4, 1, 0]]
    assert (batch.feature_lengths.tolist(), batch.token_lengths.tolist()) == ([20, 9], [4, 3])


@pytest.mark.parametrize("step", [5, 6])
def test_binarization_begins_when_it_should(task: AlignerTask, batch: AlignmentBatch, step: int) -> None:
    task.trainer.global_step = step
    prior = AlignmentPrior().log_prior(
        batch.features, batch.feature_lengths, batch.tokens == BOUNDARY, batch.token_lengths
    )
    lengths = batch.feature_lengths, batch.token_lengths
    output = task.model(batch.features, lengths[0], batch.tokens, lengths[1], log_prior=prior)
    expected = 2 * forward_sum_loss(output.log_attention, *lengths, blank_logprob=-0.5)
    hard = monotonic_alignment_search(output.log_attention, *lengths)
    if step == 6:
        expected = expected + 3 * attention_binarization_loss(hard, output.attention)
    torch.testing.assert_close(task.training_step(batch, 0), expected)


def test_what_is_logged(task: AlignerTask, batch: AlignmentBatch, logged: dict[str, float]) -> None:
    loss = task.training_step(batch, 0)
    assert logged["loss"] == pytest.approx(loss.item() / 2)
    task.validation_step(batch, 0)
    assert logged["dev_loss"] == pytest.approx(logged["loss"], rel=1e-5)


def test_a_loss_that_is_not_finite_names_its_utterances(task: AlignerTask, batch: AlignmentBatch) -> None:
    batch.features[1, 3] = torch.nan
    with pytest.raises(FloatingPointError, match=r"step 0: the forward-sum loss is not finite: b\.wav \(nan\)$"):
        task.training_step(batch, 0)


def test_a_rank_without_utterances_takes_part(task: AlignerTask, batch: AlignmentBatch) -> None:
    empty = AlignmentBatch(*(field[:0] for field in batch))
    loss = task.training_step(empty, 0)
    loss.backward()
    assert loss.item() == 0
    assert all(parameter.grad is not None for parameter in task.model.parameters())
    task.validation_step(empty, 0)
