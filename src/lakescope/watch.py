"""Whoever waits for an answer: is told what is done, and may end the work before its time."""

from __future__ import annotations

from typing import Final, Protocol


class Watch(Protocol):
    """Whoever waits for an answer and is told what is done."""

    @property
    def stopped(self) -> bool:
        """Whether what was found so far is wanted now; work that can be cut short looks at it now and then."""

    def tell(self, doing: str, share: float | None = None) -> None:
        """Say what is done, and the share that is done if it is known."""


class _Nobody:
    """Nobody waits, or nobody wants to know."""

    stopped = False

    def tell(self, doing: str, share: float | None = None) -> None:
        return


NOBODY: Final[Watch] = _Nobody()
