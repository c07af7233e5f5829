"""Where things lie on this machine is nobody's business who asks over a network: errors name files, not folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import lakescope
from lakescope.errors import LakescopeError
from lakescope.faces.serving.refusals import Refused, code_of, status_of


class Places:
    """Folders that are called by their last name: the index, the roots of the lake, files that were sent, the code."""

    def __init__(self, places: Iterable[str]) -> None:
        known = {each for place in places for each in _spellings(place)} | _spellings(lakescope.__path__[0])
        # What is longer first: one may lie in another.
        self._names = {place: _name(place) for place in sorted(known, key=len, reverse=True) if len(place) > 1}

    def hide(self, text: str) -> str:
        """A text without the folders that these lie in."""
        for place, name in self._names.items():
            if place in text:
                text = text.replace(place, name)
        return text

    def without(self, error: LakescopeError) -> LakescopeError:
        """An error without them; it keeps its code and status."""
        message, hint = self.hide(error.message), error.hint and self.hide(error.hint)
        if (message, hint) == (error.message, error.hint):
            return error
        return Refused(status_of(error), code_of(error), message, hint=hint)


def _spellings(place: str) -> set[str]:
    """A place as it may be written: as a path, or as where its links lead; of a glob what stands before it.

    What is relative is taken from where the server runs.
    """
    if "://" in place:
        return {place.rstrip("/")}
    if (wild := re.search(r"[*?\[]", place)) is not None:
        place = place[: wild.start()].rpartition("/")[0] or "/"
    return {str(Path(place).absolute()), os.path.realpath(place)}


def _name(place: str) -> str:
    return place.rpartition("/")[2]
