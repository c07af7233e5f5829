"""Does a file have a header at all, and where does its data start: what the scan finds, told of one file."""

from __future__ import annotations

from dataclasses import dataclass

from lakescope.errors import BadRequest


@dataclass(frozen=True, slots=True)
class HeaderOpinion:
    """What a file begins with.

    ``probability`` is that of there being a header. ``preamble`` counts rows before it, ``header_rows`` its own; the
    data starts at line ``data_line``, counted from 0. ``names`` are those of the columns, numbered ones without header.
    """

    header: bool
    probability: float
    preamble: int
    header_rows: int
    data_line: int
    names: tuple[str, ...]


def opinion_of(location: str) -> HeaderOpinion | None:
    """What a CSV file begins with; None of files of other formats, which say it themselves."""
    from lakescope.sources.discover import discover
    from lakescope.sources.formats.csv_file import head_of
    from lakescope.sources.io.files import display

    found, problems = discover([location])
    if not found:
        detail = "; ".join(problem.detail for problem in problems) or f"found no table at {display(location)}"
        raise BadRequest(detail, hint="give the path of one table")
    if found[0].format != "csv":
        return None
    dialect, before = head_of(found[0].parts[0][0], found[0].compression)
    return HeaderOpinion(
        *(dialect.header, dialect.probability, dialect.preamble, dialect.header_rows),
        *(before.count(bytes([dialect.newline])), tuple(dialect.names)),
    )
