"""Passwords, in memory alone: nothing that is written, shown or sent in a work unit holds one.

A password that came with an address, or from the environment of the process that looks for tables, is kept here under
the address without it. Tasks take what is known along to their workers, inside the task and not in the plan; where
nothing is known, a driver looks for itself (``~/.pgpass``, a service file).
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping

_HIDDEN = "***"
#: Where libpq looks for a password that an address lacks.
_VARIABLE = "PGPASSWORD"
_known: dict[str, str] = {}
_lock = threading.Lock()


def remember(place: str, secret: str) -> None:
    """Keep the password of a place as long as this process lives."""
    with _lock:
        _known[place] = secret


def of(place: str) -> str | None:
    """The password of a place, if it is known here: given with its address, brought along, or of the environment."""
    return _known.get(place) or _known.get(_VARIABLE) or os.environ.get(_VARIABLE)


def passwords() -> dict[str, str]:
    """All of them, to be taken along to a worker."""
    here = {_VARIABLE: os.environ[_VARIABLE]} if os.environ.get(_VARIABLE) else {}
    with _lock:
        return here | _known


def learn(secrets: Mapping[str, str]) -> None:
    """Take over what a task has brought along."""
    with _lock:
        _known.update(secrets)


def hide(text: str) -> str:
    """A text without the passwords that are known here; what a library says may quote one."""
    for secret in sorted(set(passwords().values()), key=len, reverse=True):
        # Whole words: a password may be the beginning of another word, as "postgres" is.
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _HIDDEN, text)
    return text
