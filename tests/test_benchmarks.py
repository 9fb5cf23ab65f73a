"""The benchmarks' harness. Nothing here asserts a time."""

from collections.abc import Callable

import pytest
import torch
from benchmarks.__main__ import memory_cells, row
from benchmarks.harness import Benchmark, Effort, Form, compare, difference, peak_in_fresh_process, peak_of_call
from benchmarks.operations import BENCHMARKS
from torch import Tensor

from tests.cases import CASES

TINY = {"size": 5}


def _make(size: int) -> dict[str, Tensor]:
    return {"x": torch.arange(1.0, size + 1)}


def _square(x: Tensor) -> Tensor:
    return (x**2).sum()


def _wrong_value(x: Tensor) -> Tensor:
    return (x**2).sum() * 1.001


def _wrong_gradient(x: Tensor) -> Tensor:
    return (x * x.detach()).sum()


def _nan(x: Tensor) -> Tensor:
    return (x**2).sum() * torch.nan


def _tiny(*others: Form, case: str | None = None) -> Benchmark:
    return Benchmark("tiny", _make, TINY, TINY, Form("ours", _square), others, ("x",), case)


def _product(x: Tensor) -> Tensor:
    return x @ x


def test_equal_forms_are_timed() -> None:
    (comparison,) = compare(_tiny(Form("product", _product)), Effort(0.0, least=3))
    assert comparison.refused is None
    assert len(comparison.ours) == len(comparison.theirs) == 3
    assert comparison.speedups == sorted(comparison.speedups)
    text = row(comparison, {("tiny", "ours"): 2.0, ("tiny", "product"): 5.0})
    assert "size 5" in text
    assert "5.0 → 2.0" in text
    assert "2.50x" in text


@pytest.mark.parametrize(
    ("wrong", "what"), [(_wrong_value, "value"), (_wrong_gradient, "gradient of x"), (_nan, "value")]
)
def test_a_form_that_differs_gets_no_figures(wrong: Callable[[Tensor], Tensor], what: str) -> None:
    good, bad = compare(_tiny(Form("product", _product), Form("wrong", wrong)), Effort(0.0))
    assert good.refused is None
    assert bad.refused.startswith(f"differs: {what} by")
    assert bad.ours == bad.theirs == []
    assert "refused" in row(bad, {})
    assert "x**" not in row(bad, {})


def test_an_operation_that_fails_its_contract_gets_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = [case for case in CASES if case.name == "invariance_loss"]
    broken = type(case)(**{**vars(case), "reference": lambda a, b: (a - b).abs().mean()})
    monkeypatch.setattr("tests.cases.CASES", [broken])
    (comparison,) = compare(_tiny(Form("product", _product), case="invariance_loss"), Effort(0.0))
    assert comparison.refused.startswith("ours differs from the reference")
    assert comparison.ours == []


def test_a_package_that_is_missing_is_left_out() -> None:
    benchmark = _tiny(Form("elsewhere", _product, package="sonorant_is_not_this"))
    assert [form.label for form in benchmark.forms] == ["ours"]
    assert compare(benchmark, Effort(0.0)) == []


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_all_forms_agree_on_small_inputs(benchmark: Benchmark) -> None:
    assert benchmark.case in {case.name for case in CASES}
    inputs = benchmark.make(**benchmark.small)
    for form in benchmark.forms[1:]:
        ours, theirs = benchmark.step(benchmark.ours, benchmark.small), benchmark.step(form, benchmark.small)
        assert inputs.keys() == ours.inputs.keys()
        assert difference(ours, theirs, benchmark.tolerance) is None


def test_names_are_unique() -> None:
    assert len({benchmark.name for benchmark in BENCHMARKS}) == len(BENCHMARKS)


def test_the_peak_counts_what_was_freed_again() -> None:
    peak = peak_of_call(lambda: torch.ones(16 * 2**20).sum())
    assert 60 < peak < 80


@pytest.mark.slow
def test_a_peak_is_measured_in_a_fresh_process() -> None:
    (benchmark,) = [benchmark for benchmark in BENCHMARKS if benchmark.name == "invariance_loss"]
    assert 0 <= peak_in_fresh_process(benchmark.name, benchmark.ours.label) < 100


def test_memory_below_the_resolution_gives_no_ratio() -> None:
    assert memory_cells(0.4, 0.1)[1] == "both below 1 MiB"
    assert memory_cells(15.0, 0.1)[1] == "more than **15.0x**"
    assert memory_cells(15.0, 5.0)[1] == "**3.00x**"
    assert memory_cells(None, 5.0) == ["", ""]
