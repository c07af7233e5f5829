"""Getting a Spark session: the caller's, a cluster's, a Spark Connect server's, or a quick local one."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lakescope.build.java import find_java
from lakescope.errors import BadRequest, BuildFailed
from lakescope.processes import safe_environment, search_path
from lakescope.sources.io.redact import scrub, without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: For short local runs: the first compiler tier and the serial collector halve the JVM's start-up work.
_LOCAL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+IgnoreUnrecognizedVMOptions"
_LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / f"lakescope-warehouse-{os.getuid()}"),
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.driver.extraJavaOptions": _LOCAL_JVM,
}


@contextmanager
def spark_session(spark: SparkSession | None = None, master: str | None = None) -> Iterator[SparkSession]:
    """A session to build with. One that was passed in or is active stays open; one that is made here is stopped."""
    if spark is not None and master is not None:
        raise BadRequest("give either spark= or master=, not both", hint="spark= already knows its master")
    if spark is not None:
        yield spark
        return
    active = _active_session()
    if active is not None:
        if master is not None:
            raise BadRequest(
                f"there is a Spark session already, so master={without_secrets(master)!r} would be ignored",
                hint="pass the session as spark=, or stop it first",
            )
        yield active
        return
    log = _log_path()
    session = _start(master or "local[*]", log)
    try:
        yield session
    finally:
        session.stop()
        log.unlink(missing_ok=True)


def _active_session() -> SparkSession | None:
    """A session that somebody else has started in this process."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _log_path() -> Path:
    return Path(tempfile.gettempdir()) / f"lakescope-spark-{os.getuid()}-{os.getpid()}.log"


def is_connect(session: SparkSession) -> bool:
    """Whether a session talks to a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def inheriting(session: SparkSession, work: Callable[[], None]) -> Callable[[], None]:
    """Work for another thread, which takes over the job group, the pool and the tags of this one."""
    if is_connect(session):
        return work
    from pyspark.util import inheritable_thread_target

    return cast(Callable[[], None], inheritable_thread_target(session)(work))


def _start(master: str, log: Path) -> SparkSession:
    """Start or connect a session of our own."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("lakescope")
    builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    for key, value in _configuration(master).items():
        builder = builder.config(key, value)
    with _quiet_jvm(log), _environment(_variables(master)):
        try:
            return builder.getOrCreate()
        except Exception as error:
            raise BuildFailed(
                f"could not start Spark at {without_secrets(master)}: {scrub(_first_line(error) + _tail(log))}",
                hint="check the master's address, that Java 17 or newer runs, and that nothing blocks loopback",
            ) from error


def _configuration(master: str) -> dict[str, str]:
    """Settings of a session of our own; a Spark Connect server has been started with its own."""
    if master.startswith("sc://"):
        return {}
    if not master.startswith("local"):
        # Executors work in folders of their own, where numba finds no settings, but files that were sent lie there.
        return {"spark.executorEnv.PYTHONSAFEPATH": "1"}
    # The JVM may be older than this session, and its environment with it.
    safe = {f"spark.executorEnv.{name}": value for name, value in safe_environment().items()}
    return {**_LOCAL_CONF, **safe}


def _variables(master: str) -> dict[str, str]:
    """The environment in which a session of our own is started: that of the JVM, and of Python workers below it."""
    # Workers must run this interpreter: another one would lack pyarrow, or be another version.
    interpreter = {name: os.environ.get(name, sys.executable) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    if master.startswith("sc://"):
        return interpreter
    made = {**interpreter, **safe_environment(), "JAVA_HOME": str(find_java())}
    made["SPARK_HOME"] = os.environ.get("SPARK_HOME") or str(_spark_home())
    if path := os.environ.get("PYTHONPATH"):
        made["PYTHONPATH"] = search_path(path.split(os.pathsep))
    if master.startswith("local"):
        made["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    return made


def _spark_home() -> Path:
    """Where Spark is installed. PySpark would look above the working directory first, and run what it finds there."""
    import pyspark

    package = Path(pyspark.__file__).parent
    places = (package / "spark-distribution", package, package.parent.parent)
    return next((place for place in places if (place / "bin" / "spark-submit").is_file()), package)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables that processes started inside inherit; this process gets its own back."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _quiet_jvm(log: Path) -> Iterator[None]:
    """Let a JVM that is started inside inherit a log file as its standard error: its chatter is not the user's.

    The log lies in the temporary directory, is shown when Spark does not start and removed when the session ends.
    """
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(target, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


def _tail(log: Path) -> str:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()][-5:]
    return "\n  " + "\n  ".join(lines) if lines else ""


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
