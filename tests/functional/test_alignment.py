"""What the contracts do not say about binarization, durations and the prior."""

import pytest
import torch

from sonorant.functional import (
    alignment_durations,
    attention_binarization_loss,
    beta_binomial_prior,
    monotonic_alignment_search,
)
from sonorant.losses import AlignmentLoss, AlignmentLosses, AlignmentLossWeights
from tests.cases.case import Rng


def test_binarization_values() -> None:
    hard = torch.eye(3).unsqueeze(0)
    assert attention_binarization_loss(hard, torch.zeros(1, 3, 3)).item() == pytest.approx(27.631, abs=5e-4)
    assert attention_binarization_loss(hard, torch.full((1, 3, 3), 0.25)).item() == pytest.approx(1.3863, abs=5e-5)
    assert attention_binarization_loss(hard * 0, torch.rand(1, 3, 3)).item() == 0.0


def test_binarization_gradients() -> None:
    hard = torch.eye(3).unsqueeze(0)
    ones = torch.ones(1, 3, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(attention_binarization_loss(hard, ones), ones)
    torch.testing.assert_close(gradient, -hard / 3)
    for soft, alignment in ((torch.zeros(1, 3, 3), hard), (torch.rand(1, 3, 3), hard * 0)):
        soft.requires_grad_()
        (gradient,) = torch.autograd.grad(attention_binarization_loss(alignment, soft), soft)
        assert not gradient.any()


def test_binarization_reads_only_the_selected_cells() -> None:
    hard = torch.zeros(2, 3, 2)
    hard[0, 0, 0] = hard[0, 1, 1] = 1
    soft = torch.full((2, 3, 2), torch.nan)
    soft[hard == 1] = 0.5
    soft.requires_grad_()
    loss = attention_binarization_loss(hard, soft)
    assert loss.item() == pytest.approx(0.693147, abs=1e-6)
    (gradient,) = torch.autograd.grad(loss, soft)
    torch.testing.assert_close(gradient, -hard)
    assert attention_binarization_loss(hard == 1, soft).item() == loss.item()


def test_binarization_reductions_and_heads() -> None:
    lengths = torch.tensor([6, 4]), torch.tensor([3, 2])
    hard = monotonic_alignment_search(Rng(0).randn(2, 2, 6, 3), *lengths)
    soft = Rng(1).rand(2, 2, 6, 3)
    values = attention_binarization_loss(hard, soft, reduction="none")
    each = torch.stack([attention_binarization_loss(hard[:, h], soft[:, h], reduction="none") for h in range(2)])
    torch.testing.assert_close(values, each.mean(0))
    torch.testing.assert_close(attention_binarization_loss(hard, soft, reduction="sum"), values.sum())
    torch.testing.assert_close(attention_binarization_loss(hard, soft, reduction="batchmean"), values.sum() / 2)
    torch.testing.assert_close(attention_binarization_loss(hard, soft), values.sum() / 10)


def test_binarization_refuses_bad_arguments() -> None:
    with pytest.raises(ValueError, match="alignment has shape"):
        attention_binarization_loss(torch.ones(1, 2, 2), torch.ones(1, 2, 3))
    with pytest.raises(ValueError, match="eps is 0"):
        attention_binarization_loss(torch.ones(1, 2, 2), torch.ones(1, 2, 2), eps=0.0)


def test_durations_of_other_dtypes_and_more_frames_than_they_can_count() -> None:
    alignment = torch.zeros(1, 5000, 2)
    alignment[:, :4097, 0] = 1
    alignment[:, 4097:, 1] = 1
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.int64):
        durations = alignment_durations(alignment.to(dtype))
        assert durations.dtype == torch.int64
        assert durations.tolist() == [[4097, 903]]


def test_prior_rows_sum_to_one_and_follow_the_diagonal() -> None:
    frames, tokens = torch.tensor([80, 31]), torch.tensor([12, 20])
    prior = beta_binomial_prior(frames, tokens, dtype=torch.float64)
    assert prior.shape == (2, 80, 20)
    torch.testing.assert_close(prior[0].sum(1), torch.ones(80, dtype=torch.float64))
    torch.testing.assert_close(prior[1, :31].sum(1), torch.ones(31, dtype=torch.float64))
    assert not prior[1, 31:].any()
    assert not prior[0, :, 12:].any()
    assert (prior[0].argmax(1).diff() >= 0).all()
    torch.testing.assert_close(prior[0, :, :12], prior[0, :, :12].flip(0, 1))


def test_prior_of_long_inputs_is_finite_and_single_tokens_are_certain() -> None:
    prior = beta_binomial_prior(torch.tensor([3000]), torch.tensor([500]))
    assert prior.dtype == torch.float32
    # it is computed some rows at a time: none is left out or put elsewhere
    torch.testing.assert_close(prior.sum(2), torch.ones(1, 3000))
    torch.testing.assert_close(prior, prior.flip(1, 2))
    assert torch.equal(beta_binomial_prior(torch.tensor([4]), torch.tensor([1])), torch.ones(1, 4, 1))


def test_prior_refuses_bad_arguments() -> None:
    with pytest.raises(ValueError, match="scaling is 0"):
        beta_binomial_prior(torch.tensor([4]), torch.tensor([1]), 0)
    with pytest.raises(ValueError, match=r"key_lengths\[1\] is 0"):
        beta_binomial_prior(torch.tensor([4, 4]), torch.tensor([1, 0]))


def test_the_composite_loss_names_its_terms_and_weights_alike() -> None:
    settings = {"binarization_start"}
    assert set(AlignmentLosses._fields) == set(AlignmentLossWeights.__dataclass_fields__) - settings
    assert AlignmentLossWeights() == AlignmentLossWeights(forward_sum=0.1, binarization=1.0)
    scores = torch.zeros(1, 3, 2)
    terms = AlignmentLoss()(scores * 0, scores, scores, torch.tensor([3]), torch.tensor([2]))
    assert terms.forward_sum.item() == pytest.approx(0.7267, abs=5e-5)
    assert terms.binarization.item() == 0.0
