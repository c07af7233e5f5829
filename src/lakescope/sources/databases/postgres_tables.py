"""Finding the tables of a PostgreSQL database, and what tells a later state of each from this one.

A database keeps no time of change. What it counts for its own upkeep serves: rows inserted, updated and deleted since
the counters began, and the number of the file a table lies in, which truncating and rewriting change. Both are read
before the snapshot is taken, so a change that is not in the data is never in the version either. Where nothing is
counted (views, tables that lie elsewhere, replicas, ``track_counts = off``) every look is another version.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import xxhash

from lakescope.errors import BadRequest, NotFound, SourceError
from lakescope.sources.databases import snapshots
from lakescope.sources.databases.postgres import connected, explained
from lakescope.sources.databases.postgres_uri import Address, table_name, written
from lakescope.sources.io import files
from lakescope.sources.io.redact import scrub
from lakescope.sources.model import Problem
from lakescope.sources.source_table import SourceTable

#: Seconds for what is asked of the catalog.
_CATALOG_SECONDS = 300.0
#: The first version that finds a range of pages without reading the others.
_RANGES_SINCE = 140_000
#: Kinds of relations: tables, materialised views, and what is read as one piece.
_PAGED, _VIEW = ("r", "m"), "v"
_ABOUT = """
    SELECT current_setting('server_version_num')::int8 AS version,
      current_setting('track_counts')::bool AND NOT pg_is_in_recovery() AS counted,
      coalesce(pg_stat_get_db_stat_reset_time(d.oid)::text, '') AS began
    FROM pg_database d WHERE d.datname = current_database()
"""
# Asking for the size of a table waits for whoever changes its definition: then the last known size has to do.
_TABLES = """
    WITH tables AS (
      SELECT c.oid, n.nspname, c.relname, c.relkind,
        has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS readable
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
        AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
    ), leaves AS (
      SELECT t.oid AS root, p.relid::oid AS leaf FROM tables t, LATERAL pg_partition_tree(t.oid) p
      WHERE t.relkind = 'p' AND p.isleaf AND p.relid <> t.oid
      UNION ALL SELECT oid, oid FROM tables WHERE relkind <> 'p'
    ), busy AS (
      SELECT DISTINCT relation FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted
    )
    SELECT t.nspname::text AS schema, t.relname::text AS name, t.relkind::text AS kind, t.readable,
      n.nspname::text AS leaf_schema, c.relname::text AS leaf_name, c.relkind::text AS leaf_kind,
      c.oid::int8 AS leaf,
      has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS leaf_readable,
      t.relkind = 'p' AND (row_security_active(t.oid) OR coalesce(row_security_active(c.oid), false)) AS guarded,
      CASE WHEN b.relation IS NULL THEN pg_relation_size(c.oid) / current_setting('block_size')::int8
        ELSE greatest(c.relpages, 0)::int8 END AS pages,
      CASE WHEN b.relation IS NULL THEN pg_table_size(c.oid)
        ELSE greatest(c.relpages, 0)::int8 * current_setting('block_size')::int8 END AS size,
      m.amname::text AS method, pg_relation_filenode(c.oid)::int8 AS file,
      pg_stat_get_tuples_inserted(c.oid) AS inserted,
      pg_stat_get_tuples_updated(c.oid) AS updated, pg_stat_get_tuples_deleted(c.oid) AS deleted,
      (SELECT md5(string_agg(concat_ws(' ', a.attnum, a.attname, a.atttypid, a.atttypmod), ' ' ORDER BY a.attnum))
        FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
    FROM tables t LEFT JOIN leaves l ON l.root = t.oid LEFT JOIN pg_class c ON c.oid = l.leaf
      LEFT JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN busy b ON b.relation = c.oid
      LEFT JOIN pg_am m ON m.oid = c.relam
    ORDER BY 1, 2, 5, 6
"""


@dataclass(slots=True)
class Database:
    """What lies at an address: tables, and what is to be told."""

    label: str
    tables: list[SourceTable] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def look(location: str) -> Database:
    """The tables at an address: all of a database, those of some schemas, or one."""
    try:
        given, address = Address.as_written(location), Address.of(location)
    except BadRequest as error:
        return Database("postgresql", problems=[Problem("postgresql", "error", "not-found", error.message)])
    result = Database(files.readable(address.name))
    try:
        with connected(address, _CATALOG_SECONDS) as connection:
            about = connection.rows(_ABOUT)[0]
            records = _chosen(connection.rows(_TABLES), address)
        snapshot = _held_snapshot(address, result) if snapshots.wanted() else None
    except (NotFound, SourceError) as error:
        result.problems.append(Problem(result.label, "error", "not-found", f"{error.message}: {error.hint}"))
        return result
    except Exception as error:
        # A database that cannot be reached is as good as none: an update must not take its tables for removed.
        told = explained(files.display(location), error)
        result.problems.append(Problem(result.label, "error", "not-found", told.message))
        return result
    for (schema, name), group in groupby(records, key=itemgetter("schema", "name")):
        leaves = list(group)
        shown = f"{result.label}::{files.readable(table_name(schema, name))}"
        if not leaves[0]["readable"]:
            detail = "it cannot be read: this user has no right to SELECT from it"
            result.problems.append(Problem(shown, "error", "unreadable", detail))
            continue
        found = _source_table(shown, address.at(schema, name), leaves, about, snapshot)
        result.tables.append(replace(found, uri=str(given.at(schema, name))))
    return result


def _chosen(records: list[dict[str, Any]], address: Address) -> list[dict[str, Any]]:
    """The tables that an address means."""
    if address.table is not None:
        chosen = [each for each in records if (each["schema"], each["name"]) == address.table]
        if not chosen:
            known = {table_name(each["schema"], each["name"]) for each in records}
            raise NotFound.among("table", table_name(*address.table), sorted(known))
        return chosen
    if "schema" not in address.options:
        return records
    schemas = [name.strip() for name in address.options["schema"].split(",")]
    known = {each["schema"] for each in records}
    for schema in schemas:
        if schema not in known:
            raise NotFound.among("schema with tables", schema, sorted(known))
    return [each for each in records if each["schema"] in schemas]


def _held_snapshot(address: Address, result: Database) -> str | None:
    """A snapshot of the database that stays until the build ends."""
    connection = connected(address, _CATALOG_SECONDS)
    snapshots.hold(connection)
    connection.begin()
    try:
        return str(connection.rows("SELECT pg_export_snapshot() AS snapshot")[0]["snapshot"])
    except Exception as error:
        detail = f"the server exports no snapshot, so pieces of a table may be of different moments: {error}"
        result.problems.append(Problem(result.label, "warning", "no-snapshot", scrub(detail)))
        return None


def _source_table(
    shown: str, address: Address, leaves: list[dict[str, Any]], about: dict[str, Any], snapshot: str | None
) -> SourceTable:
    """A table, with the pieces of the file system of the server that it consists of."""
    options = {"snapshot": snapshot} if snapshot else {}
    schema, name, kind = leaves[0]["schema"], leaves[0]["name"], leaves[0]["kind"]
    parts: list[tuple[str, int]] = []
    # Policies of a partitioned table are not asked by who reads its partitions: those are read through it.
    if all(leaf["leaf_kind"] in _PAGED and leaf["leaf_readable"] and not leaf["guarded"] for leaf in leaves):
        for leaf in leaves:
            place = written(leaf["leaf_schema"], leaf["leaf_name"])
            divisible = about["version"] >= _RANGES_SINCE and leaf["method"] == "heap"
            pages = str(leaf["pages"] or 0) if divisible else "0"
            parts.append((str(address.at(schema, name, leaf=place, pages=pages, **options)), int(leaf["size"] or 0)))
    else:
        way = {"read": "view" if kind == _VIEW else "whole"}
        size = sum(int(leaf["size"] or 0) for leaf in leaves)
        parts.append((str(address.at(schema, name, **way, **options)), size))
    version = _version(leaves, about)
    return SourceTable(
        shown, str(address), "postgresql", None, sum(size for _, size in parts), 0.0, tuple(parts), version
    )


def _version(leaves: list[dict[str, Any]], about: dict[str, Any]) -> str:
    """What tells a later state of a table from this one, as far as the server counts changes."""
    if not about["counted"] or any(leaf["leaf_kind"] not in _PAGED for leaf in leaves):
        return uuid.uuid4().hex
    digest = xxhash.xxh64(about["began"].encode())
    for leaf in leaves:
        state = [leaf[part] for part in ("leaf", "file", "inserted", "updated", "deleted", "columns")]
        digest.update(repr(state).encode())
    return str(digest.hexdigest())
