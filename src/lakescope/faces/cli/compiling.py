"""Say so when a command waits for numba: the first on a machine compiles its kernels, which takes a minute."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

_LOOK_SECONDS = 0.2
#: A single new kernel takes about a second: not worth a word.
_PATIENCE_SECONDS = 1.5


def tell_of_compiling() -> None:
    """Listen for numba's compiler, if this is a terminal; a command that does without numba never loads it."""
    if sys.stderr.isatty():
        threading.Thread(target=_listen, daemon=True).start()


def _listen() -> None:
    # The decorators are the last of numba to be loaded.
    while not hasattr(sys.modules.get("numba"), "njit"):
        time.sleep(_LOOK_SECONDS)
    from numba.core import event

    class Notice(event.Listener):
        began: float | None = None
        told = False

        def on_start(self, event: Any) -> None:
            now = time.monotonic()
            self.began = now if self.began is None else self.began
            if not self.told and now - self.began > _PATIENCE_SECONDS:
                self.told = True
                sys.stderr.write("\rcompiling for this machine, once: a minute or so ...\n")
                sys.stderr.flush()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]
