"""How commands print what changed in a lake."""

from __future__ import annotations

from lakescope.faces.cli.printing import Printing


class VersionPrinting(Printing):
    """Prints versions of a table."""


class DriftPrinting(Printing):
    """Prints columns that changed."""

    empty = "nothing drifted"
