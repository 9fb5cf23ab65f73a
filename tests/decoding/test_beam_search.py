"""Beam search against the search of everything, and against one that goes hypothesis by hypothesis."""

import logging
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sonorant.decoding.beam_search import beam_search
from sonorant.decoding.ctc_prefix import CtcPrefixScorer
from sonorant.decoding.hypotheses import Hypothesis, largest
from sonorant.decoding.step import StepOutput, select_rows
from sonorant.nn import LocationAttention
from sonorant.nn.attention import AttentionMemory
from tests.reference.beam_search import (
    Search,
    all_hypotheses,
    beam_search_by_hypotheses,
    ctc_scores_by_paths,
    single,
)

LENGTHS = torch.tensor([4, 2, 3])


class ToyState(NamedTuple):
    hidden: Tensor
    nothing: None
    steps: list[Tensor]


class ToyDecoder:
    """A random decoder whose log probabilities depend on all tokens before and on what it attends to."""

    def __init__(self, vocabulary: int, seed: int, dim: int = 6, sharpness: float = 1.5) -> None:
        generator = torch.Generator().manual_seed(seed)
        shapes = (vocabulary, dim), (dim, dim), (dim, dim), (dim, vocabulary), (len(LENGTHS), 4, dim)
        weights = [torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes]
        self.embedding, self.recurrent, self.read, self.output, values = weights
        self.sharpness = sharpness
        self.memory = {"values": values, "lengths": LENGTHS}

    def __call__(self, tokens: Tensor, state: ToyState, memory: dict[str, Tensor]) -> StepOutput[ToyState]:
        assert len(tokens) == len(state.hidden) == len(memory["values"])
        scores = torch.einsum("bd,btd->bt", state.hidden, memory["values"])
        mask = torch.arange(scores.shape[1]) < memory["lengths"].unsqueeze(1)
        attention = scores.masked_fill(~mask, -torch.inf).softmax(1)
        context = torch.einsum("bt,btd->bd", attention, memory["values"].nan_to_num())
        hidden = (self.embedding[tokens] + state.hidden @ self.recurrent + context @ self.read).tanh()
        log_probs = (self.sharpness * hidden @ self.output).log_softmax(1)
        return StepOutput(log_probs, ToyState(hidden, None, [state.steps[0] + 1]), attention)

    @property
    def state(self) -> ToyState:
        return ToyState(torch.ones(len(LENGTHS), 6, dtype=torch.float64), None, [torch.zeros(len(LENGTHS))])


def table_step(table: Any, *, logs: bool = False) -> Any:
    """A step whose probabilities depend on the last token alone."""
    log_probs = torch.as_tensor(table) if logs else torch.as_tensor(table, dtype=torch.float64).log()
    return lambda tokens, state, memory: StepOutput(log_probs[tokens], state)


def decode(step: Any, batch_size: int = 1, **options: Any) -> list[list[Hypothesis]]:
    options = {"sos": 0, "eos": 0, "max_length": 5, "beam_size": 4} | options
    return beam_search(step, torch.zeros(batch_size), None, **options).hypotheses()


def random_ctc(vocabulary: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, 4, vocabulary, generator=generator, dtype=torch.float64).log_softmax(2)


OPTIONS = [
    {},
    {"min_length": 2},
    {"length_penalty": 0.7},
    {"coverage_penalty": 0.3},
    {"ctc_weight": 0.4},
    {"min_length": 1, "length_penalty": 1.0, "coverage_penalty": 0.2, "ctc_weight": 0.3},
]


def both(vocabulary: int, seed: int, options: dict[str, Any], max_length: int, **search: int) -> tuple[Any, ...]:
    """The search of a random model; and for each utterance what the references take."""
    decoder, frames = ToyDecoder(vocabulary, seed), torch.tensor([4, 2, 3])
    log_probs = random_ctc(vocabulary, seed)
    eos, joint = 0, "ctc_weight" in options
    ctc = CtcPrefixScorer(log_probs, frames, eos=eos) if joint else None
    arguments = {"sos": 1, "eos": eos, "max_length": max_length, "attention_lengths": LENGTHS, "ctc": ctc}
    found = beam_search(decoder, decoder.state, decoder.memory, **arguments, **options, **search)
    references = []
    for utterance, (length, num_frames) in enumerate(zip(LENGTHS.tolist(), frames.tolist(), strict=True)):
        scores = ctc_scores_by_paths(log_probs[utterance, :num_frames], eos) if joint else None
        reference = Search(decoder, 1, eos, max_length, num_keys=length, ctc=scores, **options)
        references.append((reference, single(decoder.state, utterance), single(decoder.memory, utterance)))
    return found, references


def assert_same(found: list[Hypothesis], expected: list[Any]) -> None:
    assert [(list(one.tokens), one.ended) for one in found] == [(list(one.tokens), one.ended) for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-10)
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in expected], abs=1e-10)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("vocabulary", "max_length"), [(2, 4), (3, 3), (4, 2)])
def test_a_beam_wide_enough_finds_everything_in_order(
    vocabulary: int, max_length: int, options: dict[str, Any]
) -> None:
    for seed in range(2):
        found, references = both(vocabulary, seed, options, max_length, beam_size=100, n_best=100)
        for hypotheses, reference in zip(found.hypotheses(), references, strict=True):
            expected = all_hypotheses(*reference)
            assert expected
            assert_same(hypotheses, expected)


def test_with_a_model_alone_everything_together_is_certain() -> None:
    found, _ = both(3, 5, {}, 3, beam_size=100, n_best=100)
    assert found.scores.logsumexp(1).tolist() == pytest.approx([0.0] * 3, abs=1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (2, 1), (3, 3), (7, 4)])
def test_narrow_beams_find_what_the_slow_search_finds(beam_size: int, n_best: int, options: dict[str, Any]) -> None:
    for seed in range(6):
        found, references = both(4, seed, options, 5, beam_size=beam_size, n_best=n_best)
        for hypotheses, reference in zip(found.hypotheses(), references, strict=True):
            assert_same(hypotheses, beam_search_by_hypotheses(*reference, beam_size, n_best))


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_of_one_is_greedy(length_penalty: float) -> None:
    for seed in range(20):
        decoder = ToyDecoder(5, seed)
        arguments = {"sos": 1, "eos": 0, "max_length": 8, "beam_size": 1, "length_penalty": length_penalty}
        found = beam_search(decoder, decoder.state, decoder.memory, **arguments).hypotheses()
        for utterance, (hypothesis,) in enumerate(found):
            tokens, state, memory = [1], single(decoder.state, utterance), single(decoder.memory, utterance)
            while len(tokens) < 9:
                log_probs, state, _ = decoder(torch.tensor(tokens[-1:]), state, memory)
                best = int(log_probs.argmax())
                if best == 0:
                    break
                tokens.append(best)
            assert hypothesis.tokens == tokens[1:]
            assert hypothesis.ended or len(tokens) == 9


def test_goes_on_after_the_first_end() -> None:
    # the end is put out at once with 0.4, but 1 2 has 0.6 * 1 * 0.9
    table = [[0.4, 0.6, 0.0], [0.0, 0.0, 1.0], [0.9, 0.1, 0.0]]
    first, second = decode(table_step(table), n_best=2)[0]
    assert (first.tokens, second.tokens) == ([1, 2], [])
    assert first.log_prob == pytest.approx(math.log(0.54))


def test_length_penalty_finds_what_ends_later() -> None:
    # after 1, a sure path of three; with a mean per token it wins, though "2" has ended long before
    table = [[0.0, 0.3, 0.7, 0.0], [0.01, 0.0, 0.0, 0.99], [0.6, 0.0, 0.4, 0.0], [0.1, 0.9, 0.0, 0.0]]
    short, *_ = decode(table_step(table), max_length=9, beam_size=3)[0]
    long, *_ = decode(table_step(table), max_length=9, beam_size=3, length_penalty=1.0)[0]
    assert short.tokens == [2]
    assert len(long.tokens) > 3
    assert long.score == pytest.approx(long.log_prob / (len(long.tokens) + 1))
    assert long.score > short.log_prob / 2


def test_a_model_that_never_ends_stops_at_the_cap_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    table = [[0.0, 0.7, 0.3], [0.0, 0.8, 0.2], [0.0, 0.5, 0.5]]
    for beam_size in (1, 2, 50):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "sonorant"):
            (best,), _ = decode(table_step(table), 2, beam_size=beam_size, max_length=torch.tensor([4, 6]))
        assert best == Hypothesis([1, 1, 1, 1], pytest.approx(math.log(0.7 * 0.8**3)), best.log_prob, False, None)
        assert "2 of 2 utterances reached max_length without an end: 0 after 4 tokens, 1 after 6" in caplog.text


def test_the_warning_has_the_coverage_and_does_not_grow(caplog: pytest.LogCaptureFixture) -> None:
    def step(tokens: Tensor, state: Tensor, memory: None) -> StepOutput[Tensor]:
        attention = torch.tensor([[1.0, 0.0, 0.5, math.nan]]).repeat(len(tokens), 1)
        return StepOutput(torch.tensor([[0.1, 0.9]]).log().repeat(len(tokens), 1), state, attention)

    lengths = torch.full((7,), 3)
    with caplog.at_level(logging.WARNING, "sonorant"):
        best = decode(step, 7, max_length=1, attention_lengths=lengths)
    assert best[0][0].coverage == pytest.approx(2 / 3)
    assert "7 of 7 utterances" in caplog.text
    assert "0 after 1 tokens (attention coverage 67%)" in caplog.text
    assert "4 after 1 tokens" in caplog.text
    assert "5 after" not in caplog.text


def test_an_end_at_the_cap_is_an_end(caplog: pytest.LogCaptureFixture) -> None:
    table = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.6, 0.4, 0.0]]
    best, other = decode(table_step(table), max_length=2, n_best=2)[0]
    assert (best.tokens, best.ended, other.tokens, other.ended) == ([1, 2], True, [1, 2], False)
    assert (best.log_prob, other.log_prob) == pytest.approx((math.log(0.6), math.log(0.4)))
    assert not caplog.records


def test_each_utterance_has_its_own_cap() -> None:
    table = [[0.1, 0.9], [0.1, 0.9]]
    found = decode(table_step(table), 3, max_length=torch.tensor([3, 1, 2]), beam_size=2)
    assert [len(one[0].tokens) for one in found] == [3, 1, 2]


def test_the_end_mark_is_no_token_of_the_result_and_fills_the_rest() -> None:
    # the model may put out the start mark (1) as well
    table = [[0.4, 0.5, 0.1], [0.8, 0.0, 0.2], [0.0, 0.0, 1.0]]
    caps = torch.tensor([6, 2])
    result = beam_search(table_step(table), torch.zeros(2), None, sos=1, eos=2, max_length=caps, beam_size=20, n_best=9)
    assert result.lengths.amax(1).tolist() == [6, 2]
    assert (result.tokens == 1).any()
    beyond = torch.arange(6) >= result.lengths.unsqueeze(2)
    assert torch.equal(result.tokens == 2, beyond)


def test_fewer_hypotheses_than_asked_for() -> None:
    result = beam_search(
        table_step([[0.5, 0.5], [1.0, 0.0]]), torch.zeros(1), None, sos=0, eos=0, max_length=3, beam_size=9, n_best=4
    )
    assert [one.tokens for one in result.hypotheses()[0]] == [[], [1]]
    assert result.scores[0, 2:].tolist() == [-math.inf] * 2
    assert result.lengths.tolist() == [[0, 1, 0, 0]]


def test_nothing_possible_is_no_hypothesis() -> None:
    assert decode(table_step([[0.0, 1.0], [0.0, 0.0]]), 2, min_length=1) == [[], []]


def test_no_utterance() -> None:
    result = beam_search(table_step([[0.5, 0.5]] * 2), torch.zeros(0), None, sos=0, eos=0, max_length=3)
    assert result.hypotheses() == []
    assert result.tokens.shape == (0, 1, 0)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_batch_equals_its_utterances_and_padding_changes_nothing(options: dict[str, Any]) -> None:
    decoder, log_probs = ToyDecoder(5, 3), random_ctc(5, 3)
    values = torch.cat([decoder.memory["values"], torch.full((3, 2, 6), torch.nan, dtype=torch.float64)], 1)
    values[torch.arange(6) >= LENGTHS.unsqueeze(1)] = torch.nan
    arguments = {"sos": 0, "eos": 0, "beam_size": 3, "n_best": 3} | options
    caps = torch.tensor([4, 7, 5])

    def search(rows: list[int], memory: Tensor, frames: Tensor) -> list[list[Hypothesis]]:
        lengths = LENGTHS[rows]
        ctc = CtcPrefixScorer(frames[rows], lengths, eos=0) if "ctc_weight" in options else None
        found = beam_search(
            decoder,
            ToyState(decoder.state.hidden[rows], None, [torch.zeros(len(rows))]),
            {"values": memory[rows], "lengths": lengths},
            max_length=caps[rows],
            attention_lengths=lengths,
            ctc=ctc,
            **arguments,
        )
        return found.hypotheses()

    together = search([0, 1, 2], decoder.memory["values"], log_probs)
    padded = search([2, 0, 1], values, torch.cat([log_probs, log_probs], 1))
    for row, found in enumerate(together):
        size = int(LENGTHS[row])
        alone = search([row], decoder.memory["values"][:, :size], log_probs[:, :size])[0]
        for others in (alone, padded[(row + 1) % 3]):
            assert_same(found, others)
            assert [one.coverage for one in found] == pytest.approx([one.coverage for one in others])


def test_of_equals_the_first_comes_first() -> None:
    table = torch.full((4, 4), 0.25)
    found = decode(table_step(table), 2, beam_size=5, n_best=5, max_length=2)
    assert found[0] == found[1]
    assert [one.tokens for one in found[0]] == [[], [1], [2], [1, 1], [1, 2]]
    values = torch.tensor([[1.0, 3.0, 1.0, 3.0, 1.0, -math.inf], [0.0] * 6, [-math.inf] * 6])
    chosen, index = largest(values, 4)
    assert index.tolist() == [[1, 3, 0, 2], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert chosen[0].tolist() == [3.0, 3.0, 1.0, 1.0]


def test_what_is_given_is_left_alone() -> None:
    decoder = ToyDecoder(4, 0)
    state, caps, lengths = decoder.state, torch.tensor([3, 2, 3]), LENGTHS.clone()
    given = [state.hidden, *state.steps, *decoder.memory.values(), caps, lengths]
    before = [tensor.clone() for tensor in given]
    beam_search(decoder, state, decoder.memory, sos=0, eos=0, max_length=caps, attention_lengths=lengths)
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(given, before, strict=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_sums_are_at_least_float32(dtype: torch.dtype) -> None:
    table = torch.tensor([[0.0, 1.0], [0.01, 0.99]]).log().to(dtype)
    best = beam_search(table_step(table, logs=True), torch.zeros(1), None, sos=0, eos=0, max_length=300, beam_size=1)
    assert best.scores.dtype == torch.float32
    assert float(best.log_probs) == pytest.approx(300 * float(table[1, 1]), rel=1e-5)


class LstmDecoder(nn.Module):
    """An attention LSTM: its context is part of its state."""

    class State(NamedTuple):
        hidden: Tensor
        cell: Tensor
        context: Tensor
        location: Tensor

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 8)
        self.cell = nn.LSTMCell(8 + 6, 10)
        self.attention = LocationAttention(7, memory_dim=6, query_dim=10, conv_channels=4, kernel_size=5)
        self.output = nn.Linear(16, vocabulary)

    def initial_state(self, memory: AttentionMemory) -> State:
        batch_size = len(memory.lengths)
        zeros = memory.values.new_zeros
        location = self.attention.initial_state(memory, "first")
        return self.State(zeros(batch_size, 10), zeros(batch_size, 10), zeros(batch_size, 6), location)

    def forward(self, tokens: Tensor, state: State, memory: AttentionMemory) -> StepOutput[State]:
        inputs = torch.cat([self.embedding(tokens), state.context], 1)
        hidden, cell = self.cell(inputs, (state.hidden, state.cell))
        context, weights = self.attention(hidden, memory, state.location)
        location = self.attention.next_state(state.location, weights)
        log_probs = (4 * self.output(torch.cat([hidden, context], 1))).log_softmax(1)
        return StepOutput(log_probs, self.State(hidden, cell, context, location), weights)


def test_an_lstm_with_location_attention() -> None:
    torch.manual_seed(0)
    decoder, lengths = LstmDecoder(4).double(), torch.tensor([5, 3])
    memory = decoder.attention.precompute(torch.randn(2, 5, 6, dtype=torch.float64), lengths)
    options = {"max_length": 3, "length_penalty": 0.5, "coverage_penalty": 0.1}
    found = beam_search(
        decoder,
        decoder.initial_state(memory),
        memory,
        sos=0,
        eos=0,
        attention_lengths=lengths,
        beam_size=70,
        n_best=70,
        **options,
    )
    assert not found.scores.requires_grad
    for utterance, hypotheses in enumerate(found.hypotheses()):
        one = single(memory, utterance)
        with torch.no_grad():
            reference = Search(decoder, 0, 0, num_keys=int(lengths[utterance]), **options)
            assert_same(hypotheses, all_hypotheses(reference, decoder.initial_state(one), one))


def test_a_step_in_onnxruntime() -> None:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    table = np.log(np.random.default_rng(0).dirichlet(np.ones(4), 4)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "tokens"], ["log_probs"])],
        "bigram",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["rows"])],
        [helper.make_tensor_value_info("log_probs", TensorProto.FLOAT, ["rows", 4])],
        [numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

    def step(tokens: Tensor, state: Tensor, memory: None) -> StepOutput[Tensor]:
        (log_probs,) = session.run(None, {"tokens": tokens.numpy()})
        return StepOutput(torch.from_numpy(log_probs), state)

    assert decode(step, 2, n_best=4) == decode(table_step(table, logs=True), 2, n_best=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1; got 0"),
        ({"n_best": 5}, "n_best must be between 1 and beam_size, 4; got 5"),
        ({"n_best": 0}, "n_best must be between 1 and beam_size, 4; got 0"),
        ({"min_length": -1}, "min_length must be at least 0; got -1"),
        ({"min_length": 6}, r"max_length\[0\] is 5; the smallest length allowed is 6"),
        ({"max_length": 0}, r"max_length\[0\] is 0"),
        ({"max_length": torch.tensor([3, 0])}, r"max_length\[1\] is 0"),
        ({"max_length": 2.5}, "max_length must be integers"),
        ({"length_penalty": -0.1}, "length_penalty must be at least 0; got -0.1"),
        ({"length_penalty": math.nan}, "length_penalty must be at least 0; got nan"),
        ({"coverage_penalty": -1.0}, "coverage_penalty must be at least 0"),
        ({"coverage_penalty": 0.5}, "coverage_penalty is 0.5, which needs attention_lengths"),
        ({"attention_lengths": torch.tensor([1, 1])}, "attention_lengths was given, but the step gives no attention"),
        ({"attention_lengths": torch.tensor([1])}, r"attention_lengths must have shape \(2,\)"),
        ({"eos": 3}, "log_probs is of 3 tokens; eos is 3"),
        ({"eos": -1}, "eos must be at least 0; got -1"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(table_step([[0.2, 0.3, 0.5]] * 3), 2, **options)


def test_a_ctc_model_must_fit() -> None:
    log_probs, step = torch.zeros(2, 3, 4).log_softmax(2), table_step([[0.2, 0.3, 0.5]] * 3)
    lengths = torch.tensor([3, 3])
    with pytest.raises(ValueError, match="ctc has 4 classes, but the decoder has 3 tokens"):
        decode(step, 2, ctc=CtcPrefixScorer(log_probs, lengths, eos=0))
    with pytest.raises(ValueError, match="ctc is of 2 utterances and ends with 1; the search is of 3 and ends with 0"):
        decode(step, 3, ctc=CtcPrefixScorer(log_probs, lengths, eos=1))
    for weight in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match=f"ctc_weight must be between 0 and 1; got {weight}"):
            decode(step, 2, ctc=CtcPrefixScorer(log_probs, lengths, eos=0), ctc_weight=weight)


def output_of(log_probs: Tensor, state: Any = None, attention: Tensor | None = None) -> Any:
    return lambda tokens, _, memory: StepOutput(log_probs, state, attention)


GOOD = torch.full((2, 3), 1 / 3).log()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (output_of(GOOD[:1]), r"log_probs must be floats of shape \(2, vocabulary\); got torch.float32 \(1, 3\)"),
        (output_of(GOOD.long()), "got torch.int64"),
        (output_of(GOOD[:, :1]), "log_probs is of 1 tokens"),
        (output_of(-GOOD), "log_probs holds 1.09.* for utterance 0; .*logits need log_softmax"),
        (output_of(torch.stack([GOOD[0], GOOD[0] * math.nan])), "log_probs holds nan for utterance 1"),
        (output_of(GOOD, {"h": [GOOD, GOOD[:1]]}), r"state\['h'\]\[1\] must have shape \(2, ...\); got \(1, 3\)"),
        (output_of(GOOD, GOOD.sum()), r"state must have shape \(2, ...\); got \(\)"),
        (output_of(GOOD, attention=GOOD[:1]), r"attention must have shape \(2, ...\)"),
    ],
)
def test_bad_steps(step: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(step, 2)


def test_bad_states() -> None:
    step, arguments = output_of(GOOD), {"sos": 0, "eos": 0, "max_length": 3}
    with pytest.raises(ValueError, match=r"memory.values must have shape \(2, ...\); got \(3, 4\)"):
        beam_search(step, torch.zeros(2), AttentionMemory(torch.zeros(3, 4), GOOD, GOOD), **arguments)
    with pytest.raises(ValueError, match="neither state nor memory holds a tensor"):
        beam_search(step, None, {}, **arguments)
    with pytest.raises(ValueError, match=r"state must have shape \(rows, ...\); got \(\)"):
        beam_search(step, torch.tensor(1.0), None, **arguments)
    with pytest.raises(TypeError, match=r"state\[1\] must be tensors in tuples, lists and dicts; got ndarray"):
        beam_search(step, (GOOD, np.zeros(2)), None, **arguments)
    with pytest.raises(TypeError, match="state must be tensors"):
        decode(output_of(GOOD, "text"), 2)


def test_rows_of_anything_else_are_refused() -> None:
    with pytest.raises(TypeError, match="tensors in tuples, lists and dicts; got ndarray"):
        select_rows((torch.zeros(2), np.zeros(2)), torch.tensor([0]))
