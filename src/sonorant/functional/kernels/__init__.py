"""Fast CPU forms of the operations that earn one, compiled by numba (the extra ``fast``).

They are reached only through the custom operators of :mod:`sonorant.functional`. Which form runs is decided by what
is installed and by the device, never in mid-run. A kernel is a serial function that releases the GIL. One over
``range(start, stop)`` of the batch is spread over plain threads by :func:`run_over_batch`; one that does too little in
a call to be worth it is called as it is. numba's own thread pool is not used: it resets torch's thread count, dies in
forked DataLoader workers, and aborts on concurrent calls.
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
_registered: set[Callable[..., Any]] = set()  # helpers that numba knows
_compiling = threading.Lock()


@cache
def available() -> bool:
    """Whether numba is installed, so that the kernels run on the CPU."""
    return importlib.util.find_spec("numba") is not None


@overload
def kernel(function: Callable[..., None], /) -> Callable[..., None]: ...


@overload
def kernel(
    *, helpers: tuple[Callable[..., Any], ...] = (), fastmath: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]: ...


def kernel(
    function: Callable[..., None] | None = None,
    /,
    *,
    helpers: tuple[Callable[..., Any], ...] = (),
    fastmath: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """Compile a function with numba when it is first called, and cache the result on disk.

    Args:
        function: a serial function of arrays and numbers.
        helpers: the plain functions that the kernel, or another helper, calls; they are compiled with it.
        fastmath: what LLVM may do: ``"contract"`` allows fused multiply-add, ``"reassoc"`` vectorised sums.
    """

    if function is None:
        return partial(kernel, helpers=helpers, fastmath=fastmath)
    compiled: list[Callable[..., None]] = []

    @wraps(function)
    def call(*arguments: Any) -> None:
        if not compiled:
            with _compiling:
                if not compiled:
                    logger.info("preparing the kernel %s (compiled once, then cached)", function.__name__)
                    compiled.append(_compile(function, helpers, set(fastmath)))
        compiled[0](*arguments)

    return call


def _compile(
    function: Callable[..., None], helpers: tuple[Callable[..., Any], ...], fastmath: set[str]
) -> Callable[..., None]:
    import numba
    from numba.extending import register_jitable

    for helper in set(helpers) - _registered:
        register_jitable(error_model="numpy", fastmath=fastmath)(helper)
        _registered.add(helper)
    compiled: Callable[..., None] = numba.njit(function, nogil=True, cache=True, error_model="numpy", fastmath=fastmath)
    return compiled


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
