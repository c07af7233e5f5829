"""How does the server hold up: many users at once, on an index of 300,000 columns?

Users come from a process of their own over loopback, each with a connection that stays open. A user asks for
something, waits for the answer, looks at it for a while (exponentially distributed, ``--think`` seconds on average) and
asks for the next thing: pages of the lake, searches by name and by value, pages of tables, what joins with them, tables
like them, joins and correlations over REST. Tables and words are drawn anew each time, so answers that are kept help
little. The index is put together from columns that were profiled as a scan does it, without Spark and without files, so
nobody asks for first rows. Before the clock starts, the server says that it is warm. With ``--think 0`` there is no
pause at all: the throughput of the machine. Memory is what the server and its workers hold for themselves, every five
seconds; it is flat if its median over the last fifth of the time exceeds that over the second fifth by at most a tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from common import Aim, Json, arguments, at_most, data_folder, publish, say, table, tree, tree_cpu
from lakescope.build.correlations import BuiltSketch, records
from lakescope.build.inverted import build_inverted, local_exchange
from lakescope.build.tokens import TokenBuffer, TokenCut
from lakescope.profile.column import ColumnState
from lakescope.profile.summary import summarise
from lakescope.sketches.correlation import KeySketch
from lakescope.sketches.minhash import MinHash
from lakescope.store.segment import ShardWriter
from lakescope.store.writer import IndexWriter
from lakescope.tables.reading import batches_of
from lakescope.values.cells import understand
from sets import write_raw

WORDS = "north south east west river lake hill road bridge port field stone oak pine ash elm fox owl crow hare".split()
#: Kinds of requests and how often each comes.
WEIGHTS = {
    "home": 12, "next page": 8, "filtered": 6, "find a name": 12, "find a value": 10, "table": 20,
    "joins of a table": 12, "tables like it": 6, "REST tables": 6, "REST profile": 4, "REST joinable": 8,
    "REST correlated": 6,
}  # fmt: skip


# --- the lake ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A column as an index holds it: its record, its values by their hashes, its signature, its numbers by row."""

    record: Json
    hashes: npt.NDArray[np.uint64]
    signature: bytes
    rows: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.float64]


def kept(texts: list[str]) -> Kept:
    """A column of texts, understood and profiled the way a scan does it."""
    (batch,) = batches_of({"c": texts})
    cells = understand(batch.columns[0], batch.fallback)
    state = ColumnState(0)
    state.meet("text", 1_000)
    state.update(cells)
    hashes = np.maximum(cells.hashes, np.uint64(1))
    signature = MinHash()
    signature.update_hashes(np.unique(hashes))
    record = summarise("t", "c", state, len(texts))
    return Kept(
        record, np.unique(hashes), signature.values.tobytes(), hashes[cells.places], cells.numbers[cells.places]
    )


def library(dice: random.Random) -> dict[str, list[Kept]]:
    """Columns that the tables of the lake are put together from, by what they hold."""
    pools = [[f"{WORDS[(n + p) % 20]} {WORDS[(n * 7 + p) % 20]} {p}-{n}" for n in range(300)] for p in range(60)]
    days = [f"20{20 + n // 336:02d}-{n % 336 // 28 + 1:02d}-{n % 28 + 1:02d}" for n in range(1_000)]
    return {
        "name": [kept(dice.sample(pool, 40)) for pool in pools for _ in range(20)],
        "day": [kept(days[start : start + 40]) for start in range(0, 960, 3)],
        "code": [kept([f"C{at * 40 + row:06d}" for row in range(40)]) for at in range(500)],
        "category": [kept([dice.choice(WORDS) for _ in range(40)]) for _ in range(200)],
        "number": [kept([f"{row * (at % 5 - 2) + dice.gauss(0, 20):.2f}" for row in range(40)]) for at in range(1_500)],
    }


def write_index(path: Path, tables: int, columns: int) -> None:
    """An index of tables of 40 rows, by the tasks of a build but without Spark, and without the files themselves."""
    dice = random.Random(7)
    shelves = library(dice)
    cut = TokenCut(6, 8)
    shutil.rmtree(path, ignore_errors=True)
    with IndexWriter(path) as writer:
        shards = {
            kind: ShardWriter(writer.staging, kind) for kind in ("tables", "columns", "sketches", "keys", "pairs")
        }
        found: dict[int, list[bytes]] = {}
        buffer = TokenBuffer(cut)
        for number in range(tables):
            name = f"part{number * 40 // tables:02d}/{number:06d}_{dice.choice(WORDS)}_{dice.choice(WORDS)}.csv"
            shards["tables"].add(
                {
                    **{"table": name, "id": f"{number:016x}", "uri": f"/nowhere/{name}", "format": "csv"},
                    **{"bytes": 40 * 8 * columns, "modified": "2024-01-01T00:00:00Z", "rows": 40, "columns": columns},
                    **{"units": 1, "complete": True},
                }
            )
            kinds = ["day", "name", "code", *(dice.choice(["category", "number"]) for _ in range(columns - 3))]
            chosen = [dice.choice(shelves[kind]) for kind in kinds]
            names = [
                kind if at < 3 else f"{dice.choice(WORDS)}_{dice.choice(WORDS)}_{at}" for at, kind in enumerate(kinds)
            ]
            for at, (column, each) in enumerate(zip(names, chosen, strict=True)):
                key = cut.set_key(name, column)
                place = {"table": name, "column": column, "position": at}
                shards["columns"].add({**each.record, **place})
                shards["sketches"].add({**place, "distinct": b"", "signature": each.signature, "key": key})
                buffer.add(key, each.hashes)
            _add_key(
                shards, name, chosen[1], {names[at]: chosen[at] for at in range(3, columns) if kinds[at] == "number"}
            )
            if buffer.full or number == tables - 1:
                for bucket, payload in buffer.take():
                    found.setdefault(bucket, []).append(payload)
        raw, pairs = write_raw(writer.staging, found, cut)
        files = [file for shard in shards.values() if (file := shard.close())]
        sketches = [file for file in files if file.kind == "sketches"]
        inverted = build_inverted(local_exchange, writer.staging, raw, sketches, cut, pairs)
        sizes = {"tables": tables, "columns": tables * columns, "rows": 40 * tables, "bytes": 320 * tables * columns}
        summary = {**sizes, "seconds": 0.0, "join": inverted.figures}
        writer.publish([*files, *inverted.files], version="benchmark", sources=["/nowhere"], summary=summary)


def _add_key(shards: dict[str, ShardWriter], table: str, key: Kept, numbers: dict[str, Kept]) -> None:
    """The sketch of a table's names with five of its numbers."""
    some = dict(list(numbers.items())[:5])
    rows = np.arange(key.rows.size, dtype=np.int32)
    sketch = KeySketch(512)
    sketch.update(rows, key.rows, {name: (rows, each.numbers) for name, each in some.items()}, 0)
    for states in sketch.values.values():
        states.cells = states.numbers = int(rows.size)
    positions = {name: at for at, name in enumerate(some)}
    made = records(table, ("name",), BuiltSketch(sketch, [True], [(1 << 30, 0)]), positions)
    if made is not None:
        shards["keys"].add(made[0])
        for pair in made[1]:
            shards["pairs"].add(pair)


# --- users ------------------------------------------------------------------------------------------------------------


class Asker:
    """What a user asks for, at random."""

    def __init__(self, names: list[str], keyed: dict[str, tuple[str, str]], seed: int) -> None:
        self._dice = random.Random(seed)
        self._names, self._keyed = names, keyed

    def one(self) -> tuple[str, str]:
        dice = self._dice
        kind = dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        name = dice.choice(self._names)
        some = dice.choice(list(self._keyed))
        key, target = self._keyed[some]
        value = f"{dice.choice(WORDS)} {dice.choice(WORDS)} {dice.randrange(60)}-{dice.randrange(300)}"
        paths = {
            "home": "/",
            "next page": f"/?page={dice.randrange(1, max(2, len(self._names) // 50))}",
            "filtered": f"/?like={dice.choice(WORDS)}&folder=part{dice.randrange(40):02d}",
            "find a name": f"/find?q={dice.choice(WORDS)}_{dice.choice(WORDS)}",
            "find a value": f"/find?q={quote(value)}",
            "table": f"/table?name={quote(name)}",
            "joins of a table": f"/table/joins?name={quote(name)}",
            "tables like it": f"/table/like?name={quote(name)}",
            "REST tables": f"/api/v1/tables?like={dice.choice(WORDS)}&sort=rows",
            "REST profile": f"/api/v1/table?name={quote(name)}",
            "REST joinable": f"/api/v1/joinable?query=table:{quote(name)}&on=day",
            "REST correlated": f"/api/v1/correlated?query=table:{quote(some)}&key={quote(key)}&target={quote(target)}",
        }
        return kind, paths[kind]


class Connection:
    """A connection that stays open."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._cookie = ""

    async def get(self, path: str) -> int:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        cookie = f"Cookie: {self._cookie}\r\n" if self._cookie else ""
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n{cookie}X-Part: 1\r\n\r\n".encode())
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        assert length is not None, head
        await reader.readexactly(int(length[1]))
        given = re.search(r"set-cookie: ([^;]+)", head, re.IGNORECASE)
        self._cookie = given[1] if given else self._cookie
        return int(head.split(" ", 2)[1])

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


async def user(
    asker: Asker, connection: Connection, think: float, end: float, seen: list[tuple[str, float]], errors: list[str]
) -> None:
    dice = random.Random(id(asker))
    await asyncio.sleep(dice.random() * max(think, 0.1))
    while time.monotonic() < end:
        kind, path = asker.one()
        began = time.perf_counter()
        try:
            status = await asyncio.wait_for(connection.get(path), 60)
            if status not in (200, 202):
                errors.append(f"{status} {path}")
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            errors.append(f"{type(error).__name__} {path}")
            connection.close()
        seen.append((kind, time.perf_counter() - began))
        if think:
            await asyncio.sleep(dice.expovariate(1 / think))
    connection.close()


async def watch(pid: int, end: float, memory: list[tuple[float, int]]) -> None:
    began = time.monotonic()
    while time.monotonic() < end:
        memory.append((time.monotonic() - began, sum(_resident(process.pid) for process in tree(pid))))
        await asyncio.sleep(5)


def _resident(pid: int) -> int:
    """What a process holds for itself: pages of mapped files are the system's, and come and go."""
    try:
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


# --- the run ----------------------------------------------------------------------------------------------------------


def started(index: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "lakescope", "serve", str(index), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r":(\d+)/", process.stderr.readline())
    assert found is not None
    return process, int(found[1])


def warm(port: int) -> float:
    began = time.monotonic()
    while time.monotonic() - began < 600:
        try:
            if ask(port, "/healthz")["ready"]:
                return time.monotonic() - began
        except OSError:
            pass
        time.sleep(0.2)
    raise RuntimeError("the server never gets warm")


def ask(port: int, path: str) -> Json:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=120) as response:
        return dict(json.load(response))


def names_of(port: int) -> Iterator[str]:
    path: str | None = "/api/v1/tables?limit=1000"
    while path:
        body = ask(port, path)
        yield from (each["table"] for each in body["data"])
        path = body["meta"].get("next")


def keyed_of(port: int, names: list[str]) -> dict[str, tuple[str, str]]:
    """A key and a number of some tables."""
    found = {}
    for name in random.Random(3).sample(names, min(200, len(names))):
        columns = ask(port, f"/api/v1/table?name={quote(name)}")["data"]["columns"]
        target = next((each["name"] for each in columns if each["type"] == "decimal"), None)
        if target and any(each["name"] == "name" for each in columns):
            found[name] = ("name", target)
    return found


async def load(
    port: int, pid: int, names: list[str], keyed: dict[str, tuple[str, str]], options: argparse.Namespace
) -> Json:
    end = time.monotonic() + 60 * options.minutes
    seen: list[tuple[str, float]] = []
    errors: list[str] = []
    memory: list[tuple[float, int]] = []
    cpu = tree_cpu(pid)
    users = [
        user(Asker(names, keyed, seed), Connection("127.0.0.1", port), options.think, end, seen, errors)
        for seed in range(options.users)
    ]
    await asyncio.gather(*users, watch(pid, end, memory))
    return {"seen": seen, "errors": errors, "memory": memory, "cpu": tree_cpu(pid) - cpu}


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] * 1e3


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--index", type=Path, help="an index to serve; by default one is made")
    parser.add_argument("--tables", type=int, default=10_000, help="tables of the lake that is made")
    parser.add_argument("--columns", type=int, default=30, help="columns of each")
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--think", type=float, default=1.0, help="seconds between two requests of a user, on average")
    options = parser.parse_args()
    index = options.index
    if index is None:
        index = data_folder("serve", keep=options.keep) / "lake.idx"
        say(f"writing an index of {options.tables:,} tables of {options.columns} columns")
        write_index(index, options.tables, options.columns)
    server, port = started(index)
    try:
        seconds = warm(port)
        say(f"warm after {seconds:.1f} s")
        names = list(names_of(port))
        keyed = keyed_of(port, names)
        lake = ask(port, "/api/v1/lake")["data"]
        found = asyncio.run(load(port, server.pid, names, keyed, options))
    finally:
        server.terminate()
        server.communicate(timeout=30)
    report(options, lake, found, seconds)


def report(options: argparse.Namespace, lake: Json, found: Json, warm_seconds: float) -> None:
    import fastapi
    import uvicorn

    from lakescope import __version__

    every = [seconds for _, seconds in found["seen"]]
    rows = []
    for kind in WEIGHTS:
        times = [seconds for each, seconds in found["seen"] if each == kind]
        if times:
            rows.append([kind, len(times), *(f"{quantile(times, share):.1f}" for share in (0.5, 0.95, 0.99))])
    rows.append(["all", len(every), *(f"{quantile(every, share):.1f}" for share in (0.5, 0.95, 0.99))])
    sizes = [size / 1e6 for _, size in found["memory"]]
    fifth = max(1, len(sizes) // 5)
    early, late = statistics.median(sizes[fifth : 2 * fifth] or sizes), statistics.median(sizes[-fifth:])
    median = quantile(every, 0.5)
    throughput = len(every) / (60 * options.minutes)
    text = (
        f"{lake['tables']:,} tables, {lake['columns']:,} columns; {options.users} users, {options.think:g} s between "
        f"two requests of one, {options.minutes:g} minutes: {len(every):,} requests, {throughput:.1f} a second, "
        f"{len(found['errors'])} errors; {found['cpu'] / len(every) * 1e3:.1f} CPU-ms a request. Milliseconds:"
    )
    memory = (
        f"Memory of the server and its two workers: {early:,.0f} MB early, {late:,.0f} MB late, "
        f"{max(sizes):,.0f} MB at most."
    )
    for error in found["errors"][:10]:
        say(f"error: {error}")
    body = {
        "lake": {name: lake[name] for name in ("tables", "columns", "rows")},
        "users": options.users, "think": options.think, "minutes": options.minutes, "warm_seconds": warm_seconds,
        "requests": len(every), "errors": found["errors"][:50], "cpu_seconds": found["cpu"],
        "milliseconds": {row[0]: row[1:] for row in rows}, "memory_mb": [round(size, 1) for size in sizes],
    }  # fmt: skip
    aims = [
        at_most("median of all requests", 100, median, " ms"),
        at_most("errors", 0, float(len(found["errors"]))),
        Aim("memory flat: late over early", "<= 1.1", f"{late / early:.3f}", late <= 1.1 * early),
        Aim("columns of the lake", ">= 300,000", f"{lake['columns']:,}", lake["columns"] >= 300_000),
    ]
    versions = {"lakescope": __version__, "fastapi": fastapi.__version__, "uvicorn": uvicorn.__version__}
    sections = [text, table(["request", "times", "median", "95%", "99%"], rows), memory]
    publish("serve_load", "The server under load", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
