"""A fuzzer for everything that reads untrusted bytes: finding, planning, scanning and merging tables, opening an index.

Inputs follow from a seed and a number, so any of them can be made again. They are read by a child process of bounded
memory that says what it is about to do before it does it: when it dies or is silent for too long, the input is known.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import itertools
import json
import os
import random
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from helpers import corpus

#: Seconds without a word after which the child is taken to hang.
PATIENCE = 60.0
#: Bytes that the child may allocate.
MEMORY = 3 << 30
_NUMBERS = [0, 1, 127, 255, 256, 32767, 65535, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1]
_TOKENS = [
    *(
        b'"',
        b"'",
        b",",
        b";",
        b"\t",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"\\",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xff",
        b"\x80",
    ),
    *(b"{", b"}", b"[", b"]", b":", b"null", b"NaN", b"-", b"1e999", b"9" * 400, b'"\\ud800"', b"\\u0000", b"[" * 3000),
    *(b'{"a":' * 300, b",,,,,,,,", b'""""', b"<v>", b"</c>", b"&#x0;", b'r="XFD1048576"', b"=1", b"\xe2\x80\xa8"),
]

Dice = random.Random


# Seeds ----------------------------------------------------------------------------------------------------------------


def _nested() -> pa.Table:
    return pa.table(
        {
            "s": pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": 2, "b": None}] * 20),
            "l": pa.array([[1, None], [], None] * 20, pa.list_(pa.int32())),
            "m": pa.array([[("k", 1)], [], None] * 20, pa.map_(pa.string(), pa.int64())),
            "d": pa.array(["x", "y", None] * 20).dictionary_encode(),
            "t": pa.array([0, 1, None] * 20, pa.timestamp("us", "UTC")),
            "n": pa.array(["1.5", "2", None] * 20).cast(pa.decimal128(20, 3)),
            "z": pa.nulls(60),
        }
    )


def _parquet(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def _stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _orc(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def _duckdb() -> bytes:
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "d.duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t AS SELECT range AS a, 'x' || range AS b FROM range(200)")
            connection.execute("CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        return path.read_bytes()


def seeds() -> dict[str, bytes]:
    """Small whole files of every format."""
    people = corpus.people(60).encode()
    lines = b"".join(b'{"a": %d, "b": {"c": "x%d"}, "l": [1, 2]}\n' % (i, i) for i in range(60))
    document = json.dumps([{"a": i, "b": [i, {"c": None}], "t": "é"} for i in range(40)]).encode()
    plain = corpus.typed(100)
    flat = _nested().select(["l", "m", "t", "n"])
    return {
        "a.csv": people,
        "b.csv": people.replace(b",", b";").replace(b"\n", b"\r\n"),
        "c.tsv": people.replace(b",", b"\t"),
        "d.csv": people.decode().encode("utf-16"),
        "a.csv.gz": gzip.compress(people, mtime=0),
        "a.csv.bz2": bz2.compress(people),
        "a.csv.zst": bytes(pa.Codec("zstd").compress(people, asbytes=True)),
        "a.jsonl": lines,
        "a.json": document,
        "b.json": b'{"type": "all", "features": ' + document + b"}",
        "a.jsonl.gz": gzip.compress(lines, mtime=0),
        "a.parquet": corpus.parquet(plain, row_group_size=30),
        "b.parquet": _parquet(_nested(), compression="zstd", row_group_size=25),
        "c.parquet": _parquet(_nested(), compression="none", data_page_version="2.0", use_dictionary=False),
        "d.parquet": _parquet(plain, compression="gzip", use_byte_stream_split=False, write_statistics=False),
        "a.parquet.gz": gzip.compress(corpus.parquet(plain), mtime=0),
        "a.arrow": corpus.arrow(plain),
        "b.arrow": corpus.arrow(_nested()),
        "c.arrow": _stream(_nested()),
        "d.arrow": _stream(plain, compression="zstd"),
        "a.orc": corpus.orc(plain),
        "b.orc": _orc(flat, compression="zlib", stripe_size=4096),
        "a.xlsx": corpus.xlsx(one=plain.slice(0, 20), two=corpus.typed(3)),
        "a.sqlite": corpus.sqlite(
            "CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT, z)",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) "
            "INSERT INTO a SELECT i, 'y' || i, zeroblob(i % 7) FROM n",
            "CREATE TABLE b (x PRIMARY KEY, y) WITHOUT ROWID",
            "INSERT INTO b SELECT y, x FROM a",
            "CREATE VIEW v AS SELECT y, count(*) AS n FROM a GROUP BY y",
        ),
        "a.duckdb": _duckdb(),
    }


# Mutation -------------------------------------------------------------------------------------------------------------


def _place(dice: Dice, size: int) -> int:
    """Somewhere, often near an end: that is where formats keep their structure."""
    if size < 2:
        return 0
    near = min(size, 300)
    return dice.choice([dice.randrange(size), dice.randrange(near), size - 1 - dice.randrange(near)])


def _damage(dice: Dice, content: bytes, other: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(dice.choice([1, 1, 1, 2, 3, 8])):
        place = _place(dice, len(data))
        length = dice.choice([1, 2, 4, 8, dice.randrange(1, 400)])
        match dice.randrange(11):
            case 0 | 1 if data:
                data[place] ^= 1 << dice.randrange(8)
            case 2 if data:
                data[place] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
            case 3:
                del data[place : place + length]
            case 4:
                data[place:place] = data[place : place + length] * dice.choice([1, 1, 2, 50])
            case 5:
                del data[place:]
            case 6 | 7:
                width = dice.choice([2, 4, 8])
                number = (dice.choice(_NUMBERS) + dice.choice([-1, 0, 0, 1])) % (1 << 8 * width)
                data[place : place + width] = number.to_bytes(width, dice.choice(["little", "big"]))
            case 8:
                start = _place(dice, len(other))
                data[place : place + length] = other[start : start + length]
            case 9:
                data[place:place] = dice.choice(_TOKENS)
            case _:
                data[place : place + length] = dice.randbytes(length)
    return bytes(data)


def _inside_zip(dice: Dice, content: bytes) -> bytes:
    """Damage what is packed, and pack it again so that the damage is met."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        names = source.namelist()
        hit = dice.choice(names)
        for name in names:
            member = source.read(name)
            target.writestr(name, _damage(dice, member, member) if name == hit else member)
    return out.getvalue()


_PACKERS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    ".gz": (gzip.decompress, lambda data: gzip.compress(data, mtime=0)),
    ".bz2": (bz2.decompress, bz2.compress),
    ".xlsx": (lambda data: data, lambda data: data),
}


def _random_array(dice: Dice, rows: int) -> pa.Array:
    values = [dice.choice([None, dice.randrange(-9, 9), dice.randrange(1 << 40)]) for _ in range(rows)]
    kinds: list[Callable[[], pa.Array]] = [
        lambda: pa.array(values),
        lambda: pa.array([None if value is None else value / 3 for value in values]),
        lambda: pa.array([None if value is None else "é" * (value % 40) for value in values]),
        lambda: pa.array([None if value is None else dice.randbytes(value % 20) for value in values]),
        lambda: pa.array([None if value is None else value % 90 for value in values], pa.int32()).cast(pa.date32()),
        lambda: pa.array([None if value is None else [value] * (value % 5) for value in values]),
        lambda: pa.array([None if value is None else {"x": value, "y": [str(value)]} for value in values]),
        lambda: pa.array(
            [None if value is None else str(value % 4) for value in values], pa.string()
        ).dictionary_encode(),
        lambda: pa.nulls(rows),
    ]
    return dice.choice(kinds)()


def _written(dice: Dice, table: pa.Table, name: str) -> bytes:
    """A table as a file, with options by chance."""
    if name.endswith("parquet"):
        options = {
            "compression": dice.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
            "data_page_version": dice.choice(["1.0", "2.0"]),
            "use_dictionary": dice.random() < 0.5,
            "data_page_size": dice.choice([64, 1 << 20]),
            "write_statistics": dice.random() < 0.5,
            "row_group_size": dice.choice([3, 1000]),
            "write_page_index": dice.random() < 0.3,
        }
        return _parquet(table, **options)
    return _stream(table, compression=dice.choice([None, "lz4", "zstd"]))


@dataclass(frozen=True)
class Input:
    """A file to read, and how it came about."""

    name: str
    how: str
    content: bytes


def make_input(seed: int, number: int, known: dict[str, bytes]) -> Input:
    """The input of a number; always the same."""
    dice = Dice(f"{seed}/{number}")
    name = dice.choice(sorted(known))
    content, other = known[name], known[dice.choice(sorted(known))]
    suffix = Path(name).suffix
    if suffix in (".parquet", ".arrow") and dice.random() < 0.4:
        columns = dice.randrange(1, 5)
        rows = dice.choice([0, 1, 7, 100])
        table = pa.table([_random_array(dice, rows) for _ in range(columns)], list("abcd")[:columns])
        return Input(name, "made, damaged", _damage(dice, _written(dice, table, name), content))
    if suffix in _PACKERS and dice.random() < 0.6:
        if suffix == ".xlsx":
            return Input(name, "damaged inside", _inside_zip(dice, content))
        unpack, pack = _PACKERS[suffix]
        return Input(name, "damaged inside", pack(_damage(dice, unpack(content), other)))
    return Input(name, "damaged", _damage(dice, content, other))


# The child ------------------------------------------------------------------------------------------------------------


def _read(path: Path, unit_bytes: int) -> str:
    """Everything a build does with a file, in this process; returns what became of it."""
    from lakescope.build.plan import make_plan, write_plan
    from lakescope.build.tasks import STATE_SCHEMA, MergeStates, ScanBins, parse_result
    from lakescope.build.tokens import TokenCut
    from lakescope.sources.discover import discover

    found, problems = discover([str(path)])
    plan = make_plan(found, unit_bytes)
    with tempfile.TemporaryDirectory() as staging:
        secrets = write_plan(plan.bins, staging)
        numbers = (pa.record_batch([pa.array([number])], ["id"]) for number in range(len(plan.bins)))
        states = [each for number in numbers for each in ScanBins(staging, 1, TokenCut(1, 1), secrets)(iter([number]))]
        order = [(field, "ascending") for field in ("table", "target", "part", "name", "ordinal")]
        merged = MergeStates(staging, 1, TokenCut(1, 1))(
            iter(pa.Table.from_batches(states, STATE_SCHEMA).sort_by(order).to_batches())
        )
        counts = parse_result(next(iter(merged)).column(0)[0].as_py()).counts
        written = [pq.read_table(each) for each in Path(staging).glob("problems-*.parquet")]
    severities = [each.severity for each in [*problems, *plan.problems]]
    severities += [severity for table in written for severity in table["severity"].to_pylist()]
    if not counts["tables"]:
        return "problem" if severities else "nothing"
    return "table and error" if "error" in severities else "table"


def _ask(index: Path) -> str:
    """Everything that opens a file of an index."""
    import lakescope
    from lakescope.errors import LakescopeError

    try:
        lake = lakescope.open(index)
        lake.info()
        for table in lake.tables()["table"].to_pylist():
            lake.profile(table)
        lake.joinable({"id": ["1", "2", "3"]}, on="id", k=3)
        lake.correlated({"k": ["1", "2", "3"], "v": [1, 2, 3]}, key="k", target="v")
        lake.inclusions(0.5)
        lake.verify()
    except LakescopeError:
        return "refused"
    return "answered"


def build_index(folder: Path) -> Path:
    """A small index, made by the steps of a build but without Spark."""
    from lakescope._version import __version__
    from lakescope.build.build import scan_here
    from lakescope.build.plan import make_plan
    from lakescope.sources.discover import discover
    from lakescope.store.writer import IndexWriter

    lake, index = folder / "lake", folder / "lake.idx"
    lake.mkdir()
    for number in range(3):
        (lake / f"t{number}.csv").write_text(corpus.people(40 + number))
    with IndexWriter(index) as writer:
        outcome = scan_here(make_plan(discover([str(lake)])[0]), writer.staging, joins=True)
        summary = {**outcome.counts, "join": outcome.inverted, "seconds": 0.0, "jobs": 0, "failed": 0}
        writer.publish(outcome.files, version=__version__, sources=[str(lake)], summary=summary)
    return index


def child(seed: int, first: int, folder: Path) -> None:
    """Read inputs from a number on until somebody ends it; says each number before and what became of it after."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    known = seeds()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        index = build_index(Path(place))
        files = sorted(path for path in index.rglob("*") if path.is_file() and path.name != ".lock")
        whole = {path: path.read_bytes() for path in files}
        for number in itertools.count(first):
            dice = Dice(f"{seed}/{number}/what")
            if dice.random() < 0.1:
                hit = dice.choice(files)
                content = _damage(dice, whole[hit], b"\0" * 64)
                _say(out, number, "begin", f"index: {hit.name.partition('-')[0]}")
                hit.write_bytes(content)
                outcome = _outcome(lambda: _ask(index))
                hit.write_bytes(whole[hit])
            else:
                made = make_input(seed, number, known)
                path = Path(place, made.name)
                path.write_bytes(made.content)
                _say(out, number, "begin", made.name)
                outcome = _outcome(lambda path=path, dice=dice: _read(path, dice.choice([500, 1 << 26])))  # type: ignore[misc]
                path.unlink()
            _say(out, number, "end", outcome)


def _outcome(work: Callable[[], str]) -> str:
    try:
        return work()
    except Exception:
        return "escaped: " + traceback.format_exc()


def _say(out: Any, number: int, what: str, more: str) -> None:
    out.write(json.dumps([number, what, more]) + "\n")
    out.flush()


# The parent -----------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What became of the inputs, by format; ``defects`` are those that nobody may cause."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    defects: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def inputs(self) -> int:
        return sum(self.outcomes.values())


@contextlib.contextmanager
def _running(seed: int, first: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, __file__, str(seed), str(first), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "LAKESCOPE_MEMORY": "2G"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def fuzz(seconds: float, seed: int, keep: Path | None = None, tell: Callable[[str], None] = lambda _: None) -> Tally:
    """Read as many inputs as the time allows; those that do harm are written to ``keep``. Loading does not count."""
    tally = Tally()
    folder = Path(tempfile.mkdtemp(prefix="lakescope-fuzz-"))
    following = 0
    try:
        while tally.seconds < seconds:
            with _running(seed, following, folder) as process:
                following = _watch(process, seconds, seed, tally, keep, tell)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def _watch(
    process: subprocess.Popen[bytes],
    seconds: float,
    seed: int,
    tally: Tally,
    keep: Path | None,
    tell: Callable[[str], None],
) -> int:
    """Listen to a child until time is up or it is gone; returns the number to go on with."""
    assert process.stdout is not None
    name, number, began = "start", -1, time.monotonic()
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    pending = b""
    while True:
        if not selector.select(PATIENCE * (3 if number < 0 else 1)):
            _defect(tally, seed, number, name, "hang", keep, tell)
            return number + 1
        piece = os.read(process.stdout.fileno(), 1 << 16)
        if not piece:
            code = process.wait()
            if number < 0:
                raise RuntimeError(f"the child ended before it began, with code {code}")
            _defect(tally, seed, number, name, f"crash: code {code}", keep, tell)
            return number + 1
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            number, what, more = json.loads(line)
            if what == "begin":
                name, began = more, time.monotonic()
                continue
            tally.seconds += time.monotonic() - began
            kind = name if name.startswith("index") else name.partition(".")[2]
            tally.outcomes[kind, more.partition(":")[0]] += 1
            if more.startswith("escaped"):
                _defect(tally, seed, number, name, more, keep, tell, counted=True)
            if tally.seconds >= seconds:
                return number + 1


def _defect(
    tally: Tally,
    seed: int,
    number: int,
    name: str,
    what: str,
    keep: Path | None,
    tell: Callable[[str], None],
    *,
    counted: bool = False,
) -> None:
    kind = name if name.startswith("index") else name.partition(".")[2]
    if not counted:
        tally.outcomes[kind, what.partition(":")[0]] += 1
        tally.seconds += PATIENCE if what == "hang" else 0.0
    tally.defects.append({"seed": seed, "number": number, "name": name, "what": what})
    tell(f"input {number} ({name}): {what}")
    if keep is not None and not name.startswith("index"):
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{seed}-{number}-{name}").write_bytes(make_input(seed, number, seeds()).content)


if __name__ == "__main__":
    child(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
