"""What a build holds open on the driver while workers read: the state of a database that all of them see.

A database goes on changing while it is read piece by piece. Inside :func:`scope`, whoever looks at a database leaves a
transaction open there, whose snapshot the readers of its pieces take over; when the scope ends, so does the
transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar

_scope: ContextVar[ExitStack | None] = ContextVar("snapshots", default=None)


@contextmanager
def scope() -> Iterator[None]:
    """A scope in which snapshots are held until it ends."""
    with ExitStack() as stack:
        token = _scope.set(stack)
        try:
            yield
        finally:
            _scope.reset(token)


def wanted() -> bool:
    """Whether somebody holds snapshots."""
    return _scope.get() is not None


def hold(opened: AbstractContextManager[object]) -> None:
    """Keep something that was entered until the scope ends."""
    stack = _scope.get()
    if stack is None:
        raise RuntimeError("no snapshots are held here")
    stack.push(opened)
