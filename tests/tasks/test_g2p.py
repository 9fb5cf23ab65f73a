"""The task of pronunciations: its losses, and the phone error rate of the dev set."""

from types import SimpleNamespace

import pytest
import torch
from torchmetrics import MeanMetric

from sonorant.data.batching import BucketBatchSampler, Draw, StatefulLoader
from sonorant.data.g2p import G2pBatch, G2pDataset, collate_g2p
from sonorant.models import G2p, G2pConfig
from sonorant.tasks.g2p import G2pLossConfig, G2pTask
from sonorant.tasks.optimization import OptimizerConfig
from sonorant.text import Lexicon, SymbolTable

GRAPHEMES, PHONES = SymbolTable("abx"), SymbolTable(["A", "B", "K", "S"])
LEXICON = Lexicon({"ab": [["A", "B"], ["A"]], "x": [["K", "S", "K", "S"]], "ba": [["B", "A"]]})


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    values: dict[str, float] = {}

    def log(self: G2pTask, name: str, value: MeanMetric, **_: object) -> None:
        values[name] = float(value.compute())

    strategy = SimpleNamespace(reduce=lambda count, reduce_op: count)  # of one rank
    monkeypatch.setattr(G2pTask, "log", log)
    monkeypatch.setattr(G2pTask, "trainer", SimpleNamespace(global_step=0, strategy=strategy))
    return values


def make_task(ctc_frames: int = 0, **options: float) -> G2pTask:
    torch.manual_seed(0)
    config = G2pConfig(embedding_dim=4, encoder_dim=4, decoder_dim=4, dropout=0.0, ctc_frames=ctc_frames)
    model = G2p(config, len(GRAPHEMES), len(PHONES)).double()

    def make_loader(rank: int, num_ranks: int) -> StatefulLoader:
        raise AssertionError

    return G2pTask(model, OptimizerConfig(), make_loader, total_steps=10, loss=G2pLossConfig(**options))


def make_batch(*, split_pronunciations: bool) -> G2pBatch:
    dataset = G2pDataset(LEXICON, GRAPHEMES, PHONES, split_pronunciations=split_pronunciations)
    return collate_g2p([dataset[Draw(index, 7)] for index in range(len(dataset))])


def test_pronunciations_are_examples_for_training_and_references_otherwise() -> None:
    batch = make_batch(split_pronunciations=True)
    assert batch.words == ["ab", "ab", "ba", "x"]
    assert batch.phones.tolist() == [[1, 2, 0, 0, 0], [1, 0, 0, 0, 0], [2, 1, 0, 0, 0], [3, 4, 3, 4, 0]]
    assert batch.phone_lengths.tolist() == [3, 2, 3, 5]
    batch = make_batch(split_pronunciations=False)
    assert batch.pronunciations == [[[1, 2], [1]], [[2, 1]], [[3, 4, 3, 4]]]
    assert batch.grapheme_lengths.tolist() == [2, 2, 1]
    loader = StatefulLoader(
        G2pDataset(LEXICON, GRAPHEMES, PHONES, split_pronunciations=True),
        BucketBatchSampler([4, 3, 4, 5], 2),
        collate_fn=collate_g2p,
    )
    assert sum(len(batch.words) for batch in loader) == 4


def test_the_loss_is_the_mean_over_phones_with_their_end_marks(logged: dict[str, float]) -> None:
    task, batch = make_task(smoothing=0.0, guide_weight=0.0), make_batch(split_pronunciations=True)
    loss = task.training_step(batch, 0)
    output = task.model(batch.graphemes, batch.grapheme_lengths, batch.phones, batch.phone_lengths)
    log_probs = output.logits.log_softmax(-1).gather(2, batch.phones.unsqueeze(2)).squeeze(2)
    total = sum(float(row[:length].sum()) for row, length in zip(log_probs, batch.phone_lengths, strict=True))
    assert float(loss) == pytest.approx(-total / 13)
    assert logged["loss"] == pytest.approx(float(loss))


def test_the_guide_fades_and_is_not_logged(logged: dict[str, float]) -> None:
    batch = make_batch(split_pronunciations=True)
    guided, plain = make_task().training_step(batch, 0), make_task(guide_weight=0.0).training_step(batch, 0)
    assert guided > plain
    assert logged["loss"] == pytest.approx(float(plain))
    config = G2pLossConfig(guide_weight=2.0, guide_until=0.5)
    assert [config.guide_weight_at(step, 10) for step in (0, 2, 5, 9)] == [2.0, pytest.approx(1.2), 0.0, 0.0]
    with pytest.raises(ValueError, match="guide_until in"):
        G2pLossConfig(guide_until=0.0)


def test_a_word_with_too_many_phones_for_ctc_leaves_the_loss_finite(logged: dict[str, float]) -> None:
    batch = make_batch(split_pronunciations=True)  # x has 2 frames for 4 phones
    task = make_task(ctc_frames=2, ctc_weight=0.5)
    loss = task.training_step(batch, 0)
    assert loss > make_task(ctc_frames=2, ctc_weight=0.0).training_step(batch, 0)
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in task.parameters() if parameter.grad is not None)


def test_the_dev_set_is_scored_against_the_nearest_pronunciation(logged: dict[str, float]) -> None:
    task = make_task().eval()
    task.model.output.weight.data.zero_()
    task.model.output.bias.data = torch.tensor([-1.0, 0.0, -9.0, -9.0, -9.0]).double()  # A until the cap
    task.validation_step(make_batch(split_pronunciations=False), 0)
    # 20 times A for ab and ba, 16 times for x; of the two that are as near to the first, A B counts
    assert logged["dev_per"] == pytest.approx((19 + 19 + 16) / (2 + 2 + 4))


def test_a_loss_that_is_not_finite_names_the_words(logged: dict[str, float]) -> None:
    task = make_task()
    task.model.output.bias.data.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match=r"step 0: .* ab \(nan\), ab \(nan\), ba \(nan\), x"):
        task.training_step(make_batch(split_pronunciations=True), 0)


def test_a_rank_without_a_part_in_the_batch_has_no_gradient(logged: dict[str, float]) -> None:
    task, batch = make_task(), make_batch(split_pronunciations=True)
    empty = G2pBatch(*(field[:0] for field in batch))
    task.training_step(empty, 0).backward()
    assert all(not parameter.grad.any() for parameter in task.parameters())
    task.validation_step(empty, 0)
    assert not logged
