"""Parity, time and peak memory of several forms of one operation.

Nothing is timed before it is shown to be equal: the operation against its slow reference in float64 (the contract of
tests/test_contracts.py), then value and gradients of every form against ours at the measured size. A form that differs
gets a refusal in place of figures.
"""

import ctypes
import gc
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Inputs = dict[str, Any]
ROOT = Path(__file__).parent.parent
MIB = 1024  # in the kilobytes that Linux counts


def _unchanged(inputs: Inputs) -> Inputs:
    return inputs


@dataclass(frozen=True)
class Form:
    """One way to compute an operation: ``call(**inputs)`` returns a tensor.

    ``prepare`` brings the inputs into a layout of the form's own; it is not measured. ``package`` is what has to be
    installed.
    """

    label: str
    call: Callable[..., Tensor]
    prepare: Callable[[Inputs], Inputs] = _unchanged
    package: str | None = None

    @property
    def is_installed(self) -> bool:
        return self.package is None or importlib.util.find_spec(self.package) is not None


@dataclass(frozen=True)
class Benchmark:
    """An operation, the inputs it is measured on, and what it is measured against.

    ``make(**sizes)`` returns tensors, lists of tensors and Modules by argument name. Those named by ``differentiable``
    and the Modules' parameters get gradients. ``small`` are the sizes of tests and warm-up; ``case`` is the entry of
    tests/cases; ``tolerance`` the relative error in float32 between two forms.
    """

    name: str
    make: Callable[..., Inputs]
    sizes: dict[str, int]
    small: dict[str, int]
    ours: Form
    others: tuple[Form, ...]
    differentiable: tuple[str, ...] = ()
    case: str | None = None
    tolerance: float = 1e-4

    @property
    def forms(self) -> list[Form]:
        return [self.ours, *(form for form in self.others if form.is_installed)]

    def step(self, form: Form, sizes: dict[str, int]) -> "Step":
        return Step(form, self.make(**sizes), self.differentiable)


class Step:
    """Forward and backward of one form on fixed inputs, as in training: gradients are accumulated from nothing."""

    def __init__(self, form: Form, inputs: Inputs, differentiable: tuple[str, ...]) -> None:
        self.form = form
        self.inputs = form.prepare(inputs)
        self.differentiable = differentiable
        self.modules = [value for value in self.inputs.values() if isinstance(value, nn.Module)]
        self.upstream: Tensor | None = None

    def __call__(self) -> tuple[Tensor, dict[str, Tensor]]:
        """The output and the differentiable tensors, which hold their gradients."""
        arguments, sources = dict(self.inputs), {}
        for name in self.differentiable:
            arguments[name] = _leaves(arguments[name])
            sources.update(_named(name, arguments[name]))
        for module in self.modules:
            module.zero_grad(set_to_none=True)
            sources.update(module.named_parameters())
        output = self.form.call(**arguments)
        if sources:
            if self.upstream is None and output.dim():
                self.upstream = torch.cos(torch.arange(output.numel(), dtype=output.dtype)).view(output.shape)
            output.backward(self.upstream)
        return output.detach(), sources


def _leaves(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().requires_grad_()
    return [_leaves(item) for item in value]


def _named(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    else:
        for index, item in enumerate(value):
            yield from _named(f"{name}[{index}]", item)


def check_reference(case: str) -> None:
    """Raise AssertionError where an operation differs from its slow reference."""
    from tests.cases import CASES
    from tests.test_contracts import test_values_and_gradients_match_the_reference as check

    (entry,) = [entry for entry in CASES if entry.name == case]
    for dtype in (torch.float64, torch.float32):
        check(entry, "cpu", dtype)


def difference(ours: Step, theirs: Step, tolerance: float) -> str | None:
    """What differs between two forms, or None."""
    value, sources = ours()
    other_value, other_sources = theirs()
    errors = {"value": _error(value, other_value, 0.0)}
    largest = max((source.grad.norm().item() for source in sources.values() if source.grad is not None), default=0.0)
    for name, source in sources.items():
        mine, their = (torch.zeros_like(s) if s.grad is None else s.grad for s in (source, other_sources[name]))
        errors[f"gradient of {name}"] = _error(mine, their, 1e-3 * largest)
    wrong = [f"{name} by {error:.1e}" for name, error in errors.items() if not error <= tolerance]
    return f"differs: {', '.join(wrong)} (tolerance {tolerance:.0e})" if wrong else None


def _error(actual: Tensor, expected: Tensor, floor: float) -> float:
    """The norm of the difference relative to that of what is expected, which counts as at least ``floor``."""
    if actual.shape != expected.shape:
        return float("inf")
    actual, expected = actual.double(), expected.double()
    scale = max(expected.norm().item(), floor)
    distance = (actual - expected).norm().item()
    return distance / scale if scale else distance


@dataclass(frozen=True)
class Effort:
    """How long a benchmark is repeated: for ``seconds`` of CPU time, but within these numbers of rounds."""

    seconds: float = 2.0
    least: int = 2
    most: int = 200


def cpu_seconds(steps: dict[str, Step], effort: Effort) -> dict[str, list[float]]:
    """CPU time of every step in every round. Rounds start with another step each, so that none has a place."""
    labels = list(steps)
    seconds: dict[str, list[float]] = {label: [] for label in labels}
    gc.collect()
    gc.disable()
    try:
        begin = time.process_time()
        for index in range(effort.most):
            if index >= effort.least and time.process_time() - begin > effort.seconds:
                break
            first = index % len(labels)
            for label in labels[first:] + labels[:first]:
                start = time.process_time()
                steps[label]()
                seconds[label].append(time.process_time() - start)
    finally:
        gc.enable()
    return seconds


def peak_of_call(call: Callable[[], Any]) -> float:
    """By how many MiB a call raises the resident memory at its highest. Linux only; wants a fresh process."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    call()
    return max(_memory("VmHWM") - before, 0) / MIB


def _memory(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def peak_in_fresh_process(name: str, label: str) -> float:
    """The peak of one form, measured by ``python -m benchmarks --peak NAME LABEL``."""
    # freed blocks go back to the system at once, so that the peak is of what is alive
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    command = [sys.executable, "-m", "benchmarks", "--peak", name, label]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def peak(benchmark: Benchmark, label: str) -> float:
    """The peak of one form in this process, after one step on small inputs has loaded all code."""
    (form,) = [form for form in benchmark.forms if form.label == label]
    benchmark.step(form, benchmark.small)()
    return peak_of_call(benchmark.step(form, benchmark.sizes))


@dataclass(frozen=True)
class Comparison:
    """Ours and another form: CPU seconds of each round and peak MiB, or why there are none."""

    benchmark: Benchmark
    form: Form
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    refused: str | None = None

    @property
    def speedups(self) -> list[float]:
        """Lower quartile, median and upper quartile of the ratios of the rounds."""
        ratios = [theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=True)]
        return statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3


def compare(benchmark: Benchmark, effort: Effort) -> list[Comparison]:
    """Check all forms, then time those that agree with ours."""
    forms = benchmark.forms[1:]
    if benchmark.case is not None:
        try:
            check_reference(benchmark.case)
        except AssertionError as error:
            reason = f"ours differs from the reference: {str(error).splitlines()[0]}"
            return [Comparison(benchmark, form, refused=reason) for form in forms]
    inputs = benchmark.make(**benchmark.sizes)
    steps = {form.label: Step(form, inputs, benchmark.differentiable) for form in benchmark.forms}
    ours = steps[benchmark.ours.label]
    refusals = {form.label: difference(ours, steps[form.label], benchmark.tolerance) for form in forms}
    agreeing = {label: step for label, step in steps.items() if refusals.get(label) is None}
    seconds = cpu_seconds(agreeing, effort) if len(agreeing) > 1 else {}
    mine = seconds.get(benchmark.ours.label, [])
    return [
        Comparison(benchmark, form, mine, seconds[form.label])
        if refusals[form.label] is None
        else Comparison(benchmark, form, refused=refusals[form.label])
        for form in forms
    ]
