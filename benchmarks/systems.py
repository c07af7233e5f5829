"""The systems compared, each run by the harness in a process of its own: ``systems.py SYSTEM JOB.json REPORT.json``.

A job names ``files`` (or ``root``, a folder), ``warm_up`` files that are read before time counts, and options. The
report tells CPU-seconds of ``start`` (imports, session, warm-up) and of the ``work``, files that could not be read,
rows found per file. Only the standard library is imported at the top: ydata-profiling lives in an environment without
ours.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Json, become_subreaper, python_workers, tree, tree_cpu

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _version(*packages: str) -> Json:
    from importlib.metadata import version

    return {package: version(package) for package in packages}


def _per_file(job: Json, read: Callable[[str], int]) -> Json:
    """Read every file by itself; a file that raises is a failure, not the end."""
    for file in job["warm_up"]:
        read(file)
    start, began = tree_cpu(), time.monotonic()
    rows: dict[str, int] = {}
    failures: dict[str, str] = {}
    for file in job["files"]:
        try:
            rows[file] = read(file)
        except BaseException as error:  # Rust panics are no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            failures[file] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return {
        "start": start,
        "work": tree_cpu() - start,
        "wall": time.monotonic() - began,
        "rows": rows,
        "failures": failures,
    }


def polars(job: Json) -> Json:
    """The floor: nulls, exact distinct, min, max, mean of every column, as polars types it. One thread."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as pl
    from polars import selectors

    def read(file: str) -> int:
        every = pl.all()
        wanted = [
            pl.len().alias(".rows"),
            every.null_count().name.suffix(".nulls"),
            every.n_unique().name.suffix(".distinct"),
            every.min().name.suffix(".min"),
            every.max().name.suffix(".max"),
            selectors.numeric().mean().name.suffix(".mean"),
        ]
        if job.get("polars") == "streaming":
            found = pl.scan_csv(file).select(wanted).collect(engine="streaming")
        else:
            found = pl.read_csv(file).select(wanted)
        return int(found[".rows"][0])

    return _per_file(job, read) | {"versions": _version("polars")}


def duckdb(job: Json) -> Json:
    """DuckDB's SUMMARIZE of each file, one connection, one thread."""
    import duckdb as db

    connection = db.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET enable_progress_bar = false")

    def read(file: str) -> int:
        quoted = file.replace("'", "''")
        found = connection.execute(f"SUMMARIZE FROM read_csv('{quoted}')")
        at = [column[0] for column in found.description].index("count")
        return int(found.fetchall()[0][at])

    return _per_file(job, read) | {"versions": _version("duckdb")}


def spark(job: Json) -> Json:
    """One spark.read.csv and approx_count_distinct of all columns per table, in one session, without type inference."""
    with _session(job) as session:
        from pyspark.sql import functions as f

        def read(file: str) -> int:
            frame = session.read.csv(file, header=True, multiLine=bool(job.get("multiline")))
            named = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])  # names with dots would need quoting
            found = named.agg(f.count(f.lit(1)), *[f.approx_count_distinct(name) for name in named.columns]).collect()
            return int(found[0][0])

        return _per_file(job, read) | {"versions": _version("pyspark"), "workers": _workers()}


def ydata(job: Json) -> Json:
    """ydata-profiling's minimal report up to its numbers; writing its HTML is not counted."""
    warnings.filterwarnings("ignore")
    import pandas as pd

    module, name = _ydata()

    def read(file: str) -> int:
        frame = pd.read_csv(file, low_memory=False)
        module.ProfileReport(frame, minimal=True, progress_bar=False).get_description()
        return len(frame)

    return _per_file(job, read) | {"versions": _version(name, "pandas")}


def _ydata() -> tuple[Any, str]:
    for module, name in (("ydata_profiling", "ydata-profiling"), ("data_profiling", "fg-data-profiling")):
        with contextlib.suppress(ImportError):
            return importlib.import_module(module), name
    raise ImportError("no ydata-profiling here")


def lakescope(job: Json) -> Json:
    """Our whole scan of ``root`` or ``files`` in a warm session: discovery, plan, Spark job, index on disk.

    Profiles only, as the others make them; with ``joins`` once more with the inverted index, which nobody else makes.
    With ``fewer``, a smaller lake is indexed first: the difference of the two is the marginal cost of a table.
    """
    import lakescope as ours

    scratch = Path(job["scratch"])
    with _session(job) as session:
        if job["warm_up"]:
            for joins in (True, False):
                ours.index(job["warm_up"], scratch / "warm-up.idx", spark=session, joins=joins)
        report: Json = {"start": tree_cpu(), "versions": _version("lakescope", "pyspark", "numba", "numpy", "pyarrow")}
        if job.get("fewer"):
            before = tree_cpu()
            ours.index(job["fewer"], scratch / "fewer.idx", spark=session, joins=False)
            report["fewer"] = tree_cpu() - before
        before, began = tree_cpu(), time.monotonic()
        given = job.get("root") or job["files"]
        lake = ours.index(given, scratch / "lake.idx", spark=session, joins=False)
        report |= {"work": tree_cpu() - before, "wall": time.monotonic() - began, "workers": _workers()}
        if job.get("joins"):
            before = tree_cpu()
            whole = ours.index(given, scratch / "joins.idx", spark=session)
            report |= {"joins": tree_cpu() - before, "joins_bytes": whole.info()["index_bytes"]}
    tables = lake.tables()
    report["rows"] = dict(zip(tables["uri"].to_pylist(), tables["rows"].to_pylist(), strict=True))
    errors = [problem for problem in lake.problems().to_pylist() if problem["severity"] == "error"]
    report["failures"] = {problem["table"]: f"{problem['code']}: {problem['detail']}"[:200] for problem in errors}
    report["index_bytes"] = lake.info()["index_bytes"]
    return report


def lakescope_joins(job: Json) -> Json:
    """Our whole build of ``root`` with the inverted index, in a warm session."""
    import lakescope as ours

    scratch = Path(job["scratch"])
    with _session(job) as session:
        ours.index(job["warm_up"], scratch / "warm-up.idx", spark=session)
        report: Json = {"start": tree_cpu(), "versions": _version("lakescope", "pyspark", "numba", "numpy", "pyarrow")}
        before, began = tree_cpu(), time.monotonic()
        lake = ours.index(job["root"], scratch / "lake.idx", spark=session)
        report |= {"work": tree_cpu() - before, "wall": time.monotonic() - began, "workers": _workers()}
    return {**report, "join": lake._index.manifest.summary["join"], "index_bytes": lake.info()["index_bytes"]}


def lakescope_cold(job: Json) -> Json:
    """The same from nothing, as the command line does it: session start, no warm-up."""
    return lakescope({**job, "warm_up": [], "fewer": None})


def lakescope_kept(job: Json) -> Json:
    """A command on an index that stays (``index``, ``update``, ``compact``), from nothing, as on the command line."""
    import lakescope as ours

    began = time.monotonic()
    if job["command"] == "index":
        lake = ours.index(job["root"], job["index"])
    else:
        lake = ours.open(job["index"])
        getattr(lake, job["command"])()
    versions = _version("lakescope", "pyspark", "numba", "numpy", "pyarrow")
    summary = lake._index.manifest.summary
    return {"wall": time.monotonic() - began, "versions": versions, "summary": summary}


def lakescope_scale(job: Json) -> Json:
    """Our build of ``root`` in a warm session without and with the inverted index: what each costs, and its bytes."""
    import lakescope as ours

    scratch = Path(job["scratch"])
    versions = _version("lakescope", "pyspark", "numba", "numpy", "pyarrow")
    report: Json = {"versions": versions, "cpu": {}, "began": {}, "ended": {}}
    with _session(job) as session:
        ours.index(job["warm_up"], scratch / "warm-up.idx", spark=session)
        for name, joins in (("profiles", False), ("joins", True)):
            before, report["began"][name] = tree_cpu(), 1e3 * time.time()
            lake = ours.index(job["root"], scratch / f"{name}.idx", spark=session, joins=joins)
            report["cpu"][name], report["ended"][name] = tree_cpu() - before, 1e3 * time.time()
        report["workers"] = _workers()
    manifest = lake._index.manifest
    sizes: Json = {}
    for file in manifest.files:
        sizes[file.kind] = sizes.get(file.kind, 0) + file.size
    summary = {name: manifest.summary[name] for name in ("tables", "columns", "rows", "bytes")}
    figures = {name: manifest.summary["join"][name] for name in ("tokens", "pairs", "groups", "postings")}
    return {**report, **summary, **figures, "sizes": sizes}


def prime(job: Json) -> Json:
    """Have every kernel compiled and cached: tables read whole, and cut into pieces that are merged."""
    from lakescope.build.build import build

    with _session(job) as session:
        for name, size in (("whole", 1 << 26), ("pieces", 1 << 15)):
            build(job["warm_up"], Path(job["scratch"], name), spark=session, unit_bytes=size)
    return {}


@contextlib.contextmanager
def _session(job: Json) -> Iterator[SparkSession]:
    """The local session that ``lakescope index`` starts; with ``jvm`` "stock", one with Spark's own defaults."""
    from lakescope.build.session import spark_session

    if job.get("jvm") != "stock":
        with spark_session(master="local[*]") as session:
            yield session
        return
    from pyspark.sql import SparkSession as Session

    from lakescope.build.java import find_java

    os.environ |= {"JAVA_HOME": str(find_java()), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    stock = Session.builder.master("local[*]").config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
    session = stock.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _workers() -> dict[int, float]:
    """CPU-seconds of Spark's Python workers, while they live."""
    return {process.pid: process.own for process in python_workers(tree(os.getpid()))}


SYSTEMS: dict[str, Callable[[Json], Json]] = {
    "lakescope": lakescope,
    "lakescope-cold": lakescope_cold,
    "lakescope-joins": lakescope_joins,
    "lakescope-kept": lakescope_kept,
    "lakescope-scale": lakescope_scale,
    "prime": prime,
    "polars": polars,
    "duckdb": duckdb,
    "spark": spark,
    "ydata": ydata,
}


def main() -> None:
    if sys.argv[2] == "--check":
        _ydata()
        return
    become_subreaper()
    system, job, report = sys.argv[1:]
    Path(report).write_text(json.dumps(SYSTEMS[system](json.loads(Path(job).read_text()))))


if __name__ == "__main__":
    main()
