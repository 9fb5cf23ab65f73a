"""Values of the CTC loss that are known, and what happens to utterances that do not fit."""

import pytest
import torch

from sonorant.functional import ctc_loss, kernels
from tests.cases.case import poison, run
from tests.cases.ctc import CASES

UNIFORM = torch.full((1, 2, 3), 1 / 3, dtype=torch.float64).log()


def lengths(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def test_empty_target_is_the_loss_of_blanks() -> None:
    value = ctc_loss(UNIFORM, torch.zeros(1, 0, dtype=torch.long), lengths(2), lengths(0), reduction="sum")
    assert float(value) == pytest.approx(2.1972, abs=1e-4)


def test_matches_torch_where_torch_is_right() -> None:
    torch.manual_seed(0)
    log_probs = torch.randn(3, 20, 6, dtype=torch.float64).log_softmax(-1)
    targets, frames, labels = torch.randint(1, 6, (3, 5)), lengths(20, 15, 12), lengths(5, 3, 4)
    expected = torch.nn.functional.ctc_loss(log_probs.transpose(0, 1), targets, frames, labels)
    torch.testing.assert_close(ctc_loss(log_probs, targets, frames, labels), expected)


def test_an_infeasible_utterance_changes_nothing_for_the_others() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 2, 3], [2, 2, 2]])  # three times the same label needs five frames
    for reduction in ("mean", "batchmean", "sum"):
        loss = ctc_loss(logits.log_softmax(-1), targets, lengths(9, 4), lengths(3, 3), reduction=reduction)
        (gradient,) = torch.autograd.grad(loss, logits)
        alone = ctc_loss(logits[:1].log_softmax(-1), targets[:1], lengths(9), lengths(3), reduction=reduction)
        (expected,) = torch.autograd.grad(alone, logits)
        assert torch.equal(loss, alone)
        assert torch.equal(gradient[0], expected[0])
        assert not gradient[1].any()


def test_a_batch_of_infeasible_utterances_has_loss_and_gradient_zero() -> None:
    log_probs = UNIFORM.clone().requires_grad_()
    loss = ctc_loss(log_probs, torch.tensor([[1, 1]]), lengths(2), lengths(2))
    loss.backward()
    assert float(loss) == 0.0
    assert not log_probs.grad.any()


def test_gradient_of_logits_sums_to_zero_in_every_frame() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 9, 4, requires_grad=True)
    loss = ctc_loss(logits.log_softmax(-1), torch.tensor([[1, 2], [3, 3]]), lengths(9, 6), lengths(2, 2))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.sum(-1).abs().max() < 1e-6
    assert not gradient[1, 6:].any()


def test_minus_infinity_in_log_probs_leaves_finite_gradients() -> None:
    log_probs = UNIFORM.clone()
    log_probs[..., 2] = -torch.inf
    log_probs.requires_grad_()
    ctc_loss(log_probs, torch.tensor([[1]]), lengths(2), lengths(1)).backward()
    assert log_probs.grad.isfinite().all()


@pytest.mark.parametrize("with_kernel", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_both_forms_meet_the_reference(monkeypatch: pytest.MonkeyPatch, with_kernel: bool, seed: int) -> None:
    monkeypatch.setattr(kernels, "available", lambda: with_kernel)
    case = next(case for case in CASES if case.name == "ctc_loss")
    inputs = case.inputs(seed, batch_size=6)
    expected = run(case, inputs, subject=lambda **leaves: case.reference(**leaves, **case.options))
    actual = run(case, poison(case, inputs))
    torch.testing.assert_close(actual.outputs, expected.outputs, atol=1e-9, rtol=0)
    gradient = actual.gradients["log_probs"][:, : inputs["log_probs"].shape[1]]
    torch.testing.assert_close(gradient, expected.gradients["log_probs"], atol=1e-9, rtol=0)


@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0, 3000.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_improbable_paths_are_exact(monkeypatch: pytest.MonkeyPatch, spread: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    log_probs = (spread * torch.randn(3, 200, 7)).log_softmax(-1)
    log_probs[2, :, 3] = -torch.inf
    targets, frames, labels = torch.randint(1, 7, (3, 30)), lengths(200, 170, 200), lengths(30, 12, 0)
    results = []
    for with_kernel, precision in ((True, dtype), (False, torch.float64)):
        monkeypatch.setattr(kernels, "available", lambda answer=with_kernel: answer)
        leaf = log_probs.to(precision).requires_grad_()
        loss = ctc_loss(leaf, targets, frames, labels, reduction="none")
        with torch.no_grad():
            assert torch.equal(ctc_loss(leaf, targets, frames, labels, reduction="none"), loss)
        results.append((loss.double(), torch.autograd.grad(loss.sum(), leaf)[0].double()))
    (loss, gradient), (expected_loss, expected_gradient) = results
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(loss, expected_loss, atol=0, rtol=tolerance)
    torch.testing.assert_close(gradient, expected_gradient, atol=tolerance, rtol=0)


def test_an_undefined_log_prob_shows() -> None:
    log_probs = UNIFORM.repeat(2, 1, 1)
    log_probs[0, 0, 1] = torch.nan
    loss = ctc_loss(log_probs, torch.tensor([[1], [1]]), lengths(2, 2), lengths(1, 1), reduction="none")
    assert loss.isnan().tolist() == [True, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": torch.tensor([[5]])}, r"targets\[0, 0\] is 5: outside the 3 classes"),
        ({"targets": torch.tensor([[0]])}, r"targets\[0, 0\] is 0: the blank"),
        ({"blank": 3}, "blank is 3"),
        ({"reduction": "average"}, "reduction"),
        ({"targets": torch.tensor([[1], [1]])}, "targets has 2 rows"),
    ],
)
def test_bad_arguments_are_named(changes: dict[str, object], message: str) -> None:
    arguments = {
        "log_probs": UNIFORM,
        "targets": torch.tensor([[1]]),
        "input_lengths": lengths(2),
        "target_lengths": lengths(1),
    }
    with pytest.raises(ValueError, match=message):
        ctc_loss(**{**arguments, **changes})
