"""DuckDB: SQL that reads files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakescope.code.reading import Reader, TextLayout
from lakescope.code.sides import KeyForm, Side
from lakescope.code.sql import SqlWriter, literal
from lakescope.code.writer import CODE, NO_NUMBER, CodeKey, is_path
from lakescope.values.alphabet import SPACES

#: What SQL strips only if told to: tabulators and no-break spaces.
_BLANKS = "\t\u00a0"


class DuckDB(SqlWriter):
    """Writes statements of DuckDB."""

    name = "duckdb"
    unpacks = ("gzip", "zstd")
    lacks = frozenset({"encodings", "mixed ends", "uneven header", "case"})

    # --- tables

    def csv(self, path: str, layout: TextLayout) -> Reader:
        delimiter = r"e'\t'" if layout.delimiter == "\t" else literal(layout.delimiter)
        options = [f"delim = {delimiter}", f"quote = {literal(layout.quote)}"]
        options.append(f"escape = {literal(layout.escape or layout.quote)}")
        if layout.plain:
            options += ["header = true", "all_varchar = true"]
        else:
            columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in layout.names)
            options += ["header = false", f"skip = {layout.lines}", "auto_detect = false", f"columns = {{{columns}}}"]
        return Reader(f"read_csv({literal(path)}, {', '.join(options)})", sql=True)

    def parquet(self, paths: Sequence[str], *, pattern: bool) -> Reader:
        listed = ", ".join(map(literal, paths))
        several = f"[{listed}], union_by_name = true"
        return Reader(f"read_parquet({several if len(paths) > 1 else listed})", sql=True)

    def json(self, path: str, *, lines: bool) -> Reader:
        shape = "newline_delimited" if lines else "array"
        return Reader(f"read_json({literal(path)}, format = '{shape}', sample_size = -1)", sql=True)

    def orc(self, path: str) -> Reader:
        return self.by_pyarrow("orc", path, "DuckDB has no reader of ORC: pyarrow reads it.")

    def feather(self, path: str) -> Reader:
        return self.by_pyarrow("feather", path, "DuckDB has no reader of Arrow files: pyarrow reads it.")

    def versioned(self, form: str, path: str) -> Reader:
        return Reader(f"{form}_scan({literal(path)})", sql=True)

    def postgres(self, side: Side) -> Reader:
        return Reader(f"postgres_scan({', '.join(map(literal, (side.path, *side.database_table)))})", sql=True)

    # --- keys and numbers

    def text(self, name: str, form: KeyForm) -> str:
        if not form.text:
            return super().text(name, form)
        blanks = " || ".join(f"CHR({ord(each)})" for each in _BLANKS)
        return f"TRIM(NFC_NORMALIZE(CAST({name} AS VARCHAR)), ' ' || {blanks})"

    def key(self, name: str, key: CodeKey) -> str:
        form, text = key.form, self.text(name, key.form)
        if form.number or form.moment:
            value = f"CAST(TRY_CAST({text} AS {'DOUBLE' if form.number else 'TIMESTAMP'}) AS VARCHAR)"
            if form.number and form.codes:
                value = f"CASE WHEN NOT REGEXP_MATCHES({text}, {literal(CODE)}) THEN {value} END"
            return f"COALESCE({value}, {text})"
        return self.truth(text, form)

    def number(self, name: str, side: Side) -> str:
        if side.is_doubtful:
            text = f"CAST({name} AS VARCHAR)"
            name = f"CASE WHEN NOT REGEXP_MATCHES({text}, {literal(NO_NUMBER)}) THEN {text} END"
        return super().number(name, side)

    def aggregated(self, aggregate: str, number: str, *, exactly: bool) -> str:
        # These add up to the last digits: means that should be equal tie.
        exact = {"mean": "FAVG", "sum": "FSUM"}.get(aggregate) if exactly else None
        return f"{exact}({number})" if exact else super().aggregated(aggregate, number, exactly=exactly)

    # --- learned joins

    def cells(self, source: str, place: Any, names: Sequence[str]) -> str:
        if not is_path(place):
            return source
        return f"(SELECT NULLIF(TRIM(CAST(COLUMNS(*) AS VARCHAR), {literal(SPACES)}), '') FROM {source})"
