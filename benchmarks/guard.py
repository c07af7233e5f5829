"""What does it cost that files may be cut off under a reader, and that threads may share a lake?

A question compares the lengths of the files that it reads where they are mapped, before and after; small files are read
whole instead. Measured are the beginning and end of a question alone, by the number of mapped files; and, in processes
that take turns, opening an index with its first question, the median of later ones and the memory of the process, with
small files read and with all of them mapped. Then so many threads ask one lake, and one thread as much as all of them.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
import timeit
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import Json, Spread, alternated, arguments, data_folder, publish, table
from lakescope import __version__
from lakescope.lake import Lake
from lakescope.store import mapped
from serve_load import write_index

_WAYS = {"read": mapped.SMALL, "mapped": 0}
_ASKED, _THREADS = 300, 8


def asked(index: Path, small: int) -> Json:
    """Seconds of questions and bytes of memory, in this process."""
    mapped.SMALL = small
    began = time.perf_counter()
    lake = Lake.open(index)
    columns = lake.columns(fields=["table", "column", "type"]).slice(0, 1_000).to_pylist()
    query, on = columns[0]["table"], columns[0]["column"]
    lake.joinable(query, on=on, k=5)
    first = time.perf_counter() - began
    lake.warm()
    times = [_timed(lake, query, on) for _ in range(_ASKED)]
    found: Json = {"first": first, "median": statistics.median(times), "begins": begins(lake)}
    found["used"] = len(lake._index._files.mapped._used)
    for name, count in (("one", 1), ("threads", _THREADS)):
        began = time.perf_counter()
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda _: _timed(lake, query, on), range(_ASKED)))
        found[name] = _ASKED / (time.perf_counter() - began)
    status = Path("/proc/self/status").read_text()
    found["bytes"] = 1024 * int(re.findall(r"RssAnon:\s+(\d+)", status)[0])
    return found


def begins(lake: Lake) -> float:
    """Seconds that a question takes which asks nothing: the least of some rounds, since much else may run."""

    def nothing() -> None:
        with lake._now()._index.question():
            pass

    return min(timeit.repeat(nothing, number=1_000, repeat=9)) / 1_000


def _timed(lake: Lake, query: str, on: str) -> float:
    began = time.perf_counter()
    lake.joinable(query, on=on, k=5)
    return time.perf_counter() - began


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--index", type=Path, help="an index to ask; by default one is made")
    parser.add_argument("--tables", type=int, default=1_500, help="tables of 30 columns of the lake that is made")
    parser.add_argument("--way", choices=_WAYS, help="only measure this one, in this process")
    options = parser.parse_args()
    if options.way:
        print(json.dumps(asked(options.index, _WAYS[options.way])))
        return
    index = options.index
    if index is None:
        index = data_folder("guard", keep=options.keep) / "lake.idx"
        write_index(index, options.tables, 30)
    found: dict[str, list[Json]] = {way: [] for way in _WAYS}
    for round_ in range(options.repeats):
        for way in alternated(list(_WAYS), round_):
            command = [sys.executable, __file__, "--index", str(index), "--way", way]
            found[way].append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    units = {"begins": 1e6, "first": 1e3, "median": 1e6, "one": 1, "threads": 1, "used": 1, "bytes": 1e-6}
    spreads = {
        way: {name: Spread.of([each[name] * scale for each in runs]) for name, scale in units.items()}
        for way, runs in found.items()
    }
    head = ["small files", "begin and end, µs", "open and first question, ms", "question, µs", "a second, one thread"]
    head += [f"a second, {_THREADS} threads", "mapped files used", "memory of its own, MB"]
    lake = Lake.open(index).info()
    text = f"{lake['tables']:,} tables, {lake['columns']:,} columns, {lake['index_bytes'] / 1e6:.0f} MB of index."
    rows = [[way, *of.values()] for way, of in spreads.items()]
    title = "What looking after mapped files costs"
    publish("guard", title, {"ways": spreads}, [text, table(head, rows)], [], {"lakescope": __version__}, options.out)


if __name__ == "__main__":
    main()
