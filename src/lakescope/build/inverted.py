"""The inverted index out of raw tokens, in two Spark jobs that never pass a list or a set through the driver.

First job: every bucket of tokens becomes lists of set numbers, equal lists of a bucket become one; an exchange by the
hash of the list brings those of all buckets together. The driver learns only how many groups of which length each
shard holds, which is enough to number them all by frequency. Second job: every shard numbers its groups and hands
them to those who write the five parts of the index: tokens (hash to group), postings (group to sets), sets (set to
groups), the forest (MinHash values to sets) and grams (rare q-grams to sets).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakescope.array_types import I32, I64, U64
from lakescope.build.kernels import bitmaps_of, directory_of, sort_lists, sort_rows, unite_pairs
from lakescope.build.lists import SetLists, group
from lakescope.build.shipping import Shipped
from lakescope.build.tokens import TokenCut, raw_buckets
from lakescope.errors import BuildFailed
from lakescope.sketches import codec
from lakescope.sketches.grams import GRAMS as GRAMS_KEPT
from lakescope.sketches.minhash import PERMUTATIONS
from lakescope.sketches.partitions import partition
from lakescope.store.arrays import ArrayFile, Arrays, read_arrays
from lakescope.store.ids import column_id
from lakescope.store.inverted import PAGE_BITS, PAGE_LEAST
from lakescope.store.manifest import SegmentFile
from lakescope.values.text import read_only

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Arrow = Iterator[pa.RecordBatch]
_Row = tuple[int, int, int, bytes]
Task = Callable[[Arrow], Arrow]

_SCHEMA = pa.schema([("target", pa.int32()), ("part", pa.int32()), ("ordinal", pa.int32()), ("payload", pa.binary())])
_DDL = "target int, part int, ordinal int, payload binary"
_RESULT_SCHEMA = pa.schema([("result", pa.string())])
_RESULT_DDL = "result string"

#: Kinds of rows of the first job, and of the second: they are the parts of the index.
_LISTS, _NOTE = 0, 1
TOKENS, POSTINGS, SETS, FOREST, GRAMS = 0, 1, 2, 3, 4
PARTS = ("tokens", "postings", "sets", "forest", "grams")


@dataclass(frozen=True, slots=True)
class InvertedTuning:
    """How the work of inverting the values of a lake is shared out.

    Measured all together: 0.68 CPU seconds a million pairs of a value and a set, and at most 475 MB a worker
    (benchmarks/results/joins_build.md).
    """

    #: Pairs of a value and a set that one task groups, about. Measured with the others: a worker takes less than 0.5
    #: GB.
    pairs_per_shard: int = 2_000_000
    #: Items of one file of the index, about. Measured with the others: a worker takes less than 0.5 GB.
    items_per_file: int = 8_000_000
    #: Tasks of the first job, at most. Not measured: each costs some milliseconds.
    most_shards: int = 512
    #: Files of each part, at most. Not measured: each is opened by every reader.
    most_files: int = 64
    #: Hashes between two entries of the directory of tokens, about. Not measured: a line of a cache.
    directory_step: int = 8


INVERTED = InvertedTuning()

#: First bits of a q-gram's hash by which files of q-grams are cut.
_GRAM_BITS = 6
#: Groups that have a number of 32 bits.
_MOST_GROUPS = 2**31 - 1
_GROUPED_FIELDS = {"buckets": np.int32, "counts": np.int64, "hashes": np.uint64, "groups": np.int32}
_LIST_FIELDS = {
    "starts": np.int64,
    "widths": np.int64,
    "sets": np.int32,
    "members": np.int64,
    "buckets": np.int32,
    "locals": np.int32,
}


@dataclass(slots=True)
class Inverted:
    """What was built: files of the index, and figures about it."""

    files: list[SegmentFile] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


class Exchange(Protocol):
    """Runs a task over numbers, brings the rows of each target together in order, runs another task over them."""

    def __call__(self, numbers: int, tasks: int, first: Task, second: Task, targets: int) -> list[str]:
        """Results of the second task."""


def build_inverted(
    exchange: Exchange,
    staging: Path,
    raw: list[SegmentFile],
    sketches: list[SegmentFile],
    cut: TokenCut,
    pairs: int,
    grams: Sequence[SegmentFile] = (),
) -> Inverted:
    """Build the inverted index of the columns in ``sketches`` from ``pairs`` raw pairs of token and set.

    ``grams`` are files of their rare q-grams.
    """
    sets = _number_sets(staging, sketches)
    shards = _power_of_two(pairs / INVERTED.pairs_per_shard, INVERTED.most_shards)
    place = str(staging.absolute())
    lists = ListTokens(place, tuple(file.path for file in raw), shards)
    merged = exchange(1 << cut.bits, cut.targets, lists, MergeLists(place), shards)
    numbering = _Numbering.of([json.loads(result) for result in merged])
    numbering.write(staging)
    spread = Spread.of(numbering, sets, cut, sum(file.rows for file in grams))
    names = [tuple(file.path for file in files) for files in (sketches, grams)]
    number = NumberGroups(place, spread, *names)
    finish = Finish(place, spread, numbering.grouped)
    numbers = shards + len(sketches) + len(grams)
    finished = exchange(numbers, numbers, number, finish, spread.tasks)
    files = [SegmentFile(**json.loads(each)) for each in finished]
    figures = {**numbering.figures, "sets": sets, "partitions": _partitions(place, files)}
    return Inverted(files, figures)


def _partitions(staging: str, files: list[SegmentFile]) -> list[list[int]]:
    """Partitions of the sets by size, as an LSH Ensemble wants them: (least size, largest size, sets) of each."""
    sizes = [_read(staging, file.path)["sizes"] for file in files if file.kind == PARTS[SETS]]
    return [[each.lower, each.upper, each.sets] for each in partition(np.concatenate(sizes))]


def spark_exchange(session: SparkSession, collect: Callable[[DataFrame], list[Any]]) -> Exchange:
    """An exchange that is a job of a Spark session."""

    def exchange(numbers: int, tasks: int, first: Task, second: Task, targets: int) -> list[str]:
        frame = (
            session.range(0, numbers, 1, max(1, min(numbers, tasks)))
            .mapInArrow(Shipped.of(first), _DDL)
            .repartition(targets, "target")
            .sortWithinPartitions("target", "part", "ordinal")
            .mapInArrow(Shipped.of(second), _RESULT_DDL)
        )
        return [row.result for row in collect(frame)]

    return exchange


def local_exchange(numbers: int, tasks: int, first: Task, second: Task, targets: int) -> list[str]:
    """An exchange in this process, for what is too small to be worth a job."""
    rows: list[_Row] = []
    for part in np.array_split(np.arange(numbers), max(1, min(numbers, tasks))):
        rows += _read_rows(first(iter([pa.record_batch([pa.array(part)], ["id"])])))
    rows.sort(key=lambda row: row[:3])
    results: list[str] = []
    for _, mine in itertools.groupby(rows, key=lambda row: row[0]):
        for batch in second(_rows(mine)):
            results += batch.column(0).to_pylist()
    return results


def _power_of_two(wanted: float, most: int) -> int:
    return min(most, 1 << max(0, int(np.ceil(np.log2(max(1.0, wanted))))))


# --- numbers ----------------------------------------------------------------------------------------------------------


def _number_sets(staging: Path, sketches: list[SegmentFile]) -> int:
    """Number all columns in the order of the catalog and write the numbers where tasks find them."""
    found: list[tuple[str, int, int, str]] = []
    for file in sketches:
        with pa.memory_map(str(staging / file.path)) as source:
            table = pa.ipc.open_file(source).read_all()
            found += zip(*(table[name].to_pylist() for name in ("table", "position", "key", "column")), strict=True)
    found.sort()
    keys = np.array([key for _, _, key, _ in found], np.uint64)
    ids = np.array([column_id(table, column) for table, _, _, column in found], np.uint64)
    if np.unique(keys).size != keys.size:
        raise BuildFailed("two columns share a key", hint="rename one of the tables; this is a matter of luck")
    order = np.argsort(keys)
    out = ArrayFile(staging, "sets", {"keys": np.uint64, "numbers": np.int32, "ids": np.uint64})
    out.append(keys=keys[order], numbers=order, ids=ids)
    (staging / out.close().path).rename(staging / _SET_NUMBERS)
    return len(found)


_NO_TOKENS = np.empty(0, np.uint64), np.empty(0, np.int32)
_SET_NUMBERS, _GROUP_NUMBERS = "set-numbers.bin", "group-numbers.bin"


def _read(staging: str, name: str) -> Arrays:
    with pa.memory_map(str(Path(staging) / name)) as source:
        return read_arrays(source.read_buffer(), name)


def _set_numbers(numbers: Arrays, keys: U64) -> I32:
    """Numbers of sets by key; -1 for those that the catalog does not know."""
    known = numbers["keys"]
    if not known.size:
        return np.full(keys.size, -1, np.int32)
    at = np.minimum(np.searchsorted(known, keys), known.size - 1)
    found: I32 = np.where(known[at] == keys, numbers["numbers"][at], -1).astype(np.int32)
    return found


@dataclass(slots=True)
class _Numbering:
    """Groups of every shard by length, numbered by length over all shards: the global order of tokens."""

    shards: I64
    lengths: I64
    counts: I64
    bases: I64
    lists: dict[int, str]
    grouped: tuple[str, ...]
    figures: dict[str, int]

    @classmethod
    def of(cls, results: list[dict[str, Any]]) -> _Numbering:
        rows = [(length, each["shard"], count) for each in results for length, count in each["lengths"]]
        rows.sort()
        table = np.array(rows, np.int64).reshape(-1, 3)
        counts = table[:, 2]
        ends = np.cumsum(counts)
        groups = int(ends[-1]) if rows else 0
        if groups > _MOST_GROUPS:
            raise BuildFailed(f"{groups:,} groups of tokens are more than an index can number", hint="cut the lake")
        notes = [note for each in results for note in each["notes"]]
        figures = {
            "tokens": sum(note["tokens"] for note in notes),
            "pairs": sum(note["pairs"] for note in notes),
            "groups": groups,
            "postings": int((table[:, 0] * counts).sum()),
        }
        lists = {each["shard"]: each["file"] for each in results}
        grouped = tuple(note["file"] for note in notes)
        return cls(table[:, 1], table[:, 0], counts, ends - counts, lists, grouped, figures)

    def write(self, staging: Path) -> None:
        names = ("shards", "lengths", "counts", "bases")
        out = ArrayFile(staging, "numbers", dict.fromkeys(names, np.int64))
        out.append(**{name: getattr(self, name) for name in names})
        (staging / out.close().path).rename(staging / _GROUP_NUMBERS)


@dataclass(frozen=True, slots=True)
class Spread:
    """Which task writes what: contiguous ranges of buckets, groups, sets and positions, a file each."""

    cut: TokenCut
    lists: tuple[tuple[int, str], ...]
    sets: int
    directory_bits: int
    group_bounds: tuple[int, ...]
    set_bounds: tuple[int, ...]
    position_bounds: tuple[int, ...]
    gram_bounds: tuple[int, ...]
    token_files: int

    @classmethod
    def of(cls, numbering: _Numbering, sets: int, cut: TokenCut, cut_columns: int) -> Spread:
        """``cut_columns`` are columns that were cut into q-grams."""
        figures = numbering.figures
        files = {
            "tokens": min(cut.targets, _files(figures["tokens"])),
            "postings": _files(figures["postings"]),
            "forest": _files(sets * PERMUTATIONS),
            "grams": _files(cut_columns * GRAMS_KEPT),
        }
        slots = max(1, figures["tokens"] // INVERTED.directory_step)
        directory_bits = max(cut.bits, min(40, slots.bit_length() - 1))
        return cls(
            *(cut, tuple(sorted(numbering.lists.items())), sets, directory_bits),
            _even_groups(numbering, files["postings"]),
            tuple(np.linspace(0, sets, min(max(1, sets), files["postings"]) + 1).astype(int).tolist()),
            tuple(np.linspace(0, PERMUTATIONS, files["forest"] + 1).astype(int).tolist()),
            tuple(np.linspace(0, 1 << _GRAM_BITS, files["grams"] + 1).astype(int).tolist()),
            files["tokens"],
        )

    def bounds(self, part: int) -> tuple[int, ...]:
        return (self.token_bounds, self.group_bounds, self.set_bounds, self.position_bounds, self.gram_bounds)[part]

    @property
    def token_bounds(self) -> tuple[int, ...]:
        buckets = 1 << self.cut.bits
        return tuple(buckets * i // self.token_files for i in range(self.token_files + 1))

    def target(self, part: int, number: int) -> int:
        """The number of the task that writes the ``number``-th file of a part."""
        return sum(len(self.bounds(before)) - 1 for before in range(part)) + number

    @property
    def tasks(self) -> int:
        return self.target(len(PARTS), 0)


def _files(items: int) -> int:
    return max(1, min(INVERTED.most_files, -(-items // INVERTED.items_per_file)))


def _even_groups(numbering: _Numbering, files: int) -> tuple[int, ...]:
    """Bounds of group numbers between which about equally many postings lie."""
    groups = numbering.figures["groups"]
    ends = np.concatenate([[0], np.cumsum(numbering.lengths * numbering.counts)])
    numbers = np.concatenate([[0], np.cumsum(numbering.counts)])
    wanted = np.linspace(0, ends[-1], files + 1)[1:-1]
    inner = np.interp(wanted, ends, numbers).astype(int) if groups else np.zeros(files - 1, int)
    return (0, *inner.tolist(), groups)


# --- rows -------------------------------------------------------------------------------------------------------------


def _rows(rows: Iterator[_Row]) -> Arrow:
    for row in rows:
        yield pa.record_batch([pa.array([value], kind.type) for value, kind in zip(row, _SCHEMA, strict=True)], _SCHEMA)


def _read_rows(batches: Arrow) -> Iterator[_Row]:
    for batch in batches:
        for i in range(batch.num_rows):
            target, part, ordinal, payload = (batch.column(j)[i].as_py() for j in range(4))
            yield target, part, ordinal, payload


def _numbers(batches: Arrow) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _pack(**fields: npt.NDArray[Any]) -> bytes:
    return codec.pack("inverted", 1, fields)


def _unpack(payload: bytes) -> codec.Fields:
    return codec.unpack(payload, "inverted", 1)


# --- first job --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListTokens:
    """Task: the lists of a bucket's tokens, grouped; each list goes to the shard of its hash.

    The tokens themselves stay in a file, in order, each with the number of its group within the bucket.
    """

    staging: str
    raw: tuple[str, ...]
    shards: int

    def __call__(self, batches: Arrow) -> Arrow:
        out = ArrayFile(self.staging, "grouped-tokens", _GROUPED_FIELDS)
        numbers = _read(self.staging, _SET_NUMBERS)
        files = [_read(self.staging, name) for name in self.raw]
        pairs = 0
        for bucket in _numbers(batches):
            hashes, lists = self._lists(bucket, files, numbers)
            groups, first = group(lists)
            out.append(buckets=np.array([bucket]), counts=np.array([hashes.size]), hashes=hashes, groups=groups)
            pairs += lists.sets.size
            yield from _rows(self._emit(bucket, lists.take(first), np.bincount(groups, minlength=first.size)))
        note = {"file": out.name, "tokens": out.count("hashes"), "pairs": pairs}
        out.close()
        yield from _rows(iter([(0, _NOTE, 0, json.dumps(note).encode())]))

    def _lists(self, bucket: int, files: list[Arrays], numbers: Arrays) -> tuple[U64, SetLists]:
        """Tokens of a bucket in order and the sets that hold each; what the catalog does not know is left out."""
        found = [raw for file in files for raw in raw_buckets(file, bucket)]
        owners = [_set_numbers(numbers, raw.keys)[raw.owners] for raw in found]
        if len(found) == 1 and (owners[0] >= 0).all():
            starts = np.concatenate([[0], np.cumsum(found[0].lengths, dtype=np.int64)])
            every, sets = found[0].hashes, owners[0]
            # Numbers of sets need not come in the order of their keys.
            sort_lists(starts, sets)
            return every, SetLists.of(starts, sets)
        repeated = [np.repeat(raw.hashes, raw.lengths) for raw in found]
        every = np.concatenate([np.empty(0, np.uint64), *repeated])
        sets = np.concatenate([np.empty(0, np.int32), *owners])
        kept = np.flatnonzero(sets >= 0)
        order = kept[np.argsort(every[kept])]
        every, sets = every[order], sets[order]
        tokens, pairs, starts = unite_pairs(every, sets)
        return every[:tokens], SetLists.of(starts, sets[:pairs])

    def _emit(self, bucket: int, lists: SetLists, widths: I64) -> Iterator[_Row]:
        shard = (lists.hashes >> np.uint64(65 - self.shards.bit_length())) if self.shards > 1 else lists.hashes * 0
        for number in range(self.shards):
            local = np.flatnonzero(shard == number)
            if local.size or bucket == 0:
                part = lists.take(local)
                payload = _pack(
                    starts=part.starts, sets=part.sets, hashes=part.hashes, widths=widths[local], local=local
                )
                yield number, _LISTS, bucket, payload


@dataclass(frozen=True, slots=True)
class MergeLists:
    """Task: the lists of a shard from all buckets, grouped; written in order of length, hash and content."""

    staging: str

    def __call__(self, batches: Arrow) -> Arrow:
        for shard, rows in itertools.groupby(_read_rows(batches), key=lambda row: row[0]):
            result = {"shard": shard, **self._merge(list(rows))}
            yield pa.record_batch([[json.dumps(result)]], schema=_RESULT_SCHEMA)

    def _merge(self, rows: list[_Row]) -> dict[str, Any]:
        parts = [(bucket, _unpack(payload)) for _, part, bucket, payload in rows if part == _LISTS]
        lists = SetLists.concatenate([SetLists(each["starts"], each["sets"], each["hashes"]) for _, each in parts])
        groups, first = group(lists)
        members = np.argsort(groups, kind="stable")
        whole = lists.take(first)
        widths = np.concatenate([each["widths"] for _, each in parts])
        buckets = np.repeat(np.array([bucket for bucket, _ in parts]), [each["local"].size for _, each in parts])
        out = ArrayFile(self.staging, "lists", _LIST_FIELDS)
        out.append(
            starts=whole.starts,
            widths=np.bincount(groups, widths, first.size).astype(np.int64),
            sets=whole.sets,
            members=np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=first.size))]),
            buckets=buckets[members],
            locals=np.concatenate([each["local"] for _, each in parts])[members],
        )
        lengths, counts = np.unique(whole.lengths, return_counts=True)
        notes = [json.loads(payload) for _, part, _, payload in rows if part == _NOTE]
        return {
            "file": out.close().path,
            "lengths": list(zip(lengths.tolist(), counts.tolist(), strict=True)),
            "notes": notes,
        }


# --- second job -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NumberGroups:
    """Task: the groups of a shard get their numbers and go to those who write the index; or signatures and grams do."""

    staging: str
    spread: Spread
    sketches: tuple[str, ...]
    grams: tuple[str, ...]

    def __call__(self, batches: Arrow) -> Arrow:
        for number in _numbers(batches):
            place = number - len(self.spread.lists)
            if place < 0:
                yield from _rows(self._groups(*self.spread.lists[number]))
            elif place < len(self.sketches):
                yield from _rows(self._signatures(self.sketches[place]))
            else:
                yield from _rows(self._grams(self.grams[place - len(self.sketches)]))

    def _groups(self, shard: int, name: str) -> Iterator[_Row]:
        lists = _read(self.staging, name)
        numbers = self._group_numbers(shard)
        if shard == 0:  # so that every part is written, even an empty one
            for target in range(self.spread.tasks):
                yield target, -1, 0, b""
        yield from self._tokens(lists, numbers)
        yield from self._postings(lists, numbers)
        yield from self._sets(lists, numbers)

    def _group_numbers(self, shard: int) -> I32:
        """Numbers of the groups of a shard, in the order of its file."""
        table = _read(self.staging, _GROUP_NUMBERS)
        mine = table["shards"] == shard
        counts, bases = table["counts"][mine], table["bases"][mine]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        numbers: I32 = (np.repeat(bases, counts) + within).astype(np.int32)
        return numbers

    def _tokens(self, lists: Arrays, numbers: I32) -> Iterator[_Row]:
        members = np.repeat(numbers, np.diff(lists["members"]))
        order = np.argsort(lists["buckets"], kind="stable")
        buckets = lists["buckets"][order]
        bounds = self.spread.token_bounds
        for bucket, begin, end in _runs(buckets):
            part = order[begin:end]
            file = int(np.searchsorted(bounds, bucket, "right")) - 1
            payload = _pack(locals=lists["locals"][part], groups=members[part])
            yield self.spread.target(TOKENS, file), TOKENS, bucket, payload

    def _postings(self, lists: Arrays, numbers: I32) -> Iterator[_Row]:
        bounds = np.searchsorted(numbers, self.spread.group_bounds)
        starts, sets = lists["starts"], lists["sets"]
        for file, (begin, end) in enumerate(itertools.pairwise(bounds.tolist())):
            if begin < end:
                payload = _pack(
                    groups=numbers[begin:end],
                    starts=starts[begin : end + 1] - starts[begin],
                    sets=sets[starts[begin] : starts[end]],
                    widths=lists["widths"][begin:end],
                )
                yield self.spread.target(POSTINGS, file), POSTINGS, 0, payload

    def _sets(self, lists: Arrays, numbers: I32) -> Iterator[_Row]:
        lengths = np.diff(lists["starts"])
        groups = np.repeat(numbers, lengths)
        widths = np.repeat(lists["widths"], lengths)
        file_of = np.searchsorted(self.spread.set_bounds, lists["sets"], "right") - 1
        order = np.argsort(file_of, kind="stable")
        for file, begin, end in _runs(file_of[order]):
            part = order[begin:end]
            payload = _pack(sets=lists["sets"][part], groups=groups[part], widths=widths[part])
            yield self.spread.target(SETS, file), SETS, 0, payload

    def _signatures(self, name: str) -> Iterator[_Row]:
        """Signatures of the sets of a file of sketches, cut by position."""
        for sets, batch in self._batches(name):
            rows = b"".join(batch.column("signature").to_pylist())
            values = np.frombuffer(rows, np.uint32).reshape(-1, PERMUTATIONS)
            for file, (begin, end) in enumerate(itertools.pairwise(self.spread.position_bounds)):
                block = np.ascontiguousarray(values[:, begin:end].T)
                yield self.spread.target(FOREST, file), FOREST, 0, _pack(sets=sets, values=block.reshape(-1))

    def _grams(self, name: str) -> Iterator[_Row]:
        """Rare q-grams of the sets of a file, cut by the first bits of their hashes."""
        for sets, batch in self._batches(name):
            blocks = [np.frombuffer(block, np.uint64) for block in batch.column("grams").to_pylist()]
            every = np.concatenate(blocks)
            owners = np.repeat(sets, [block.size for block in blocks])
            bits = (every >> np.uint64(64 - _GRAM_BITS)).astype(np.int64)
            for file, (begin, end) in enumerate(itertools.pairwise(self.spread.gram_bounds)):
                mine = np.flatnonzero((bits >= begin) & (bits < end))
                yield self.spread.target(GRAMS, file), GRAMS, 0, _pack(sets=owners[mine], hashes=every[mine])

    def _batches(self, name: str) -> Iterator[tuple[I32, pa.RecordBatch]]:
        """The records of a file, and the numbers of their sets."""
        numbers = _read(self.staging, _SET_NUMBERS)
        with pa.memory_map(str(Path(self.staging) / name)) as source:
            batches = pa.ipc.open_file(source)
            for number in range(batches.num_record_batches):
                batch = batches.get_batch(number)
                yield _set_numbers(numbers, np.array(batch.column("key").to_pylist(), np.uint64)), batch


def _runs(values: npt.NDArray[Any]) -> Iterator[tuple[int, int, int]]:
    """(value, begin, end) of the runs of equal values."""
    begins = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if values.size else np.empty(0, int)
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), values.size], strict=False):
        yield int(values[begin]), begin, end


@dataclass(frozen=True, slots=True)
class Finish:
    """Task: writes one file of one part of the index."""

    staging: str
    spread: Spread
    grouped: tuple[str, ...]

    def __call__(self, batches: Arrow) -> Arrow:
        for target, rows in itertools.groupby(_read_rows(batches), key=lambda row: row[0]):
            part, number = self._place(target)
            writers = (
                self._write_tokens,
                self._write_postings,
                self._write_sets,
                self._write_forest,
                self._write_grams,
            )
            payloads = ((ordinal, _unpack(payload)) for _, kind, ordinal, payload in rows if kind >= 0)
            file = writers[part](payloads, *self.spread.bounds(part)[number : number + 2])
            yield pa.record_batch([[json.dumps(asdict(file))]], schema=_RESULT_SCHEMA)

    def _place(self, target: int) -> tuple[int, int]:
        for part in range(len(PARTS)):
            first = self.spread.target(part, 0)
            if target < first + len(self.spread.bounds(part)) - 1:
                return part, target - first
        raise AssertionError(target)

    def _write_tokens(self, payloads: Iterator[tuple[int, codec.Fields]], begin: int, end: int) -> SegmentFile:
        """Tokens in order with their groups, a directory of where ranges of hashes begin, and the order by group."""
        fields = {
            "hashes": np.uint64,
            "groups": np.int32,
            "directory": np.int64,
            "range": np.int64,
            "by_group": np.int32,
        }
        out = ArrayFile(self.staging, PARTS[TOKENS], fields)
        bits, directory_bits = self.spread.cut.bits, self.spread.directory_bits
        out.append(range=np.array([directory_bits, begin << (directory_bits - bits), end << (directory_bits - bits)]))
        found = dict(self._grouped(begin, end))
        mapped = {
            bucket: [each for _, each in rows] for bucket, rows in itertools.groupby(payloads, lambda row: row[0])
        }
        per_bucket = 1 << (directory_bits - bits)
        every = [np.empty(0, np.int32)]
        for bucket in range(begin, end):
            before = out.count("hashes")
            hashes, local = found.get(bucket, _NO_TOKENS)
            numbers = np.empty(int(local.max(initial=-1)) + 1, np.int32)
            for each in mapped.get(bucket, ()):
                numbers[each["locals"]] = each["groups"]
            low = np.uint64(bucket << (64 - bits))
            directory = directory_of(read_only(hashes), 64 - directory_bits, low, per_bucket)
            every.append(numbers[local])
            out.append(hashes=hashes, groups=every[-1], directory=directory[:-1] + before)
        order = np.argsort(np.concatenate(every), kind="stable")
        out.append(directory=np.array([out.count("hashes")]), by_group=order)
        return out.close()

    def _grouped(self, begin: int, end: int) -> Iterator[tuple[int, tuple[U64, I32]]]:
        for name in self.grouped:
            file = _read(self.staging, name)
            ends = np.cumsum(file["counts"])
            for at, bucket in enumerate(file["buckets"].tolist()):
                if begin <= bucket < end:
                    first = int(ends[at] - file["counts"][at])
                    yield bucket, (file["hashes"][first : ends[at]], file["groups"][first : ends[at]])

    def _write_postings(self, payloads: Iterator[tuple[int, codec.Fields]], begin: int, end: int) -> SegmentFile:
        """The sets that hold the tokens of each group, in order, and how many tokens it has."""
        parts = [each for _, each in payloads]
        out = ArrayFile(
            self.staging,
            PARTS[POSTINGS],
            {"starts": np.int64, "sets": np.int32, "widths": np.int32, "range": np.int64},
        )
        lists = [SetLists(each["starts"], each["sets"], np.zeros(each["groups"].size, np.uint64)) for each in parts]
        groups = np.concatenate([np.empty(0, np.int32), *(each["groups"] for each in parts)])
        order = np.argsort(groups)
        ordered = SetLists.concatenate(lists).take(order) if lists else SetLists.of(np.zeros(1, np.int64), groups)
        widths = np.concatenate([np.empty(0, np.int64), *(each["widths"] for each in parts)])
        out.append(starts=ordered.starts, sets=ordered.sets, widths=widths[order], range=np.array([begin, end]))
        return out.close()

    def _write_sets(self, payloads: Iterator[tuple[int, codec.Fields]], begin: int, end: int) -> SegmentFile:
        """The groups of each set, in order, the number of its tokens, what its column is known by, and bitmaps."""
        parts = [each for _, each in payloads]
        fields = {
            "starts": np.int64,
            "groups": np.int32,
            "sizes": np.int64,
            "ids": np.uint64,
            "range": np.int64,
            "page_starts": np.int64,
            "pages": np.int32,
            "bits": np.uint64,
        }
        out = ArrayFile(self.staging, PARTS[SETS], fields)
        ids = _read(self.staging, _SET_NUMBERS)["ids"][begin:end]
        sets = np.concatenate([np.empty(0, np.int32), *(each["sets"] for each in parts)]) - np.int32(begin)
        groups = np.concatenate([np.empty(0, np.int32), *(each["groups"] for each in parts)])
        widths = np.concatenate([np.empty(0, np.int64), *(each["widths"] for each in parts)])
        starts, ordered, sizes = sort_rows(sets, groups, widths, end - begin)
        out.append(starts=starts, groups=ordered, sizes=sizes, ids=ids, range=np.array([begin, end]))
        page_starts, pages, bits = bitmaps_of(starts, ordered, PAGE_BITS, PAGE_LEAST)
        out.append(page_starts=page_starts, pages=pages, bits=bits)
        return out.close()

    def _write_forest(self, payloads: Iterator[tuple[int, codec.Fields]], begin: int, end: int) -> SegmentFile:
        """For each position of the signatures: the sets in order of their value there, and the values."""
        parts = [each for _, each in payloads]
        out = ArrayFile(self.staging, PARTS[FOREST], {"values": np.uint32, "sets": np.int32, "range": np.int64})
        sets = np.concatenate([np.empty(0, np.int32), *(each["sets"] for each in parts)])
        for position in range(end - begin):
            values = np.concatenate(
                [np.empty(0, np.uint32), *(each["values"].reshape(end - begin, -1)[position] for each in parts)]
            )
            order = np.lexsort((sets, values))
            out.append(values=values[order], sets=sets[order])
        out.append(range=np.array([begin, end]))
        return out.close()

    def _write_grams(self, payloads: Iterator[tuple[int, codec.Fields]], begin: int, end: int) -> SegmentFile:
        """Rare q-grams in order, each with the sets that have it."""
        parts = [each for _, each in payloads]
        out = ArrayFile(self.staging, PARTS[GRAMS], {"hashes": np.uint64, "sets": np.int32, "range": np.int64})
        hashes = np.concatenate([np.empty(0, np.uint64), *(each["hashes"] for each in parts)])
        sets = np.concatenate([np.empty(0, np.int32), *(each["sets"] for each in parts)])
        order = np.lexsort((sets, hashes))
        out.append(hashes=hashes[order], sets=sets[order], range=np.array([begin, end]))
        return out.close()
