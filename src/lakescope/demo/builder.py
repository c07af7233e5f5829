"""The lake under construction: tables are opened, written in chunks and counted on the way.

A module of ``tables/`` declares its facts and writes its tables through this class; it never computes truth itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope.demo import chance, facts
from lakescope.demo.formats import Sink, Style, open_sink
from lakescope.demo.tally import TableTally
from lakescope.demo.truth import DemoTruth
from lakescope.demo.xlsx import write_xlsx


class OpenTable:
    """One table being written: every chunk goes to the file and to the tally."""

    def __init__(self, sink: Sink, tally: TableTally) -> None:
        self._sink, self._tally = sink, tally

    def write(self, chunk: pa.Table) -> None:
        self._sink.write(chunk)
        self._tally.add(chunk)


class LakeBuilder:
    """Writes tables below ``root`` and gathers the truth about them."""

    def __init__(self, root: Path, *, seed: int, scale: float, planted: tuple[facts.Fact, ...]) -> None:
        self.root, self.seed, self.scale = root, seed, scale
        self._facts = planted
        self._needs = facts.needs(planted)
        self._tallies: dict[str, TableTally] = {}
        self._entities: dict[str, npt.NDArray[np.int64]] = {}
        self._shared: dict[str, Any] = {}
        self.truth = DemoTruth(seed=seed, scale=scale)

    def rng(self, name: str) -> chance.Rng:
        """The random stream of one table."""
        return chance.stream(self.seed, name)

    def scaled(self, rows: int) -> int:
        """Rows of a table that grows with the scale."""
        return max(1, round(rows * self.scale))

    def share(self, name: str, value: Any) -> None:
        """Leave something small for the modules that write after this one (a key column, a weather series)."""
        self._shared[name] = value

    def shared(self, name: str) -> Any:
        return self._shared[name]

    @contextmanager
    def open(self, table: str, style: Style | None = None) -> Iterator[OpenTable]:
        """Open ``table`` for writing in chunks; its truth is recorded when it closes."""
        style = style or Style()
        path, _, part = table.partition("::")
        tally = self._tally(table)
        sink = open_sink(self.root / path, part, style)
        try:
            yield OpenTable(sink, tally)
        finally:
            sink.close()
        self._record(table, style)

    def add(self, table: str, data: pa.Table, style: Style | None = None) -> None:
        """Write a table that is small enough to be there at once."""
        with self.open(table, style) as opened:
            opened.write(data)

    def add_workbook(self, path: str, sheets: dict[str, pa.Table]) -> None:
        """Write an Excel workbook, each sheet a table."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        write_xlsx(self.root / path, sheets)
        for name, data in sheets.items():
            self._tally(f"{path}::{name}").add(data)
            self._record(f"{path}::{name}", Style())

    def add_broken(self, path: str, content: bytes, *, kind: str, wrong: str, expect: str, **more: Any) -> None:
        """Write a file with something wrong; ``expect`` is how it should end: ``table`` or ``error``."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        self.truth.broken[path] = {"kind": kind, "wrong": wrong, "expect": expect, **more}

    def entities(self, table: str, numbers: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Which hidden thing each row of ``table`` is about: rows of two tables about one thing are true pairs."""
        self._entities[table] = np.asarray(numbers, dtype=np.int64)

    def database(self, name: str, tables: Sequence[str]) -> None:
        """Declare tables whose foreign keys are recorded completely."""
        self.truth.databases[name] = list(tables)

    def _tally(self, table: str) -> TableTally:
        need = self._needs.get(table) or facts.TallyNeeds(set(), set())
        self._tallies[table] = TableTally(need.sets, need.series, need.whole)
        return self._tallies[table]

    def _record(self, table: str, style: Style) -> None:
        tally = self._tallies[table]
        columns = tally.record()
        names = [column["name"] for column in columns]
        shown = list(style.shown) if style.shown else names
        for column, name in zip(columns, shown, strict=True):
            column["name"] = name if style.header else None
        file = table.partition("::")[0]
        self.truth.tables[table] = {
            "format": "".join(Path(file).suffixes[-2:]).lstrip("."),
            "rows": tally.rows,
            "header": style.header,
            "columns": columns,
        }
        if style.shown or style.above or not style.header:
            self.truth.headers.append(
                {
                    "table": table,
                    "true": names,
                    "shown": shown if style.header else None,
                    "lines_above": len(style.above),
                    "first_data_line": None if file.endswith(".parquet") else len(style.above) + style.header,
                }
            )

    def finish(self) -> DemoTruth:
        """Measure every fact and list the files."""
        truth, tallies = self.truth, self._tallies
        for fact in self._facts:
            match fact:
                case facts.Join():
                    truth.joins.append(fact.truth(tallies))
                case facts.PlantedInclusion():
                    (truth.foreign_keys if fact.genuine else truth.chance_inclusions).append(fact.truth(tallies))
                case facts.Correlation():
                    truth.correlations.append(fact.truth(tallies))
                case facts.Transform():
                    truth.transforms.append(fact.truth(self._entities, tallies))
                case facts.Lookup():
                    truth.lookups.append(fact.truth(self._entities, tallies))
                case facts.PlantedDependency():
                    truth.dependencies.append(fact.truth(tallies))
                case facts.PlantedDisguise():
                    truth.disguised.append(fact.truth(tallies))
        files = sorted(path for path in self.root.rglob("*") if path.is_file())
        truth.files = {path.relative_to(self.root).as_posix(): path.stat().st_size for path in files}
        return truth
