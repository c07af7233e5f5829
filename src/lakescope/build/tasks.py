"""What runs inside Spark's Python workers: scan a bin of units, merge the states of columns, in bounded memory.

Rows between the two tasks: ``target``, ``table``, ``part`` (0: a :class:`TablePart`, 1: the state of a column, 2:
catalog records of many tables that needed no merge because one bin held them whole, 3: a bucket of tokens, 4: the
correlation sketch of a key), ``name`` of the column or key, ``ordinal`` of the first unit behind it or the number of
the bucket, ``payload``. Sorted by these, a merge task meets first what is known of a table, then one column after the
other. A table of many units goes to several targets, each of which merges some of its columns: what is known of the
table goes to all of them, and the first one tells of it.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
import xxhash

from lakescope.build.correlations import BuiltSketch
from lakescope.build.correlations import records as key_records
from lakescope.build.plan import read_bin
from lakescope.build.progress import ProgressLog
from lakescope.build.scan import MANY_UNITS, TablePart, TableScan, broken_spans
from lakescope.build.tokens import RAW_GRAMS, RawTokens, TokenBuffer, TokenCut
from lakescope.profile.column import ColumnState
from lakescope.profile.summary import Record, summarise
from lakescope.sketches import codec
from lakescope.sources.databases import connections
from lakescope.sources.io.content import content_of
from lakescope.sources.io.limits import bounded_memory
from lakescope.sources.io.redact import Secret, scrub
from lakescope.sources.model import Problem
from lakescope.store.manifest import SegmentFile
from lakescope.store.segment import ROWS_PER_WRITE, SCHEMAS, ShardWriter, record_batch

STATE_SCHEMA = pa.schema(
    [
        ("target", pa.int32()),
        ("table", pa.string()),
        ("part", pa.int32()),
        ("name", pa.string()),
        ("ordinal", pa.int32()),
        ("payload", pa.binary()),
    ]
)
#: ``STATE_SCHEMA`` as Spark reads it.
STATE_DDL = "target int, table string, part int, name string, ordinal int, payload binary"

RESULT_SCHEMA = pa.schema([("result", pa.string())])
RESULT_DDL = "result string"


@dataclass(frozen=True, slots=True)
class TaskTuning:
    """How much travels between tasks at a time, and which q-grams are kept."""

    #: Bytes of states and records that are handed over at a time. Not measured: a bound on memory.
    payload_bytes: int = 4 * 1024 * 1024
    #: Fewest rare q-grams of a column that are worth keeping. Not measured: fewer are chance.
    fewest_grams: int = 3
    #: Mean length of cells from which on a column is prose, which no key is. Not measured: a guess.
    prose: int = 128
    #: Tasks that share the merge of a table of many units, at most. Not measured: many more than cores.
    most_targets: int = 32


TASK = TaskTuning()

_PART, _STATE, _RECORDS, _TOKENS, _KEY = 0, 1, 2, 3, 4
#: Kinds of catalog records that a scan makes of a table it has read whole.
_WHOLE = ("columns", "sketches", "keys", "pairs", RAW_GRAMS)

Arrow = Iterator[pa.RecordBatch]
_Row = tuple[int, str, int, str, int, bytes]


class _ResultRows:
    """Collects rows into record batches of bounded size; ``shards`` merge tasks wait for them, then those of tokens.

    Without a ``cut`` there are no tokens.
    """

    def __init__(self, shards: int, cut: TokenCut | None) -> None:
        self._shards = shards
        self._cut = cut
        self._tokens = TokenBuffer(cut) if cut else None
        self._rows: list[_Row] = []
        self._size = 0
        self._records: dict[str, list[Record]] = {kind: [] for kind in _WHOLE}
        self._record_bytes = 0

    def add_tokens(self, scan: TableScan) -> Arrow:
        """Rows of the tokens that a scan has collected, once there are enough of them."""
        if self._tokens is None or self._cut is None:
            return
        for name, hashes in scan.take_tokens():
            self._tokens.add(self._cut.set_key(scan.part.table, name), hashes)
        if self._tokens.full:
            yield from self._put_tokens()

    def _put_tokens(self) -> Arrow:
        if self._tokens is None or self._cut is None:
            return
        for bucket, payload in self._tokens.take():
            yield from self._put((self._shards + self._cut.target_of(bucket), "", _TOKENS, "", bucket, payload))

    def add(self, scan: TableScan, units: int) -> Arrow:
        """Rows of a part of a table of so many units."""
        yield from self.add_tokens(scan)
        part = scan.part
        targets = _targets(part.table, units, self._shards)
        known = part.to_json()
        for target in targets:
            yield from self._put((target, part.table, _PART, "", part.ordinal, known))
        for name, state in scan.states.items():
            target = targets[xxhash.xxh32_intdigest(name.encode("utf-8", "replace")) % len(targets)]
            yield from self._put((target, part.table, _STATE, name, part.ordinal, state.to_bytes()))
        for key, keyed in scan.sketches.finish(whole=False).items():
            name = json.dumps(key)
            target = targets[xxhash.xxh32_intdigest(name.encode("utf-8", "replace")) % len(targets)]
            yield from self._put((target, part.table, _KEY, name, part.ordinal, keyed.to_bytes()))

    def add_whole(self, scan: TableScan) -> Arrow:
        """Rows of a table that was scanned whole: its columns are profiled at once."""
        yield from self.add_tokens(scan)
        part = scan.part
        for name, state in scan.states.items():
            record = _profiled(part, name, state, part.rows)
            if record is not None:
                self._records["columns"].append(record)
                self._records["sketches"].append(_sketch(part.table, name, state, self._cut))
                self._records[RAW_GRAMS] += _grams(part.table, name, state, self._cut)
        positions = {name: position for position, name in enumerate(part.columns)}
        for key, keyed in scan.sketches.finish(whole=True).items():
            made = key_records(part.table, key, keyed, positions)
            if made is not None:
                self._records["keys"].append(made[0])
                self._records["pairs"] += made[1]
                self._record_bytes += sum(len(pair["values"]) for pair in made[1])
        (target,) = _targets(part.table, 1, self._shards)
        yield from self._put((target, part.table, _PART, "", part.ordinal, part.to_json()))
        if len(self._records["columns"]) >= ROWS_PER_WRITE or self._record_bytes >= TASK.payload_bytes:
            yield from self._put_records()

    def _put_records(self) -> Arrow:
        if self._records["columns"]:
            payload = _pack_records(self._records)
            # No table's row, but spread over the merge tasks like one.
            (target,) = _targets(first := self._records["columns"][0]["table"], 1, self._shards)
            yield from self._put((target, first, _RECORDS, "", 0, payload))
        self._records = {kind: [] for kind in _WHOLE}
        self._record_bytes = 0

    def _put(self, row: _Row) -> Arrow:
        self._rows.append(row)
        self._size += len(row[5])
        if self._size > TASK.payload_bytes:
            yield from self._emit()

    def flush(self) -> Arrow:
        yield from self._put_records()
        yield from self._put_tokens()
        yield from self._emit()

    def _emit(self) -> Arrow:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, STATE_SCHEMA, strict=True)]
            yield pa.record_batch(arrays, schema=STATE_SCHEMA)
        self._rows, self._size = [], 0


def _targets(table: str, units: int, shards: int) -> list[int]:
    """Where the states of a table are merged: the same for whoever scans a piece of it."""
    first = xxhash.xxh32_intdigest(table.encode("utf-8", "replace"))
    count = min(TASK.most_targets, shards) if units >= MANY_UNITS else 1
    return [(first + i) % shards for i in range(count)]


def _profiled(part: TablePart, name: str, state: ColumnState, rows: int) -> Record | None:
    """The record of a column; one that cannot be made is a problem of the table, never the end of the build."""
    try:
        return summarise(part.table, name, state, rows)
    except Exception as error:
        detail = f"column {name!r} could not be profiled: {type(error).__name__}: {scrub(str(error))}"
        part.report(Problem(part.table, "error", "unprofiled", detail))
        return None


@dataclass(frozen=True, slots=True)
class ScanBins:
    """Scan task: each input row is the number of a bin of the plan."""

    staging: str
    shards: int
    cut: TokenCut | None
    secrets: tuple[Secret, ...] = field(repr=False)

    def __call__(self, batches: Arrow) -> Arrow:
        with bounded_memory(), connections.reused():
            yield from self._scan(batches)

    def _scan(self, batches: Arrow) -> Arrow:
        rows = _ResultRows(self.shards, self.cut)
        log = ProgressLog(self.staging)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                units = sorted(
                    read_bin(self.staging, number, self.secrets), key=lambda unit: (unit.table, unit.ordinal)
                )
                for table, group in itertools.groupby(units, key=lambda unit: unit.table):
                    pieces = list(group)
                    scan = TableScan(table, pieces[0].ordinal, tokens=self.cut is not None)
                    for unit in pieces:
                        before, began = (scan.part.rows, scan.part.failed), time.monotonic()
                        for _ in scan.scan(unit):
                            if scan.full:
                                yield from rows.add_tokens(scan)
                        read, failed = scan.part.rows - before[0], scan.part.failed > before[1]
                        log.done(unit, read, time.monotonic() - began, failed=failed)
                    if pieces[0].count == 1:
                        scan.part.source["content"] = content_of(pieces[0])
                    if len(pieces) == pieces[0].count and not broken_spans([scan.part]):
                        yield from rows.add_whole(scan)
                    else:
                        yield from rows.add(scan, pieces[0].count)
        yield from rows.flush()


@dataclass(frozen=True, slots=True)
class ScanFrame:
    """Scan task over the rows of a Spark DataFrame: one table, one part per partition.

    ``columns`` are the frame's own names; that it has them even without rows is declared elsewhere.
    """

    table: str
    source: str
    columns: tuple[str, ...]
    shards: int
    cut: TokenCut | None

    def __call__(self, batches: Arrow) -> Arrow:
        from pyspark import TaskContext

        from lakescope.sources.formats.arrow_batches import text_batches

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        scan = TableScan(self.table, number, tokens=self.cut is not None)
        scan.part.units = 1
        scan.part.source = {"uri": self.source, "format": "spark"}
        rows = _ResultRows(self.shards, self.cut)
        named = (batch.rename_columns(list(self.columns)) for batch in batches)
        for batch in text_batches(named, pa.schema([]), self.table, scan.part.report):
            scan.add(batch)
            scan.part.size += sum(int((column.ends - column.starts).clip(0).sum()) for column in batch.columns)
            if scan.full:
                yield from rows.add_tokens(scan)
        yield from rows.add(scan, MANY_UNITS)
        yield from rows.flush()


@dataclass(frozen=True, slots=True)
class MergeStates:
    """Merge task: adds up states, profiles columns, writes the shard files of its partition into the staging area.

    Tokens are united and written raw. Returns, as one JSON row, the files written, counts, and the tables whose byte
    ranges did not meet.
    """

    staging: str
    shards: int
    cut: TokenCut | None

    def __call__(self, batches: Arrow) -> Arrow:
        shards = {kind: ShardWriter(self.staging, kind) for kind in ("tables", "problems", "failures", *_WHOLE)}
        counts = dict.fromkeys(("tables", "columns", "rows", "bytes", "failed"), 0)
        again: list[str] = []
        tokens = RawTokens(self.staging)
        for (target, table, kind, bucket), group in itertools.groupby(_rows(batches), key=_group_of):
            if kind == _TOKENS:
                tokens.add(bucket, (row[5] for row in group))
                continue
            if kind == _RECORDS:
                for row in group:
                    _write_records(row[5], shards)
                continue
            parts, states = _parts(group)
            first = target == _targets(table, 1, self.shards)[0]
            if broken_spans(parts):
                again += [table] if first else []
                for _ in states:
                    pass
                continue
            whole = _whole(table, parts)
            for part, rows in itertools.groupby(states, key=lambda row: row[2]):
                if part == _KEY:
                    _write_keys(whole, rows, shards)
                else:
                    _write_columns(whole, rows, shards, self.cut)
            if first:
                _write_table(whole, shards, counts)
            else:
                # What the first one cannot know: columns of this target that could not be profiled.
                _write_problems([each for each in whole.problems if each.code == "unprofiled"], shards)
        files = [file for shard in shards.values() if (file := shard.close())]
        if raw := tokens.close():
            files.append(raw[0])
            counts["pairs"] = raw[1]
        result = json.dumps({"files": [asdict(file) for file in files], "counts": counts, "again": again})
        yield pa.record_batch([[result]], schema=RESULT_SCHEMA)


def _rows(batches: Arrow) -> Iterator[_Row]:
    for batch in batches:
        columns = [batch.column(i).to_pylist() for i in range(5)]
        payloads = batch.column(5)
        for i, (target, table, part, name, ordinal) in enumerate(zip(*columns, strict=True)):
            yield target, table, part, name, ordinal, payloads[i].as_py()


def _group_of(row: _Row) -> tuple[int, str, int, int]:
    """Rows that belong together: of a table, whatever they tell of it; of a bucket."""
    kind = row[2] if row[2] in (_RECORDS, _TOKENS) else _PART
    return row[0], row[1], kind, row[4] if kind == _TOKENS else 0


def _parts(group: Iterator[_Row]) -> tuple[list[TablePart], Iterator[_Row]]:
    """The table's parts, which come first, and the rows of its states."""
    parts: list[TablePart] = []
    for row in group:
        if row[2] != _PART:
            return parts, itertools.chain([row], group)
        parts.append(TablePart.from_json(row[5]))
    return parts, iter(())


def _whole(table: str, parts: list[TablePart]) -> TablePart:
    """All that is known of a table, apart from the states of its columns."""
    whole = TablePart(table, 0)
    for part in sorted(parts, key=lambda part: part.ordinal):
        whole.rows += part.rows
        whole.size += part.size
        whole.units += part.units
        whole.source = whole.source or part.source
        whole.failed += part.failed
        for problem in part.problems:
            whole.report(problem)
        known = set(whole.columns)
        whole.columns += [name for name in part.columns if name not in known]
    return whole


def _write_table(whole: TablePart, shards: dict[str, ShardWriter], counts: dict[str, int]) -> None:
    """The record of a table, or why there is none, and its problems."""
    if whole.columns:
        _add_table_record(whole, shards)
        counts["tables"] += 1
        counts["columns"] += len(whole.columns)
        counts["rows"] += whole.rows
        counts["bytes"] += whole.size
        if whole.failed:
            detail = (
                f"{whole.failed} of {whole.units} pieces could not be read: their rows are missing from the profile"
            )
            whole.report(Problem(whole.table, "warning", "incomplete", detail))
    else:
        counts["failed"] += 1
        known = {name: whole.source.get(name) for name in ("uri", "version", "content")}
        shards["failures"].add({"table": whole.table, **known})
        if not any(problem.severity == "error" or problem.code.startswith("empty-") for problem in whole.problems):
            whole.report(Problem(whole.table, "error", "empty-file", "it holds no column"))
    _write_problems(whole.problems, shards)


def _write_problems(problems: list[Problem], shards: dict[str, ShardWriter]) -> None:
    for problem in problems:
        shards["problems"].add(asdict(problem))


def _write_columns(
    whole: TablePart, states: Iterator[_Row], shards: dict[str, ShardWriter], cut: TokenCut | None
) -> None:
    positions = {name: position for position, name in enumerate(whole.columns)}
    for name, group in itertools.groupby(states, key=lambda row: row[3]):
        state = _merged(ColumnState.from_bytes(row[5]) for row in group)
        state.position = positions[name]
        record = _profiled(whole, name, state, whole.rows)
        if record is not None:
            shards["columns"].add(record)
            shards["sketches"].add(_sketch(whole.table, name, state, cut))
            for grams in _grams(whole.table, name, state, cut):
                shards[RAW_GRAMS].add(grams)


def _write_keys(whole: TablePart, rows: Iterator[_Row], shards: dict[str, ShardWriter]) -> None:
    """Correlation sketches of the keys of a table that came in pieces."""
    positions = {name: position for position, name in enumerate(whole.columns)}
    for name, group in itertools.groupby(rows, key=lambda row: row[3]):
        pieces = (BuiltSketch.from_bytes(row[5]) for row in group)
        keyed = next(pieces)
        for piece in pieces:
            keyed.merge(piece)
        made = key_records(whole.table, tuple(json.loads(name)), keyed, positions)
        if made is not None:
            shards["keys"].add(made[0])
            for pair in made[1]:
                shards["pairs"].add(pair)


def _merged(states: Iterator[ColumnState]) -> ColumnState:
    whole = next(states)
    for state in states:
        whole.merge(state)
    return whole


def _sketch(table: str, name: str, state: ColumnState, cut: TokenCut | None) -> Record:
    return {
        "table": table,
        "column": name,
        "position": state.position,
        "distinct": state.distinct.to_bytes(),
        "signature": state.signature.values.tobytes() if cut else None,
        "key": cut.set_key(table, name) if cut else None,
    }


def _grams(table: str, name: str, state: ColumnState, cut: TokenCut | None) -> list[Record]:
    """The record of a column's rare q-grams; none of prose, which is no key, and of columns that have next to none."""
    rare, _ = state.grams.rare
    if cut is None or rare.size < TASK.fewest_grams or state.mean_length > TASK.prose:
        return []
    return [{"table": table, "column": name, "key": cut.set_key(table, name), "grams": rare.tobytes()}]


def _pack_records(records: dict[str, list[Record]]) -> bytes:
    """Catalog records and sketches of columns as Arrow batches without their schema."""
    blocks = {
        kind: record_batch(made, SCHEMAS[kind]).serialize().to_pybytes() for kind, made in records.items() if made
    }
    return codec.pack("records", 1, blocks)


def _write_records(payload: bytes, shards: dict[str, ShardWriter]) -> None:
    for kind, block in codec.unpack(payload, "records", 1).items():
        shards[kind].add_batch(pa.ipc.read_record_batch(pa.py_buffer(block), SCHEMAS[kind]))


def _add_table_record(whole: TablePart, shards: dict[str, ShardWriter]) -> None:
    modified = whole.source.get("modified")
    shards["tables"].add(
        {
            "table": whole.table,
            "id": xxhash.xxh64_hexdigest(whole.table.encode("utf-8", "replace")),
            "uri": whole.source.get("uri"),
            "format": whole.source.get("format"),
            "bytes": whole.size,
            "modified": None if modified is None else f"{datetime.fromtimestamp(modified, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "rows": whole.rows,
            "columns": len(whole.columns),
            "units": whole.units,
            "complete": whole.failed == 0,
            "version": whole.source.get("version"),
            "content": whole.source.get("content"),
            "scanned": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }
    )


class MergeResult(NamedTuple):
    """What a merge task wrote: files, how many of what, and tables that are to be scanned again."""

    files: list[SegmentFile]
    counts: dict[str, int]
    again: list[str]


def parse_result(text: str) -> MergeResult:
    """What a merge task returned."""
    body = json.loads(text)
    return MergeResult([SegmentFile(**file) for file in body["files"]], body["counts"], body["again"])
