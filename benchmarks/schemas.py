"""Random databases with known keys: what detectors of foreign keys are trained on, and never measured on.

Tables refer to each other as real ones do: surrogate numbers with and without gaps, codes, natural names; columns are
named after the table they refer to, abbreviated, after a role, or nothing alike. Beside the keys stand the columns that
mislead: counts, ratings, ages, years, flags, line numbers, sort orders, prices, dates, texts.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

NOUNS = """customer order product supplier employee department city country region category invoice payment shipment
store warehouse item account branch loan card client district patient doctor visit drug disease ward team player match
season league stadium course student teacher school grade book author publisher genre track album artist playlist movie
actor director studio rating review user post comment tag vote badge message thread forum event venue ticket hotel room
booking guest flight airport airline plane route station line trip driver vehicle brand model part machine sensor
reading project task milestone contract vendor asset license policy claim agent broker stock trade exchange currency
rate bank transaction language continent river lake mountain desert religion organization party politician election
district province county gene protein compound atom bond molecule paper journal conference citation""".split()
ROLES = """manager parent owner creator source target origin destination home away winner captain supervisor main
primary secondary previous next assigned responsible billing shipping sender receiver boss head leader mother father
buyer seller editor coach referee""".split()
MEASURES = """quantity amount total price cost weight height width length score points count age year rank position
level size duration distance discount tax balance salary budget capacity temperature speed version priority stars votes
goals minutes""".split()


@dataclass
class Made:
    """A table as columns of texts (None is null), its key, and where its columns refer to."""

    name: str
    columns: dict[str, list[str | None]]
    key: tuple[str, ...]
    rows: int
    subtype: bool = False
    refers: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=list)


class Maker:
    """Draws databases."""

    def __init__(self, seed: int) -> None:
        self.dice = np.random.default_rng(seed)

    def _one(self, *choices: str) -> str:
        return str(self.dice.choice(list(choices)))

    def database(self) -> list[Made]:
        dice = self.dice
        names = [str(each) for each in dice.choice(sorted(set(NOUNS)), int(dice.integers(4, 16)), replace=False)]
        self.style = self._one("snake", "snake", "camel", "camel", "upper", "lower")
        self.naming = self._one(
            "same", "same", "table_id", "table_id", "glued", "prefix", "role", "bare", "opaque", "mixed"
        )
        self.plural = bool(dice.random() < 0.4)
        made: list[Made] = []
        for place, noun in enumerate(names):
            made.append(self._table(noun, made, first=place < 2))
        return made

    # --- tables -------------------------------------------------------------------------------------------------------

    def _table(self, noun: str, others: list[Made], first: bool) -> Made:
        dice = self.dice
        small = first or dice.random() < 0.35
        rows = int(np.exp(dice.uniform(np.log(2), np.log(60 if small else 8000))))
        if others and dice.random() < 0.2:  # about as many as another has: one for each of its rows, or most
            rows = max(3, int(others[int(dice.integers(len(others)))].rows * dice.choice([1.0, 1.0, 0.98, 1.02, 0.9])))
        name = self._styled(f"{noun}s" if self.plural and not noun.endswith("s") else noun)
        table = Made(name, {}, (), rows)
        prefix = f"{noun[0]}_" if self.naming == "prefix" else ""
        kind = dice.random()
        if others and kind < 0.15 and len(others) >= 2:
            self._link(table, noun, others)
        elif others and kind < 0.22:
            self._subtype(table, noun, others)
        else:
            column = self._key_name(noun, prefix)
            table.columns[column] = self._keys(rows)
            table.key = (column,)
        wanted = int(dice.poisson(1.3)) if others and table.key and not first else 0
        main = [other for other in others if not other.subtype or dice.random() < 0.1]
        for _ in range(wanted if main else 0):
            self._refer(table, main[int(dice.integers(len(main)))], prefix, noun)
        if table.key and len(table.key) == 1 and dice.random() < 0.08:
            self._refer(table, table, prefix, noun)
        for _ in range(int(dice.integers(1, 9))):
            self._distractor(table, prefix)
        if dice.random() < 0.3:
            self._alternate(table, noun, prefix)
        if dice.random() < 0.15:
            shuffled = list(table.columns)
            dice.shuffle(shuffled)
            table.columns = {each: table.columns[each] for each in shuffled}
        return table

    def _link(self, table: Made, noun: str, others: list[Made]) -> None:
        """A table of pairs, whose key is what it refers to."""
        a, b = (others[int(each)] for each in self.dice.choice(len(others), 2, replace=False))
        if len(a.key) != 1 or len(b.key) != 1 or a.subtype or b.subtype:
            column = self._key_name(noun, "")
            table.columns[column] = self._keys(table.rows)
            table.key = (column,)
            return
        mine = [self._reference_name(noun, other, table, "") for other in (a, b)]
        if mine[0] == mine[1]:
            mine[1] += "2"
        seen: set[tuple[str, str]] = set()
        lefts, rights = (self._drawn(other, 4 * table.rows) for other in (a, b))
        for left, right in zip(lefts, rights, strict=True):
            if left and right and len(seen) < table.rows:
                seen.add((left, right))
        pairs = sorted(seen)
        table.rows = len(pairs)
        for column, other, side in zip(mine, (a, b), (0, 1), strict=True):
            table.columns[column] = [pair[side] for pair in pairs]
            table.refers.append(((column,), other.name, other.key))
        table.key = tuple(mine)

    def _subtype(self, table: Made, noun: str, others: list[Made]) -> None:
        """A table about some rows of another, with that one's key."""
        parent = others[int(self.dice.integers(len(others)))]
        if len(parent.key) != 1 or parent.rows < 4 or parent.subtype:
            column = self._key_name(noun, "")
            table.columns[column] = self._keys(table.rows)
            table.key = (column,)
            return
        keys = parent.columns[parent.key[0]]
        taken = max(2, int(parent.rows * self.dice.uniform(0.1, 1.0)))
        column = parent.key[0] if self.dice.random() < 0.6 else self._reference_name(noun, parent, table, "")
        table.rows = taken
        table.columns[column] = [
            keys[int(each)] for each in np.sort(self.dice.choice(parent.rows, taken, replace=False))
        ]
        table.key = (column,)
        table.subtype = True
        table.refers.append(((column,), parent.name, parent.key))

    def _refer(self, table: Made, other: Made, prefix: str, noun: str) -> None:
        if len(other.key) != 1:
            return
        column = self._reference_name(noun, other, table, prefix)
        if column in table.columns:
            return
        values = self._drawn(other, table.rows)
        missing = self.dice.choice([0, 0, 0, 0.05, 0.3, 0.7])
        if other is table:
            missing = max(missing, 0.1)
        table.columns[column] = [None if self.dice.random() < missing else value for value in values]
        table.refers.append(((column,), other.name, other.key))
        if other is not table and self.dice.random() < 0.15:
            self._copied(table, column, other)

    def _copied(self, table: Made, reference: str, other: Made) -> None:
        """Another column of the table that is referred to stands beside the reference: a copy, not a reference."""
        choices = [each for each in other.columns if each not in other.key and each not in table.columns]
        if choices:
            column = self._one(*choices)
            row_of = {key: row for row, key in enumerate(other.columns[other.key[0]])}
            there = other.columns[column]
            table.columns[column] = [there[row_of[key]] if key in row_of else None for key in table.columns[reference]]

    def _drawn(self, other: Made, rows: int) -> list[str | None]:
        """References: to all keys or some, evenly or to few most of the time."""
        keys = np.array(other.columns[other.key[0]], object)
        share = self.dice.choice([1.0, 1.0, 1.0, 0.7, 0.3])
        wanted = max(1, int(keys.size * share))
        taken = self.dice.permutation(keys.size)[:wanted]
        if self.dice.random() < 0.2:  # those of a certain time
            first = int(self.dice.integers(0, keys.size - wanted + 1))
            taken = np.arange(first, first + wanted)
        if self.dice.random() < 0.5:
            places = self.dice.integers(0, taken.size, rows)
        else:
            places = np.minimum(self.dice.zipf(1.5, rows) - 1, 10**9) % taken.size
        found = list(keys[taken[places]])
        if self.dice.random() < 0.05:
            for place in self.dice.choice(rows, max(1, rows // 100), replace=False).tolist():
                found[place] = str(10**7 + place)
        return found

    # --- values -------------------------------------------------------------------------------------------------------

    def _keys(self, rows: int) -> list[str | None]:
        dice = self.dice
        kind = dice.random()
        if kind < 0.62:
            first = int(dice.choice([1, 1, 1, 1, 0, 100, 1000, 10001]))
            numbers = np.arange(first, first + rows)
        elif kind < 0.74:
            numbers = np.sort(dice.choice(np.arange(1, 2 * rows + 1), rows, replace=False))
        elif kind < 0.82:
            numbers = np.sort(dice.choice(50 * rows + 10_000, rows, replace=False))
        elif kind < 0.92:
            length = 2 if rows < 300 else 3 if rows < 6000 else 5
            letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
            codes: set[str] = set()
            while len(codes) < rows:
                codes.add("".join(dice.choice(letters, length)))
            return sorted(codes)
        else:
            return [f"{self._one(*NOUNS)} {self._one(*NOUNS)} {place}" for place in range(rows)]
        return [str(int(each)) for each in numbers]

    def _alternate(self, table: Made, noun: str, prefix: str) -> None:
        """Another column that tells rows apart: a name, an address, a number of old."""
        name = self._one("name", f"{noun}_name", "title", "email", f"{noun}_code", "label", "number")
        values: list[str | None] = [f"{self._one(*NOUNS)} {self._one(*NOUNS)} {place}" for place in range(table.rows)]
        if name == "email":
            values = [f"{self._one(*NOUNS)}{place}@example.org" for place in range(table.rows)]
        elif name == "number":
            values = [str(each + 1) for each in range(table.rows)]
        column = self._styled(prefix + name)
        if column not in table.columns:
            table.columns[column] = values

    def _distractor(self, table: Made, prefix: str) -> None:
        dice, rows = self.dice, table.rows
        kind = int(dice.integers(0, 19))
        measure = self._one(*MEASURES)
        name = measure if self.naming != "opaque" else f"c{len(table.columns)}"
        if kind == 0:
            values = [str(each) for each in dice.integers(1, int(dice.choice([5, 10, 50, 100])) + 1, rows)]
        elif kind == 1:
            values = [str(each) for each in dice.poisson(float(dice.choice([1, 4, 20])), rows)]
        elif kind == 2:
            values = [str(each) for each in dice.integers(15, 95, rows)]
        elif kind == 3:
            values = [str(each) for each in dice.integers(int(dice.integers(1900, 2010)), 2025, rows)]
        elif kind == 4:
            values = [str(each) for each in dice.integers(0, 2, rows)]
        elif kind == 5:
            values = [f"{each:.2f}" for each in np.exp(dice.normal(3, 1.5, rows))]
        elif kind == 6:
            values = [
                f"20{dice.integers(10, 25)}-{dice.integers(1, 13):02d}-{dice.integers(1, 29):02d}" for _ in range(rows)
            ]
        elif kind == 7:
            values = [self._one("open", "closed", "new", "paid", "void") for _ in range(rows)]
        elif kind == 8:
            values = [f"{self._one(*NOUNS)} {self._one(*NOUNS)}" for _ in range(rows)]
        elif kind == 9:
            values = [" ".join(dice.choice(NOUNS, 8)) for _ in range(rows)]
        elif kind == 10:
            values = [str(place % int(dice.integers(2, 9)) + 1) for place in range(rows)]
        elif kind == 11:
            values = [str(each + 1) for each in dice.permutation(rows)]
        elif kind == 12:
            values = [str(each) for each in dice.integers(10_000, 99_999, rows)]
        elif kind == 13:
            values = [str(int(each)) for each in np.exp(dice.normal(6, 2, rows))]
        elif kind == 14:
            values = [f"{dice.normal(0, 50):.4f}" for _ in range(rows)]
        elif kind <= 17:  # amounts up to a round number, or to about as many as some table has rows
            top = int(dice.choice([20, 100, 200, 500, 999, 1000, 5000, 9999, 10_000, max(2, rows // 3), 2 * rows]))
            values = [str(each) for each in dice.integers(int(dice.integers(0, 2)), top + 1, rows)]
        else:
            values = [self._one("M", "F", "U") for _ in range(rows)]
        column = self._styled(prefix + name)
        if column not in table.columns:
            table.columns[column] = values

    # --- names --------------------------------------------------------------------------------------------------------

    def _styled(self, name: str) -> str:
        if self.style == "camel":
            return "".join(part.capitalize() for part in name.split("_"))
        if self.style == "upper":
            return name.upper()
        return name.replace("_", "") if self.style == "lower" else name

    def _key_name(self, noun: str, prefix: str) -> str:
        naming = self.naming if self.naming != "mixed" else self._one("same", "table_id", "glued", "bare", "opaque")
        mark = self._one("id", "id", "id", "key", "no", "code")
        if naming in ("same", "role"):
            return self._styled(f"{noun}_{mark}" if self.dice.random() < 0.85 else noun)
        if naming in ("glued", "prefix"):
            return self._styled(f"{prefix}{noun[: int(self.dice.integers(3, 7))]}{mark}")
        if naming == "opaque":
            return self._styled(self._one("c0", "f1", "col_a", "x", "nr", f"{noun[0]}{noun[-1]}"))
        return self._styled("id" if self.dice.random() < 0.7 else f"{mark}")

    def _reference_name(self, noun: str, other: Made, table: Made, prefix: str) -> str:
        dice = self.dice
        theirs = other.name.lower().rstrip("s")
        key = other.key[0]
        naming = (
            self.naming if self.naming != "mixed" else self._one("same", "table_id", "glued", "bare", "opaque", "role")
        )
        mark = self._one("id", "id", "id", "key", "no", "code")
        if other is table or naming == "role" or dice.random() < 0.08:
            role = self._one(*ROLES)
            name = self._one(f"{role}", f"{role}_{mark}", f"{role}_{theirs}", f"{role}_{theirs}_{mark}")
        elif naming == "same":
            return key if dice.random() < 0.9 else self._styled(f"{theirs}_{mark}")
        elif naming == "table_id":
            name = f"{theirs}_{mark}"
        elif naming in ("glued", "prefix"):
            own = key.split("_")[-1] if naming == "prefix" else key
            return self._styled(f"{prefix}{own.lower()}")
        elif naming == "bare":
            name = self._one(theirs, f"{theirs}_{mark}", f"fk_{theirs}")
        else:
            name = self._one(
                f"c{len(table.columns)}", f"f{len(table.columns)}", f"col_{len(table.columns)}", "ref", "link"
            )
        return self._styled(prefix + name)


def write(folder: Path, databases: int, seed: int) -> None:
    """Databases as folders of CSV files, each with its truth beside them."""
    maker = Maker(seed)
    for number in range(databases):
        made = maker.database()
        place = folder / f"db{number:04d}"
        place.mkdir(parents=True, exist_ok=True)
        for table in made:
            with (place / f"{table.name}.csv").open("w", newline="") as file:
                out = csv.writer(file)
                out.writerow(table.columns)
                out.writerows(zip(*([each or "" for each in column] for column in table.columns.values()), strict=True))
        truth = [
            {"child": t.name, "child_columns": mine, "parent": other, "parent_columns": theirs}
            for t in made
            for mine, other, theirs in t.refers
        ]
        (folder / f"db{number:04d}.json").write_text(json.dumps({"naming": maker.naming, "foreign_keys": truth}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--databases", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write(options.folder, options.databases, options.seed)
