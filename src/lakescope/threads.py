"""One question on all cores: compiled loops over many candidates, a part of them in every thread."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

#: Less work than this (in steps of a few nanoseconds) is done before another thread would have begun.
_WORTH_A_THREAD = 50_000


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Threads of this process: a child that was forked has none of its parent's."""
    return ThreadPoolExecutor(_cores(), thread_name_prefix="lakescope")


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parts(run: Callable[[int, int], None], work: npt.NDArray[np.int64], each: int = 1) -> None:
    """Run a loop over items in parts of about the same work; ``run`` gets where a part begins and ends.

    It must be compiled without the interpreter's lock, and parts must not write to the same place. More parts for
    ``each`` core are for work that is known badly: whoever is done takes the next one.
    """
    if not work.size:
        return
    reached = np.cumsum(work)
    parts = int(min(each * _cores(), work.size, max(1, reached[-1] // _WORTH_A_THREAD)))
    if parts == 1:
        run(0, work.size)
        return
    cuts = np.searchsorted(reached, reached[-1] * np.arange(1, parts) / parts).tolist()
    left = deque(pairwise(sorted({0, *cuts, work.size})))

    def take() -> None:
        while left:
            try:
                part = left.popleft()
            except IndexError:  # somebody else took it
                return
            run(*part)

    waiting = [_pool(os.getpid()).submit(take) for _ in range(min(_cores(), len(left)) - 1)]
    take()
    for other in waiting:
        other.result()
