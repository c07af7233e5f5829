"""How long it takes from `lakescope serve` to the first page.

A server is started, and its home page is asked for as soon as it says where it is; beside it an application of FastAPI
that has one page and nothing to show, on the same server. Both in turns, on a lake that is made for it or one that is
given.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import fastapi
import uvicorn

from common import Json, Spread, alternated, arguments, at_most, data_folder, publish, ratios, say, table, tree_cpu
from lakescope import __version__
from lakescope.lake import Lake
from serve_load import write_index

_BARE = """
import fastapi, socket, sys, uvicorn
app = fastapi.FastAPI()
app.get("/")(lambda: "hello")
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
print(f"at http://127.0.0.1:{listening.getsockname()[1]}/", file=sys.stderr)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
"""


def first_page(command: list[str]) -> tuple[float, float]:
    """Seconds until the first page is here, and CPU-seconds until then."""
    began = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        address = re.search(r"http://\S+", process.stderr.readline())
        assert address is not None
        with urllib.request.urlopen(address[0], timeout=120) as response:
            response.read()
        return time.monotonic() - began, tree_cpu(process.pid)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(repeats=9)
    parser.add_argument("--index", type=Path, help="an index to serve; by default one is made")
    parser.add_argument("--tables", type=int, default=10_000, help="tables of the lake that is made")
    parser.add_argument("--columns", type=int, default=30, help="columns of each")
    options = parser.parse_args()
    index = options.index
    if index is None:
        index = data_folder("serve-start", keep=options.keep) / "lake.idx"
        write_index(index, options.tables, options.columns)
    lake = Lake.open(index).info()
    commands = {
        "lakescope serve": [sys.executable, "-m", "lakescope", "serve", str(index), "--port", "0"],
        "bare FastAPI": [sys.executable, "-c", _BARE],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    # A round before those that count: it reads from disk what the others find in memory.
    for round_ in range(-1, options.repeats):
        for name in alternated(list(commands), round_):
            wall, used = first_page(commands[name])
            if round_ >= 0:
                seconds[name].append(wall)
                cpu[name].append(used)
        say(f"round {round_ + 1} of {options.repeats}")
    rows = [[name, Spread.of(seconds[name]), Spread.of(cpu[name])] for name in commands]
    slower = ratios(*seconds.values())
    body: Json = {
        "lake": {name: lake[name] for name in ("tables", "columns", "rows")},
        "seconds": {name: Spread.of(each) for name, each in seconds.items()},
        "cpu_seconds": {name: Spread.of(each) for name, each in cpu.items()},
        "of_bare": slower,
    }
    text = f"{lake['tables']:,} tables, {lake['columns']:,} columns; {options.repeats} starts of each, in turns. "
    text += "CPU-seconds are those until the page was here, of what is loaded meanwhile, too."
    of_bare = f"Seconds of ours over those of a bare application: {slower}."
    aims = [at_most("from `serve` to the first page", 2.0, Spread.of(seconds["lakescope serve"]), " s")]
    versions = {"lakescope": __version__, "fastapi": fastapi.__version__, "uvicorn": uvicorn.__version__}
    sections = [text, table(["server", "seconds", "CPU-seconds"], rows), of_bare]
    publish("serve_start", "From `serve` to the first page", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
