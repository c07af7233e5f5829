"""The report: pages that hold together, stay small, need nothing else, and are never half there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from helpers.needs import left_out
from lakescope.errors import BadRequest
from lakescope.lake import Lake
from lakescope.show import pages, site
from lakescope.show.markup import Html, el, joined
from lakescope.show.summary import sizes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEGABYTE = 1_000_000
VOID = {"br", "col", "hr", "img", "input", "link", "meta"}


class Page(HTMLParser):
    """A page taken apart; what is not well-formed is an error."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.open: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        source = path.read_text("utf-8")
        assert "\x00" not in source
        self.feed(source)
        self.close()
        assert self.open == [], f"{path}: {self.open} not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("href", "src"):
                (self.links if tag == "a" else self.loaded).append(value or "")
            elif name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{self.path}: </{tag}> closes nothing"
        assert self.open.pop() == tag, f"{self.path}: </{tag}> closes another"

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def pages_of(folder: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in folder.rglob("*.html")}


def check_whole(folder: Path) -> dict[Path, Page]:
    """Every link leads to a page and a place of the report; nothing else is loaded or run; all pages are small."""
    found = pages_of(folder)
    assets = {"report.css", "report.js", "schema.svg"}
    for path, page in found.items():
        assert path.stat().st_size < MEGABYTE, path
        assert len(set(page.ids)) == len(page.ids), path
        assert not any(name.startswith("on") or name == "style" for name in page.attributes), path
        assert page.tags.isdisjoint({"style", "iframe", "object", "embed", "base"}), path
        for address in page.loaded:
            assert (path.parent / address).resolve().parent == (folder / "assets").resolve(), (path, address)
            assert Path(address).name in assets
            assert (path.parent / address).exists(), (path, address)
        for address in page.links:
            name, _, anchor = address.partition("#")
            assert re.fullmatch(r"[a-zA-Z0-9._/-]*", name), address
            target = (path.parent / unquote(name)).resolve() if name else path
            assert target in found or (path.parent / name) in found, (path, address)
            if anchor:
                known = found.get(target) or found[path.parent / name]
                assert anchor in known.ids, (path, address)
    return found


@pytest.fixture(scope="module")
def demo_site(demo_index: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report").resolve() / "site"
    written = demo_index.report(folder)
    assert written.start == folder / "index.html"
    assert written.tables == demo_index.info()["tables"]
    return folder


# What it says ---------------------------------------------------------------------------------------------------------


def test_pages_are_whole_and_linked(demo_site: Path, demo_index: Lake) -> None:
    found = check_whole(demo_site)
    tables = demo_index.tables()["table"].to_pylist()
    assert len(found) == len(tables) + 3
    start = found[demo_site / "index.html"]
    assert len([link for link in start.links if link.startswith("tables/")]) == len(tables)
    assert all(table in start.text for table in tables)
    assert list(demo_site.parent.iterdir()) == [demo_site]  # nothing is left beside it


def page_of(folder: Path, table: str) -> Page:
    return Page(folder / "tables" / f"{site.page_name(table)}.html")


def test_a_table_tells_alerts_keys_references_and_joins(demo_site: Path) -> None:
    patients = page_of(demo_site, "quality/patients.csv").text
    assert "Disguised missing" in patients
    assert "1900-01-01" in patients
    assert patients.index("Disguised missing") < patients.index("Column by column")
    orders = page_of(demo_site, "shop/orders.csv")
    assert "Mostly missing" in orders.text
    assert "Key: order_id" in orders.text
    assert "Is referred to by" in orders.text
    assert f"{site.page_name('shop/customers.csv')}.html" in orders.links
    assert f"{site.page_name('shop/shipments.csv')}.html" in orders.links
    assert "First quartile" in orders.text
    assert "999999" in orders.text  # the pattern of order_id


def test_pictures_say_what_they_show(demo_site: Path) -> None:
    text = page_of(demo_site, "shop/orders.csv").path.read_text("utf-8")
    cards = {
        name[1]: each
        for each in text.split('<article class="column"')[1:]
        if (name := re.search("<h3><span>([^<]*)", each)) is not None
    }
    status, total = cards["status"], cards["total"]
    assert 'class="ends"><span>the 6 most frequent values, from the left</span></div>' in status
    assert 'aria-label="Most frequent values of status"' in status
    assert 'class="ends"><span>2.21</span>' in total
    assert 'class="filled"' not in total
    assert 'class="filled"' in cards["note"]


def test_a_source_is_told_without_detours() -> None:
    assert pages._from(["/home/me/../lakes/a", "s3://a/../b"]) == " from /home/lakes/a, s3://a/../b"


def test_estimates_are_told_as_such(demo_site: Path, demo_index: Lake) -> None:
    about = [column for column in demo_index.columns().to_pylist() if not column["distinct_exact"]]
    assert about
    for column in about:
        text = page_of(demo_site, column["table"]).text
        assert f"≈ {column['distinct']:,} ({column['distinct_low']:,} to {column['distinct_high']:,})" in text


def test_what_could_not_be_read_is_told(demo_site: Path, demo_index: Lake) -> None:
    text = Page(demo_site / "problems.html").text
    for problem in demo_index.problems().to_pylist():
        assert problem["table"] in text
        assert problem["code"] in text


def test_the_same_summary_in_three_forms(demo_index: Lake, demo_site: Path, tmp_path: Path) -> None:
    for form in ("md", "json"):
        written = demo_index.report(tmp_path / form, form)
        assert written.pages == written.tables + 1
    data = json.loads((tmp_path / "json" / "index.json").read_text("utf-8"))
    markdown = (tmp_path / "md" / "index.md").read_text("utf-8")
    page = Page(demo_site / "index.html").text
    assert [line["table"] for line in data["tables"]] == demo_index.tables()["table"].to_pylist()
    for line in data["tables"]:
        table = json.loads((tmp_path / "json" / line["page"]).read_text("utf-8"))
        assert (table["table"], table["rows"], len(table["columns"])) == (line["table"], line["rows"], line["columns"])
        name = site.page_name(line["table"])
        told = (tmp_path / "md" / "tables" / f"{name}.md").read_text("utf-8")
        assert f"{line['rows']:,} rows, {line['columns']:,} columns" in told
        assert f"(tables/{name}.md)" in markdown
        assert line["table"] in page
    for link in re.findall(r"\]\((tables/[^)]+)\)", markdown):
        assert (tmp_path / "md" / link).exists()


def test_the_same_index_gives_the_same_report(demo_index: Lake, demo_site: Path, tmp_path: Path) -> None:
    lakescope.open(demo_index.path).report(tmp_path / "again")
    contents = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (demo_site, tmp_path / "again")
    ]
    assert contents[0] == contents[1]


def test_tables_by_size() -> None:
    assert sizes_of([1, 9, 10, 99, 100]) == [
        {"low": 1, "high": 9, "count": 2},
        {"low": 10, "high": 99, "count": 2},
        {"low": 100, "high": 999, "count": 1},
    ]
    assert sizes_of([0, 5])[0] == {"low": 0, "high": 0, "count": 1}
    assert sizes_of([]) == []


# Hostile names and cells ----------------------------------------------------------------------------------------------

NASTY = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "../../../etc/passwd",
    "a&amp;b </title><h1>",
    "javascript:alert(1)",
    '=HYPERLINK("http://evil.example","x")',
    "\u202etxt.exe \x07 bell",
    "con",
    "CON",
    "ｆｕｌｌ width/日本",
    "n" * 3_000,
]


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Lake, Path]:
    cells = {name: [*NASTY, NASTY[0], NASTY[1]] for name in NASTY if len(name) < 100}
    given: dict[str, Any] = {name: pa.table(cells) for name in NASTY}
    name, cell = "<b>&" * 20, '<"&>' * 30
    given["wide"] = pa.table({f"{name}{i}": [f"{cell}{j % 5}" for j in range(12)] for i in range(250)})
    folder = tmp_path_factory.mktemp("nasty").resolve()
    lake = lakescope.index(given, folder / "x.idx", spark=spark)
    lake.report(folder / "site")
    return lake, folder / "site"


def test_hostile_names_and_cells_are_text(nasty: tuple[Lake, Path]) -> None:
    lake, folder = nasty
    found = check_whole(folder)
    for path in found:
        source = path.read_text("utf-8")
        assert source.count("<script") == 1, path
        assert "<img src=x" not in source
        assert "\u202e" not in source
        assert "\x07" not in source
    first = page_of(folder, NASTY[0])
    assert NASTY[0] in first.text  # shown as what it is
    assert lake.tables().num_rows == len(NASTY) + 1
    names = [path.name for path in (folder / "tables").iterdir()]
    assert len({name.lower() for name in names}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9._-]{1,100}\.html", name) for name in names)


def test_a_wide_table_is_cut_into_pages(nasty: tuple[Lake, Path]) -> None:
    _, folder = nasty
    name = site.page_name("wide")
    parts = sorted((folder / "tables").glob(f"{name}*.html"))
    assert len(parts) > 1
    ids = [each for path in parts for each in Page(path).ids if re.fullmatch(r"c\d+", each)]
    assert sorted(ids, key=lambda each: int(each[1:])) == [f"c{i + 1}" for i in range(250)]
    assert f"250 columns on {len(parts)} pages" in Page(folder / "tables" / f"{name}.html").text


def test_markdown_of_hostile_names_has_no_tags(nasty: tuple[Lake, Path], tmp_path: Path) -> None:
    lake, _ = nasty
    lake.report(tmp_path / "md", "md")
    for path in (tmp_path / "md").rglob("*.md"):
        text = path.read_text("utf-8")
        assert not re.search(r"(?<!\\)<", text), path
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert rows
        assert all(re.search(r"(?<!\\)\|$", row) for row in rows)


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), unique=True, max_size=20))
def test_page_names_are_safe_and_never_the_same(tables: list[str]) -> None:
    names = site.PageNames(tables)
    given_names = [str(names.get(table)) for table in tables]
    assert len({name.lower() for name in given_names}) == len(tables)
    assert all(re.fullmatch(r"[a-z0-9._-]+", name) and not name.startswith((".", "-")) for name in given_names)
    assert names.get("\0 never there") is None


def test_tables_that_only_utf8_cannot_tell_apart_have_pages_of_their_own() -> None:
    names = site.PageNames(["a\ud800", "a\udfff", "a?"])
    assert len({names.get("a\ud800"), names.get("a\udfff"), names.get("a?")}) == 3


TAGGED = st.lists(st.sampled_from(["<b>", "</p>", "<i x='", '"', "'", "&lt;", "&", "\x07", "é", ">"]), max_size=9).map(
    "".join
)


@settings(deadline=None)
@given(TAGGED, TAGGED)
def test_elements_escape_whatever_is_not_html(inner: str, attribute: str) -> None:
    made = el("p", inner, Html("<b>x</b>"), title=attribute, class_="c", hidden=False, data_a=None)
    seen: list[tuple[str, str | None]] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.append((tag, dict(attrs).get("title")))

    Parser().feed(made)
    assert [tag for tag, _ in seen] == ["p", "b"]
    assert joined(inner) == joined(Html(joined(inner)))
    assert "<script" not in joined("<script>")


# Sizes ----------------------------------------------------------------------------------------------------------------


def test_the_list_of_a_thousand_tables_stays_small(nasty: tuple[Lake, Path], demo_index: Lake, tmp_path: Path) -> None:
    demo_index.report(tmp_path / "json", "json")
    lake = json.loads((tmp_path / "json" / "index.json").read_text("utf-8"))
    worst = max(lake["tables"], key=lambda line: len(json.dumps(line)))
    lines = [{**worst, "table": f"{'<&' * 60}{i}", "key": ["<&>" * 20]} for i in range(1_000)]
    lake["tables"] = lines
    page = pages.page("x", pages.lake_page(lake, lines, lambda name: "tables/" + "x" * 90), up="", lake="x")
    assert len(page.encode()) < 2 * MEGABYTE


def test_whatever_refers_to_whatever_pages_stay_small(demo_index: Lake) -> None:
    name, columns = '<&>"' * 100, ('<&>"' * 100,)
    edge = {
        **{"child_table": name, "child_columns": columns, "parent_table": name, "parent_columns": columns},
        **{"inclusion": 0.5, "low": 0.4, "high": 0.6, "exact": False, "coverage": 1.0, "score": 0.9},
        "reasons": (name,),
    }
    problem = {"table": name, "severity": "error", "code": name, "detail": name, "count": 1}
    lake = {"references": [edge] * 1_000, "problems": [problem] * 1_000, "codes": [], "notes": []}
    lake["codes"] = [{"severity": "error", "code": "x", "tables": 1}]
    for body in (
        pages.references_page(lake, lambda table: "x", picture=None),
        pages.problems_page(lake, lambda table: "x"),
        pages.links_section(
            {"key": None, "refers_to": [edge] * 100, "referred_by": [edge] * 100, "joins": [], "notes": []},
            lambda table: "x",
        ),
    ):
        assert len(body.encode()) < MEGABYTE
        assert "more rows would make this page too large" in body


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([], [(0, 0)]), ([5], [(0, 1)]), ([50], [(0, 1)]), ([4, 4, 4], [(0, 2), (2, 3)]), ([50, 1], [(0, 1), (1, 2)])],
)
def test_pages_hold_so_many_bytes_or_one_thing(sizes: list[int], expected: list[tuple[int, int]]) -> None:
    assert site.paged(sizes, 10) == expected


@pytest.mark.slow
def test_a_thousand_tables(tmp_path: Path, spark: SparkSession) -> None:
    from lakescope.demo import write_many_csvs

    write_many_csvs(tmp_path / "lake", tables=1_000)
    lake = lakescope.index(tmp_path / "lake", tmp_path / "x.idx", spark=spark)
    folder = tmp_path.resolve() / "site"
    assert lake.report(folder).tables == 1_000
    found = check_whole(folder)
    assert len(found) == 1_003
    assert (folder / "index.html").stat().st_size < 2 * MEGABYTE


# Writing it -----------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_report_is_refused(demo_index: Lake, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / site.MARKER).write_text('["lakescope report"]')
    for name in ("full", "file", "link", "fake"):
        with pytest.raises(BadRequest, match=name):
            demo_index.report(tmp_path / name)
    assert (tmp_path / "full" / "thesis.tex").read_text() == "years of work"
    with pytest.raises(BadRequest, match="pdf"):
        demo_index.report(tmp_path / "new", "pdf")
    assert not (tmp_path / "new").exists()


def interrupt(after: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done >= after:
            raise KeyboardInterrupt

    return progress


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    given = {f"t{i}": pa.table({"id": [1, 2, 3], "x": ["a", "b", None]}) for i in range(3)}
    given["none"] = pa.table({})
    return lakescope.index(given, tmp_path_factory.mktemp("small") / "x.idx", spark=spark, joins=False)


def test_ctrl_c_leaves_no_half_report(small: Lake, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        small.report(tmp_path / "new" / "site", progress=interrupt(2))
    assert list((tmp_path / "new").iterdir()) == []
    small.report(tmp_path / "new" / "site", "md")
    before = sorted(path.name for path in (tmp_path / "new" / "site").rglob("*"))
    with pytest.raises(KeyboardInterrupt):
        small.report(tmp_path / "new" / "site", progress=interrupt(1))
    assert sorted(path.name for path in (tmp_path / "new" / "site").rglob("*")) == before
    small.report(tmp_path / "new" / "site")
    assert not list((tmp_path / "new" / "site").rglob("*.md"))  # replaced, not mixed
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["site"]


def test_when_the_new_report_cannot_be_moved_the_former_one_stays(
    small: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.report(tmp_path / "site", "json")
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.startswith(".site-") and target.name == "site":
            raise OSError(28, "no space left")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(lakescope.LakescopeError, match="no space left"):
        small.report(tmp_path / "site")
    assert (tmp_path / "site" / "index.json").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_an_index_of_profiles_only_says_that_it_knows_no_joins(small: Lake, tmp_path: Path) -> None:
    small.report(tmp_path / "site")
    check_whole((tmp_path / "site").resolve())
    assert "holds profiles only" in page_of(tmp_path / "site", "t0").text


def test_a_long_list_of_tables_is_cut_into_pages(small: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "_LINES", 2)
    small.report(tmp_path / "site")
    found = check_whole((tmp_path / "site").resolve())
    lists = [page for path, page in found.items() if path.name.startswith("index")]
    assert len(lists) == -(-small.tables().num_rows // 2)
    listed = [link for page in lists for link in page.links if link.startswith("tables/")]
    assert len(set(listed)) == len(listed) == small.tables().num_rows
    assert all(f"on {len(lists)} pages" in page.text for page in lists)


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    from lakescope.faces.cli import main

    monkeypatch.setattr(sys, "argv", ["lakescope", *arguments])
    try:
        main()
    except SystemExit as ended:
        return ended.code
    return 0


def test_the_command(
    small: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = small.tables().num_rows
    assert command(monkeypatch, "report", small.path, "--out", str(tmp_path / "a")) in (0, None)
    assert capsys.readouterr().out.startswith(f"{tables} tables on {tables + 3} pages, ")
    assert command(monkeypatch, "report", small.path, "--out", str(tmp_path / "b"), "--format", "json") in (0, None)
    assert f"{tables} tables on {tables + 1} pages" in capsys.readouterr().out
    assert command(monkeypatch, "report", small.path, "--out", str(tmp_path)) == 2
    assert "no report" in capsys.readouterr().err
    assert command(monkeypatch, "report", small.path, "--out", str(tmp_path / "c"), "--format", "pdf") == 2


# In a browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        left_out("there is no chromium: apt install chromium")
    profile = tmp_path_factory.mktemp("chromium")

    def dump(address: str) -> str:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
        ran = subprocess.run(
            [program, *options, f"--user-data-dir={profile}", address], capture_output=True, text=True, timeout=120
        )
        assert "Content Security Policy" not in ran.stderr
        return ran.stdout

    return dump


def test_search_and_order_work_from_a_file(demo_site: Path, browse: Callable[[str], str]) -> None:
    shown = browse(f"file://{demo_site}/index.html#?q=shop+csv&sort=-2")
    assert re.search(r"\d+ of \d+ tables</output>", shown)
    assert 'aria-sort="descending"' in shown
    row = (
        r'<tr><th scope="row"><a href="tables/[^"]+">([^<]+)</a></th><td>csv</td><td class="number" data-value="(\d+)">'
    )
    seen = re.findall(row, shown)
    assert seen
    assert all("shop" in name and "csv" in name for name, _ in seen)
    counts = [int(count) for _, count in seen]
    assert counts == sorted(counts, reverse=True)
