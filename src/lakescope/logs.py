"""Structured logs: one JSON object a line, for machines that watch over this one.

Everything goes through the ``lakescope`` logger of the standard library and is silent until somebody listens: a
program by its own handlers, the command line by ``--log-file`` or ``LAKESCOPE_LOG``. A line says when, how grave, what
(``event``) and whatever belongs to it. Names of tables and figures are logged, cells of tables and secrets never: an
event has no message that could hold them, and texts of errors are scrubbed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Any

from lakescope.errors import BadRequest

#: Names the file that the command line logs to, where it is not told otherwise.
VARIABLE = "LAKESCOPE_LOG"

_LOG = logging.getLogger("lakescope")
_LOG.addHandler(logging.NullHandler())
_FIELDS = "lakescope_fields"


def log(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: Any) -> None:
    """Tell that something happened, to whoever listens."""
    if _LOG.isEnabledFor(level):
        _LOG.log(level, event, exc_info=error, extra={_FIELDS: fields})


def listened() -> bool:
    """Whether it is worth to find out what would be logged."""
    return _LOG.isEnabledFor(logging.INFO) and any(
        not isinstance(each, logging.NullHandler) for each in [*_LOG.handlers, *logging.getLogger().handlers]
    )


class JsonLines(logging.Formatter):
    """Records as JSON, a line each."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, without secrets."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line |= {"error": type(error).__name__, "reason": getattr(error, "message", None) or str(error)}
        return json.dumps(_plain(line), ensure_ascii=True, default=str).replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    from lakescope.sources.io.redact import scrub

    if isinstance(value, str):
        return scrub(value).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return round(value, 6) if isinstance(value, float) else value


def write_to(place: str) -> logging.Handler:
    """Write what is logged to a file, behind what is there, or to standard error (``-``); its owner may read it."""
    try:
        handler = logging.StreamHandler(sys.stderr) if place == "-" else _LogFile(place, encoding="utf-8")
    except OSError as error:
        raise BadRequest(
            f"cannot write the log to {place}: {error.strerror}", hint="choose another --log-file, or - for stderr"
        ) from error
    handler.setFormatter(JsonLines())
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    return handler


class _LogFile(logging.FileHandler):
    """A file that nobody else may read, if it is made here."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=_for_owner)  # type: ignore[return-value]


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
