"""Work on many recordings at once, in order and with bounded memory."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["map_in_order"]

T = TypeVar("T")
R = TypeVar("R")


def map_in_order(function: Callable[[T], R], items: Iterable[T], jobs: int | None = None) -> Iterator[R]:
    """Results in the order of the items, from threads that are never far ahead of the one who takes them.

    Reading, resampling, filterbanks and f0 let go of Python's lock, so threads are enough.

    Args:
        function: what is done with an item.
        items: taken as they are needed.
        jobs: threads; None takes one for each core.
    """
    jobs = jobs or os.cpu_count() or 1
    with ThreadPoolExecutor(jobs) as pool:
        pending: deque[Future[R]] = deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > 4 * jobs:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
