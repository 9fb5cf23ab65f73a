"""One step of a decoder that puts out one token after the other, as searches call it."""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import torch
from jaxtyping import Int
from torch import Tensor

__all__ = ["Step", "StepOutput", "check_output", "num_rows", "select_rows"]

State = TypeVar("State")
Memory = TypeVar("Memory", contravariant=True)

_TOLERANCE = 1e-3  # what rounding may add to a log probability


class StepOutput(NamedTuple, Generic[State]):
    """What a step gives.

    ``log_probs`` ``(rows, vocabulary)`` of the next token; ``state``, after the step; ``attention`` ``(rows, time)``,
    the weights of the input in this step, where there are any.
    """

    log_probs: Tensor
    state: State
    attention: Tensor | None = None


class Step(Protocol[State, Memory]):
    """A function of the last token of each row, the state before it and the memory.

    A row is a hypothesis. The state belongs to the hypothesis: a search puts its rows in another order after each step.
    The memory (an encoder's output, say) belongs to the utterance, and no step changes it: a search repeats its rows
    once for the hypotheses and leaves out those of finished utterances.

    Each is a tensor, or tensors in tuples, named tuples, lists and dicts, or None, with rows as the first axis; the
    ``(layers, rows, hidden)`` of ``torch.nn.LSTM`` must be transposed.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from sonorant.decoding.step import StepOutput
        >>> embedding, cell, output = nn.Embedding(5, 8), nn.LSTMCell(8, 8), nn.Linear(8, 5)
        >>> def step(tokens, state, memory):
        ...     hidden, cells = cell(embedding(tokens) + memory, state)
        ...     return StepOutput(output(hidden).log_softmax(1), (hidden, cells))
        >>> step(torch.tensor([0, 3]), (torch.zeros(2, 8), torch.zeros(2, 8)), torch.randn(2, 8)).log_probs.shape
        torch.Size([2, 5])
    """

    def __call__(self, tokens: Int[Tensor, " rows"], state: State, memory: Memory, /) -> StepOutput[State]:
        """Take one step."""


Tree = TypeVar("Tree")


def select_rows(tree: Tree, rows: Int[Tensor, " rows"]) -> Tree:
    """Other rows of a state or memory.

    Args:
        tree: tensors with rows as the first axis, in tuples, named tuples, lists and dicts; None stays None.
        rows: ``(rows,)``.

    Raises:
        TypeError: something else in it.

    Example:
        >>> import torch
        >>> from sonorant.decoding.step import select_rows
        >>> select_rows({"h": torch.tensor([1, 2])}, torch.tensor([1, 1, 0]))
        {'h': tensor([2, 2, 1])}
    """
    value: Any = tree
    if value is None:
        return tree
    if isinstance(value, Tensor):
        return cast(Tree, value.index_select(0, rows.to(value.device)))
    if isinstance(value, dict):
        return cast(Tree, {key: select_rows(item, rows) for key, item in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return cast(Tree, type(value)(*(select_rows(item, rows) for item in value)))
    if isinstance(value, tuple | list):
        return cast(Tree, type(value)(select_rows(item, rows) for item in value))
    raise TypeError(f"state and memory hold tensors in tuples, lists and dicts; got {type(value).__name__}")


def num_rows(state: Any, memory: Any) -> tuple[int, torch.device]:
    """The number of rows that all tensors of a state and a memory have, and the device of the first.

    Raises:
        ValueError: tensors of different numbers of rows; no tensor at all.
        TypeError: something that is neither a tensor nor holds tensors.
    """
    tensors = [*_tensors(state, "state"), *_tensors(memory, "memory")]
    if not tensors:
        raise ValueError("neither state nor memory holds a tensor; one is needed, for its number of rows")
    first = tensors[0][1]
    rows = first.shape[0] if first.dim() else None
    _check_rows(tensors, rows)
    assert rows is not None
    return rows, first.device


def _check_rows(tensors: Iterable[tuple[str, Tensor]], rows: int | None) -> None:
    for name, tensor in tensors:
        if tensor.dim() == 0 or tensor.shape[0] != rows:
            wanted = "rows" if rows is None else rows
            raise ValueError(f"{name} must have shape ({wanted}, ...); got {tuple(tensor.shape)}")


def _tensors(tree: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """All tensors, each with its name, such as ``state.cells[1]``."""
    if isinstance(tree, Tensor):
        yield name, tree
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from _tensors(item, f"{name}[{key!r}]")
    elif isinstance(tree, tuple) and hasattr(tree, "_fields"):
        for field, item in zip(tree._fields, tree, strict=True):
            yield from _tensors(item, f"{name}.{field}")
    elif isinstance(tree, tuple | list):
        for index, item in enumerate(tree):
            yield from _tensors(item, f"{name}[{index}]")
    elif tree is not None:
        raise TypeError(f"{name} must be tensors in tuples, lists and dicts; got {type(tree).__name__}")


def check_output(output: StepOutput[Any], utterances: Int[Tensor, " rows"], eos: int) -> None:
    """Refuse what a step cannot have meant.

    Args:
        output: of the step.
        utterances: ``(rows,)``, which utterance each row belongs to.
        eos: the end mark, one of the vocabulary.

    Raises:
        ValueError: log probabilities, state or attention of other shapes; no other token than ``eos``; log
            probabilities that are NaN or above 0.
        TypeError: a state that holds something else than tensors.
    """
    log_probs, rows = output.log_probs, len(utterances)
    if log_probs.dim() != 2 or len(log_probs) != rows or not log_probs.is_floating_point():
        found = f"{log_probs.dtype} {tuple(log_probs.shape)}"
        raise ValueError(f"log_probs must be floats of shape ({rows}, vocabulary); got {found}")
    if log_probs.shape[1] < 2 or log_probs.shape[1] <= eos:
        raise ValueError(f"log_probs is of {log_probs.shape[1]} tokens; eos is {eos}, and there must be others")
    largest = log_probs.amax(1)  # NaN where there is one
    wrong = ~(largest <= _TOLERANCE)
    if wrong.any():
        row = int(wrong.nonzero()[0])
        found = f"{float(largest[row])} for utterance {int(utterances[row])}"
        raise ValueError(f"log_probs holds {found}; log probabilities are at most 0 (logits need log_softmax)")
    _check_rows([*_tensors(output.state, "state"), *_tensors(output.attention, "attention")], rows)
