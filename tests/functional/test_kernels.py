"""The way kernels are compiled and spread over the batch."""

import multiprocessing

import numpy as np
import pytest
import torch

from sonorant.functional.kernels import kernel, run_over_batch


def _square(start: int, stop: int, x: np.ndarray, out: np.ndarray) -> None:
    for row in range(start, stop):
        out[row] = x[row] * x[row]


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 8])
def test_every_row_is_visited_once(two_threads: None, batch_size: int) -> None:
    x, out = np.arange(batch_size, dtype=np.float64), np.full(batch_size, -1.0)
    run_over_batch(kernel(_square), batch_size, x, out)
    assert out.tolist() == (x * x).tolist()
    assert torch.get_num_threads() == 2


def test_an_error_in_a_thread_is_raised(two_threads: None) -> None:
    def fail(start: int, stop: int) -> None:
        if start > 0:
            raise RuntimeError("second half")

    with pytest.raises(RuntimeError, match="second half"):
        run_over_batch(fail, 4)


def _in_child(queue) -> None:
    x, out = np.arange(4.0), np.zeros(4)
    run_over_batch(kernel(_square), 4, x, out)
    queue.put(out.tolist())


def test_a_forked_process_can_run_kernels(two_threads: None) -> None:
    run_over_batch(kernel(_square), 4, np.arange(4.0), np.zeros(4))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_in_child, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == [0.0, 1.0, 4.0, 9.0]
    process.join(10)
    assert process.exitcode == 0


def test_the_exponential_that_vectorises() -> None:
    numba = pytest.importorskip("numba")
    from sonorant.functional.kernels.exponential import exp_float32

    @numba.njit
    def exponentials(x: np.ndarray, out: np.ndarray) -> None:
        for i in range(len(x)):
            out[i] = exp_float32(x[i])

    x = np.linspace(-87, 88, 200_001).astype(np.float32)
    out = np.empty_like(x)
    exponentials(x, out)
    assert np.abs(out / np.exp(x.astype(np.float64)) - 1).max() < 2.5e-7


def test_the_exponential_in_double_precision() -> None:
    numba = pytest.importorskip("numba")
    from sonorant.functional.kernels.exponential import exp_float64

    @numba.njit
    def exponentials(x: np.ndarray, out: np.ndarray) -> None:
        for i in range(len(x)):
            out[i] = exp_float64(x[i])

    x = np.linspace(-700, 700, 200_001)
    out = np.empty_like(x)
    exponentials(x, out)
    assert np.abs(out / np.exp(x) - 1).max() < 5e-16
