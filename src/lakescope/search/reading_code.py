"""How a table is read, as code of other systems: one place for joins, correlations and learned joins.

A file is looked at again with the detector that the scan uses, so that code names its delimiter, quotes, header and
compression. What a system has no reader for, or reads otherwise than the index did, is loaded through
``lakescope.read``, and the code says so: code that fails, or joins other rows, is worth nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from lakescope.errors import LakescopeError
from lakescope.sources.databases.postgres_uri import Address, table_name
from lakescope.sources.discover import discover
from lakescope.sources.formats import csv_file
from lakescope.sources.io import files
from lakescope.sources.io.encoding import is_utf8
from lakescope.sources.io.files import display, local_path
from lakescope.sources.io.locations import MARK, catalogue_uri, is_file_uri, readings
from lakescope.sources.source_table import SourceTable
from lakescope.untrusted import parsed

#: What a table in memory goes by.
FRAME = "query"
#: Files up to this size are read to see whether all their rows are as readers expect; of others the head tells.
_WHOLE = 16 * 1024 * 1024
#: What is told of files that every reader understands.
_HARMLESS = ("preamble", "no-header", "renamed-columns", "nulls")
#: Compressed text that each system unpacks, by the end of a file's name.
_UNPACKED = {"duckdb": ("gzip", "zstd"), "polars": ("gzip", "zstd"), "spark": ("gzip", "bz2"), "python": ("gzip",)}
_ENDINGS = {"gzip": (".gz", ".gzip"), "zstd": (".zst",), "bz2": (".bz2",)}
#: Records within a file that name columns with a point, a path of fields.
_NESTED = ("json", "jsonl")
_NAMED = {"arrow": "Arrow", "orc": "ORC", "sqlite": "SQLite", "duckdb": "DuckDB's own", "excel": "Excel"}


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: where its table lies, in which format, and the column.

    ``kinds`` are those its values have, ``source_type`` what the file says it is, ``patterns`` how values are written,
    as far as known; ``empty`` says that some stand for nothing, ``wide`` that some have letters beyond ASCII; ``odd``
    that the index found rows or cells which other readers would read otherwise.
    """

    location: str
    format: str
    column: str
    kinds: tuple[str, ...] = ()
    source_type: str = ""
    patterns: tuple[str, ...] = ()
    empty: bool = False
    wide: bool = False
    odd: bool | None = None

    @property
    def part(self) -> str:
        """Sheet or table within the file, if the location names one."""
        return self._parts[1]

    @property
    def path(self) -> str:
        return self._parts[0]

    @property
    def _parts(self) -> tuple[str, str]:
        if self.format == "postgresql":
            address = Address.of(self.location)
            return str(replace(address, table=None)), table_name(*(address.table or ("", "")))
        path, _, part = self.location.partition("::")
        return path, part

    @property
    def database_table(self) -> tuple[str, str]:
        """Schema and name of a table of PostgreSQL."""
        return Address.of(self.location).table or ("", "")


@dataclass(frozen=True, slots=True)
class Reader:
    """How a table is read: ``code`` is a relation of SQL (``sql``), or an expression of Python.

    ``imports`` are lines it needs before, ``note`` says why it is read like this, if that is not plain.
    """

    code: str
    imports: tuple[str, ...] = ()
    note: str = ""
    sql: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file of delimited text is cut into cells, and why other systems cannot (``trouble``)."""

    names: tuple[str, ...]
    delimiter: str
    quote: str
    escape: str
    #: Lines before the first row of data.
    lines: int
    #: Whether the file begins with these names, so that any reader finds them.
    plain: bool
    encoding: str
    compression: str | None
    trouble: str = ""
    #: Whether lines end in more than one way.
    mixed: bool = False
    #: How many cells the last line of the header has, if there is one.
    width: int = 0


def side_of(query: object, column: str) -> Side:
    """A query from outside the lake: a path, or a frame that goes by the name of ``query``."""
    if isinstance(query, str) or hasattr(query, "__fspath__"):
        for place, part in readings(str(query)):
            found, _ = discover([place])
            if found:
                location = catalogue_uri(place) if local_path(place) is not None else display(place)
                return Side(f"{location}{MARK}{part}" if part else location, found[0].format, column)
    return Side(FRAME, FRAME, column)


def reader_of(side: Side, dialect: str) -> Reader:
    """How a dialect reads the table of one side."""
    if side.format == FRAME:
        return _frame(dialect)
    if dialect == "sql":
        return Reader(table_identifier(side), sql=True)
    if side.format == "postgresql":
        return _postgres(side, dialect)
    if side.format in ("delta", "iceberg"):
        return _versioned(side, dialect)
    found = None if is_file_uri(side.location) else _found(side.path)
    if found is None:
        return _by_lakescope(side, dialect, "")
    if any(is_file_uri(catalogue_uri(uri)) for uri, _ in found.parts):
        return _by_lakescope(side, dialect, "names of its files are not UTF-8")
    if any(found.options(uri) for uri, _ in found.parts):
        return _by_lakescope(side, dialect, "the names of its directories are columns")
    if side.format == "csv":
        return _csv(side, found, dialect)
    if side.format in _NESTED:
        return _json(side, found, dialect)
    if side.format == "parquet":
        return _parquet(side, found, dialect)
    if side.format == "orc":
        return _orc(side, dialect, found)
    if side.format == "arrow":
        return _arrow(side, dialect, found)
    kind = _NAMED.get(side.format, side.format)
    return _by_lakescope(side, dialect, f"a file of {kind} format is read as the index read it")


def text_reader(path: str, names: Sequence[str], dialect: str) -> Reader:
    """How a dialect reads all columns of a file as text, to the letter as lakescope reads them."""
    side = side_of(path, "")
    if dialect == "sql" or side.format in ("csv", FRAME) or (side.format == "parquet" and _is_text(side, names)):
        return reader_of(side, dialect)
    return _by_lakescope(side, dialect, "its cells are text as the plan knows them")


def _is_text(side: Side, names: Sequence[str]) -> bool:
    """Whether a file of Parquet has flat columns of text or whole numbers, which every system writes alike."""
    import pyarrow as pa

    found = _found(side.path)
    schema = None if found is None else _schema_of(found)
    plain = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    return (
        schema is not None and schema.names == [*names] and all(any(is_(each.type) for is_ in plain) for each in schema)
    )


def identifier(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def table_identifier(side: Side) -> str:
    """A name for a table in SQL: that of its file, or of its part."""
    return identifier(side.part or PurePosixPath(side.path).name.split(".")[0] or FRAME)


def path_of(side: Side) -> tuple[str, ...]:
    """The column as a path of fields: more than one where it lies within others (``user.id`` of JSON)."""
    names = side.column.split(".")
    if side.format in _NESTED and len(names) > 1 and all(names):
        return tuple(names)
    return (side.column,)


def _frame(dialect: str) -> Reader:
    code = {"polars": f"pl.DataFrame({FRAME})", "spark": f"spark.createDataFrame({FRAME})", "python": FRAME}
    return Reader(code.get(dialect) or identifier(FRAME), sql=dialect in ("sql", "duckdb"))


def _by_lakescope(side: Side, dialect: str, why: str) -> Reader:
    """A table that is read as the index read it: all cells as text, columns flat."""
    read = f"lakescope.read({side.location!r})"
    forms = {"polars": f"pl.from_arrow({read})", "spark": f"spark.createDataFrame({read})"}
    code = forms.get(dialect, f"{read}.to_pylist()" if dialect == "python" else read)
    name = PurePosixPath(side.path).name
    note = f"{name if name.isprintable() else ascii(name)} is read by lakescope" + (f": {why}." if why else ".")
    return Reader(code, ("import lakescope",), note)


@lru_cache(maxsize=256)
def _looked_up(path: str, stamp: tuple[object, ...]) -> SourceTable | None:
    try:
        found, _ = discover([path])
    except (LakescopeError, OSError):
        return None
    return found[0] if len(found) == 1 else None


def _found(path: str) -> SourceTable | None:
    return _looked_up(path, _stamp(path))


def _stamp(path: str) -> tuple[object, ...]:
    """What changes when a file does, so that what is known of it may be kept."""
    try:
        entry = files.find(path)
    except (LakescopeError, OSError):
        return ()
    return () if entry is None else (entry.size, entry.modified)


# --- delimited text ---------------------------------------------------------------------------------------------------


def layout_of(side: Side, found: SourceTable) -> Layout:
    """How a file of delimited text is cut into cells, detected as the scan does."""
    return _layout(found, side.odd, _stamp(side.path))


@lru_cache(maxsize=256)
def _layout(found: SourceTable, odd: bool | None, stamp: tuple[object, ...]) -> Layout:
    uri = found.parts[0][0]
    try:
        dialect, head, bom, converted = csv_file.first_of(uri, found.compression)
    except (LakescopeError, OSError, EOFError) as error:
        return Layout((), ",", '"', "", 0, False, "utf-8", None, str(error))
    before = head[bom:][: dialect.data_start]
    encoding, trouble = _encoding(head, dialect.fallback)
    names = tuple(dialect.names)
    if converted:
        trouble = f"it is written in {converted}"
    elif len(found.parts) > 1:
        trouble = "it consists of several files"
    elif dialect.newline != 10:
        trouble = "its lines end in carriage returns"
    elif odd or (odd is None and _told(found)):
        trouble = "some of its rows or cells are not like the others"
    quote, escape = chr(dialect.quote), chr(dialect.escape) if dialect.escape else ""
    delimiter = chr(dialect.delimiter)
    plain = dialect.preamble == 0 and dialect.header_rows == 1
    header = _header(before, encoding, delimiter, quote)
    plain = plain and header == names
    lines = before.count(b"\n") + (not before.endswith(b"\n") and bool(before))
    ends = head.count(b"\n"), head.count(b"\r\n"), head.count(b"\r")
    mixed = 0 < ends[1] < ends[0] or ends[2] > ends[1]
    width = len(header) if dialect.header_rows == 1 else 0
    return Layout(names, delimiter, quote, escape, lines, plain, encoding, found.compression, trouble, mixed, width)


def _header(before: bytes, encoding: str, delimiter: str, quote: str) -> tuple[str, ...]:
    """The cells of the last line before the data, as any reader finds them; none where readers differ about quotes."""
    text = before.decode(encoding, "replace").rstrip("\r\n").rpartition("\n")[2]
    if quote * 2 in text:
        return ()
    return tuple(next(csv.reader([text], delimiter=delimiter, quotechar=quote), []))


def _encoding(head: bytes, fallback: str) -> tuple[str, str]:
    """The one encoding of a file, and why there is none."""
    lines = head.splitlines()[:-1] or head.splitlines()
    foreign = [line for line in lines if not is_utf8(line)]
    if not foreign:
        return "utf-8", ""
    if any(not line.isascii() for line in lines if is_utf8(line)):
        return "utf-8", "it mixes encodings"
    try:
        b"\n".join(foreign).decode(fallback)
    except UnicodeDecodeError:
        return "utf-8", "it mixes encodings"
    return fallback, ""


@lru_cache(maxsize=256)
def _told(found: SourceTable) -> bool:
    """Whether reading a file, if that does not take long, tells of anything that readers do not agree about."""
    from lakescope import sources

    if found.size > _WHOLE:
        return False
    told: list[str] = []
    try:
        for unit in sources.plan(found, 1 << 62):
            for _ in sources.read(unit, lambda problem: told.append(problem.code)):
                pass
    except (LakescopeError, OSError, EOFError):
        return True
    return any(code not in (*_HARMLESS, "encoding") for code in told)


def _csv(side: Side, found: SourceTable, dialect: str) -> Reader:
    layout = layout_of(side, found)
    trouble = layout.trouble or _untold(layout, found, dialect)
    if trouble:
        return _by_lakescope(side, dialect, trouble)
    return {"duckdb": _csv_duckdb, "polars": _csv_polars, "spark": _csv_spark, "python": _csv_python}[dialect](
        side.path, layout
    )


def _untold(layout: Layout, found: SourceTable, dialect: str) -> str:
    """Why a system cannot read a file that others can, if so."""
    if layout.compression:
        ending = files.path_of(found.parts[0][0]).endswith(_ENDINGS.get(layout.compression, ("?",)))
        if layout.compression not in _UNPACKED[dialect] or not ending:
            return f"it is compressed by {layout.compression}"
    if layout.encoding != "utf-8" and (dialect in ("duckdb", "spark") or layout.compression):
        return f"it is written in {layout.encoding}"
    if layout.mixed and dialect in ("duckdb", "spark"):
        return "its lines end in more than one way"
    if layout.width not in (0, len(layout.names)) and dialect in ("duckdb", "spark"):
        return "its header has more or fewer cells than its rows"
    if layout.escape and dialect == "polars":
        return "its quotes are escaped by a backslash"
    if not layout.plain and dialect == "spark" and layout.lines > 1:
        return f"{layout.lines} lines stand before its rows"
    if len({name.lower() for name in layout.names}) < len(layout.names) and dialect in ("duckdb", "spark"):
        return "its columns differ by case only"
    return ""


def _csv_duckdb(path: str, layout: Layout) -> Reader:
    options = [
        f"delim = {_mark(layout.delimiter)}",
        f"quote = {literal(layout.quote)}",
        f"escape = {literal(layout.escape or layout.quote)}",
    ]
    if layout.plain:
        options += ["header = true", "all_varchar = true"]
    else:
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in layout.names)
        options += ["header = false", f"skip = {layout.lines}", "auto_detect = false", f"columns = {{{columns}}}"]
    return Reader(f"read_csv({literal(path)}, {', '.join(options)})", sql=True)


def _mark(character: str) -> str:
    return r"e'\t'" if character == "\t" else literal(character)


def _csv_polars(path: str, layout: Layout) -> Reader:
    options = [] if layout.delimiter == "," else [f"separator={layout.delimiter!r}"]
    options += [] if layout.quote == '"' else [f"quote_char={layout.quote!r}"]
    options += [] if layout.encoding == "utf-8" else [f"encoding={layout.encoding!r}"]
    if layout.plain:
        options += ["infer_schema=False", "truncate_ragged_lines=True"]
    else:
        names = f"dict.fromkeys({list(layout.names)!r}, pl.String)"
        skipped = f"skip_lines={layout.lines}, " if layout.lines else ""
        options += [f"has_header=False, {skipped}schema={names}", "truncate_ragged_lines=True"]
    return Reader(f"pl.read_csv({path!r}, {', '.join(options)})")


def _csv_spark(path: str, layout: Layout) -> Reader:
    options = [] if layout.delimiter == "," else [f"sep={layout.delimiter!r}"]
    options += [] if layout.quote == '"' else [f"quote={layout.quote!r}"]
    options += [f"escape={layout.escape or layout.quote!r}", "multiLine=True"]
    # One line before the rows is a header, if not of these very names.
    read = f"spark.read.csv({path!r}, header={layout.lines > 0}, {', '.join(options)})"
    return Reader(read if layout.plain else f"{read}.toDF({', '.join(map(repr, layout.names))})")


def _csv_python(path: str, layout: Layout) -> Reader:
    options = [] if layout.delimiter == "," else [f"delimiter={layout.delimiter!r}"]
    options += [] if layout.quote == '"' else [f"quotechar={layout.quote!r}"]
    options += [f"escapechar={layout.escape!r}, doublequote=False"] if layout.escape else []
    options += [] if layout.encoding == "utf-8" else [f"encoding={layout.encoding!r}"]
    options += ["opened=gzip.open"] if layout.compression else []
    if not layout.plain:
        options = [f"names={list(layout.names)!r}", f"skip={layout.lines}", *options]
    return Reader(
        f"rows_of({', '.join([repr(path), *options])})", ("import gzip",) if layout.compression == "gzip" else ()
    )


# --- other files ------------------------------------------------------------------------------------------------------


def _paths(side: Side, found: SourceTable) -> list[str]:
    """The files of a table: itself, or those of a directory, by a pattern if they are many."""
    paths = [display(uri) for uri, _ in found.parts]
    if len(paths) > 8 and len({(PurePosixPath(path).parent, PurePosixPath(path).suffix) for path in paths}) == 1:
        return [str(PurePosixPath(paths[0]).parent / f"*{PurePosixPath(paths[0]).suffix}")]
    return paths if len(paths) > 1 else [side.path if paths[0].endswith(side.path) else paths[0]]


def _parquet(side: Side, found: SourceTable, dialect: str) -> Reader:
    if side.odd or not _has_column(side, found):
        return _by_lakescope(side, dialect, "its columns lie within others" if not side.odd else "it is damaged")
    paths = _paths(side, found)
    many = len(paths) > 1
    if dialect == "duckdb":
        listed = ", ".join(map(literal, paths))
        return Reader(
            f"read_parquet([{listed}], union_by_name = true)" if many else f"read_parquet({listed})", sql=True
        )
    if dialect == "polars":
        return Reader(
            f"pl.read_parquet({paths!r}, missing_columns='insert')" if many else f"pl.read_parquet({paths[0]!r})"
        )
    if dialect == "spark":
        return Reader(f"spark.read.parquet({', '.join(map(repr, paths))})")
    return _by_lakescope(side, dialect, "")


def _has_column(side: Side, found: SourceTable) -> bool:
    """Whether a file of Parquet itself has the column, which may be a field of another one."""
    if "." not in side.column:
        return True
    schema = _schema_of(found)
    return schema is not None and side.column in schema.names


def _schema_of(found: SourceTable) -> Any:
    """The schema of the first file of a table of Parquet; None if it is not local or cannot be read."""
    import pyarrow.parquet as pq

    uri = found.parts[0][0]
    try:
        if files.local_path(uri) is None:
            return None
        with files.open_random(uri) as source:
            return pq.read_schema(source)
    except (OSError, ValueError):
        return None


def _json(side: Side, found: SourceTable, dialect: str) -> Reader:
    trouble = "some of its rows or cells are not like the others" if side.odd else ""
    if len(found.parts) > 1:
        trouble = "it consists of several files"
    elif found.compression:
        trouble = f"it is compressed by {found.compression}"
    elif not trouble and side.odd is None and _told(found):
        trouble = "some of its rows or cells are not like the others"
    if trouble or dialect == "python":
        return _by_lakescope(side, dialect, trouble)
    lines = side.format == "jsonl" or _is_lines(found)
    if dialect == "duckdb":
        shape = "newline_delimited" if lines else "array"
        return Reader(f"read_json({literal(side.path)}, format = '{shape}', sample_size = -1)", sql=True)
    if dialect == "polars":
        if not _is_even(found, lines=lines):
            return _by_lakescope(side, dialect, "its records hold lists, or values of several types")
        read = "read_ndjson" if lines else "read_json"
        return Reader(f"pl.{read}({side.path!r}, infer_schema_length=None)")
    return Reader(f"spark.read.json({side.path!r}{'' if lines else ', multiLine=True'})")


def _is_lines(found: SourceTable) -> bool:
    with files.open_stream(found.parts[0][0], found.compression) as stream:
        return not stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


@lru_cache(maxsize=256)
def _is_even(found: SourceTable, *, lines: bool) -> bool:
    """Whether records of JSON have no list and each field one type, as polars wants it; judged by the beginning."""
    with files.open_stream(found.parts[0][0], found.compression) as stream:
        text = stream.read(_WHOLE).decode("utf-8-sig", "replace")
    whole = found.size <= _WHOLE
    try:
        pieces = text.splitlines()[: None if whole else -1]
        records = [parsed(line) for line in pieces if line.strip()] if lines else parsed(text) if whole else []
    except ValueError:
        return False
    types: dict[str, set[str]] = {}
    for record in records:
        _note_types(record, "", types)
    return all(len(found) == 1 and "list" not in found for found in types.values())


def _note_types(value: object, place: str, types: dict[str, set[str]]) -> None:
    if value is None:
        return
    name = "number" if type(value) in (int, float) else type(value).__name__
    types.setdefault(place, set()).add(name)
    if isinstance(value, dict):
        for key, inner in value.items():
            _note_types(inner, f"{place}/{key}", types)


def _orc(side: Side, dialect: str, found: SourceTable) -> Reader:
    paths = _paths(side, found)
    if "." in side.column or side.odd or len(paths) > 1 or files.local_path(found.parts[0][0]) is None:
        return _by_lakescope(side, dialect, "")
    read, imports = f"orc.read_table({paths[0]!r})", ("from pyarrow import orc",)
    if dialect == "spark":
        return Reader(f"spark.read.orc({paths[0]!r})")
    if dialect == "polars":
        return Reader(f"pl.from_arrow({read})", imports)
    if dialect == "duckdb":
        return Reader(read, imports, "DuckDB has no reader of ORC: pyarrow reads it.")
    return _by_lakescope(side, dialect, "")


def _arrow(side: Side, dialect: str, found: SourceTable) -> Reader:
    paths = _paths(side, found)
    if "." in side.column or side.odd or len(paths) > 1 or not _is_feather(found):
        return _by_lakescope(side, dialect, "")
    read, imports = f"feather.read_table({paths[0]!r})", ("from pyarrow import feather",)
    if dialect == "spark":
        return Reader(
            f"spark.createDataFrame({read})", imports, "Spark has no reader of Arrow files: pyarrow reads it."
        )
    if dialect == "polars":
        return Reader(f"pl.from_arrow({read})", imports)
    if dialect == "duckdb":
        return Reader(read, imports, "DuckDB has no reader of Arrow files: pyarrow reads it.")
    return _by_lakescope(side, dialect, "")


def _is_feather(found: SourceTable) -> bool:
    """Whether an Arrow file is one that may be read in any order, not a stream."""
    if found.compression or files.local_path(found.parts[0][0]) is None:
        return False
    with files.open_stream(found.parts[0][0]) as stream:
        return stream.read(6) == b"ARROW1"


def _versioned(side: Side, dialect: str) -> Reader:
    if dialect == "duckdb":
        return Reader(f"{side.format}_scan({literal(side.path)})", sql=True)
    if dialect == "polars":
        return Reader(f"pl.scan_{side.format}({side.path!r}).collect()")
    if dialect == "spark":
        return Reader(f"spark.read.format({side.format!r}).load({side.path!r})")
    return _by_lakescope(side, dialect, "")


def _postgres(side: Side, dialect: str) -> Reader:
    schema, name = side.database_table
    if dialect == "duckdb":
        return Reader(f"postgres_scan({literal(side.path)}, {literal(schema)}, {literal(name)})", sql=True)
    place = ".".join(map(identifier, side.database_table))
    if dialect == "polars":
        return Reader(f"pl.read_database_uri({'SELECT * FROM ' + place!r}, {side.path!r}, engine='adbc')")
    if dialect == "spark":
        address = Address.of(side.location)
        url = f"jdbc:postgresql://{address.hosts}/{address.database}"
        return Reader(f"spark.read.jdbc({url!r}, {place!r}, properties={{'user': {address.user!r}}})")
    return _by_lakescope(side, dialect, "")
