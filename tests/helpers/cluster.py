"""A real Spark cluster and a real Spark Connect server on loopback, for tests that must not trust ``local[*]``.

Everything is a process of its own: one master, two workers with one core each, their executors, and the Python
workers of these. The executors' Python has the dependencies but no lakescope, neither installed nor in place: the
package reaches them the way it reaches any cluster, with the build (``lakescope.build.shipping``).

Test modules name this module in ``pytest_plugins`` to share one cluster and one server in a test run.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lakescope.engines.joins.inverted import InvertedIndex
from lakescope.lake import Lake

_HOST = "127.0.0.1"
#: Small and quick to start: the first compiler tier, the serial collector.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+IgnoreUnrecognizedVMOptions -XX:-UsePerfData"
_START_SECONDS = 90
_STOP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Place:
    """Where one can build: the address to give as ``master``, and the environment of a driver that goes there."""

    master: str
    environment: dict[str, str]
    #: ``XDG_CACHE_HOME`` of the executors: where the package is unpacked and its kernels are compiled.
    cache: Path
    #: Log files of the processes, by their role.
    logs: Path
    #: Processes that were started, by their role; the parents of the executors among them.
    processes: dict[str, int]

    def executors(self) -> list[int]:
        """The JVMs of the executors that run now."""
        mine = set(self.processes.values())
        return [pid for pid, parent, command in _running() if parent in mine and "ExecutorBackend" in command]


def run_driver(
    function: Callable[..., Any], *arguments: object, environment: dict[str, str] | None = None, seconds: float = 240
) -> Any:
    """Call a function in a process of its own.

    It travels as source: what it needs it imports, what it returns is JSON.
    """
    process = start_driver(function, *arguments, environment=environment)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        end(process)
    if process.returncode:
        raise AssertionError(f"the driver ended with {process.returncode}\n{out[-2000:]}\n{err[-6000:]}")
    return json.loads(out.splitlines()[-1])


def start_driver(
    function: Callable[..., Any], *arguments: object, environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start what ``run_driver`` runs, as the leader of a process group of its own."""
    code = f"{_source(function)}\nprint(json.dumps({function.__name__}(*json.loads(sys.argv[1]))))"
    return subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(arguments, default=str)],
        env=environment or driver_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


class Driver:
    """A process with one Spark session in which functions are called one after the other, as source; see
    ``run_driver``.

    The session is the first argument of each.
    """

    def __init__(self, place: Place) -> None:
        command = [sys.executable, "-c", _source(_serve) + "\n_serve(sys.argv[1])", place.master]
        self._log = place.logs / "driver.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=place.environment,
                start_new_session=True,
            )

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function and wait for its answer."""
        self.send(function, *arguments)
        return self.answer()

    def send(self, function: Callable[..., Any], *arguments: object) -> None:
        """Call a function without waiting."""
        request = {"code": _source(function), "name": function.__name__, "arguments": arguments}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request, default=str).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """The answer to the function that was sent."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        reply = json.loads(line) if line else {"error": self._log.read_text("utf-8", "replace")[-6000:]}
        if "error" in reply:
            raise AssertionError(reply["error"])
        return reply["answer"]

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        end(self._process)


def _serve(master: str) -> None:
    """What a driver process does; it ends when its standard input does."""
    import json
    import os
    import sys
    import traceback

    from lakescope.build.session import spark_session

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with spark_session(master=master) as spark:
        for line in sys.stdin:
            request = json.loads(line)
            names: dict[str, Any] = {"__name__": "__main__"}
            try:
                exec(request["code"], names)
                reply = {"answer": names[request["name"]](spark, *request["arguments"])}
            except BaseException:
                reply = {"error": traceback.format_exc()}
            print(json.dumps(reply), file=answers, flush=True)


def _source(function: Callable[..., Any]) -> str:
    """A function as source that stands alone."""
    source = textwrap.dedent(inspect.getsource(function))
    return f"from __future__ import annotations\nimport json, sys\n{source}"


def driver_environment(**more: str) -> dict[str, str]:
    """The environment of this process without what would point Spark elsewhere."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return {**kept, **more}


def contents(lake: Lake) -> dict[str, Any]:
    """Everything an index says that does not depend on when and where it was made."""
    columns = lake.columns().to_pylist(maps_as_pydicts="strict")
    sketches = {(c["table"], c["column"]): lake._index.sketch(c["table"], c["column"]) for c in columns}
    problems = sorted(lake.problems().to_pylist(), key=lambda problem: json.dumps(problem, sort_keys=True))
    summary = {key: value for key, value in lake._index.manifest.summary.items() if key not in ("seconds", "stages")}
    tables = lake.tables().to_pylist()
    inverted = {part: _part(lake, part) for part in ("tokens", "postings", "sets", "forest", "grams")}
    found = {"tables": tables, "columns": columns, "sketches": sketches, "problems": problems, "summary": summary}
    correlations = {kind: _records(lake, kind) for kind in ("keys", "pairs")}
    return found | inverted | correlations


def _records(lake: Lake, kind: str) -> list[dict[str, Any]]:
    """Correlation sketches in order, whatever files they lie in; sums to nine digits."""
    rows = [row for batch in lake._index.batches(kind) for row in batch.records.to_pylist()]
    for row in rows:
        if "values" in row:
            # Missing numbers as None: NaN does not equal itself.
            numbers = np.frombuffer(row["values"], np.float64).tolist()
            row["values"] = [None if x != x else float(f"{x:.9e}") for x in numbers]
    return sorted(rows, key=lambda row: (row["table"], row["key"], row.get("column", "")))


def _part(lake: Lake, part: str) -> dict[str, str]:
    """Digests of a part of the inverted index, whatever files it lies in."""
    (only,) = InvertedIndex(lake._index).parts
    files = only.segment.part(part)
    arrays = {
        "tokens": ("hashes", "groups"),
        "postings": ("sets", "widths"),
        "sets": ("groups", "sizes"),
        "forest": ("values", "sets"),
        "grams": ("hashes", "sets"),
    }
    digests = {}
    for name in arrays[part]:
        digests[name] = hashlib.sha256(b"".join(file[name].tobytes() for file in files)).hexdigest()
    if "starts" in files[0]:
        lengths = b"".join((file["starts"][1:] - file["starts"][:-1]).tobytes() for file in files)
        digests["starts"] = hashlib.sha256(lengths).hexdigest()
    return digests


def bare_python(folder: Path) -> Path:
    """An interpreter like this one, with every package but lakescope: what a cluster's image has."""
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for site in (Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))):
        for entry in site.iterdir():
            link = packages / entry.name
            if "lakescope" not in entry.name and entry.suffix != ".pth" and not link.is_symlink():
                link.symlink_to(entry)
    python = folder / "python"
    # -S: no site-packages, no .pth files that would lead to this checkout.
    path = f"PYTHONPATH={shlex.quote(str(packages))}${{PYTHONPATH:+:$PYTHONPATH}}"
    python.write_text(f'#!/bin/sh\n{path} exec {shlex.quote(sys.executable)} -S "$@"\n')
    python.chmod(0o700)
    check = "import importlib.util as u, numba, pyarrow, xxhash; raise SystemExit(u.find_spec('lakescope') is not None)"
    subprocess.run([python, "-c", check], env=_without_path(driver_environment()), cwd=folder, check=True)
    return python


@contextmanager
def standalone_cluster(folder: Path, *, workers: int = 2) -> Iterator[Place]:
    """A standalone master and its workers, one core each."""
    environment, cache = _environment(folder)
    port, web = _free_port(), _free_port()
    master = f"spark://{_HOST}:{port}"
    with ExitStack() as stack:
        start = _Starter(stack, folder, environment)
        head = ["--host", _HOST, "--port", str(port), "--webui-port", str(web)]
        start("master", ["spark-class", "org.apache.spark.deploy.master.Master", *head])
        start.until("master", lambda log: "I have been elected leader" in log)
        for number in range(workers):
            place = ["--host", _HOST, "--webui-port", "0", "--work-dir", str(folder / f"work-{number}")]
            size = ["--cores", "1", "--memory", "600m"]
            start(f"worker-{number}", ["spark-class", "org.apache.spark.deploy.worker.Worker", *place, *size, master])
        start.until("master", lambda log: log.count("Registering worker") >= workers)
        yield Place(master, environment, cache, folder / "logs", start.processes)


@contextmanager
def connect_server(folder: Path, *, master: str = "local[1]") -> Iterator[Place]:
    """A Spark Connect server."""
    environment, cache = _environment(folder)
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.address": _HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    with ExitStack() as stack:
        start = _Starter(stack, folder, environment)
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        start("connect", ["spark-submit", "--class", server, "--master", master, *conf])
        start.until("connect", lambda _: _listens(port))
        # The client is a process without Java.
        foreign = ("SPARK_", "PYSPARK_", "JAVA_")
        client = {key: value for key, value in environment.items() if not key.startswith(foreign)}
        yield Place(f"sc://{_HOST}:{port}", client, cache, folder / "logs", start.processes)


def _environment(folder: Path) -> tuple[dict[str, str], Path]:
    """The environment of a cluster's processes and of drivers that use it."""
    from lakescope.build.java import find_java

    conf, scratch = folder / "conf", folder / "scratch"
    conf.mkdir(parents=True)
    scratch.mkdir()
    java = f"{_JVM} -Djava.io.tmpdir={scratch}"
    (conf / "spark-defaults.conf").write_text(
        f"spark.driver.extraJavaOptions {java}\n"
        f"spark.executor.extraJavaOptions {java}\n"
        "spark.driver.memory 512m\nspark.executor.memory 512m\nspark.executor.cores 1\n"
        "spark.ui.enabled false\nspark.ui.showConsoleProgress false\nspark.sql.shuffle.partitions 4\n"
    )
    cache = folder.parent / "cache"
    environment = driver_environment(
        JAVA_HOME=str(find_java()),
        PYSPARK_PYTHON=str(bare_python(folder)),
        PYSPARK_DRIVER_PYTHON=sys.executable,
        SPARK_CONF_DIR=str(conf),
        SPARK_DAEMON_JAVA_OPTS=java,
        SPARK_DAEMON_MEMORY="512m",
        SPARK_LOCAL_DIRS=str(scratch),
        SPARK_LOCAL_IP=_HOST,
        TMPDIR=str(scratch),
        XDG_CACHE_HOME=str(cache),
    )
    return environment, cache


def _without_path(environment: dict[str, str]) -> dict[str, str]:
    """An environment that leads no Python to this checkout."""
    return {key: value for key, value in environment.items() if key != "PYTHONPATH"}


class _Starter:
    """Starts processes, each with its log, and ends them and their children when the stack unwinds."""

    def __init__(self, stack: ExitStack, folder: Path, environment: dict[str, str]) -> None:
        self.processes: dict[str, int] = {}
        self._stack = stack
        self._folder = folder
        self._environment = environment
        self._logs = folder / "logs"
        self._logs.mkdir()
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def __call__(self, role: str, command: list[str]) -> None:
        import pyspark

        program = Path(pyspark.__file__).parent / "bin" / command[0]
        with (self._logs / f"{role}.log").open("wb") as log:
            process = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_without_path(self._environment),
                cwd=self._folder,
                start_new_session=True,
            )
        self._stack.callback(end, process)
        self._started[role] = process
        self.processes[role] = process.pid

    def until(self, role: str, ready: Callable[[str], bool]) -> None:
        """Wait until a process is ready, judging by its log."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            text = (self._logs / f"{role}.log").read_text("utf-8", "replace")
            if ready(text):
                return
            dead = [name for name, process in self._started.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                logs = [(self._logs / f"{name}.log").read_text("utf-8", "replace")[-3000:] for name in dead or [role]]
                raise AssertionError(f"{dead or role} did not start\n" + "\n".join(logs))
            time.sleep(0.1)


def end(process: subprocess.Popen[Any]) -> None:
    """End a process and its children: they share a process group, which is theirs alone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)


def _running() -> list[tuple[int, int, str]]:
    """Every process: its id, its parent's, its command."""
    listed = subprocess.run(
        ["ps", "-axww", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [(int(row[0]), int(row[1]), row[2] if len(row) > 2 else "") for row in rows]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((_HOST, port)) == 0


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where cluster and server live; they share a cache, as the machines of one user do."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def cluster(spark_folder: Path) -> Iterator[Place]:
    with standalone_cluster(spark_folder / "standalone") as place:
        yield place


@pytest.fixture(scope="session")
def cluster_driver(cluster: Place) -> Iterator[Driver]:
    """One application on the cluster, with its two executors, for all tests."""
    driver = Driver(cluster)
    yield driver
    driver.close()


@pytest.fixture(scope="session")
def connect(spark_folder: Path) -> Iterator[Place]:
    with connect_server(spark_folder / "connect") as place:
        yield place
