"""A small ordered union of programs: what each joins, the first that does so wins (the limit the thesis admits).

Where nearly every key is met by one row, the join is taken as one to one: keys that several rows lay claim to go to
none of them, and a key that is taken stays so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lakescope.array_types import I64
from lakescope.engines.transforms.evaluate import derived, hashes_of
from lakescope.engines.transforms.guard import GUARD
from lakescope.engines.transforms.keys import Key
from lakescope.engines.transforms.program import Piece, Program
from lakescope.engines.transforms.texts import TextTable

Keys = Mapping[tuple[Piece, ...], Key]


@dataclass(frozen=True)
class Joined:
    """For every source row its target row (-1: none) and the number of the program that found it; rows left open.

    ``repeated`` is the number of values that occur more than once among the keys, and hence join nothing.
    """

    targets: I64
    programs: I64
    ambiguous: int
    repeated: int = 0

    @property
    def pairs(self) -> int:
        return int((self.targets >= 0).sum())

    @property
    def keys(self) -> int:
        """Target rows that are joined."""
        return int(np.unique(self.targets[self.targets >= 0]).size)

    def rows(self, programs: int) -> list[int]:
        """Source rows that each of so many programs joins."""
        return [int((self.programs == number).sum()) for number in range(programs)]

    def notes(self) -> list[str]:
        """What was left unjoined on purpose."""
        notes = []
        if self.repeated:
            notes.append(f"the key is only nearly one: {self.repeated:,} values occur more than once and join nothing")
        if self.ambiguous:
            notes.append(f"{self.ambiguous:,} source rows lay claim to keys that others claim too: not joined")
        return notes


def targets_of(program: Program, source: TextTable, keys: Keys) -> I64:
    """The target row that a program sends every source row to; -1 where there is none."""
    return keys[program.keys].look_up(hashes_of(derived(program.outputs, source)))


def one_to_one(targets: I64) -> bool:
    """Whether nearly every key that is met is met by one row."""
    counts = np.unique(targets[targets >= 0], return_counts=True)[1]
    return bool(counts.size and (counts > 1).mean() <= GUARD.collisions)


def joined(met: Sequence[I64], single: bool) -> Joined:
    """The union of what programs met, in order; ``single`` if a key belongs to one row."""
    rows = met[0].size if met else 0
    targets, programs = np.full(rows, -1), np.full(rows, -1)
    ambiguous = 0
    for number, each in enumerate(met):
        found = np.where(targets < 0, each, -1)
        if single:
            found[np.isin(found, targets[targets >= 0])] = -1
            distinct, counts = np.unique(found[found >= 0], return_counts=True)
            twice = np.isin(found, distinct[counts > 1])
            ambiguous += int(twice.sum())
            found[twice] = -1
        fresh = found >= 0
        targets[fresh], programs[fresh] = found[fresh], number
    return Joined(targets, programs, ambiguous)
