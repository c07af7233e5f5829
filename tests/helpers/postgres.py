"""A real PostgreSQL for tests: started when a test first asks for it, ended and removed when the session ends.

Its programs come with the package pgserver, or are those of the system.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from helpers.needs import left_out

USER, PASSWORD = "anna", "pa55-w0rd/of?the@lake"


def programs() -> Path | None:
    """The folder of ``initdb`` and ``pg_ctl``, newest first."""
    package = find_spec("pgserver")
    places = [Path(package.origin).parent / "pginstall" / "bin"] if package is not None and package.origin else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: -float(place.parent.name))
    if found := shutil.which("initdb"):
        places.append(Path(found).parent)
    return next((place for place in places if (place / "initdb").exists()), None)


@dataclass(frozen=True)
class Server:
    """A running server with a user who has a password, and his connection for making tables."""

    port: int
    connection: Any
    process: int = 0
    user: str = USER
    password: str = PASSWORD

    @property
    def uri(self) -> str:
        """Without the password."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/lake"

    def run(self, *statements: str) -> None:
        from adbc_driver_manager import AdbcStatement

        for text in statements:
            with AdbcStatement(self.connection) as statement:
                statement.set_sql_query(text)
                statement.execute_update()

    def copy(self, query: str, path: Path) -> None:
        """A query as a CSV file that the server writes."""
        place = programs()
        assert place is not None
        copy = f"COPY ({query}) TO STDOUT (FORMAT csv, HEADER)"
        environment = {**os.environ, "PGPASSWORD": self.password}
        with path.open("wb") as out:
            subprocess.run([place / "psql", self.uri, "-qc", copy], check=True, stdout=out, env=environment)

    def database(self, name: str) -> Server:
        """The same server, connected to another database."""
        return Server(self.port, _connection(self.port, name))


def _connection(port: int, name: str) -> Any:
    from adbc_driver_manager import AdbcConnection
    from adbc_driver_postgresql import connect

    return AdbcConnection(connect(f"host=127.0.0.1 port={port} user={USER} password='{PASSWORD}' dbname={name}"))


def _reachable(place: Path, folder: Path, who: dict[str, Any]) -> Path:
    """The programs, or a copy of their package if the user who runs them may not go where they lie."""
    try:
        subprocess.run([place / "initdb", "--version"], check=True, capture_output=True, cwd=folder, **who)
    except (PermissionError, FileNotFoundError):
        package = place.parent.parent
        for path in (package, package.with_name(f"{package.name}.libs")):
            if path.is_dir():
                shutil.copytree(path, folder / path.name)
        return folder / place.relative_to(package.parent)
    return place


@contextmanager
def running(place: Path) -> Iterator[Server]:
    """A server with an empty database ``lake``, whose programs are in a folder."""
    with tempfile.TemporaryDirectory(prefix="lakescope-pg-") as folder:
        data = Path(folder, "data")
        # A server refuses to run as root.
        user = pwd.getpwnam("nobody") if os.getuid() == 0 else None
        who: dict[str, Any] = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        Path(folder, "password").write_text(PASSWORD)
        if user is not None:
            for path in (Path(folder), Path(folder, "password")):
                os.chown(path, user.pw_uid, user.pw_gid)
        place = _reachable(place, Path(folder), who)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        quiet: Any = {"cwd": folder, "check": True, "capture_output": True, "timeout": 120, **who}
        login = ["-U", USER, "--auth=scram-sha-256", f"--pwfile={folder}/password"]
        subprocess.run([place / "initdb", "-D", data, *login, "-E", "UTF8", "--locale=C", "--no-sync"], **quiet)
        options = f"-p {port} -h 127.0.0.1 -k '' -F"
        # pg_ctl hands its streams on to the server, which keeps them open.
        start = [place / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(start, cwd=folder, check=True, timeout=120, **silent, **who)
        try:
            first = Server(port, _connection(port, "postgres"))
            first.run("CREATE DATABASE lake")
            first.connection.close()
            yield Server(port, _connection(port, "lake"), int((data / "postmaster.pid").read_text().split()[0]))
        finally:
            subprocess.run([place / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop"], **quiet)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    pytest.importorskip("adbc_driver_postgresql")
    place = programs()
    if place is None:
        left_out("there is no PostgreSQL: pip install pgserver, or apt install postgresql")
    with running(place) as server:
        yield server


@pytest.fixture
def postgres(postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server with an empty database, and its password where libpq looks for it."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    yield postgres_server
    postgres_server.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
