"""Python processes that this package starts: none of them takes code or settings from the working directory.

That directory may be a lake: people go there and type a command. Python puts it first on the path of ``python -c`` and
``python -m``, so a ``json.py`` among the files would run in place of the real one. Every helper is started by
:func:`start`, and Spark's Python workers get :func:`safe_environment` (:mod:`lakescope.build.session`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

#: numba reads ``.numba_config.yaml`` in the working directory, from where these may name a folder of compiled code, or
#: a class that finds one. Variables go before the file; these values are numba's own.
_NUMBA = {"NUMBA_CACHE_DIR": "", "NUMBA_CACHE_LOCATOR_CLASSES": ""}


def start(
    module: str,
    function: str = "main",
    *,
    environment: Mapping[str, str] | None = None,
    stderr: int | None = None,
    start_new_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start ``module.function()`` in a process that is talked to over its pipes.

    Arguments of a process can be read by everybody on the machine, so there are none: what it is to know travels over
    the pipe, or in ``environment``, which is added to this process' own.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {module} import {function}; {function}()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, **safe_environment(), "PYTHONPATH": search_path(sys.path), **(environment or {})},
        start_new_session=start_new_session,
    )


def safe_environment() -> dict[str, str]:
    """Variables that keep Python, and numba in it, from the working directory; settings of numba's stay as they are."""
    return {"PYTHONSAFEPATH": "1", **{name: os.environ.get(name, value) for name, value in _NUMBA.items()}}


def search_path(entries: Iterable[str]) -> str:
    """``PYTHONPATH`` of a child that looks for modules in the same places, without the working directory.

    An empty entry means that directory, too; what is relative is written out. The directory that this package was
    loaded from stays in any case: without it there is no child.
    """
    unwanted = {_real(".")} - {_real(Path(__file__).parents[1])}
    places = [str(Path(entry).absolute()) for entry in entries if _real(entry) not in unwanted]
    # What holds the sign between two entries cannot be one.
    return os.pathsep.join(place for place in places if os.pathsep not in place)


def _real(folder: str | Path) -> Path | None:
    """A folder wherever links lead; None if it is relative to a working directory that is gone."""
    try:
        return Path(folder).resolve()
    except FileNotFoundError:
        return None
