"""What a tool is asked about, as an agent names it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lakescope.faces.mcp.queries import CSV_BYTES


class Subject(BaseModel):
    """What a question is about: exactly one of table, csv and file."""

    model_config = ConfigDict(extra="forbid")

    table: Annotated[str | None, Field(description="Name of a table of the lake, as list_tables tells it.")] = None
    csv: Annotated[str | None, Field(description=f"Rows as CSV text with a header, at most {CSV_BYTES:,} bytes.")] = (
        None
    )
    file: Annotated[str | None, Field(description="Path of a file below the folder that was allowed, if one was.")] = (
        None
    )
