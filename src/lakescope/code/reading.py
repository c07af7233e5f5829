"""How a table is read, as code of other systems: one place for joins, correlations and learned joins.

A file is looked at again with the detector that the scan uses, so that code names its delimiter, quotes, header and
compression. What a system has no reader for, or reads otherwise than the index did, is loaded through
``lakescope.read``, and the code says so: code that fails, or joins other rows, is worth nothing.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, ClassVar, Literal

from lakescope.code.dialects import CALLED, PlanDialect
from lakescope.code.sides import FRAME, NESTED, Side, side_of
from lakescope.errors import LakescopeError
from lakescope.sources.discover import discover
from lakescope.sources.formats import csv_file
from lakescope.sources.io import files
from lakescope.sources.io.encoding import is_utf8
from lakescope.sources.io.files import display
from lakescope.sources.io.locations import catalogue_uri, is_file_uri
from lakescope.sources.source_table import SourceTable
from lakescope.untrusted import parsed

#: Files up to this size are read to see whether all their rows are as readers expect; of others the head tells.
_WHOLE = 16 * 1024 * 1024
#: What is told of files that every reader understands.
_HARMLESS = ("preamble", "no-header", "renamed-columns", "nulls")
#: How names of files end that are compressed.
_ENDINGS = {"gzip": (".gz", ".gzip"), "zstd": (".zst",), "bz2": (".bz2",)}
_NAMED = {"sqlite": "SQLite", "duckdb": "DuckDB's own", "excel": "Excel"}
_ODD = "some of its rows or cells are not like the others"

#: What a reader of text may lack: encodings but UTF-8, mixed ends of lines, headers of another width than rows, names
#: that differ by case, quotes escaped by a backslash, lines to be skipped, records of JSON that are not alike.
Lack = Literal["encodings", "mixed ends", "uneven header", "case", "escapes", "skipping", "uneven records"]


@dataclass(frozen=True, slots=True)
class Reader:
    """How a table is read: ``code`` is a relation of SQL (``sql``), or an expression of Python.

    ``imports`` are lines it needs before, ``note`` says why it is read like this, if that is not plain; ``flat`` that
    fields within others are columns of their own.
    """

    code: str
    imports: tuple[str, ...] = ()
    note: str = ""
    sql: bool = False
    flat: bool = False

    def fields(self, side: Side) -> tuple[str, ...]:
        """A column of the table as a path of fields."""
        return (side.column,) if self.flat else side.fields


@dataclass(frozen=True, slots=True)
class TextLayout:
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

    @property
    def is_uneven(self) -> bool:
        return self.width not in (0, len(self.names))

    @property
    def differs_by_case(self) -> bool:
        return len({name.lower() for name in self.names}) < len(self.names)


class TableReading(ABC):
    """How one system reads tables: a method for each format, which gives nothing where the system has no reader."""

    name: ClassVar[PlanDialect]
    #: Compressed text that it unpacks, by the end of a file's name.
    unpacks: ClassVar[tuple[str, ...]] = ("gzip",)
    lacks: ClassVar[frozenset[Lack]] = frozenset()

    @property
    def called(self) -> str:
        """What the system is called."""
        return CALLED[self.name]

    @abstractmethod
    def frame(self, name: str) -> Reader:
        """A table in memory that goes by a name."""

    @abstractmethod
    def arrow(self, code: str) -> str:
        """What an expression of Python for a table of Arrow becomes."""

    def csv(self, path: str, layout: TextLayout) -> Reader | None:
        """A file of delimited text, all cells as text."""
        return None

    def parquet(self, paths: Sequence[str], *, pattern: bool) -> Reader | None:
        """Files of Parquet, or one pattern for their paths."""
        return None

    def json(self, path: str, *, lines: bool) -> Reader | None:
        """A file of JSON: one record a line, or one array."""
        return None

    def orc(self, path: str) -> Reader | None:
        """A file of ORC."""
        return None

    def feather(self, path: str) -> Reader | None:
        """A file of Arrow that may be read in any order."""
        return None

    def versioned(self, form: str, path: str) -> Reader | None:
        """A table of Delta or Iceberg."""
        return None

    def postgres(self, side: Side) -> Reader | None:
        """A table of PostgreSQL."""
        return None

    def by_pyarrow(self, module: str, path: str, note: str = "") -> Reader:
        """A file that pyarrow reads, since the system has no reader of the format."""
        return Reader(self.arrow(f"{module}.read_table({path!r})"), (f"from pyarrow import {module}",), note)

    def read(self, side: Side) -> Reader:
        """How the table of one side is read."""
        if side.format == FRAME:
            return self.frame(FRAME)
        if side.format == "postgresql":
            return self.postgres(side) or self._by_lakescope(side)
        if side.format in ("delta", "iceberg"):
            return self.versioned(side.format, side.path) or self._by_lakescope(side)
        found = None if is_file_uri(side.location) else _found(side.path)
        trouble = "" if found is None else self._trouble(side, found)
        reader = None if found is None or trouble else self._native(side, found)
        return reader or self._by_lakescope(side, trouble)

    def read_as_text(self, path: str, names: Sequence[str]) -> Reader:
        """How all columns of a file are read as text, to the letter as lakescope reads them."""
        side = side_of(path, "")
        if side.format in ("csv", FRAME) or (side.format == "parquet" and _is_text(side, names)):
            return self.read(side)
        return self._by_lakescope(side, "its cells are text as the plan knows them")

    def _trouble(self, side: Side, found: SourceTable) -> str:
        """Why the system does not read a file as the index did, if so."""
        if any(is_file_uri(catalogue_uri(uri)) for uri, _ in found.parts):
            return "names of its files are not UTF-8"
        if any(found.options(uri) for uri, _ in found.parts):
            return "the names of its directories are columns"
        if side.format == "csv":
            layout = _layout_of(side, found)
            return layout.trouble or self._lacking(layout, found)
        if side.format in NESTED:
            return self._trouble_of_json(side, found)
        if side.format == "parquet":
            return "it is damaged" if side.odd else "" if _has_column(side, found) else "its columns lie within others"
        kind = _NAMED.get(side.format, side.format)
        return "" if side.format in ("orc", "arrow") else f"a file of {kind} format is read as the index read it"

    def _lacking(self, layout: TextLayout, found: SourceTable) -> str:
        """Why the system cannot read delimited text that others can, if so."""
        if layout.compression:
            ending = files.path_of(found.parts[0][0]).endswith(_ENDINGS.get(layout.compression, ("?",)))
            if layout.compression not in self.unpacks or not ending:
                return f"it is compressed by {layout.compression}"
            if layout.encoding != "utf-8":
                return f"it is written in {layout.encoding}"
        troubles: dict[Lack, str] = {
            "encodings": f"it is written in {layout.encoding}" if layout.encoding != "utf-8" else "",
            "mixed ends": "its lines end in more than one way" if layout.mixed else "",
            "uneven header": "its header has more or fewer cells than its rows" if layout.is_uneven else "",
            "escapes": "its quotes are escaped by a backslash" if layout.escape else "",
            "skipping": "" if layout.plain or layout.lines < 2 else f"{layout.lines} lines stand before its rows",
            "case": "its columns differ by case only" if layout.differs_by_case else "",
        }
        return next((why for lack, why in troubles.items() if why and lack in self.lacks), "")

    def _trouble_of_json(self, side: Side, found: SourceTable) -> str:
        if len(found.parts) > 1:
            return "it consists of several files"
        if found.compression:
            return f"it is compressed by {found.compression}"
        if side.odd or (side.odd is None and _is_uneven(found)):
            return _ODD
        if "uneven records" in self.lacks and not _is_even(found, lines=_has_lines(side, found)):
            return "its records hold lists, or values of several types"
        return ""

    def _native(self, side: Side, found: SourceTable) -> Reader | None:
        """A table as the system itself reads it."""
        if side.format == "csv":
            return self.csv(side.path, _layout_of(side, found))
        if side.format in NESTED:
            return self.json(side.path, lines=_has_lines(side, found))
        paths = _paths(side, found)
        if side.format == "parquet":
            return self.parquet(paths, pattern=len(paths) < len(found.parts))
        if "." in side.column or side.odd or len(paths) > 1:
            return None
        if side.format == "orc":
            return self.orc(paths[0]) if files.local_path(found.parts[0][0]) is not None else None
        return self.feather(paths[0]) if _is_feather(found) else None

    def _by_lakescope(self, side: Side, why: str = "") -> Reader:
        """A table that is read as the index read it: all cells as text, columns flat."""
        name = PurePosixPath(side.path).name
        note = f"{name if name.isprintable() else ascii(name)} is read by lakescope" + (f": {why}." if why else ".")
        return Reader(self.arrow(f"lakescope.read({side.location!r})"), ("import lakescope",), note, flat=True)


def _is_text(side: Side, names: Sequence[str]) -> bool:
    """Whether a file of Parquet has flat columns of text or whole numbers, which every system writes alike."""
    import pyarrow as pa

    found = _found(side.path)
    schema = None if found is None else _schema_of(found)
    plain = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    return (
        schema is not None and schema.names == [*names] and all(any(is_(each.type) for is_ in plain) for each in schema)
    )


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


def _layout_of(side: Side, found: SourceTable) -> TextLayout:
    """How a file of delimited text is cut into cells, detected as the scan does."""
    return _layout(found, side.odd, _stamp(side.path))


@lru_cache(maxsize=256)
def _layout(found: SourceTable, odd: bool | None, stamp: tuple[object, ...]) -> TextLayout:
    uri = found.parts[0][0]
    try:
        dialect, head, bom, converted = csv_file.first_of(uri, found.compression)
    except (LakescopeError, OSError, EOFError) as error:
        return TextLayout((), ",", '"', "", 0, False, "utf-8", None, str(error))
    before = head[bom:][: dialect.data_start]
    encoding, trouble = _encoding(head, dialect.fallback)
    names = tuple(dialect.names)
    if converted:
        trouble = f"it is written in {converted}"
    elif len(found.parts) > 1:
        trouble = "it consists of several files"
    elif dialect.newline != 10:
        trouble = "its lines end in carriage returns"
    elif odd or (odd is None and _is_uneven(found)):
        trouble = _ODD
    quote, escape = chr(dialect.quote), chr(dialect.escape) if dialect.escape else ""
    delimiter = chr(dialect.delimiter)
    plain = dialect.preamble == 0 and dialect.header_rows == 1
    header = _header(before, encoding, delimiter, quote)
    plain = plain and header == names
    lines = before.count(b"\n") + (not before.endswith(b"\n") and bool(before))
    ends = head.count(b"\n"), head.count(b"\r\n"), head.count(b"\r")
    mixed = 0 < ends[1] < ends[0] or ends[2] > ends[1]
    width = len(header) if dialect.header_rows == 1 else 0
    return TextLayout(names, delimiter, quote, escape, lines, plain, encoding, found.compression, trouble, mixed, width)


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
def _is_uneven(found: SourceTable) -> bool:
    """Whether reading a file, if that does not take long, tells of anything that readers do not agree about."""
    from lakescope import sources

    if found.size > _WHOLE:
        return False
    problems: list[str] = []
    try:
        for unit in sources.plan(found, 1 << 62):
            for _ in sources.read(unit, lambda problem: problems.append(problem.code)):
                pass
    except (LakescopeError, OSError, EOFError):
        return True
    return any(code not in (*_HARMLESS, "encoding") for code in problems)


# --- other files ------------------------------------------------------------------------------------------------------


def _paths(side: Side, found: SourceTable) -> list[str]:
    """The files of a table: itself, or those of a directory, by a pattern if they are many."""
    paths = [display(uri) for uri, _ in found.parts]
    if len(paths) > 8 and len({(PurePosixPath(path).parent, PurePosixPath(path).suffix) for path in paths}) == 1:
        return [str(PurePosixPath(paths[0]).parent / f"*{PurePosixPath(paths[0]).suffix}")]
    return paths if len(paths) > 1 else [side.path if paths[0].endswith(side.path) else paths[0]]


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


def _has_lines(side: Side, found: SourceTable) -> bool:
    """Whether a file of JSON has one record a line, not an array of them."""
    if side.format == "jsonl":
        return True
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


def _is_feather(found: SourceTable) -> bool:
    """Whether an Arrow file is one that may be read in any order, not a stream."""
    if found.compression or files.local_path(found.parts[0][0]) is None:
        return False
    with files.open_stream(found.parts[0][0]) as stream:
        return stream.read(6) == b"ARROW1"
