"""Does a file have a header at all, and where does its data start: what the scan finds, told of one file."""

from __future__ import annotations

from lakescope.engines.headers.answers import HeaderOpinion
from lakescope.errors import BadRequest


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
