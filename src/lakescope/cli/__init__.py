"""The ``lakescope`` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line; see ``lakescope --help``."""
    from lakescope.cli.app import run

    run()
