"""Options that commands had once: whoever writes one is told what takes its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Gone:
    """An option that a command had, and what takes its place."""

    name: str
    instead: str
    flag: bool = False

    @property
    def parameter(self) -> str:
        """Its name among the arguments of a function."""
        return "gone_" + self.name.strip("-").replace("-", "_")

    @property
    def kind(self) -> Any:
        """The type that it had."""
        return bool if self.flag else str | None


#: Options that `fds` had for its study alone.
_OF_A_STUDY = ("--pattern", "--target", "--unit", "--versions", "--seed", "--out")
#: Options that `count` had for one of its modes alone, with the command that has them now.
_OF_ADVICE, _OF_COUNTER_STUDY = ("--sets", "--membership", "--deletions", "--fast"), ("--max", "--seeds", "--out", "-o")
#: Options that each command had, or a group of commands when it was one.
GONE: dict[str, tuple[Gone, ...]] = {
    "info": (Gone("--timings", "a command: lakescope timings INDEX", flag=True),),
    "join": (Gone("--paths", "a command: lakescope paths INDEX QUERY --depth 3"),),
    "correlate": (Gone("--weight", "two options: --weight-join 1 --weight-corr 1"),),
    "keys": (
        Gone("--diagram", "a command: lakescope keys diagram INDEX --out schema.svg"),
        Gone("--sql", "a command: lakescope keys diagram INDEX --form sql", flag=True),
        Gone("--show", "a command: lakescope keys primary INDEX, or an option: lakescope keys INDEX --withheld"),
    ),
    "fds": (
        Gone("--compare", "a command: lakescope fds compare TABLE CLEAN"),
        Gone("--violations", "a command: lakescope fds violations TABLE 'zip, state -> city'"),
        Gone("--split", "a command: lakescope fds split TABLE", flag=True),
        Gone("--all", "a command: lakescope fds lake INDEX", flag=True),
        Gone("--study", "a command: lakescope fds study TABLE --shares 0.05,0.1", flag=True),
        Gone("--reference", "a command: lakescope fds reference TABLE", flag=True),
        *(Gone(name, "an option of lakescope fds study TABLE") for name in _OF_A_STUDY),
        Gone("--bins", "an option of lakescope fds reference TABLE"),
    ),
    "count": (
        Gone("--stored", "a command: lakescope count stored TABLE", flag=True),
        Gone("--advise", "a command: lakescope count advise --memory 16KB", flag=True),
        Gone("--study", "a command: lakescope count study --max 1e6", flag=True),
        *(Gone(name, "an option of lakescope count advise", flag=True) for name in _OF_ADVICE),
        *(Gone(name, "an option of lakescope count study") for name in _OF_COUNTER_STUDY),
    ),
    "autojoin": (
        Gone("-k", "an option of lakescope autojoin lake INDEX QUERY"),
        Gone("--candidates", "an option of lakescope autojoin lake INDEX QUERY"),
    ),
    "headers": (
        Gone("--write", "a command: lakescope headers write INDEX QUERY --out named.csv"),
        Gone("--from", "a command: lakescope headers suggest INDEX QUERY"),
        Gone("--check", "a command: lakescope headers check INDEX"),
        Gone("--evaluate", "a command: lakescope headers evaluate INDEX"),
    ),
}
