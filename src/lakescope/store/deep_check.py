"""Whether the parts of an index agree: every reference between its files is followed.

Checksums tell that a file is as it was written. This tells that what was written makes sense: lists in order and within
range, sizes that agree with what they count, columns of the catalog that have their sketches and sets. Files are gone
through a piece at a time; what is held is the catalog's names and one file of the inverted index.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope.array_types import I64, U64
from lakescope.errors import IndexDamaged
from lakescope.results import Results
from lakescope.sketches.aggregates import AGGREGATES
from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
from lakescope.sketches.minhash import PERMUTATIONS
from lakescope.sketches.quadrants import ROWS
from lakescope.store.arrays import Arrays
from lakescope.store.ids import column_id
from lakescope.store.index import Index
from lakescope.store.inverted import PAGE_BITS, PAGE_LEAST, PAGE_WORDS, InvertedSegment, ranges
from lakescope.store.manifest import MANIFEST, SegmentFile
from lakescope.store.segment import MAPPED, SCHEMAS

Array = npt.NDArray[Any]
Progress = Callable[[int, int], None]

#: Items of an array that are looked at together.
_PIECE = 1 << 20
#: Names of a kind of contradiction that are told.
_NAMED = 3
_FIGURES = ("tables", "columns", "rows", "bytes")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in an index that is damaged or contradicts the rest of it.

    ``file`` is its path below the index; ``check`` a stable word for what does not hold, ``count`` how often.
    """

    file: str
    check: str
    detail: str
    count: int = 1


def deep_check(index: Index, progress: Progress | None = None) -> Results[Finding]:
    """Everything that is wrong in an index; nothing, if it is sound."""
    check = _Check(index, progress)
    check.run()
    notes = [f"{check.files:,} files, {check.references:,} references followed"]
    return Results(Finding, check.findings, notes=notes, info={"files": check.files, "references": check.references})


class _Check:
    """One going through an index."""

    def __init__(self, index: Index, progress: Progress | None) -> None:
        self.index = index
        self.findings: list[Finding] = []
        self.files = self.references = 0
        self._progress = progress
        self._damaged: set[str] = set()
        #: Names of the columns of every table that is there, by position; those of a segment also if gone.
        self._columns: dict[str, dict[int, str]] = {}

    def run(self) -> None:
        manifest = self.index.manifest
        for number, file in enumerate(manifest.files):
            self._bytes(file)
            if self._progress:
                self._progress(number + 1, len(manifest.files))
        self._guarded(MANIFEST, self._tombstones)
        self._guarded(MANIFEST, self._catalog)
        for segment in manifest.segments:
            self._guarded(segment, self._sketches, segment)
            self._guarded(segment, self._correlations, segment)
            if manifest.of_kind("tokens", segment):
                self._guarded(segment, self._inverted, segment)

    def _tell(self, file: str, check: str, detail: str, count: int = 1) -> None:
        if count:
            self.findings.append(Finding(file, check, detail, count))

    def _guarded(self, where: str, check: Callable[..., None], *arguments: Any) -> None:
        """Follow references; what cannot be read at all is told, unless its bytes were told to be damaged already."""
        try:
            check(*arguments)
        except (IndexDamaged, pa.ArrowException, LookupError, ValueError, TypeError, OverflowError) as error:
            told = error.message if isinstance(error, IndexDamaged) else f"{type(error).__name__}: {error}"
            if not self._damaged:
                self._tell(where, "unreadable", told)

    # --- files --------------------------------------------------------------------------------------------------------

    def _bytes(self, file: SegmentFile) -> None:
        """The bytes are those that were written, and there are as many records as the manifest says."""
        self.files += 1
        problem = self.index.problem(file)
        if problem is not None:
            self._damaged.add(file.path)
            self._tell(file.path, "damaged", problem)
            return
        try:
            rows = self._rows(file)
        except (IndexDamaged, pa.ArrowException, ValueError, LookupError) as error:
            self._tell(file.path, "unreadable", str(error).split("\n")[0])
            return
        if rows != file.rows:
            self._tell(file.path, "rows", f"{rows:,} records instead of {file.rows:,}")

    def _rows(self, file: SegmentFile) -> int:
        if file.kind in MAPPED:
            return sum(batch.num_rows for batch in self.index.records(file))
        if file.kind in SCHEMAS:
            first = SCHEMAS[file.kind].names[0]
            return int(self.index.rows_of_file(file, [first]).num_rows)
        return int(next(iter(self.index.arrays(file).values())).size)

    # --- catalog ------------------------------------------------------------------------------------------------------

    def _tombstones(self) -> None:
        """What is gone lies in a segment that is there."""
        names = {segment: self.index.names_in(segment) for segment in self.index.manifest.segments}
        for file in self.index.manifest.of_kind("tombstones"):
            rows = self.index.rows_of_file(file)
            for segment, table in zip(rows["segment"].to_pylist(), rows["table"].to_pylist(), strict=True):
                self.references += 1
                if segment not in names:
                    self._tell(file.path, "tombstone", f"{table} of {segment}, which is no segment of the index")
                elif table not in names[segment]:
                    self._tell(file.path, "tombstone", f"{table}, which {segment} does not have")

    def _catalog(self) -> None:
        """Tables have the columns they say, each once, and add up to what the manifest says."""
        tables = self.index.catalog("tables")
        names = tables["table"].to_pylist()
        for name, count in Counter(names).items():
            self._tell(MANIFEST, "table", f"{name} is in the catalog {count} times", count - 1)
        unprofiled = Counter(
            each["table"] for each in self.index.catalog("problems").to_pylist() if each["code"] == "unprofiled"
        )
        columns = self.index.fields("columns", ("table", "position", "column", "rows"))
        figures = zip(tables["columns"].to_pylist(), tables["rows"].to_pylist(), strict=True)
        wanted = dict(zip(names, figures, strict=True))
        strays: Counter[str] = Counter()
        for batch in columns.to_batches(_PIECE):
            for row in batch.to_pylist():
                self.references += 1
                table, position = row["table"], row["position"]
                mine = self._columns.setdefault(table, {})
                if table not in wanted or position in mine or row["rows"] != wanted[table][1]:
                    strays[table] += 1
                mine[position] = row["column"]
        for table, count in strays.items():
            self._tell(MANIFEST, "column", f"columns of {table} without a table, twice, or of other rows", count)
        for table, (count, _) in wanted.items():
            mine = self._columns.get(table, {})
            if len(mine) + unprofiled[table] < count or max(mine, default=-1) >= count:
                self._tell(MANIFEST, "column", f"{table} has {len(mine)} columns instead of {count}")
        summary = self.index.manifest.summary
        sums = {"tables": len(names), **{name: sum(tables[name].to_pylist()) for name in _FIGURES[1:]}}
        for name in _FIGURES:
            if summary.get(name) != sums[name]:
                detail = f"{name}: {summary.get(name)} in the summary, {sums[name]} in the catalog"
                self._tell(MANIFEST, "summary", detail)

    # --- sketches -----------------------------------------------------------------------------------------------------

    def _sketches(self, segment: str) -> None:
        """Every column that is there has one sketch, which can be read, and no other."""
        joins = bool(self.index.manifest.of_kind("tokens", segment))
        live = self._live_columns(segment)
        for file in self.index.manifest.of_kind("sketches", segment):
            wrong: list[str] = []
            for batch in self.index.live_records([file]):
                for row in batch.to_pylist():
                    self.references += 1
                    known = live.pop((row["table"], row["position"]), None)
                    if known != row["column"] or not _decodes(row, joins=joins):
                        wrong.append(f"{row['table']}.{row['column']}")
            self._tell(file.path, "sketch", f"of no column, or not to be read: {_some(wrong)}", len(wrong))
        missing = [f"{table}.{column}" for (table, _), column in live.items()]
        self._tell(segment, "sketch", f"missing: {_some(missing)}", len(missing))

    def _live_columns(self, segment: str) -> dict[tuple[str, int], str]:
        """Columns of a segment whose table is there."""
        dead, found = self.index.dead_in(segment), {}
        for file in self.index.manifest.of_kind("columns", segment):
            rows = self.index.rows_of_file(file, ["table", "position", "column"])
            for table, position, column in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True):
                if table not in dead:
                    found[table, position] = column
        return found

    def _correlations(self, segment: str) -> None:
        """Keys are of columns that are there, pairs of keys that are there, and blocks are as long as they must be."""
        sizes: dict[tuple[str, int], int] = {}
        for file in self.index.manifest.of_kind("keys", segment):
            wrong = []
            for batch in self.index.live_records([file]):
                for row in batch.to_pylist():
                    self.references += 1
                    hashes = np.frombuffer(row["hashes"], np.uint64)
                    sizes[row["table"], row["key"]] = hashes.size
                    if not self._key_is_sound(row, hashes):
                        wrong.append(f"{row['table']}.{'+'.join(row['columns'])}")
            self._tell(file.path, "key", f"of no column, or out of order: {_some(wrong)}", len(wrong))
        for file in self.index.manifest.of_kind("pairs", segment):
            wrong = []
            for batch in self.index.live_records([file]):
                for row in batch.to_pylist():
                    self.references += 1
                    if not self._pair_is_sound(row, sizes.get((row["table"], row["key"]))):
                        wrong.append(f"{row['table']}.{row['column']}")
            self._tell(file.path, "pair", f"of no key or column, or of another length: {_some(wrong)}", len(wrong))

    def _key_is_sound(self, row: dict[str, Any], hashes: U64) -> bool:
        table, columns = row["table"], row["columns"]
        known = set(self._columns.get(table, {}).values())
        return (
            known.issuperset(columns)
            and row["key"] == column_id(table, *columns)
            and row["sets"] == [column_id(table, column) for column in columns]
            and len(row["rows"]) == 8 * hashes.size
            and bool((hashes[1:] > hashes[:-1]).all())
        )

    def _pair_is_sound(self, row: dict[str, Any], size: int | None) -> bool:
        if size is None or self._columns.get(row["table"], {}).get(row["position"]) != row["column"]:
            return False
        kinds = len(AGGREGATES) if row["repeated"] else 1
        words = ROWS * ((size + 63) // 64)
        return len(row["values"]) == 8 * kinds * size and len(row["sides"]) == 8 * words

    # --- the inverted index -------------------------------------------------------------------------------------------

    def _inverted(self, segment: str) -> None:
        """Tokens, groups and sets say the same of each other."""
        parts = InvertedSegment(self.index, segment)
        self._set_columns(segment, parts)
        self._tokens(segment, parts)
        self._lists(segment, parts, "postings", "sets", int(parts.set_bounds[-1]))
        self._lists(segment, parts, "sets", "groups", int(parts.group_bounds[-1]))
        self._sizes(segment, parts)
        self._bitmaps(segment, parts)
        self._same_pairs(segment, parts)
        self._widths(segment, parts)
        self._forest(segment, parts)
        self._grams(segment, parts)

    def _set_columns(self, segment: str, parts: InvertedSegment) -> None:
        """A set for each column of the segment, gone ones too, known by its name."""
        rows = [
            row
            for file in self.index.manifest.of_kind("columns", segment)
            for row in self.index.rows_of_file(file, ["table", "position", "column"]).to_pylist()
        ]
        rows.sort(key=lambda row: (row["table"], row["position"]))
        ids = np.array([column_id(row["table"], row["column"]) for row in rows], np.uint64)
        self.references += ids.size
        if ids.size != parts.ids.size:
            self._tell(segment, "set", f"{parts.ids.size:,} sets of {ids.size:,} columns")
        else:
            self._tell(segment, "set", "sets of other columns", int((ids != parts.ids).sum()))

    def _tokens(self, segment: str, parts: InvertedSegment) -> None:
        """Hashes in order, each with a group that is there; the directory and the order by group lead to them."""
        groups = int(parts.group_bounds[-1])
        for file in parts.tokens:
            hashes, of, order = file["hashes"], file["groups"], file["by_group"]
            bits, first, last = file["range"].tolist()
            wrong = 0 if of.size == order.size == hashes.size else 1
            for begin in range(0, hashes.size if not wrong else 0, _PIECE):
                piece = slice(begin, begin + _PIECE)
                self.references += hashes[piece].size
                wrong += int((hashes[begin + 1 : begin + _PIECE + 1] <= hashes[piece][: hashes.size - begin - 1]).sum())
                wrong += _outside(of[piece], groups) + _outside(order[piece], hashes.size)
            self._tell(segment, "tokens", "hashes out of order, or of no group", wrong)
            if not wrong:
                turned = sum(_falling(of[order[at : at + _PIECE + 1]]) for at in range(0, order.size, _PIECE))
                self._tell(segment, "tokens", "the order by group does not sort them", turned)
                edges = np.arange(first, last, dtype=np.uint64) << np.uint64(64 - bits)
                lost = int((np.searchsorted(hashes, edges) != file["directory"][:-1]).sum())
                lost += int(file["directory"][-1] != hashes.size)
                self._tell(segment, "tokens", "the directory does not lead to them", lost)

    def _lists(self, segment: str, parts: InvertedSegment, kind: str, name: str, known: int) -> None:
        """Lists begin where the one before ends, and hold numbers in order, each of something that is there."""
        for file in parts.postings if kind == "postings" else parts.sets:
            starts, items = file["starts"], file[name]
            if starts[0] != 0 or starts[-1] != items.size or _falling(starts):
                self._tell(segment, kind, "lists that do not follow each other")
                continue
            wrong = 0
            for begin in range(0, items.size, _PIECE):
                piece = items[begin : begin + _PIECE + 1]
                self.references += min(_PIECE, piece.size)
                wrong += _outside(piece[:_PIECE], known)
                first, last = np.searchsorted(starts, [begin + 1, begin + piece.size]).tolist()
                falls = piece[1:] <= piece[:-1]
                inner = starts[first:last] - begin - 1
                falls[inner[inner < falls.size]] = False
                wrong += int(falls.sum())
            self._tell(segment, kind, f"{name} out of order, or of none that is there", wrong)

    def _sizes(self, segment: str, parts: InvertedSegment) -> None:
        """A set has as many values as its groups have tokens."""
        if self._has_finding(segment, "sets", "postings"):
            return
        for file in parts.sets:
            starts, wrong = file["starts"], 0
            for begin, end in _pieces(starts):
                groups = file["groups"][starts[begin] : starts[end]]
                sums = np.concatenate([[0], np.cumsum(parts.widths(groups), dtype=np.int64)])
                inner = starts[begin : end + 1] - starts[begin]
                wrong += int((np.diff(sums[inner]) != file["sizes"][begin:end]).sum())
            self._tell(segment, "sets", "sizes that are not those of their groups", wrong)

    def _bitmaps(self, segment: str, parts: InvertedSegment) -> None:
        """A set has a bitmap of each page of which it holds enough groups, and it says which these are."""
        if self._has_finding(segment, "sets"):
            return
        for file in parts.sets:
            if "bits" not in file:  # made before there were any
                continue
            starts, page_starts = file["starts"], file["page_starts"]
            pages, bits = file["pages"].reshape(-1, 3), file["bits"].reshape(-1, PAGE_WORDS)
            wrong = 0
            for begin, end in _pieces(starts):
                owners = np.repeat(np.arange(begin, end), np.diff(starts[begin : end + 1]))
                groups = file["groups"][starts[begin] : starts[end]]
                numbers, first, counts = np.unique(
                    owners << 32 | groups >> PAGE_BITS, return_index=True, return_counts=True
                )
                kept = counts >= PAGE_LEAST
                owners, first, counts = owners[first[kept]], first[kept], counts[kept]
                first = first + starts[begin] - starts[owners]
                truth = np.column_stack([numbers[kept] & 0xFFFFFFFF, first, first + counts])
                ends = np.searchsorted(owners, np.arange(begin, end), "right") + page_starts[begin]
                here = slice(page_starts[begin], page_starts[end])
                if (page_starts[begin + 1 : end + 1] != ends).any() or not np.array_equal(pages[here], truth):
                    wrong += 1
                    continue
                held = np.flatnonzero(np.unpackbits(bits[here].view(np.uint8), bitorder="little"))
                told = np.repeat(truth[:, 0], counts) << PAGE_BITS | held[: counts.sum()] & ((1 << PAGE_BITS) - 1)
                wanted = groups[ranges(starts[owners] - starts[begin] + first, counts)]
                wrong += int(held.size != wanted.size or not np.array_equal(told, wanted))
            self._tell(segment, "sets", "bitmaps that are not those of their groups", wrong)

    def _same_pairs(self, segment: str, parts: InvertedSegment) -> None:
        """Groups hold the sets that hold them: the same pairs, as a sum over both says, whatever their order."""
        if self._has_finding(segment, "sets", "postings"):
            return
        sums = [
            sum(_mixed(file, first, name, turned=turned) for file, first in zip(files, bounds.tolist(), strict=False))
            for files, bounds, name, turned in (
                (parts.postings, parts.group_bounds, "sets", False),
                (parts.sets, parts.set_bounds, "groups", True),
            )
        ]
        self._tell(segment, "pairs", "groups list sets that do not list them", int(sums[0] % 2**64 != sums[1] % 2**64))

    def _widths(self, segment: str, parts: InvertedSegment) -> None:
        """A group has as many tokens as point to it."""
        if self._has_finding(segment, "tokens", "postings"):
            return
        for file, first in zip(parts.postings, parts.group_bounds.tolist(), strict=False):
            counts = np.zeros(file["widths"].size, np.int64)
            last = first + counts.size
            for tokens in parts.tokens:
                of, order = tokens["groups"], tokens["by_group"]
                begin, end = (bisect_left(_Ordered(of, order), bound) for bound in (first, last))
                for at in range(begin, end, _PIECE):
                    counts += np.bincount(of[order[at : min(end, at + _PIECE)]] - first, minlength=counts.size)
            self._tell(segment, "postings", "groups of another number of tokens", int((counts != file["widths"]).sum()))

    def _forest(self, segment: str, parts: InvertedSegment) -> None:
        """At every position of the signatures, all sets in order of what they have there."""
        sets = int(parts.set_bounds[-1])
        for file in parts.forest:
            begin, end = file["range"].tolist()
            if file["values"].size != file["sets"].size or file["sets"].size != (end - begin) * sets:
                self._tell(segment, "forest", "not all sets at every position")
                continue
            wrong = 0
            for at in range(0, file["sets"].size, max(1, sets)):
                self.references += sets
                here = file["sets"][at : at + sets]
                wrong += _outside(here, sets) or int((np.bincount(here, minlength=sets) != 1).sum())
                wrong += _falling(file["values"][at : at + sets])
            self._tell(segment, "forest", "positions out of order, or without some sets", wrong)

    def _grams(self, segment: str, parts: InvertedSegment) -> None:
        """Q-grams in order, each of a set that is there."""
        if not self.index.manifest.of_kind("grams", segment):
            return
        for file in parts.part("grams"):
            wrong = abs(file["hashes"].size - file["sets"].size)
            for at in range(0, file["hashes"].size, _PIECE):
                self.references += min(_PIECE, file["hashes"].size - at)
                wrong += _falling(file["hashes"][at : at + _PIECE + 1])
                wrong += _outside(file["sets"][at : at + _PIECE], int(parts.set_bounds[-1]))
            self._tell(segment, "grams", "out of order, or of no set", wrong)

    def _has_finding(self, segment: str, *checks: str) -> bool:
        """Whether something was told of a segment that further checks stand on."""
        return any(each.file == segment and each.check in checks for each in self.findings)


class _Ordered:
    """Values seen in an order, for bisection without a copy."""

    def __init__(self, values: Array, order: Array) -> None:
        self._values, self._order = values, order

    def __len__(self) -> int:
        return int(self._order.size)

    def __getitem__(self, at: int) -> int:
        return int(self._values[self._order[at]])


def _decodes(row: dict[str, Any], *, joins: bool) -> bool:
    """Whether the sketches of a column can be read."""
    if joins and len(row["signature"] or b"") != 4 * PERMUTATIONS:
        return False
    try:
        HyperLogLogPlusPlus.from_bytes(row["distinct"])
    except (IndexDamaged, ValueError, LookupError, TypeError):
        return False
    return True


def _outside(numbers: Array, known: int) -> int:
    return int(((numbers < 0) | (numbers >= known)).sum())


def _falling(numbers: Array) -> int:
    return int((numbers[1:] < numbers[:-1]).sum())


def _pieces(starts: I64) -> Iterator[tuple[int, int]]:
    """Ranges of lists whose items are a piece together, or one list that is longer."""
    begin = 0
    while begin < starts.size - 1:
        end = int(np.searchsorted(starts, starts[begin] + _PIECE, "right")) - 1
        end = min(starts.size - 1, max(begin + 1, end))
        yield begin, end
        begin = end


def _mixed(file: Arrays, first: int, name: str, *, turned: bool) -> int:
    """A sum over the pairs of a list and what it holds that no other pairs are likely to have."""
    starts, total = file["starts"], 0
    for begin, end in _pieces(starts):
        items = file[name][starts[begin] : starts[end]].astype(np.uint64)
        owners = np.repeat(np.arange(begin, end) + first, np.diff(starts[begin : end + 1])).astype(np.uint64)
        groups, sets = (items, owners) if turned else (owners, items)
        mixed = (groups * np.uint64(0x9E3779B97F4A7C15)) ^ (sets * np.uint64(0xC2B2AE3D27D4EB4F))
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        total += int((mixed ^ (mixed >> np.uint64(32))).sum(dtype=np.uint64))
    return total % 2**64


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
