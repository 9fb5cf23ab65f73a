"""Fast CPU forms of the operations that earn one, compiled by numba (the extra ``fast``).

They are reached only through the custom operators of :mod:`sonorant.functional`. Which form runs is decided by what
is installed and by the device, never in mid-run. A kernel is a serial function over ``range(start, stop)`` of the
batch that releases the GIL; :func:`run_over_batch` spreads the batch over plain threads. numba's own thread pool is
not used: it resets torch's thread count, dies in forked DataLoader workers, and aborts on concurrent calls.
"""

import importlib.util
import logging
import threading
from collections.abc import Callable
from functools import cache, partial, wraps
from itertools import pairwise
from typing import Any, overload

import torch

__all__ = ["available", "kernel", "run_over_batch"]

logger = logging.getLogger(__name__)


@cache
def available() -> bool:
    """Whether numba is installed, so that the kernels run on the CPU."""
    return importlib.util.find_spec("numba") is not None


@overload
def kernel(function: Callable[..., None], /) -> Callable[..., None]: ...
@overload
def kernel(*, fastmath: set[str]) -> Callable[[Callable[..., None]], Callable[..., None]]: ...
def kernel(function: Callable[..., None] | None = None, /, *, fastmath: set[str] | bool = False) -> Any:
    """Compile a function with numba when it is first called, and cache the result on disk.

    Args:
        function: what is compiled; its first two arguments are a range of the batch.
        fastmath: LLVM's fast-math flags; ``{"reassoc", "nsz", "contract"}`` lets sums run in vector lanes.
    """
    if function is None:
        return partial(_compile_on_demand, fastmath=fastmath)
    return _compile_on_demand(function, fastmath)


def _compile_on_demand(function: Callable[..., None], fastmath: set[str] | bool) -> Callable[..., None]:
    compiled: list[Callable[..., None]] = []
    lock = threading.Lock()

    @wraps(function)
    def call(*arguments: Any) -> None:
        with lock:
            if not compiled:
                import numba

                logger.info("preparing the kernel %s (compiled once, then cached)", function.__name__)
                compiled.append(numba.njit(function, nogil=True, cache=True, error_model="numpy", fastmath=fastmath))
        compiled[0](*arguments)

    return call


def run_over_batch(function: Callable[..., None], batch_size: int, *arguments: Any) -> None:
    """Call ``function(start, stop, *arguments)`` over the batch, on as many threads as torch uses.

    The threads live for one call, so that forked workers and concurrent callers cannot meet a dead or a busy pool.
    """
    num_threads = max(1, min(torch.get_num_threads(), batch_size))
    bounds = [batch_size * index // num_threads for index in range(num_threads + 1)]
    errors: list[BaseException] = []

    def work(start: int, stop: int) -> None:
        try:
            function(start, stop, *arguments)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in pairwise(bounds[1:])]
    for thread in threads:
        thread.start()
    work(bounds[0], bounds[1])
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
