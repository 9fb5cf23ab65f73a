"""CTC prefix scores against the sum over every path."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from sonorant.decoding.ctc_prefix import CtcPrefixScorer, CtcPrefixState
from sonorant.functional import ctc_loss
from tests.reference.beam_search import ctc_scores_by_paths, logsumexp


def random_log_probs(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(*shape, generator=generator, dtype=torch.float64)).log_softmax(-1).to(dtype)


def state_of(scorer: CtcPrefixScorer, prefix: tuple[int, ...]) -> CtcPrefixState:
    """The state of the same prefix for every utterance."""
    state = scorer.initial_state()
    for token in prefix:
        tokens = torch.full((scorer.batch_size, 1), token)
        state = scorer.extend(state, torch.zeros_like(tokens), tokens)
    return state


@pytest.mark.parametrize(("blank", "eos"), [(0, 0), (0, 2), (2, 1)])
def test_equal_the_sum_over_all_paths(blank: int, eos: int) -> None:
    lengths = torch.tensor([5, 3, 1, 0])
    log_probs = random_log_probs(4, 5, 4)
    if eos != blank:
        log_probs[:, :, eos] = -torch.inf  # no class of this CTC model
    log_probs = log_probs.log_softmax(2)
    log_probs[torch.arange(5) >= lengths.unsqueeze(1)] = torch.nan  # padding is not looked at
    scorer = CtcPrefixScorer(log_probs, lengths, eos=eos, blank=blank)
    tokens = [token for token in range(4) if token not in (blank, eos)]
    by_paths = [ctc_scores_by_paths(row[:length], blank) for row, length in zip(log_probs, lengths, strict=True)]
    for prefix in itertools.chain.from_iterable(itertools.product(tokens, repeat=n) for n in range(5)):
        scores = scorer.score(state_of(scorer, prefix))
        assert scores.shape == (4, 1, 4)
        for row, reference in zip(scores[:, 0], by_paths, strict=True):
            expected = [logsumexp(reference((*prefix, token))) for token in range(4)]
            expected[eos] = reference(prefix)[0]
            assert row.tolist() == pytest.approx(expected, abs=1e-12), prefix


def test_several_prefixes_at_once_and_in_another_order() -> None:
    scorer = CtcPrefixScorer(random_log_probs(2, 6, 4), torch.tensor([6, 4]), eos=0)
    first = scorer.extend(scorer.initial_state(), torch.zeros(2, 3, dtype=torch.int64), torch.tensor([[1, 2, 3]] * 2))
    second = scorer.extend(first, torch.tensor([[2, 0], [1, 1]]), torch.tensor([[3, 2], [2, 1]]))
    for utterance, prefixes in enumerate((((3, 3), (1, 2)), ((2, 2), (2, 1)))):
        for place, prefix in enumerate(prefixes):
            alone = scorer.score(state_of(scorer, prefix))[utterance, 0]
            assert torch.equal(scorer.score(second)[utterance, place], alone)
    other = torch.tensor([1])
    assert torch.equal(scorer.index_select(other).score(second.index_select(other)), scorer.score(second)[1:])


def test_what_begins_with_a_prefix_is_it_or_goes_on() -> None:
    scorer = CtcPrefixScorer(random_log_probs(1, 30, 6, dtype=torch.float32), torch.tensor([30]), eos=0)
    state, begins = scorer.initial_state(), torch.zeros(1, dtype=torch.float64)
    for token in (3, 3, 1, 5, 2):
        scores = scorer.score(state)
        torch.testing.assert_close(scores.logsumexp(2)[0], begins, atol=1e-5, rtol=0)  # float32 rows sum to 1 ± 1e-7
        begins = scores[0, :, token]
        state = scorer.extend(state, torch.tensor([[0]]), torch.tensor([[token]]))


def test_long_utterances_do_not_underflow_and_end_as_the_loss_says() -> None:
    log_probs = random_log_probs(2, 300, 20, seed=1)
    targets = torch.tensor([[3, 3, 7, 19, 1, 2], [5, 6, 5, 6, 5, 6]])
    lengths, sizes = torch.tensor([300, 280]), torch.tensor([6, 6])
    scorer = CtcPrefixScorer(log_probs, lengths, eos=0)
    state = scorer.initial_state()
    for column in targets.unbind(1):
        state = scorer.extend(state, torch.zeros(2, 1, dtype=torch.int64), column.unsqueeze(1))
    loss = ctc_loss(log_probs, targets, lengths, sizes, reduction="none")
    assert loss.min() > 600
    torch.testing.assert_close(scorer.score(state)[:, 0, 0], -loss)


def test_a_prefix_that_needs_more_frames_is_impossible() -> None:
    scorer = CtcPrefixScorer(random_log_probs(1, 2, 3), torch.tensor([2]), eos=0)
    scores = scorer.score(state_of(scorer, (1, 2)))[0, 0]
    assert scores[0] > -math.inf
    assert scores[1:].tolist() == [-math.inf, -math.inf]
    assert scorer.score(state_of(scorer, (1, 1))).tolist() == [[[-math.inf] * 3]]
    assert scorer.score(state_of(scorer, (1, 1, 2))).tolist() == [[[-math.inf] * 3]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_probs": torch.zeros(2, 3)}, r"shape \(batch, time, classes\); got \(2, 3\)"),
        ({"lengths": torch.tensor([3])}, r"lengths must have shape \(2,\)"),
        ({"lengths": torch.tensor([3, 4])}, r"lengths\[1\] is 4"),
        ({"eos": 4}, "eos is 4, but log_probs has 4 classes"),
        ({"blank": -1}, "blank is -1"),
        ({"log_probs": torch.full((2, 3, 4), 0.5)}, r"log_probs\[0, 0, 0\] is 0.5"),
        ({"log_probs": torch.full((2, 3, 4), torch.nan)}, r"log_probs\[0, 0, 0\] is nan"),
    ],
)
def test_bad_arguments(change: dict, message: str) -> None:
    arguments = {"log_probs": random_log_probs(2, 3, 4), "lengths": torch.tensor([3, 2]), "eos": 0, "blank": 0}
    with pytest.raises(ValueError, match=message):
        CtcPrefixScorer(**arguments | change)
