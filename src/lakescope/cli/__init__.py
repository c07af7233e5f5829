"""The ``lakescope`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; see ``lakescope --help``."""
    # Where scipy is, numba loads its BLAS before the first kernel, which takes longer than most questions; no kernel
    # here needs it, and nothing else in this process does.
    sys.modules.setdefault("scipy.linalg.cython_blas", None)  # type: ignore[arg-type]
    from lakescope.cli.app import run

    run()
