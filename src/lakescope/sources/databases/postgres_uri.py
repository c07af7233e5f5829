"""Addresses of PostgreSQL: ``postgresql://user@host:5432/database::schema.table?sslmode=require``.

As libpq writes them, and behind ``::`` one table. An address is taken apart here and never handed to a library whole,
because libpq quotes what it does not understand, and that may be the password. What is left after parsing holds none:
it goes to :mod:`lakescope.sources.databases.secrets`, and an address can be shown and stored as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, quote, unquote, urlencode

from lakescope.errors import BadRequest
from lakescope.sources.databases import secrets

_SCHEME = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_HOSTS = re.compile(r"(?:[^\s/?#@\[\]:,]*|\[[0-9A-Fa-f:.%]+\])(?::\d+)?")
#: Schema whose name is left out, since it is the usual one.
USUAL_SCHEMA = "public"
#: Options of libpq that are no secrets, then ours.
_OPTIONS = frozenset(
    "host hostaddr port user dbname service servicefile passfile connect_timeout application_name keepalives "
    "keepalives_idle keepalives_interval keepalives_count tcp_user_timeout sslmode sslnegotiation sslcert sslkey "
    "sslrootcert sslcrl sslcrldir sslsni gssencmode krbsrvname target_session_attrs load_balance_hosts channel_binding "
    "require_auth schema statement_timeout snapshot leaf pages read".split()
)
_OURS = frozenset(["schema", "statement_timeout", "snapshot", "leaf", "pages", "read"])
#: What libpq reads from the environment, and a worker's may be another one. A service says all of it.
_SERVICE = "PGSERVICE"
_ENVIRONMENT = {
    **{"PGUSER": "user", "PGHOST": "host", "PGHOSTADDR": "hostaddr", "PGPORT": "port", "PGDATABASE": "dbname"},
    **{"PGSSLMODE": "sslmode", "PGSSLROOTCERT": "sslrootcert", "PGREQUIREAUTH": "require_auth"},
    "PGCHANNELBINDING": "channel_binding",
}


def is_postgres(location: str) -> bool:
    """Whether a location is an address of PostgreSQL."""
    return _SCHEME.match(location) is not None


def shown(location: str) -> str:
    """An address without its password; nothing but its scheme if it cannot be understood."""
    try:
        return str(_parsed(location)[0])
    except BadRequest:
        return "postgresql://..."


@dataclass(frozen=True, slots=True)
class Address:
    """A database, one of its schemas, or one of its tables, without a password.

    ``options`` are those of libpq and, among them, ours: ``schema``, ``statement_timeout`` and what the units of a
    table need to know.
    """

    user: str
    hosts: str
    database: str
    table: tuple[str, str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, location: str) -> Address:
        """Parse an address and complete it from the environment; its password is remembered."""
        address, password = _parsed(location)
        address = address.completed(os.environ)
        if password:
            secrets.remember(address.place, password)
        return address

    @classmethod
    def as_written(cls, location: str) -> Address:
        """An address as it was written: what is stored does not hang on who looks."""
        return _parsed(location)[0]

    def completed(self, environment: Mapping[str, str]) -> Address:
        """With what the environment says about who and where, as libpq would complete it."""
        options = dict(self.options)
        service = options.get("service") or environment.get(_SERVICE)
        if service:
            return replace(self, options={**options, "service": service})
        hosts = [_host_and_port(host) for host in self.hosts.split(",")]
        said = {
            **{"user": self.user, "dbname": self.database},
            **dict.fromkeys(["host", "hostaddr"], any(host for host, _ in hosts)),
            "port": any(port for _, port in hosts),
        }
        for variable, name in _ENVIRONMENT.items():
            if environment.get(variable) and not said.get(name):
                options.setdefault(name, environment[variable])
        user, database = options.pop("user", self.user), options.pop("dbname", self.database)
        return replace(self, user=user, database=database, options=options)

    @property
    def place(self) -> str:
        """What a password belongs to: this user at this database."""
        libpq = {name: value for name, value in self.options.items() if name in ("host", "hostaddr", "port", "service")}
        return str(Address(self.user, self.hosts, self.database, None, libpq))

    @property
    def name(self) -> str:
        """What the database is called in a lake."""
        return self.database or self.options.get("service") or self.user or "postgresql"

    def conninfo(self, **more: str) -> str:
        """Keywords and values for libpq, with the password if one is known."""
        hosts = [_host_and_port(host) for host in self.hosts.split(",")]
        words = {name: value for name, value in self.options.items() if name not in _OURS}
        if any(host for host, _ in hosts):
            words["host"] = ",".join(host for host, _ in hosts)
        if any(port for _, port in hosts):
            words["port"] = ",".join(port for _, port in hosts)
        words |= {"user": self.user, "dbname": self.database, "password": secrets.of(self.place) or "", **more}
        return " ".join(f"{name}={_escaped(value)}" for name, value in words.items() if value)

    def at(self, schema: str, name: str, **options: str) -> Address:
        """A table of this database; a snapshot and the like are options of its pieces."""
        kept = {key: value for key, value in self.options.items() if key not in ("schema", *options)}
        return replace(self, table=(schema, name), options={**kept, **options})

    def __str__(self) -> str:
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        table = f"::{_table_text(*self.table)}" if self.table else ""
        query = f"?{urlencode(sorted(self.options.items()))}" if self.options else ""
        return f"postgresql://{user}{self.hosts}/{quote(self.database, safe='')}{table}{query}"


def table_name(schema: str, name: str) -> str:
    """What a table is called in a lake behind the name of its database."""
    return name if schema == USUAL_SCHEMA else f"{schema}.{name}"


def pair(text: str) -> tuple[str, str]:
    """Schema and name of a table as an address writes them."""
    schema, dot, name = text.partition(".")
    return (unquote(schema), unquote(name)) if dot else (USUAL_SCHEMA, unquote(text))


def written(schema: str, name: str) -> str:
    """Schema and name of a table as :func:`pair` reads them."""
    return f"{_part(schema)}.{_part(name)}"


def _table_text(schema: str, name: str) -> str:
    return _part(name) if schema == USUAL_SCHEMA else written(schema, name)


def _part(name: str) -> str:
    return quote(name, safe="", errors="surrogateescape").replace(".", "%2E")


def _parsed(location: str) -> tuple[Address, str]:
    """The address and the password it was given with. What is refused is not quoted: it may be part of a password."""
    match = _SCHEME.match(location)
    if match is None:
        raise BadRequest("not an address of PostgreSQL", hint="write postgresql://user@host/database")
    place, _, query = location[match.end() :].partition("?")
    # The last @: a password that holds one itself should be percent-encoded, but must not become part of the host.
    who, at, where = place.rpartition("@")
    user, _, password = who.partition(":") if at else ("", "", "")
    hosts, _, path = where.partition("/")
    database, _, table = path.partition("::")
    options = dict(parse_qsl(query, keep_blank_values=True))
    password = options.pop("password", "") or unquote(password)
    if not all(_HOSTS.fullmatch(host) for host in hosts.split(",")) or "/" in database or options.keys() - _OPTIONS:
        hint = "percent-encode what is special in names and passwords (/ is %2F, @ is %40, ? is %3F)"
        raise BadRequest("an address of PostgreSQL has a host, database or option that is not understood", hint=hint)
    address = Address(unquote(user), hosts, unquote(database), pair(table) if table else None, options)
    return address, password


def _host_and_port(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\[.*\]|[^:]*)(?::(\d+))?", text)
    assert match is not None
    return unquote(match[1].strip("[]")), match[2] or ""


def _escaped(value: str) -> str:
    """A value of a connection string."""
    plain = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"
