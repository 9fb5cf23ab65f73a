"""Special values and bad arguments of the guided loss, the masked softmax and the location weights."""

import pytest
import torch
from torch import Tensor

from sonorant.functional import (
    guided_attention_loss,
    guided_attention_weights,
    kernels,
    location_attention_weights,
    masked_softmax,
)
from sonorant.losses import GuidedAttentionLoss
from tests.cases.attention import CASES
from tests.cases.case import Rng, cast, run

LOCATION = next(case for case in CASES if case.name == "location_attention_weights")


def lengths(*values: int) -> Tensor:
    return torch.tensor(values)


def test_the_diagonal_costs_nothing_and_uniform_attention_its_mean_weight() -> None:
    five = lengths(5)
    assert guided_attention_loss(torch.eye(5).unsqueeze(0), five, five) == 0
    uniform = guided_attention_loss(torch.full((1, 5, 5), 0.2), five, five)
    torch.testing.assert_close(uniform, torch.tensor(0.11433), atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [10, 100, 400])
def test_per_query_the_loss_does_not_shrink_with_the_text(size: int) -> None:
    attention = torch.full((1, size, size), 1 / size)
    loss = guided_attention_loss(attention, lengths(size), lengths(size), reduction="query_mean")
    assert abs(float(loss) - 0.58) < 0.02
    assert guided_attention_loss(attention, lengths(size), lengths(size)) < 0.6 / size


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_large_and_small_grids_give_the_same(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    attention = torch.rand(3, 9, 7, dtype=torch.float64).to(dtype)
    attention[1, 4:] = torch.nan
    attention[2, :, 3:] = torch.inf
    sizes = lengths(9, 4, 1), lengths(7, 7, 3)
    results = []
    for largest in (0, 63):
        monkeypatch.setattr("sonorant.functional.attention._SMALL_GRID", largest)
        leaf = attention.clone().requires_grad_()
        loss = guided_attention_loss(leaf, *sizes)
        loss.backward()
        assert leaf.grad is not None
        results.append((loss.detach(), leaf.grad))
    torch.testing.assert_close(*results)


def test_reductions_are_the_same_total_over_different_counts() -> None:
    rng = Rng(0)
    attention, queries, keys = rng.rand(2, 7, 5), lengths(7, 3), lengths(4, 5)
    each = guided_attention_loss(attention, queries, keys, reduction="none")
    for reduction, count in {"sum": 1, "mean": 7 * 4 + 3 * 5, "query_mean": 10, "batchmean": 2}.items():
        loss = guided_attention_loss(attention, queries, keys, reduction=reduction)
        torch.testing.assert_close(loss, each.sum() / count)


def test_each_utterance_has_its_own_diagonal_on_the_lengths_device() -> None:
    weights = guided_attention_weights(lengths(6, 3), lengths(3, 3))
    assert weights.shape == (2, 6, 3)
    assert weights.dtype == torch.get_default_dtype()
    assert weights[0, 4, 2] == 0  # 2 / 3 of both
    assert weights[1, 2, 2] == 0
    assert not weights[1, 3:].any()


def test_the_compiled_form_equals_the_eager_one(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = Rng(1).rand(3, 9, 6).requires_grad_()
    arguments = lengths(9, 2, 5), lengths(1, 6, 3)
    results = []
    for compiling in (False, True):
        monkeypatch.setattr("torch.compiler.is_compiling", lambda answer=compiling: answer)
        loss = guided_attention_loss(attention, *arguments)
        results.append((loss, *torch.autograd.grad(loss, attention)))
    for eager, traced in zip(*results, strict=True):
        torch.testing.assert_close(eager, traced, atol=1e-14, rtol=0)


@pytest.mark.parametrize("sigma", [0.0, -0.2, float("nan")])
def test_sigma_has_to_be_positive(sigma: float) -> None:
    for call in (
        lambda: guided_attention_loss(torch.ones(1, 2, 2), lengths(2), lengths(2), sigma),
        lambda: guided_attention_weights(lengths(2), lengths(2), sigma),
        lambda: GuidedAttentionLoss(sigma),
    ):
        with pytest.raises(ValueError, match="sigma"):
            call()


def test_guided_arguments_that_cannot_be_right_are_named() -> None:
    attention = torch.ones(2, 4, 3)
    with pytest.raises(ValueError, match="reduction"):
        guided_attention_loss(attention, lengths(4, 4), lengths(3, 3), reduction="average")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="attention must have shape"):
        guided_attention_loss(attention[0], lengths(4), lengths(3))
    with pytest.raises(ValueError, match=r"key_lengths\[1\] is 0"):
        guided_attention_loss(attention, lengths(4, 4), lengths(3, 0))


def test_a_masked_score_may_be_anything_and_a_masked_row_is_zero() -> None:
    scores = torch.tensor([[1.0, torch.nan, 1.0], [torch.inf, torch.nan, -torch.inf]], requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    weights = masked_softmax(scores, mask)
    assert weights.tolist() == [[0.5, 0, 0.5], [0, 0, 0]]
    (gradient,) = torch.autograd.grad(weights[0, 0] + weights[1, 1], scores)
    assert gradient.tolist() == [[0.25, 0, -0.25], [0, 0, 0]]


def test_a_score_of_minus_infinity_counts_as_masked() -> None:
    scores = torch.tensor([[0.0, -torch.inf], [-torch.inf, -torch.inf]], requires_grad=True)
    weights = masked_softmax(scores, torch.ones(2, 2, dtype=torch.bool))
    assert weights.tolist() == [[1, 0], [0, 0]]
    (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    assert gradient.isfinite().all()


def test_masked_weights_are_zero_beside_an_undefined_score_and_behind_an_infinite_gradient() -> None:
    scores = torch.tensor([[torch.nan, 1.0, 2.0], [0.0, 0.0, torch.inf]], requires_grad=True)
    mask = torch.tensor([[True, False, True], [True, True, False]])
    weights = masked_softmax(scores, mask)
    assert weights[0].isnan().tolist() == [True, False, True]
    assert weights[1].tolist() == [0.5, 0.5, 0]
    (gradient,) = torch.autograd.grad(torch.where(mask, weights.log(), 0.0)[1, 0], scores, retain_graph=True)
    assert gradient[1].tolist() == [0.5, -0.5, 0]
    (gradient,) = torch.autograd.grad(weights.sum(), scores)
    assert gradient[0].isnan().tolist() == [True, False, True]


def test_the_softmax_can_be_differentiated_twice_along_any_axis() -> None:
    scores = Rng(0).randn(3, 4).requires_grad_()
    mask = Rng(1).rand(3, 4) < 0.6
    mask[:, 1] = False
    assert torch.autograd.gradgradcheck(lambda scores: masked_softmax(scores, mask, dim=0), scores)
    assert masked_softmax(scores[:0], mask[:0], dim=0).shape == (0, 4)


def test_half_scores_beyond_its_range_of_exponents() -> None:
    scores = torch.tensor([[60000.0, 59000.0]], dtype=torch.float16)
    assert masked_softmax(scores, torch.tensor([[True, True]])).tolist() == [[1, 0]]
    with pytest.raises(ValueError, match="mask"):
        masked_softmax(scores, torch.ones(1, 2))


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("taps", [1, 7, 31])
@pytest.mark.parametrize("attention_dim", [1, 6])
def test_the_kernel_and_the_batched_form_agree(
    monkeypatch: pytest.MonkeyPatch, channels: int, taps: int, attention_dim: int
) -> None:
    rng = Rng(taps)
    inputs = {
        "queries": rng.randn(4, 5, attention_dim),
        "keys": rng.randn(4, 19, attention_dim),
        "location_filters": rng.randn(attention_dim, channels, taps),
        "energy_weight": rng.randn(attention_dim),
        "state": rng.rand(4, channels, 19),
        "query_lengths": lengths(5, 3, 0, 5),
        "key_lengths": lengths(19, 16, 4, 0),
    }
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
        fast = run(LOCATION, cast(inputs, dtype))
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "available", lambda: False)
            slow = run(LOCATION, inputs)
        pairs = [(fast.outputs[0], slow.outputs[0])]
        pairs += [(fast.gradients[name], slow.gradients[name]) for name in slow.gradients]
        for mine, theirs in pairs:
            scale = max(1.0, float(theirs.abs().max()))
            torch.testing.assert_close(mine.double(), theirs, atol=tolerance * scale, rtol=0)


def test_the_batched_form_meets_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "available", lambda: False)
    inputs = LOCATION.inputs()
    expected = run(LOCATION, inputs, subject=LOCATION.reference)
    actual = run(LOCATION, inputs)
    torch.testing.assert_close(actual.outputs[0], expected.outputs[0], atol=1e-9, rtol=0)
    for name in LOCATION.differentiable:
        torch.testing.assert_close(actual.gradients[name], expected.gradients[name], atol=1e-9, rtol=0)


def test_saturated_and_undefined_scores_behave_as_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = cast(LOCATION.inputs(), torch.float32)
    inputs["keys"] = inputs["keys"] * 1000
    large = location_attention_weights(**inputs)
    nan = location_attention_weights(**{**inputs, "energy_weight": inputs["energy_weight"] * torch.nan})
    monkeypatch.setattr(kernels, "available", lambda: False)
    torch.testing.assert_close(large, location_attention_weights(**inputs))
    valid = large != 0
    assert nan[valid].isnan().all()


def test_location_arguments_that_cannot_be_right_are_named() -> None:
    inputs = LOCATION.inputs()
    wrong = {
        "location_filters": inputs["location_filters"][:, :, 1:],
        "energy_weight": inputs["energy_weight"][1:],
        "state": inputs["state"][:, :1],
        "queries": inputs["queries"][:, :, 1:],
        "keys": inputs["keys"][:, :, 1:],
    }
    for name, tensor in wrong.items():
        with pytest.raises(ValueError, match=name):
            location_attention_weights(**{**inputs, name: tensor})
    with pytest.raises(ValueError, match="1 or 2 channels"):
        location_attention_weights(**{**inputs, "location_filters": torch.zeros(5, 3, 5)})
