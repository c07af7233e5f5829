"""Reading an index: no Spark, nothing loaded before it is asked for."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from lakescope.array_types import I32, I64
from lakescope.errors import IndexDamaged, NotFound
from lakescope.once import once
from lakescope.sources.io.files import local_path
from lakescope.store.arrays import HEAD_BYTES, ArrayFile, Arrays, PartArrays, located_arrays, read_arrays
from lakescope.store.manifest import Manifest, SegmentFile, file_checksum
from lakescope.store.mapped import LocalFiles
from lakescope.store.segment import (
    MAPPED,
    OF_THE_SCAN,
    PAST,
    ROWS_PER_WRITE,
    SCHEMAS,
    chosen,
    concatenated,
    order_of,
    ordered,
    read_catalog,
    read_group,
    read_parts,
    rows_of,
    rows_range,
)
from lakescope.store.table_cache import TableCache
from lakescope.untrusted import parsed

if TYPE_CHECKING:
    from lakescope.store.remote import RemoteFiles, Traffic, Uri


@dataclass(frozen=True, slots=True)
class CatalogTuning:
    """How much of the catalog is kept in memory."""

    #: How often the manifest is read again if its files have just been replaced. Not measured: each time a build must
    #: have ended.
    tries: int = 5
    #: Records of tables that are kept once they were asked for. Not measured: some megabytes.
    tables: int = 4_096
    #: Bytes of row groups of columns that are kept. Measured: a server of 300,000 columns takes half the memory since.
    bytes: int = 64 << 20
    #: Columns of which some fields are read one by one before they are read of all. Not measured: a guess.
    singly: int = 64
    #: Bytes that fields of all columns may take to be read of all. Not measured: a bound on memory.
    most_bytes: int = 512 << 20


CATALOG = CatalogTuning()

#: What columns are in order of, and all parts of the catalog.
_ORDER = ("table", "position")
_ORDERS = {
    "tables": ("table",),
    "columns": _ORDER,
    "problems": ("table", "code"),
    "notices": ("table", "code"),
    "failures": ("table",),
    "past": ("table", "generation"),
    "past-columns": ("table", "generation", "position"),
}
#: Kinds that tell which tables are in a segment, and which could not be read.
_TELLING = ("tables", "problems", "failures")
#: Files of arrays up to this size are read whole when they are first used.
CHECKED_BYTES = 32 * 1024 * 1024


class LiveRecords(NamedTuple):
    """Records as they lie in memory, and the numbers of those whose table is still there."""

    records: pa.RecordBatch
    live: I64


def _schema(kind: str, fields: Sequence[str] | None = None) -> pa.Schema:
    """The fields of a kind, or some of them."""
    return SCHEMAS[kind] if fields is None else pa.schema([SCHEMAS[kind].field(name) for name in fields])


def _alive(records: pa.Table, dead: Collection[str]) -> npt.NDArray[np.bool_]:
    """Which of some records are of tables that are still there."""
    if not dead:
        return np.ones(records.num_rows, np.bool_)
    return np.array([table not in dead for table in records["table"].to_pylist()], np.bool_)


class Index:
    """One generation of an index, as its manifest named it when it was opened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        location = os.fspath(path)
        #: Everything of a kind; some fields of everything; and views of these that were asked for.
        self._cache: dict[str, pa.Table] = {}
        self._partly: dict[str, list[pa.Table]] = {}
        self._views: dict[tuple[str, tuple[str, ...]], pa.Table] = {}
        #: How many row groups of columns were read for some of their fields, and bytes of these.
        self._read_singly: Counter[tuple[str, ...]] = Counter()
        self._read_bytes: Counter[tuple[str, ...]] = Counter()
        self._reading = threading.RLock()
        self._names: dict[str, set[str]] = {}
        #: Once the tables are known: the segment of each.
        self._segments: list[str] = []
        self._remote: RemoteFiles | None = None
        self._files: LocalFiles | RemoteFiles
        local = local_path(location)
        if local is not None:
            self.path: Path | Uri = Path(local)
            self.manifest, self._files = self._open(Path(local))
        else:
            # Fetching from elsewhere is for those whose index lies there.
            from lakescope.store.remote import RemoteFiles, Uri

            self.path = Uri(location)
            self._files = self._remote = RemoteFiles(self.path)
            self.manifest = self._remote.manifest()

    @property
    def location(self) -> str:
        """Where the index lies, for another process to open; a URI may hold credentials."""
        return str(self.path.absolute()) if isinstance(self.path, Path) else self.path.location

    @property
    def traffic(self) -> Traffic | None:
        """What was fetched so far, if the index lies elsewhere."""
        return self._remote.traffic if self._remote is not None else None

    def published(self) -> int:
        """The generation that is published now; this one is of what was when it was opened."""
        if isinstance(self.path, Path):
            return Manifest.load(self.path).generation
        from lakescope.store.remote import RemoteFiles

        return RemoteFiles(self.path).manifest().generation

    def question(self) -> AbstractContextManager[None]:
        """A question: raises ``IndexDamaged`` if a file that it reads is cut off, before it or meanwhile."""
        return self._files.mapped

    def check(self) -> None:
        """Raise ``IndexDamaged`` if what was read in a question until now may be wrong."""
        self._files.mapped.check()

    @property
    def damage(self) -> str | None:
        """What is wrong with a file that questions have read: the index must be opened anew."""
        return self._files.mapped.damage

    def content(self, file: SegmentFile) -> memoryview:
        """All bytes of a file."""
        return memoryview(self._files[file.path])

    def _open(self, path: Path) -> tuple[Manifest, LocalFiles]:
        """Map all files of a manifest; a build published meanwhile means mapping those of the newer one.

        What is mapped stays readable when a later build has replaced and removed it.
        """
        for _ in range(CATALOG.tries):
            manifest = Manifest.load(path)
            try:
                return manifest, LocalFiles(path, manifest.files)
            except IndexDamaged:
                if Manifest.load(path).generation == manifest.generation:
                    raise
        raise IndexDamaged(f"{path} changes faster than it can be opened", hint="try again")

    @once
    def _dead(self) -> dict[str, frozenset[str]]:
        """Tables of each segment that were removed or replaced since."""
        found: dict[str, set[str]] = {}
        for file in self.manifest.of_kind("tombstones"):
            rows = self._checked(file)
            for segment, table in zip(rows["segment"].to_pylist(), rows["table"].to_pylist(), strict=True):
                found.setdefault(segment, set()).add(table)
        return {segment: frozenset(tables) for segment, tables in found.items()}

    def _live(self, file: SegmentFile, tables: pa.ChunkedArray | pa.Array) -> I64 | None:
        """Which rows of a file are of tables that are still there; None: all."""
        dead = self._dead.get(file.segment)
        if not dead or file.kind in PAST:
            return None
        kept = [row for row, table in enumerate(tables.to_pylist()) if table not in dead]
        return None if len(kept) == len(tables) else np.array(kept, np.int64)

    @once
    def numbers(self) -> dict[str, I32 | None]:
        """Of every segment: the row in the catalog of each of its columns, -1 of those that are gone.

        None where these are the very same: as long as there is one segment with nothing gone.
        """
        if len(self.manifest.segments) == 1 and not self._dead:
            return dict.fromkeys(self.manifest.segments)
        parts = {segment: self._columns_of_segment(segment) for segment in self.manifest.segments}
        every = pa.concat_tables(parts.values())
        alive = np.concatenate([_alive(part, self.dead_in(segment)) for segment, part in parts.items()])
        order = order_of(every, _ORDER)
        order = order[alive[order]]
        found = np.full(every.num_rows, -1, np.int32)
        found[order] = np.arange(order.size, dtype=np.int32)
        ends = np.cumsum([part.num_rows for part in parts.values()])
        return dict(zip(parts, np.split(found, ends[:-1]), strict=True))

    def _columns_of_segment(self, segment: str) -> pa.Table:
        """Tables and positions of all columns of a segment, gone ones too, in order."""
        parts = [self._checked(file, fields=_ORDER) for file in self.manifest.of_kind("columns", segment)]
        return ordered(concatenated(parts, _schema("columns", _ORDER)), _ORDER)

    def names_in(self, segment: str) -> set[str]:
        """Tables that a segment tells of, gone ones too."""
        if segment not in self._names:
            files = [file for kind in _TELLING for file in self.manifest.of_kind(kind, segment)]
            names = (self._checked(file, fields=["table"])["table"].to_pylist() for file in files)
            self._names[segment] = {name for some in names for name in some}
        return self._names[segment]

    def dead_in(self, segment: str) -> frozenset[str]:
        """Tables of a segment that were removed or replaced since."""
        return self._dead.get(segment, frozenset())

    def fields(self, kind: str, names: Sequence[str]) -> pa.Table:
        """Some fields of everything of one kind, in the same order; no others are read."""
        known = self._in_memory(kind, tuple(names))
        if known is None:
            with self._reading:  # or each of many threads would read them, and all they read would be kept
                if self._in_memory(kind, tuple(names)) is None:
                    read = list(dict.fromkeys([*_ORDERS[kind], *names]))
                    self._partly.setdefault(kind, []).append(ordered(self._read(kind, fields=read), _ORDERS[kind]))
            known = self._in_memory(kind, tuple(names))
        return known

    def _in_memory(self, kind: str, names: tuple[str, ...]) -> pa.Table | None:
        """Some fields of everything of one kind, if they are in memory."""
        if (kind, names) not in self._views:
            every = [self._cache[kind]] if kind in self._cache else self._partly.get(kind, [])
            holding = next((each for each in every if set(names) <= set(each.column_names)), None)
            if holding is None:
                return None
            self._views[kind, names] = holding.select(names)
        return self._views[kind, names]

    def column(self, number: int, names: Sequence[str]) -> dict[str, Any]:
        """Some fields of the record of a column, by its number: from memory, else of its row group alone."""
        wanted = tuple(names)
        known = self._in_memory("columns", wanted)
        if known is None and self._remote is None and self._pays(wanted):
            known = self.fields("columns", wanted)
        if known is None:
            return dict(self._rows_within(range(number, number + 1), wanted).to_pylist()[0])
        # Cell by cell: a row of a table takes ten times as long.
        return {name: known[name][number].as_py() for name in names}

    def _pays(self, names: tuple[str, ...]) -> bool:
        """Whether some fields of all columns are better read at once: often asked for, and not too large."""
        read = self._read_singly[names]
        if read < CATALOG.singly:
            return False
        groups = sum(self._groups(place)[0].num_row_groups for place in range(len(self.manifest.of_kind("columns"))))
        return bool(self._read_bytes[names] / max(1, read) * groups <= CATALOG.most_bytes)

    @once
    def _rows_of_columns(self) -> tuple[I32, I64]:
        """Of every column: which file of the catalog its record is in, and its row there."""
        # An index of no table has no file of columns.
        found, files, rows = [], [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        for place, file in enumerate(self.manifest.of_kind("columns")):
            records = self._checked(file, fields=_ORDER)
            live = self._live(file, records["table"])
            numbers = np.arange(records.num_rows) if live is None else live
            found.append(chosen(records, numbers))
            files.append(np.full(numbers.size, place, np.int32))
            rows.append(numbers)
        order = order_of(concatenated(found, _schema("columns", _ORDER)), _ORDER)
        return np.concatenate(files)[order], np.concatenate(rows)[order]

    def _rows_within(self, numbers: range, names: tuple[str, ...]) -> pa.Table:
        """Some fields of columns that follow each other: of their row groups alone."""
        found = []
        places, rows = (each[numbers.start : numbers.stop] for each in self._rows_of_columns)
        at = 0
        while at < len(numbers):
            ends = self._groups(int(places[at]))[1]
            group = int(np.searchsorted(ends, rows[at], side="right"))
            # Those that lie one after the other in the same row group.
            same = (places == places[at]) & (rows - rows[at] == np.arange(len(numbers)) - at) & (rows < ends[group])
            count = int(same[at:].argmin()) or len(numbers) - at
            first = int(rows[at] - (ends[group - 1] if group else 0))
            found.append(self._group(int(places[at]), group, names).slice(first, count))
            at += count
        return concatenated(found, _schema("columns", names))

    @once
    def _groups(self) -> Callable[[int], tuple[pq.FileMetaData, I64]]:
        """Tells what a file of columns says of its row groups, and after how many rows each of these ends."""

        @cache
        def read(place: int) -> tuple[pq.FileMetaData, I64]:
            file = self.manifest.of_kind("columns")[place]
            with self._noticed(file), pq.ParquetFile(self._opened(file), pre_buffer=False) as source:
                metadata = source.metadata
            rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
            return metadata, np.cumsum(np.array(rows, np.int64))

        return read

    @once
    def _group(self) -> Callable[[int, int, tuple[str, ...]], pa.Table]:
        """Reads some fields of a row group of a file of columns; answers have many columns of few tables."""
        kept = TableCache(CATALOG.bytes)

        def read(place: int, group: int, names: tuple[str, ...]) -> pa.Table:
            file = self.manifest.of_kind("columns")[place]
            with self._noticed(file):
                found = read_group(self._opened(file), self._groups(place)[0], group, names)
            self._read_singly[names] += 1
            self._read_bytes[names] += found.nbytes
            return found

        return lambda *which: kept.get(which, partial(read, *which))

    def _opened(self, file: SegmentFile) -> Any:
        """A file to be read in pieces."""
        if self._remote is not None:
            return self._remote.file(file.path).opened()
        return pa.BufferReader(self._files[file.path])

    def catalog(self, kind: str) -> pa.Table:
        """Everything of one kind (``tables``, ``columns``, ``problems``), ordered by table."""
        if kind not in self._cache:
            with self._reading:
                if kind not in self._cache:
                    self._cache[kind] = self._read_all(kind)
        return self._cache[kind]

    def _read_all(self, kind: str) -> pa.Table:
        if kind == "tables":
            return self._tables()
        rows = self._read(kind)
        return ordered(pa.concat_tables([rows, self._read("notices")]) if kind == "problems" else rows, _ORDERS[kind])

    def _tables(self) -> pa.Table:
        """All tables, in order; where each is gets known."""
        parts = list(self._live_rows("tables"))
        every = concatenated([rows for _, rows in parts], SCHEMAS["tables"]).drop_columns(list(OF_THE_SCAN))
        order = order_of(every, _ORDERS["tables"])
        segments = [name for file, rows in parts for name in [file.segment] * rows.num_rows]
        self._segments = [segments[row] for row in order.tolist()]
        return chosen(every, order).combine_chunks()

    def _segment_with(self, table: str) -> str | None:
        """The segment that holds a table, if that is known already."""
        if "tables" not in self._cache:
            return None
        first, end = rows_range(self._cache["tables"], table)
        return self._segments[first] if first < end else None

    @once
    def column_names(self) -> tuple[list[str], list[str]]:
        """Of every column: its table and its name."""
        columns = self.fields("columns", ("table", "column"))
        return columns["table"].to_pylist(), columns["column"].to_pylist()

    def states(self, kind: str) -> list[dict[str, Any]]:
        """Tables, or failures, with what tells a later state of their files, and when they were scanned."""
        return list(self._read(kind).to_pylist())

    def state(self, table: str) -> dict[str, Any] | None:
        """The record of one table, with what tells a later state of its files; None if it is not there."""
        found = self._read("tables", table).to_pylist()
        return dict(found[0]) if found else None

    def past(self, kind: str, table: str | None = None) -> pa.Table:
        """Records of versions that are no more (``past``, ``past-columns``): all, or those of one table, in order."""
        found = [self._checked(file, table=table) for file in self.manifest.of_kind(kind)]
        return ordered(concatenated(found, SCHEMAS[kind]), _ORDERS[kind])

    def columns_of(self, table: str) -> pa.Table:
        """The column records of one table, in column order."""
        if "columns" in self._cache:
            return rows_of(self._cache["columns"], table)
        names = self._in_memory("columns", ("table",))
        if names is None:
            return ordered(self._read("columns", table), ["position"])
        first, end = rows_range(names, table)
        return self._rows_within(range(first, end), tuple(SCHEMAS["columns"].names)).combine_chunks()

    def prepare(self, names: Sequence[str]) -> None:
        """Get ready for many questions: have some fields of all columns in memory, and know where the others are."""
        self.fields("columns", names)
        for place in np.unique(self._rows_of_columns[0]).tolist():
            self._groups(place)

    def _read(self, kind: str, table: str | None = None, fields: Sequence[str] | None = None) -> pa.Table:
        """All records of one kind, or those of one table, or some fields of all."""
        return concatenated([rows for _, rows in self._live_rows(kind, table, fields)], _schema(kind, fields))

    def _live_rows(
        self, kind: str, table: str | None = None, fields: Sequence[str] | None = None
    ) -> Iterator[tuple[SegmentFile, pa.Table]]:
        """All records of one kind, or those of one table, or some fields of all; a file at a time."""
        for file in self.manifest.of_kind(kind, None if table is None else self._segment_with(table)):
            rows = self._checked(file, table=table, fields=fields)
            live = self._live(file, rows["table"])
            yield file, rows if live is None else chosen(rows, live)

    def rows_of_file(self, file: SegmentFile, fields: Sequence[str] | None = None) -> pa.Table:
        """All records of a file of the catalog, gone ones too, or some fields of them."""
        return self._checked(file, fields=fields)

    def rows_of_tables(self, file: SegmentFile, tables: Collection[str] | None = None) -> pa.Table:
        """The records of some tables in a file of the catalog, or all, gone ones too, in order."""
        return ordered(self._checked(file, tables=tables), _ORDERS[file.kind])

    def _checked(self, file: SegmentFile, **which: Any) -> pa.Table:
        """Records of a file of the catalog, gone ones too."""
        with self._noticed(file):
            if self._remote is not None and any(what is not None for what in which.values()):
                return read_parts(self._opened(file), **which)
            return read_catalog(self._files[file.path], file, **which)

    @contextlib.contextmanager
    def _noticed(self, file: SegmentFile) -> Iterator[None]:
        """Damage of a file of the catalog is told."""
        try:
            yield
        except (OSError, pa.ArrowException, UnicodeError, KeyError, ValueError) as error:
            raise IndexDamaged(
                f"{self.path / file.path} is damaged: {error}",
                hint="run `lakescope verify`, then `lakescope repair`",
            ) from error

    def __contains__(self, table: object) -> bool:
        """Whether there is a table of this name; looked up once for each."""
        return isinstance(table, str) and self._holds(table)

    @once
    def _holds(self) -> Callable[[str], bool]:
        return lru_cache(CATALOG.tables)(lambda name: rows_of(self.catalog("tables"), name).num_rows > 0)

    def table(self, name: str) -> dict[str, Any]:
        """The record of one table."""
        return dict(self._table(name))

    @once
    def _table(self) -> Callable[[str], dict[str, Any]]:
        """Finds records of tables; those of answers are asked for again and again."""

        @lru_cache(CATALOG.tables)
        def find(name: str) -> dict[str, Any]:
            tables = self.catalog("tables")
            found = rows_of(tables, name)
            if found.num_rows == 0:
                raise NotFound.among("table", name, tables["table"].to_pylist())
            return dict(found.to_pylist()[0])

        return find

    def batches(self, kind: str) -> list[LiveRecords]:
        """All records of a kind whose files are mapped, as they lie in memory."""
        found = []
        for file in self.manifest.of_kind(kind):
            for batch in self.records(file):
                live = self._live(file, batch.column("table"))
                found.append(LiveRecords(batch, np.arange(batch.num_rows) if live is None else live))
        return found

    def records(self, file: SegmentFile) -> list[pa.RecordBatch]:
        """The records of a file that is mapped, gone ones too."""
        self._check_moderate(file)
        try:
            source = pa.ipc.open_file(self._files[file.path])
            if not source.schema.equals(SCHEMAS[file.kind]):
                raise pa.ArrowInvalid("it has other fields")
            batches = [source.get_batch(number) for number in range(source.num_record_batches)]
            for batch in batches:
                batch.validate()
                # Names are what readers go by; their text is looked at, too.
                batch.column("table").validate(full=True)
            return batches
        except (OSError, pa.ArrowException, LookupError) as error:
            hint = "run `lakescope verify`, then `lakescope repair`"
            raise IndexDamaged(f"{self.path / file.path} is damaged: {error}", hint=hint) from error

    def live_records(self, files: Sequence[SegmentFile]) -> Iterator[pa.RecordBatch]:
        """The records of some files of a kind whose tables are still there, in order, in pieces.

        In order: a table is found by bisection of each piece that is written. What is mapped of one file is in order.
        """
        if len(files) == 1 and files[0].kind in MAPPED:
            for batch in self.records(files[0]):
                live = self._live(files[0], batch.column("table"))
                table = pa.Table.from_batches([batch])
                kept = table if live is None else chosen(table, live).combine_chunks()
                yield from kept.to_batches(max_chunksize=ROWS_PER_WRITE)
            return
        found = []
        for file in files:
            table = pa.Table.from_batches(self.records(file)) if file.kind in MAPPED else self._checked(file)
            live = self._live(file, table["table"])
            found.append(table if live is None else chosen(table, live))
        kind = files[0].kind
        every = ordered(pa.concat_tables(found), list(_ORDERS.get(kind) or (_ORDER if kind != "keys" else ("table",))))
        yield from every.to_batches(max_chunksize=ROWS_PER_WRITE)

    def sketch(self, table: str, column: str) -> dict[str, Any]:
        """The sketches of one column, mapped: HyperLogLog++ (``distinct``) and MinHash (``signature``)."""
        for dead, first, last, batch in self._sketched:
            if first <= table <= last and table not in dead:
                found = rows_of(batch, table)
                names = found["column"].to_pylist()
                if column in names:
                    return dict(found.slice(names.index(column), 1).to_pylist()[0])
        raise NotFound.among("column", column, self.columns_of(table)["column"].to_pylist())

    @once
    def _sketched(self) -> list[tuple[frozenset[str], str, str, pa.RecordBatch]]:
        """The batches of sketches, mapped, with the tables that are gone, the first and the last table of each."""
        found = []
        for file in self.manifest.of_kind("sketches"):
            dead = self.dead_in(file.segment)
            for batch in self.records(file):
                if batch.num_rows:
                    first, last = (str(batch["table"][row].as_py()) for row in (0, -1))
                    found.append((dead, first, last, batch))
        return found

    def arrays(self, file: SegmentFile, *, partly: bool = False) -> Arrays:
        """The flat arrays of a file, as they lie in memory. Files of moderate size are checked first.

        Reading all of a large one would take longer than any question: what is wrong in there is met by chance, or by
        ``verify``. ``partly``: of a file that lies elsewhere only its head is fetched; see ``PartArrays``.
        """
        if partly and self._remote is not None:
            cached = self._remote.file(file.path)
            cached.need(np.zeros(1, np.int64), np.array([min(HEAD_BYTES, file.size)]))
            return PartArrays(located_arrays(cached.buffer, str(self.path / file.path)), cached.need)
        self._check_moderate(file)
        return read_arrays(self._files[file.path], str(self.path / file.path))

    def _check_moderate(self, file: SegmentFile) -> None:
        """Compare the checksum of a file that is not too large to be read whole."""
        if file.size <= CHECKED_BYTES:
            found = xxhash.xxh64_hexdigest(memoryview(self._files[file.path]))
            if found != file.checksum:
                hint = "restore the file, or run `lakescope repair`"
                raise IndexDamaged(f"{self.path / file.path} is damaged: its checksum does not match", hint=hint)

    def remember(self, name: str, what: dict[str, Any]) -> None:
        """Keep something small beside the index that was found out about it; it goes when the next build comes.

        Not part of the index: whoever may not write does without.
        """
        target = self._beside(name)
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        try:
            draft.touch(mode=0o600)
            draft.write_text(json.dumps(what), "utf-8")
            draft.chmod(self._rights)
            draft.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)

    def recall(self, name: str) -> dict[str, Any] | None:
        """What was kept beside the segment, if it is there and whole."""
        try:
            kept = parsed(self._beside(name).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return kept if isinstance(kept, dict) else None

    def remember_arrays(self, name: str, arrays: Arrays) -> None:
        """Keep arrays beside the segment, if that can be; they are mapped when they are recalled."""
        target = self._beside(name, "bin")
        file = ArrayFile(target.parent, name, {field: array.dtype for field, array in arrays.items()})
        draft = target.with_name(file.name)
        try:
            file.append(**arrays)
            file.close()
            draft.chmod(self._rights)
            draft.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                file.discard()
                draft.unlink(missing_ok=True)

    def recall_arrays(self, name: str) -> Arrays | None:
        """Arrays that were kept beside the segment, as they lie in memory, if they are there and whole."""
        target = self._beside(name, "bin")
        try:
            return read_arrays(self._files.recalled(target), str(target))
        except (OSError, ValueError, IndexDamaged):
            return None

    @property
    def _rights(self) -> int:
        """Rights of files: whoever may read the directory may read them; what is kept of a remote index is private."""
        if not isinstance(self.path, Path):
            return 0o600
        return stat.S_IMODE(self.path.stat().st_mode) & 0o044 | 0o600

    def _beside(self, name: str, suffix: str = "json") -> Path:
        """In the newest segment, by generation: what was found out about another is not about this one."""
        if not isinstance(self.path, Path):
            assert self._remote is not None
            segment = self.manifest.segments[-1].rpartition("/")[2] if self.manifest.files else ""
            return self._remote.folder / f"{name}-{segment}-{self.manifest.generation}.{suffix}"
        newest = self.path.joinpath(*(file.path for file in self.manifest.files[-1:])).parent
        return newest / f"{name}-{self.manifest.generation}.{suffix}"

    def problem(self, file: SegmentFile) -> str | None:
        """What is wrong with a file as it lies there; of a generation that was replaced, as it was opened."""
        if not isinstance(self.path, Path):
            return self._remote_problem(file)
        path = self.path / file.path
        try:
            size, checksum = path.stat().st_size, file_checksum(path)
        except FileNotFoundError:
            if Manifest.load(self.path).generation == self.manifest.generation:
                return "is missing"
            size, checksum = file.size, xxhash.xxh64_hexdigest(self.content(file))
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        if size != file.size:
            return f"is damaged: {size} bytes instead of {file.size}"
        return None if checksum == file.checksum else "is damaged: its checksum does not match"

    def _remote_problem(self, file: SegmentFile) -> str | None:
        """What is wrong with a file of a remote index, which is fetched again."""
        assert self._remote is not None
        cached = self._remote.file(file.path)
        cached.forget()
        try:
            content = memoryview(cached.whole())
        except IndexDamaged as error:
            return error.message.removeprefix(str(cached.uri)).strip()
        if xxhash.xxh64_hexdigest(content) == file.checksum:
            return None
        cached.forget()
        return "is damaged: its checksum does not match"

    def verify(self) -> list[str]:
        """Read every byte and compare checksums; returns what is wrong, in words."""
        wrong = []
        for file in self.manifest.files:
            problem = self.problem(file)
            if problem is not None:
                wrong.append(f"{self.path / file.path} {problem}")
        return wrong
