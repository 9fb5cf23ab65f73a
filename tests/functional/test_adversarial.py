"""Adversarial losses: what the contracts do not cover."""

from itertools import chain

import pytest
import torch

from sonorant.functional import feature_matching_loss, kernels, lsgan_discriminator_loss, lsgan_generator_loss
from sonorant.lengths import ratio_lengths
from tests.reference.adversarial import feature_matching_by_utterance


@pytest.fixture
def maps() -> tuple[list[list[torch.Tensor]], list[list[torch.Tensor]]]:
    generator = torch.Generator().manual_seed(0)
    shapes = [[(2, 3, 17), (2, 1, 1)], [(2, 4, 7, 3)]]
    real, fake = ([[torch.randn(s, generator=generator) for s in row] for row in shapes] for _ in range(2))
    return real, fake


def test_float32_ratios_give_the_frames_they_came_from() -> None:
    for size in (7, 100, 32768):
        frames = torch.arange(1, size + 1)
        assert torch.equal(ratio_lengths(frames.float() / size, size), frames)
        assert torch.equal(ratio_lengths(frames.double() / size, size), frames)


def test_a_ratio_never_gives_less_than_one_frame() -> None:
    assert ratio_lengths(torch.tensor([1e-9, 1e-3]), 10).tolist() == [1, 1]


@pytest.mark.parametrize("bad", [0.0, -0.5, 1.01, float("nan")])
def test_ratios_outside_the_unit_interval_are_refused(bad: float) -> None:
    scores = [torch.zeros(2, 4)]
    ratios = torch.tensor([1.0, bad])
    with pytest.raises(ValueError, match=r"length_ratios\[1\]"):
        lsgan_generator_loss(scores, length_ratios=ratios)
    with pytest.raises(ValueError, match=r"length_ratios\[1\]"):
        lsgan_discriminator_loss(scores, scores, length_ratios=ratios)
    with pytest.raises(ValueError, match=r"length_ratios\[1\]"):
        feature_matching_loss([[torch.zeros(2, 3, 4)]], [[torch.zeros(2, 3, 4)]], length_ratios=ratios)


@pytest.mark.parametrize("bad", [torch.tensor([3, 4]), torch.tensor([0.5]), torch.tensor([[0.5, 0.5]])])
def test_ratios_of_another_kind_are_refused(bad: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="length_ratios"):
        lsgan_generator_loss([torch.zeros(2, 4)], length_ratios=bad)
    with pytest.raises(ValueError, match="length_ratios"):
        feature_matching_loss([[torch.zeros(2, 3, 4)]], [[torch.zeros(2, 3, 4)]], length_ratios=bad)


def test_different_numbers_are_refused() -> None:
    score, feature = torch.zeros(2, 4), torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match="real_scores has 2 entries, but fake_scores has 1"):
        lsgan_discriminator_loss([score, score], [score])
    with pytest.raises(ValueError, match="real_maps has 1 entries, but fake_maps has 2"):
        feature_matching_loss([[feature]], [[feature], [feature]])
    with pytest.raises(ValueError, match=r"real_maps\[1\] has 1 entries, but fake_maps\[1\] has 2"):
        feature_matching_loss([[feature], [feature]], [[feature], [feature, feature]])


def test_empty_lists_and_wrong_shapes_are_refused() -> None:
    score, feature = torch.zeros(2, 4), torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match="fake_scores"):
        lsgan_generator_loss([])
    with pytest.raises(ValueError, match="fake_scores"):
        lsgan_discriminator_loss([], [])
    with pytest.raises(ValueError, match=r"fake_maps\[0\] is empty"):
        feature_matching_loss([[]], [[]])
    with pytest.raises(ValueError, match=r"fake_scores\[1\] must have shape"):
        lsgan_generator_loss([score, score.unsqueeze(1)])
    with pytest.raises(ValueError, match=r"real_maps\[0\]\[0\] is \(2, 3, 4\)"):
        feature_matching_loss([[feature]], [[feature[:, :, :3]]])


def test_one_value_a_discriminator() -> None:
    scores = [torch.full((1, 2), 0.5), torch.zeros(1, 3)]
    assert lsgan_generator_loss(scores, reduction="none").tolist() == [0.25, 1.0]
    assert lsgan_discriminator_loss(scores, scores, reduction="none").tolist() == [0.5, 1.0]
    with pytest.raises(ValueError, match="reduction"):
        lsgan_generator_loss(scores, reduction="mean")  # type: ignore[arg-type]


def test_batches_of_real_and_fake_may_differ() -> None:
    real, fake = [torch.full((1, 2), 0.5), torch.zeros(3, 3)], [torch.full((2, 4), 2.0), torch.ones(1, 1)]
    assert lsgan_discriminator_loss(real, fake, reduction="none").tolist() == [4.25, 2.0]


def test_gradients_of_gradients_of_scores() -> None:
    scores = [torch.randn(2, size, dtype=torch.float64, requires_grad=True) for size in (3, 5, 3)]
    ratios = torch.tensor([1.0, 0.6])

    def loss(*fake: torch.Tensor) -> torch.Tensor:
        return lsgan_generator_loss(fake, length_ratios=ratios).square()

    assert torch.autograd.gradgradcheck(loss, scores)


def test_real_maps_get_no_gradient(maps) -> None:
    real, fake = maps
    leaves = [m.requires_grad_() for row in (*real, *fake) for m in row]
    feature_matching_loss(real, fake).backward()
    assert [leaf.grad is None for leaf in leaves] == [True] * 3 + [False] * 3


def test_equal_maps_have_gradient_zero(maps) -> None:
    real, _ = maps
    fake = [[m.clone().requires_grad_() for m in row] for row in real]
    loss = feature_matching_loss(real, fake)
    loss.backward()
    assert loss == 0
    assert not any(m.grad.any() for row in fake for m in row)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_the_batched_form_equals_the_reference(maps, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "available", lambda: False)
    ratios = torch.tensor([0.5, 1.0])
    real, fake = ([[m.to(dtype, copy=True) for m in row] for row in rows] for rows in maps)
    leaves = [[m.to(torch.float64, copy=True).requires_grad_() for m in row] for row in fake]
    expected = feature_matching_by_utterance([[m.double() for m in row] for row in real], leaves, ratios)
    (2 * expected).backward()
    fake[0][0][0, :, 9:] = torch.nan
    fake = [[m.requires_grad_() for m in row] for row in fake]
    value = feature_matching_loss(real, fake, length_ratios=ratios)
    (2 * value).backward()
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    torch.testing.assert_close(value.double(), expected, rtol=tolerance, atol=0)
    for mine, theirs in zip(chain(*fake), chain(*leaves), strict=True):
        assert mine.grad.dtype == dtype
        torch.testing.assert_close(mine.grad.double(), theirs.grad, rtol=max(tolerance, torch.finfo(dtype).eps), atol=0)


def test_large_maps_lose_no_digits() -> None:
    """A float32 sum over a million cells of 0.1 must not drift."""
    fake = torch.full((1, 1, 1_000_000), 0.1)
    value = feature_matching_loss([[torch.zeros_like(fake)]], [[fake]])
    assert abs(float(value) / 0.1 - 1) < 1e-6
