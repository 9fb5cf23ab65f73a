"""Measure the operations against the forms in common use and against other packages.

    python -m benchmarks --output docs/benchmarks.md

In a checkout with the extra ``dev``; ``pip install monotonic-alignment-search auraloss`` adds these two packages to the
comparison.
"""

import argparse
import importlib.metadata
import os
import platform
import shlex
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from benchmarks.harness import Benchmark, Comparison, Effort, compare, peak, peak_in_fresh_process
from benchmarks.operations import BENCHMARKS

HEADER = "| Operation | Against | Time, ms | Ratio | Peak memory, MiB | Ratio |\n|---|---|---|---|---|---|"
PACKAGES = ("torch", "numpy", "numba", "monotonic-alignment-search", "auraloss")
TEXT = """# Benchmarks

{command} wrote this page.
It measures the operations, forward and backward, against the forms in common use, which work as the public training
code does that people copy (loops over the batch, stored masks, targets and weights; they are in
`benchmarks/originals.py` and `tests/reference`), and against what else a user would call.

- **Parity first.** An operation is compared with its slow reference in float64, then the values and all gradients of
  the two forms with each other at the measured size. Where they differ, there is a refusal and no figure.
- **Time** is CPU time of one thread in float32, other forms → ours. All forms of an operation run in turn in one
  process, with the default malloc; times are medians, the ratio is the median of the rounds' ratios, with its
  quartiles. Above 1, ours is faster. Kernels are compiled before.
- **Peak memory** is what one forward and backward adds to the inputs, other forms → ours: the rise of the resident
  set's high-water mark in a fresh process, where malloc gives freed blocks back at once.

Two loops are there in two forms: in a loop over `padded[b]` or `queries[:, step]` autograd makes a gradient of the
size of the whole tensor in every turn, in one over `unbind` it does not. With padding, ours also keeps NaN and inf
out of values and gradients, which multiplication with a mask does not.

Machine: {machine}.
Software: {software}.
Environment: {environment} (over the last five minutes; the measurement alone makes it 1 to 2).

{table}
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="operations whose name contains one of these")
    parser.add_argument("--quick", action="store_true", help="few repetitions, no memory")
    parser.add_argument("--output", type=Path, help="a Markdown page")
    parser.add_argument("--peak", nargs=2, metavar=("NAME", "FORM"), help="print one peak, measured in this process")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.peak:
        name, label = options.peak
        print(peak(next(benchmark for benchmark in BENCHMARKS if benchmark.name == name), label))
        return 0
    chosen = [b for b in BENCHMARKS if options.only is None or any(part in b.name for part in options.only)]
    if not chosen:
        parser.error(f"no operation contains {' or '.join(options.only)}; there are {[b.name for b in BENCHMARKS]}")
    for package in missing_packages(chosen):
        print(f"{package} is not installed: not measured", file=sys.stderr)
    comparisons = measure(chosen, Effort(0.3, 1) if options.quick else Effort())
    peaks = {} if options.quick else measure_peaks(comparisons)
    lines = [HEADER, *(row(comparison, peaks) for comparison in comparisons)]
    print("\n".join(lines))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(page("\n".join(lines), missing_packages(chosen)))
    return int(any(comparison.refused for comparison in comparisons))


def missing_packages(chosen: Iterable[Benchmark]) -> list[str]:
    return sorted({str(form.package) for b in chosen for form in b.others if not form.is_installed})


def measure(chosen: list[Benchmark], effort: Effort) -> list[Comparison]:
    comparisons = []
    for benchmark in chosen:
        found = compare(benchmark, effort)
        for comparison in found:
            print(row(comparison, {}), file=sys.stderr, flush=True)
        comparisons += found
    return comparisons


def measure_peaks(comparisons: list[Comparison]) -> dict[tuple[str, str], float]:
    """Every agreeing form in a process of its own, two at a time (which times would not bear)."""
    agreeing = [c for c in comparisons if not c.refused]
    pairs = dict.fromkeys((c.benchmark.name, form.label) for c in agreeing for form in (c.benchmark.ours, c.form))
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(pairs, pool.map(lambda pair: peak_in_fresh_process(*pair), pairs), strict=True))


def row(comparison: Comparison, peaks: dict[tuple[str, str], float]) -> str:
    benchmark = comparison.benchmark
    sizes = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in benchmark.sizes.items())
    cells = [f"`{benchmark.name}`<br>{sizes}", comparison.form.label]
    if comparison.refused:
        return f"| {' | '.join(cells)} | refused: {comparison.refused} | | | |"
    ours, theirs = (1000 * statistics.median(seconds) for seconds in (comparison.ours, comparison.theirs))
    low, middle, high = comparison.speedups
    cells += [f"{theirs:.3g} → {ours:.3g}", f"**{times(middle)}** ({times(low)} to {times(high)})"]
    cells += memory_cells(*(peaks.get((benchmark.name, form.label)) for form in (comparison.form, benchmark.ours)))
    return f"| {' | '.join(cells)} |"


def memory_cells(theirs: float | None, ours: float | None) -> list[str]:
    if theirs is None or ours is None:
        return ["", ""]
    cell = f"{theirs:.1f} → {ours:.1f}"
    if max(theirs, ours) < 1:  # pages of some kilobytes decide
        return [cell, "both below 1 MiB"]
    if ours < 1:
        return [cell, f"more than **{times(theirs)}**"]
    return [cell, f"**{times(theirs / ours)}**"]


def times(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x"


def page(table: str, missing: list[str]) -> str:
    versions = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {package}")
    named = [f"{key}={os.environ[key]}" for key in sorted(os.environ) if key.startswith(("MALLOC_", "OMP_", "MKL_"))]
    if missing:
        table += f"\n\nNot measured, since not installed: {', '.join(missing)}."
    return TEXT.format(
        command=f"`python -m benchmarks {shlex.join(sys.argv[1:])}`",
        machine=f"{processor()}, {os.cpu_count()} cores, {memory_gib():.0f} GiB, {platform.system()}",
        software=", ".join(versions),
        environment=", ".join(["torch.set_num_threads(1)", *named, f"load average {os.getloadavg()[1]:.1f}"]),
        table=table,
    )


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


if __name__ == "__main__":
    sys.exit(main())
