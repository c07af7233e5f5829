"""Connections that serve several units one after the other: to open one costs more than to read a small table.

Only inside :func:`reused`, which ends them: a connection that stays open holds back the upkeep of its database.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import closing, contextmanager
from typing import Protocol, TypeVar


class _Closable(Protocol):
    def close(self) -> None: ...


Opened = TypeVar("Opened", bound=_Closable)

#: The connection that was given back last, and what it is good for; None where nothing is kept.
_kept: dict[Hashable, _Closable] | None = None


@contextmanager
def reused() -> Iterator[None]:
    """A scope in which a connection that was given back is kept for who needs the same."""
    global _kept
    before, _kept = _kept, {}
    try:
        yield
    finally:
        _end(_kept)
        _kept = before


@contextmanager
def borrowed(key: Hashable, opened: Callable[[], Opened]) -> Iterator[Opened]:
    """A connection that is good for ``key``. It is given back if all went well, and ended if not."""
    kept = _kept
    if kept is None:
        with closing(opened()) as connection:
            yield connection
        return
    found = kept.pop(key, None)
    _end(kept)
    connection = opened() if found is None else found  # type: ignore[assignment]
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    kept[key] = connection


def _end(kept: dict[Hashable, _Closable]) -> None:
    while kept:
        kept.popitem()[1].close()
