"""Memory that questions write to while they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")

#: Pieces that are kept when nobody uses them.
_IDLE = os.cpu_count() or 1


class Scratch(Generic[T]):
    """Pieces of such memory: one for each question that runs, lent to the next one when it ends.

    So there are as many as questions ran at once, whatever number of threads ever asked. Whoever borrows one leaves it
    as it was; after an error it is thrown away.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._idle: list[T] = []

    @contextmanager
    def borrow(self) -> Iterator[T]:
        """A piece that nobody else uses meanwhile."""
        try:
            piece = self._idle.pop()
        except IndexError:
            piece = self._make()
        yield piece
        if len(self._idle) < _IDLE:
            self._idle.append(piece)
