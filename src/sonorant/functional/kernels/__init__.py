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
from typing import Any, TypeVar, overload

import torch

__all__ = ["available", "kernel", "kernel_part", "run_over_batch"]

logger = logging.getLogger(__name__)

_Function = TypeVar("_Function", bound=Callable[..., Any])

# No nnan and ninf: an overflow has to show.
_FAST_MATH = {"contract", "reassoc", "nsz", "arcp"}


@cache
def available() -> bool:
    """Whether numba is installed, so that the kernels run on the CPU."""
    return importlib.util.find_spec("numba") is not None


@overload
def kernel(function: Callable[..., None], /) -> Callable[..., None]: ...
@overload
def kernel(*, fast_math: bool) -> Callable[[Callable[..., None]], Callable[..., None]]: ...
def kernel(function: Callable[..., None] | None = None, /, *, fast_math: bool = False) -> Any:
    """Compile a function with numba when it is first called, and cache the result on disk.

    Without numba it runs as it is.

    Args:
        function: what is compiled; its first two arguments are a range of the batch.
        fast_math: sums may be reordered, so that they vectorise; NaN and infinity keep their meaning.
    """
    if function is None:
        return partial(_compile_on_demand, fast_math=fast_math)
    return _compile_on_demand(function, fast_math=fast_math)


def _compile_on_demand(function: Callable[..., None], *, fast_math: bool) -> Callable[..., None]:
    compiled: list[Callable[..., None]] = []
    lock = threading.Lock()

    @wraps(function)
    def call(*arguments: Any) -> None:
        if not available():
            function(*arguments)
            return
        with lock:
            if not compiled:
                import numba

                logger.info("preparing the kernel %s (compiled once, then cached)", function.__name__)
                flags = _FAST_MATH if fast_math else False
                compiled.append(numba.njit(function, nogil=True, cache=True, error_model="numpy", fastmath=flags))
        compiled[0](*arguments)

    return call


def kernel_part(*, fast_math: bool = False, inline: bool = False) -> Callable[[_Function], _Function]:
    """Mark a function that kernels call. It imports numba: only files that hold nothing but kernels use it.

    Args:
        fast_math: sums may be reordered, so that they vectorise; NaN and infinity keep their meaning.
        inline: put the function's statements into its caller, under the caller's ``fast_math``. A call that passes
            slices of arrays costs about 100 ns, which is much where it is made for every row of a matrix.
    """
    import numba

    def compile_part(function: _Function) -> _Function:
        part: _Function = numba.njit(
            function,
            nogil=True,
            error_model="numpy",
            fastmath=_FAST_MATH if fast_math else False,
            inline="always" if inline else "never",
        )
        return part

    return compile_part


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
