"""The ``lakescope`` command."""

from __future__ import annotations

import os
import sys

from lakescope.processes import safe_environment


def main() -> None:
    """Run the command line; see ``lakescope --help``."""
    # Where scipy is, numba loads its BLAS before the first kernel, which takes longer than most questions; no kernel
    # here needs it, and nothing else in this process does.
    sys.modules.setdefault("scipy.linalg.cython_blas", None)  # type: ignore[arg-type]
    # The working directory may be a lake, and numba looks for settings there.
    os.environ.update(safe_environment())

    from lakescope.faces.cli.app import run

    run()
