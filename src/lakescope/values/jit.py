"""Kernels that run as they are written until it pays to compile them.

Loading numba, and what it compiled before, takes as long as reading some hundred kilobytes without it; compiling takes
a minute. So a process that asks one question about a small table never loads it, and all others do once they have read
enough. A kernel of this module is one function either way, so that there is nothing that could differ.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from lakescope.once import once

#: Bytes that are read sooner than kernels are loaded. Either was measured to take 0.3 s: a byte takes 0.5 microseconds,
#: with many words and dates up to 0.9.
PATIENCE = 640 * 1024

_spent = 0


def loaded() -> bool:
    """Whether numba is at hand, whoever loaded it; a build and a warm server have it from the beginning."""
    return "numba" in sys.modules


def expect(size: int) -> None:
    """Load numba if reading so many bytes more takes longer than that."""
    if not loaded() and _spent + size > PATIENCE:
        import numba  # noqa: F401


def spend(size: int) -> None:
    """Count bytes that are read without numba, unless they are too many: however small tables are, they add up."""
    global _spent
    expect(size)
    if not loaded():
        _spent += size


class Kernel:
    """A function that is compiled once numba is loaded, and runs as it is written before that.

    It takes arrays of numpy and must mean the same to both: no arithmetic of fixed width that wraps around, and
    ``int()`` around what is read from an array of integers before it is reckoned with.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options

    def __call__(self, *arguments: Any) -> Any:
        return (self.compiled if loaded() else self.plain)(*arguments)

    @once
    def plain(self) -> Callable[..., Any]:
        """The function as it is written; the kernels that it calls are, too."""
        return self._calling("plain")

    @once
    def compiled(self) -> Any:
        """The function compiled, or what numba kept of it."""
        from numba import njit

        return njit(cache=True, **self._options)(self._calling("compiled"))

    @property
    def signatures(self) -> list[Any]:
        """What it was compiled for."""
        found: list[Any] = self.compiled.signatures
        return found

    def _calling(self, way: str) -> Callable[..., Any]:
        """The function with the kernels that it calls run one way or the other."""
        code: CodeType = self._function.__code__
        known: dict[str, Any] = self._function.__globals__
        names = {
            name: getattr(known[name], way) if isinstance(known[name], Kernel) else known[name]
            for name in code.co_names
            if name in known
        }
        return FunctionType(code, {"__name__": self._function.__module__, **names}, code.co_name)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a function a kernel; the options are those of ``numba.njit``."""
    return lambda function: Kernel(function, **options)


class _Pointer(Kernel):
    """The items of an array: where they lie for what is compiled, else a view that gives numbers of Python.

    The array must live as long: an argument does, a local one may be gone after its last use.
    """

    def __init__(self) -> None:
        super().__init__(memoryview)

    @once
    def plain(self) -> Callable[..., Any]:
        return memoryview

    @once
    def compiled(self) -> Any:
        from lakescope.values.kernels import pointer

        return pointer


pointer: Any = _Pointer()
