"""Composite losses, their weights and totals."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
import torch
from torch import Tensor

from sonorant import losses
from sonorant.functional import feature_matching_loss, lsgan_discriminator_loss, lsgan_generator_loss
from sonorant.losses import (
    AdversarialTtsLoss,
    AlignmentLosses,
    AlignmentLossWeights,
    DeterministicTtsLoss,
    DeterministicTtsLossWeights,
    DiffusionTtsLoss,
    DiffusionTtsLossWeights,
    FlowTtsLoss,
    FlowTtsLossWeights,
    GeneratorLossWeights,
    weighted_total,
)
from tests.cases.case import Rng
from tests.cases.composites import make_aligned

SCHEDULED = [
    AlignmentLossWeights,
    FlowTtsLossWeights,
    DeterministicTtsLossWeights,
    DiffusionTtsLossWeights,
    GeneratorLossWeights,
]


@pytest.fixture
def aligned() -> dict[str, Tensor]:
    lengths = {"query_lengths": torch.tensor([6, 4]), "key_lengths": torch.tensor([3, 2])}
    return make_aligned(lengths, Rng(0))


@pytest.mark.parametrize("weights", [*SCHEDULED, losses.DiscriminatorLossWeights, losses.StftLossWeights])
def test_weights_have_the_names_of_the_terms(weights: type) -> None:
    module = losses if weights is not losses.StftLossWeights else __import__("sonorant.functional").functional
    terms = getattr(module, weights.__name__.replace("LossWeights", "Losses"))
    names = [field.name for field in fields(weights) if not field.kw_only]
    assert tuple(names) == terms._fields
    with pytest.raises(FrozenInstanceError):
        setattr(weights(), names[0], 2.0)


def test_default_weights() -> None:
    assert tuple(vars(FlowTtsLossWeights()).values())[-4:] == (1.0, 0.0, 0.1, 1.0)
    assert tuple(vars(DeterministicTtsLossWeights()).values())[-3:] == (1.0, 0.1, 1.0)
    assert tuple(vars(DiffusionTtsLossWeights()).values())[-3:] == (1.0, 0.1, 1.0)
    assert tuple(vars(GeneratorLossWeights()).values())[-6:] == (1.0, 1.0, 1.0, 2.0, 0.1, 1.0)
    assert losses.DiscriminatorLossWeights().discriminator == 1.0


@pytest.mark.parametrize("weights", SCHEDULED)
def test_binarization_starts_after_a_step(weights: type) -> None:
    assert weights().at(5000).binarization == 0.0
    assert weights().at(5001) == weights()
    late = weights(binarization=0.5, binarization_start=18_000)
    assert late.at(18_000).binarization == 0.0
    assert late.at(18_001).binarization == 0.5
    assert late.at(3).forward_sum == 0.1


def test_a_term_of_weight_zero_never_reaches_the_total() -> None:
    start = torch.tensor(2.0, requires_grad=True)
    terms = AlignmentLosses(start * 3, (start * 0) / 0)
    total = weighted_total(terms, AlignmentLossWeights().at(0))
    total.backward()
    torch.testing.assert_close(total, torch.tensor(0.6))
    torch.testing.assert_close(start.grad, torch.tensor(0.3))
    assert weighted_total(terms, AlignmentLossWeights()).isnan()


def test_a_total_without_any_weight_is_zero() -> None:
    terms = AlignmentLosses(torch.tensor(torch.nan), torch.tensor(1.0))
    assert weighted_total(terms, AlignmentLossWeights(0.0, 0.0)) == 0


def test_bad_totals_are_refused() -> None:
    terms = AlignmentLosses(torch.tensor(1.0), torch.tensor(1.0))
    with pytest.raises(ValueError, match="StftLossWeights has no weight for forward_sum"):
        weighted_total(terms, losses.StftLossWeights())
    with pytest.raises(ValueError, match="NamedTuple"):
        weighted_total((torch.tensor(1.0),), AlignmentLossWeights())


def test_inactive_terms_are_zero(aligned: dict[str, Tensor]) -> None:
    mel = torch.full((2, 6, 3), torch.nan, dtype=torch.float64)
    expected = losses.AlignmentLoss()(**aligned)
    for terms in (
        FlowTtsLoss()(None, [], [], **aligned),
        DeterministicTtsLoss()(None, mel, **aligned),
        DiffusionTtsLoss()(mel, None, **aligned),
        AdversarialTtsLoss([(16, 4, 16)])(None, None, None, None, None, **aligned),
    ):
        *inactive, forward_sum, binarization = terms
        assert inactive
        for term in inactive:
            assert term == 0
            assert term.dtype == torch.float64
            assert term.shape == ()
        assert (forward_sum, binarization) == expected


def test_the_flow_counts_whole_groups(aligned: dict[str, Tensor]) -> None:
    """5 frames are 2 groups of 2: the third group's values do not count."""
    aligned["query_lengths"] = torch.tensor([5, 4])
    z = torch.ones(2, 3, 4, dtype=torch.float64)
    z[:, 2] = torch.nan
    terms = FlowTtsLoss(group_size=2)(z, [torch.zeros(2, 3, 2)], [], **aligned)
    torch.testing.assert_close(terms.flow_nll, torch.tensor(0.5, dtype=torch.float64))
    aligned["query_lengths"] = torch.tensor([5, 1])
    with pytest.raises(ValueError, match=r"query_lengths\[1\] is 1"):
        FlowTtsLoss(group_size=2)(z, [torch.zeros(2, 3, 2)], [], **aligned)


def test_waveforms_are_cropped_to_the_shorter(aligned: dict[str, Tensor]) -> None:
    loss = AdversarialTtsLoss([(16, 4, 16)])
    rng = Rng(1)
    long, short, lengths = rng.randn(2, 70), rng.randn(2, 64), torch.tensor([70, 32])
    waves = loss.crop(long, short, lengths)
    assert waves.prediction.shape == waves.target.shape == (2, 64)
    assert waves.lengths.tolist() == [64, 32]
    assert waves.length_ratios.tolist() == [1.0, 0.5]
    assert loss.crop(short, long).lengths.tolist() == [64, 64]
    nothing = {"fake_scores": None, "real_maps": None, "fake_maps": None, **aligned}
    terms = loss(long, short, lengths=lengths, **nothing)
    assert terms == loss(waves.prediction, waves.target, lengths=waves.lengths, **nothing)
    with pytest.raises(ValueError, match=r"lengths\[0\] is 71"):
        loss.crop(long, short, torch.tensor([71, 5]))
    with pytest.raises(ValueError, match="without prediction and target"):
        loss(None, None, lengths=lengths, **nothing)


def test_both_sides_of_adversarial_training(aligned: dict[str, Tensor]) -> None:
    loss = AdversarialTtsLoss([(16, 4, 16)])
    rng = Rng(2)
    prediction, target = (rng.randn(2, 64) for _ in range(2))
    ratios = torch.tensor([1.0, 0.5])
    scores: dict[str, Any] = {kind: [rng.randn(2, 8), rng.randn(2, 5)] for kind in ("real", "fake")}
    maps: dict[str, Any] = {kind: [[rng.randn(2, 3, 8)], [rng.randn(2, 3, 4, 2)]] for kind in ("real", "fake")}
    for leaf in (prediction, *scores["fake"], *(m for row in maps["fake"] for m in row)):
        leaf.requires_grad_()
    lengths = torch.tensor([64, 32])
    terms = loss.generator_losses(
        prediction, target, scores["fake"], maps["real"], maps["fake"], **aligned, lengths=lengths
    )
    assert terms.adversarial == lsgan_generator_loss(scores["fake"], length_ratios=ratios)
    assert terms.feature_matching == feature_matching_loss(maps["real"], maps["fake"], length_ratios=ratios)
    weighted_total(terms, GeneratorLossWeights()).backward()
    for leaf in (prediction, *scores["fake"], *(m for row in maps["fake"] for m in row)):
        assert leaf.grad is not None
        assert leaf.grad.any()
    (discriminator,) = loss.discriminator_losses(scores["real"], scores["fake"], length_ratios=ratios)
    assert discriminator == lsgan_discriminator_loss(scores["real"], scores["fake"], length_ratios=ratios)
    assert discriminator > 0


def test_bad_hyperparameters_are_refused() -> None:
    with pytest.raises(ValueError, match="group_size"):
        FlowTtsLoss(group_size=0)
    with pytest.raises(ValueError, match="sigma"):
        FlowTtsLoss(sigma=0.0)
    with pytest.raises(ValueError, match="resolutions"):
        AdversarialTtsLoss([])
