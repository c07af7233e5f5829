"""The truth about a demo lake: a plain JSON document beside the lake, never inside it.

Tables are named as Lakescope names them: the path below the lake's root with ``/``; a sheet or database table adds
``::name``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

Record = dict[str, Any]
VERSION = 1


@dataclass(slots=True)
class DemoTruth:
    """What was planted, measured on what was written. Every section is made of plain JSON values."""

    seed: int
    scale: float
    version: int = VERSION
    #: table -> format, rows, columns (name, nulls, distinct non-null; distinct is None where too many to count)
    tables: dict[str, Record] = field(default_factory=dict)
    #: key columns that share values: sizes, overlap, containment both ways
    joins: list[Record] = field(default_factory=list)
    #: key columns that name the same things in different spellings, with the row pairs
    transforms: list[Record] = field(default_factory=list)
    #: key columns linked by knowledge only: no transformation may be found
    lookups: list[Record] = field(default_factory=list)
    #: numeric columns after a join: Pearson, Spearman, and Pearson without a linear trend along the key
    correlations: list[Record] = field(default_factory=list)
    #: groups of tables within which the foreign keys are complete
    databases: dict[str, list[str]] = field(default_factory=dict)
    foreign_keys: list[Record] = field(default_factory=list)
    #: inclusions that are no keys: small ids that happen to run over the same numbers
    chance_inclusions: list[Record] = field(default_factory=list)
    #: clean and damaged version of a table, the planted dependencies and all minimal ones under each reading of nulls
    dependencies: list[Record] = field(default_factory=list)
    #: values that stand for missing ones
    disguised: list[Record] = field(default_factory=list)
    #: tables whose header is missing, meaningless or not in the first line
    headers: list[Record] = field(default_factory=list)
    #: file -> what is wrong, and whether it should end as a table or as an error
    broken: dict[str, Record] = field(default_factory=dict)
    #: every file of the lake with its size
    files: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> Record:
        return asdict(self)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> DemoTruth:
        """Read a truth file; keys of later versions are ignored."""
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in content.items() if name in known})


def truth_path(lake: str | Path) -> Path:
    """Where the truth of a lake lies: ``<lake>.truth.json``."""
    lake = Path(lake)
    return lake.with_name(lake.name + ".truth.json")
