"""The one error family.

Every deliberate refusal derives from :class:`LakescopeError`, says what is wrong and where, and ends with a hint
that says what to do next. Whatever it quotes, it holds no secrets. The command line turns ``exit_code`` into its own:
2 for a bad request, 1 for a failure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LakescopeError(Exception):
    """Base of everything Lakescope raises on purpose."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        # Imported when something goes wrong: errors are everybody's, and importing them takes no time.
        from lakescope.sources.io.redact import scrub

        self.message = scrub(message)
        self.hint = hint and scrub(hint)
        super().__init__(self.message, self.hint)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions travel from Spark workers to the driver: the keyword argument must survive the trip.
        return _rebuild, (type(self), self.message, self.hint)

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def _rebuild(kind: type[LakescopeError], message: str, hint: str | None) -> LakescopeError:
    return kind(message, hint=hint)


def _rebuild_source(message: str, hint: str | None, code: str) -> SourceError:
    return SourceError(message, hint=hint, code=code)


class BadRequest(LakescopeError):
    """The caller asked for something that cannot be: a wrong name, path, option or value."""

    exit_code = 2


class NotFound(BadRequest):
    """A name that does not exist here; the hint lists the nearest names that do."""

    @classmethod
    def among(cls, what: str, name: str, known: Iterable[str]) -> NotFound:
        """Build the error for ``name``, hinting at close matches among ``known``."""
        names = list(known)
        close = difflib.get_close_matches(name, names, n=5, cutoff=0.6)
        listed = ", ".join(repr(n) for n in close or sorted(names)[:5])
        more = f" and {len(names) - 5} more" if len(names) > 5 and not close else ""
        hint = (
            f"did you mean {listed}?"
            if close
            else f"there is {listed}{more}"
            if names
            else f"there is no {what} at all"
        )
        return cls(f"no {what} named {name!r}", hint=hint)


class SourceError(LakescopeError):
    """A source could not be read. Inside a build it becomes a row in ``problems`` instead of ending the build.

    ``code`` is the stable word the problem is filed under (``empty-file``, ``truncated``, ...).
    """

    def __init__(self, message: str, *, hint: str | None = None, code: str = "unreadable") -> None:
        super().__init__(message, hint=hint)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_source, (self.message, self.hint, self.code)


class IndexDamaged(LakescopeError):
    """A file of the index is missing, truncated, altered or of a format this version does not read."""


class IndexLocked(LakescopeError):
    """Another process is writing this index."""


class WriteFailed(LakescopeError):
    """The disk did not take what was written: it is full, or may not be written to any more."""


class BuildFailed(LakescopeError):
    """The Spark job did not finish; the index that was there before is untouched."""
