"""A table written to a file that somebody names: Parquet, CSV or Arrow, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lakescope.errors import BadRequest

if TYPE_CHECKING:
    import pyarrow as pa


FORMATS = (".parquet", ".csv", ".arrow")


def check_output(out: str | os.PathLike[str]) -> None:
    """Refuse a file that cannot be written before anything is read."""
    path = Path(out)
    if path.suffix.lower() not in FORMATS:
        raise BadRequest(f"cannot write {path.name}", hint=f"end its name with {', '.join(FORMATS)}")
    check_folder(path)


def check_folder(out: str | os.PathLike[str]) -> None:
    """Refuse a file whose directory is not there."""
    parent = Path(out).absolute().parent
    if not parent.is_dir():
        raise BadRequest(f"{parent} is no directory", hint="make it first")


def write_table(table: pa.Table, out: str | os.PathLike[str]) -> None:
    """Write a table in the format its name asks for, whole or not at all."""
    path = Path(out)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, draft)
        elif path.suffix.lower() == ".csv":
            import pyarrow.csv as pc

            pc.write_csv(table, draft)
        else:
            import pyarrow.feather as feather

            feather.write_feather(table, str(draft))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
