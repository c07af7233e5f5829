"""A lake as a folder of pages that need nothing else: HTML, JSON or Markdown of the same summaries.

Tables are summarised and written one after the other; the page of the lake comes last. All of it is written beside the
place it goes to and moved there by a rename, so that nobody ever sees half a report.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from lakescope._version import __version__
from lakescope.errors import BadRequest, LakescopeError
from lakescope.show import pages
from lakescope.show.fields import NAME, Link
from lakescope.show.markdown import lake_markdown, table_markdown
from lakescope.show.markup import Html, el, joined
from lakescope.show.summary import (
    References,
    Summary,
    lake_summary,
    line_of,
    references_of,
    table_summaries,
)
from lakescope.show.text import json_text, shorten
from lakescope.untrusted import parsed

if TYPE_CHECKING:
    from lakescope.lake import Lake

FORMATS = ("html", "md", "json")
#: The file that tells a report from any other folder, and what it says.
MARKER = "report.json"
_KIND = "lakescope report"
#: Bytes of columns that go on one page, and lines of the list of tables.
_COLUMN_BYTES = 400_000
_LINES = 1_000
#: Tables with references of which a picture is drawn.
_DRAWN = 60
_ASSETS = Path(__file__).parent / "assets"
_SLUG = 60
_UNSAFE = re.compile(r"[^a-z0-9._]+")


@dataclass(frozen=True, slots=True)
class Report:
    """A report on disk: where to begin, and how much there is."""

    start: Path
    tables: int
    pages: int
    bytes: int


def write_report(
    lake: Lake, out: str | os.PathLike[str], form: str = "html", progress: Callable[[int, int], None] | None = None
) -> Report:
    """Write a report of a lake into a folder; a former report there is replaced when the new one is complete."""
    if form not in FORMATS:
        raise BadRequest(f"no report of the format {form!r}", hint=f"use {', '.join(FORMATS)}")
    target = Path(out).absolute()
    check_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}-", dir=target.parent))
    try:
        start, tables = _Writer(lake, staging, form).write(progress)
        staging.chmod(0o755)
        files = [path for path in staging.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        count = sum(path.suffix == f".{form}" for path in files) - (form == "json")  # the marker is no page
        _publish(staging, target)
    except OSError as error:
        hint = "free space, or write elsewhere"
        raise LakescopeError(f"cannot write {target}: {error.strerror}", hint=hint) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return Report(Path(out) / start, tables, count, size)


def check_target(target: Path) -> None:
    """Refuse a place that holds anything but a former report."""
    if not target.exists() and not target.is_symlink():
        return
    hint = "name a new folder, or one that `lakescope report` wrote"
    if not target.is_dir() or target.is_symlink():
        raise BadRequest(f"{target} is not a folder", hint=hint)
    try:
        if any(target.iterdir()) and not is_report(target):
            raise BadRequest(f"{target} is not empty and no report", hint=hint)
    except PermissionError as error:
        raise BadRequest(f"cannot read {target}: {error.strerror}", hint=hint) from error


def is_report(folder: Path) -> bool:
    """Whether a folder was written by us."""
    try:
        marker = parsed((folder / MARKER).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get("kind") == _KIND


def _publish(staging: Path, target: Path) -> None:
    """Move a finished report to its place; what was there goes only when the new one stands."""
    if not target.exists():
        staging.rename(target)
        return
    former = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}-", dir=target.parent)) / "former"
    try:
        target.rename(former)
        try:
            staging.rename(target)
        except BaseException:
            former.rename(target)
            raise
    finally:
        shutil.rmtree(former.parent, ignore_errors=True)


class PageNames:
    """File names of the pages of tables: readable, safe anywhere, stable from report to report, never the same.

    A name is what a file system surely takes of the table's, and the hash of all of it; the second of two tables that
    still meet (names that differ in what UTF-8 cannot write) gets a number.
    """

    def __init__(self, tables: Sequence[str]) -> None:
        self._of: dict[str, str] = {}
        taken: set[str] = set()
        for table in tables:
            name = known = page_name(table)
            number = 1
            while name in taken:
                number += 1
                name = f"{known}-{number}"
            taken.add(name)
            self._of[table] = name

    def get(self, table: str) -> str | None:
        """The name without its ending; None for a table that has no page."""
        return self._of.get(table)


def page_name(table: str) -> str:
    """A file name for a table, without its ending: letters, digits, dots, hyphens, and the hash of the name."""
    slug = _UNSAFE.sub("-", table.lower().replace("/", "-"))[:_SLUG].strip("-.")
    return f"{slug or 'table'}-{xxhash.xxh64_hexdigest(table.encode('utf-8', 'replace'), 42)}"


class _Writer:
    """Writes the pages of a report into a folder."""

    def __init__(self, lake: Lake, folder: Path, form: str) -> None:
        self._lake, self._folder, self._form = lake, folder, form
        self._names = PageNames(lake.tables()["table"].to_pylist())

    def write(self, progress: Callable[[int, int], None] | None) -> tuple[str, int]:
        """Write everything; the first page, and how many tables there are."""
        (self._folder / "tables").mkdir()
        total = self._lake.tables().num_rows
        with contextlib.suppress(BadRequest):  # an index of profiles only has nothing to warm
            self._lake.warm()
        references = references_of(self._lake)
        lines = []
        for done, table in enumerate(table_summaries(self._lake, references)):
            if progress is not None:
                progress(done, total)
            for name, content in self._table_pages(table):
                self._put(f"tables/{name}", content)
            lines.append(line_of(table))
        summary = lake_summary(self._lake, lines, references)
        for name, content in self._lake_pages(summary, references):
            self._put(name, content)
        generation = summary["info"]["generation"]
        marker = {"kind": _KIND, "lakescope": __version__, "format": self._form, "generation": generation}
        self._put(MARKER, json.dumps(marker) + "\n")
        return f"index.{self._form}", total

    def _put(self, name: str, content: str) -> None:
        (self._folder / name).write_text(content, "utf-8", errors="replace", newline="\n")

    def _link(self, folder: str, table: str) -> str | None:
        name = self._names.get(table)
        return None if name is None else f"{folder}{name}.{self._form}"

    # --- pages of the lake --------------------------------------------------------------------------------------------

    def _lake_pages(self, lake: Summary, references: References) -> Iterator[tuple[str, str]]:
        link = partial(self._link, "tables/")
        if self._form == "json":
            pages_of = {line["table"]: link(line["table"]) for line in lake["tables"]}
            lines = [{**line, "page": pages_of[line["table"]]} for line in lake["tables"]]
            yield "index.json", _json({**lake, "tables": lines})
        elif self._form == "md":
            yield "index.md", lake_markdown(lake, link)
        else:
            yield from self._lake_html(lake, references, link)

    def _lake_html(self, lake: Summary, references: References, link: Link) -> Iterator[tuple[str, str]]:
        shutil.copytree(_ASSETS, self._folder / "assets", ignore=shutil.ignore_patterns("__pycache__"))
        (self._folder / "assets").chmod(0o755)
        shared: dict[str, Any] = {"up": "", "lake": lake["lake"]}
        lines = lake["tables"]
        parts = max(1, -(-len(lines) // _LINES))
        for part in range(parts):
            some = lines[part * _LINES : (part + 1) * _LINES]
            body = pages.lake_page(lake, some, link, part=part, parts=parts)
            yield pages.list_page(part), pages.page(f"{lake['lake']}: tables", body, **shared, here="Tables")
        picture = self._picture(references)
        body = pages.references_page(lake, link, picture=picture)
        yield "references.html", pages.page(f"{lake['lake']}: references", body, **shared, here="References")
        body = pages.problems_page(lake, link)
        yield "problems.html", pages.page(f"{lake['lake']}: problems", body, **shared, here="Problems")

    def _picture(self, references: References) -> str | None:
        """The schema as a picture, unless there is too much to see anything."""
        if not references.every or len({*references.out, *references.into}) > _DRAWN:
            return None
        (self._folder / "assets/schema.svg").write_text(self._lake.key_diagram("svg"), "utf-8", errors="replace")
        return "assets/schema.svg"

    # --- pages of a table ---------------------------------------------------------------------------------------------

    def _table_pages(self, table: Summary) -> Iterator[tuple[str, str]]:
        name = str(self._names.get(table["table"]))
        link = partial(self._link, "")
        if self._form == "json":
            yield f"{name}.json", _json(table)
        elif self._form == "md":
            yield f"{name}.md", table_markdown(table, link)
        else:
            yield from self._table_html(table, name, link)

    def _table_html(self, table: Summary, name: str, link: Link) -> Iterator[tuple[str, str]]:
        rows = [pages.overview_row(column, f"#c{place + 1}", link) for place, column in enumerate(table["columns"])]
        cards = [pages.column_card(column, place) for place, column in enumerate(table["columns"])]
        sizes = [len((row + card).encode("utf-8", "replace")) for (row, _), card in zip(rows, cards, strict=True)]
        spans = paged(sizes, _COLUMN_BYTES)
        addresses = [f"{name}.html" if number == 0 else f"{name}-p{number + 1}.html" for number in range(len(spans))]
        of_column = [number for number, (first, last) in enumerate(spans) for _ in range(first, last)]

        def anchor(place: int, here: int) -> str:
            page_of = of_column[place]
            return f"#c{place + 1}" if page_of == here else f"{addresses[page_of]}#c{place + 1}"

        for number, (first, last) in enumerate(spans):
            nav = pages.pages_nav(addresses, number, spans)
            parts: list[Html | None] = [
                pages.table_head(table, link),
                pages.alerts_section(table, partial(anchor, here=0)) if number == 0 else None,
                el("h2", "Columns", id="columns"),
                nav,
                pages.table_of(pages.COLUMN, rows[first:last]) if rows else el("p", "No column.", class_="soft"),
            ]
            if number == 0:
                parts += [pages.links_section(table, link), pages.problems_section(table, link)]
            body = joined(*parts, el("h2", "Column by column"), *cards[first:last], nav)
            title = shorten(table["table"], NAME)
            yield addresses[number], pages.page(title, body, up="../", lake=self._lake_name)

    @property
    def _lake_name(self) -> str:
        return Path(self._lake.path).name


def paged(sizes: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Cut a row of things into runs of at most so many bytes, or of one: (first, the one after the last) of each."""
    starts, filled = [0], 0
    for place, size in enumerate(sizes):
        if filled + size > most and place > starts[-1]:
            starts.append(place)
            filled = 0
        filled += size
    return list(pairwise([*starts, len(sizes)]))


def _json(what: Any) -> str:
    return json_text(what, indent=1, default=str) + "\n"
