"""The web app in a real browser: every page and flow, with what keeps people from using it looked for by axe."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pyarrow.csv as pc
import pytest

import lakescope
from helpers.histories import three_versions
from helpers.needs import left_out
from lakescope.code.dialects import PLAN_DIALECTS
from lakescope.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("playwright")
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

# Two cores and a browser beside other tests: what is there within seconds may take more of them.
expect.set_options(timeout=30_000)
WEB = Path(__file__).parent / "web"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
RIDES = "mobility/bike_rides_daily.csv"
PHONE = {"width": 390, "height": 844}
#: Milliseconds for what a worker does.
LONG = 120_000


@contextmanager
def serving(index: str, *options: str) -> Iterator[tuple[int, str]]:
    """The process of a server that is warm, and its address (with a token, if it wants one)."""
    program = [
        sys.executable,
        "-c",
        "from lakescope.faces.cli import main; main()",
        "serve",
        index,
        "--port",
        "0",
        *options,
    ]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r"(http://[^/]+)(/\?token=\S+)?", process.stderr.readline())
    assert found is not None
    if found[2]:
        yield process.pid, found[0]
        process.terminate()
        process.communicate(timeout=20)
        return
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(found[1] + "/healthz") as response:
                    if json.load(response)["ready"]:
                        break
            except OSError:
                pass
            time.sleep(0.2)
        else:
            pytest.fail("the server does not get ready")
        yield process.pid, found[1]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def server(demo_index: Lake) -> Iterator[tuple[int, str]]:
    """A server of the demo lake."""
    with serving(demo_index.path) as started:
        yield started


@pytest.fixture(scope="module")
def base(server: tuple[int, str]) -> str:
    return server[1]


def tell_workers(server: int, what: signal.Signals) -> None:
    """Send a signal to the workers of a server."""
    for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        os.kill(int(pid), what)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        left_out("there is no chromium: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


def watched(context: BrowserContext) -> Page:
    """A page on which nothing may go wrong unseen: errors, refusals by the policy, dialogs."""
    page = context.new_page()
    page.set_default_timeout(60_000)
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.wrong = wrong  # type: ignore[attr-defined]
    return page


@pytest.fixture
def page(browser: Browser, base: str) -> Iterator[Page]:
    context = browser.new_context(base_url=base, viewport={"width": 1280, "height": 860})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=base)
    page = watched(context)
    yield page
    assert page.wrong == []  # type: ignore[attr-defined]
    context.close()


def settled(page: Page) -> None:
    """Wait until nothing is loaded any more."""
    expect(page.locator("[aria-busy=true], [data-loading], [data-job], #map-busy")).to_have_count(0, timeout=LONG)


def searched(page: Page, demo_lake: Path) -> None:
    """Search with a file of rides."""
    page.goto("/search")
    page.set_input_files("input[type=file]", demo_lake / RIDES)
    page.wait_for_url("**/search?query=upload*")
    expect(page.get_by_role("heading", name="What do you want to explain?")).to_be_visible(timeout=LONG)
    settled(page)


# Axe ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core, fetched by npm when first needed."""
    path = WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        npm = shutil.which("npm")
        if npm is None:
            left_out("there is no npm to fetch axe-core with")
        ran = subprocess.run(
            [npm, "ci", "--no-audit", "--no-fund"], cwd=WEB, capture_output=True, text=True, timeout=300, check=False
        )
        if ran.returncode:
            left_out(f"npm could not fetch axe-core: {ran.stderr[-200:]}")
    return path.read_text("utf-8")


def findings(page: Page, axe: str) -> list[str]:
    """What axe calls serious or critical."""
    page.evaluate(axe + "\n;null")
    # It would fetch sheets of styles again, which pages of a report forbid.
    options = "{ preload: location.protocol !== 'file:' }"
    found: list[dict[str, Any]] = page.evaluate(f"axe.run({options}).then(result => result.violations)")
    return [
        f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes'][:3]]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


PAGES = [
    "/", "/?type=date&sort=columns", "/?like=nothing-is-called-this", "/find?q=Berlin", "/find?q=zzzzzz", "/problems",
    "/table?name=shop/orders.csv", "/table?name=broken/blank_headers.csv", "/search", f"/search?query=table:{RIDES}",
    "/pair", "/pair?left=table:shop/orders.csv&right=table:shop/customers.csv", "/map", "/api",
]  # fmt: skip


#: Pages that show most of what there is: cards with code, a table that is chosen on the map, two tables.
RICH = [
    "/", "/table?name=shop/orders.csv", f"/search?query=table:{RIDES}&key=date&target=rides",
    "/map?table=shop/orders.csv", "/pair?left=table:shop/orders.csv&right=table:shop/customers.csv",
]  # fmt: skip
LIGHT: dict[str, Any] = {"color_scheme": "light", "viewport": {"width": 1280, "height": 860}}
DARK: dict[str, Any] = {"color_scheme": "dark", "viewport": {"width": 1280, "height": 860}}
ON_PHONE: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}


def all_findings(browser: Browser, base: str, axe: str, look: dict[str, Any], paths: list[str]) -> dict[str, list[str]]:
    """What axe, if it is asked, finds on pages that are unfolded, and what is too wide or goes wrong."""
    context = browser.new_context(base_url=base, **look)
    page = watched(context)
    found = {}
    for path in paths:
        page.goto(path)
        settled(page)
        page.evaluate("document.querySelectorAll('details').forEach((each, at) => { each.open = at < 6; })")
        found[path] = findings(page, axe) if axe else []
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            found[path].append("wider than the window")
    found["console"] = page.wrong  # type: ignore[attr-defined]
    context.close()
    return {path: each for path, each in found.items() if each}


@pytest.mark.parametrize(
    ("look", "paths"), [(LIGHT, [*PAGES, RICH[2], RICH[3]]), (DARK, RICH[1:]), (ON_PHONE, RICH[2:])]
)
def test_pages_can_be_used_by_everybody(
    look: dict[str, Any], paths: list[str], browser: Browser, base: str, axe: str
) -> None:
    assert all_findings(browser, base, axe, look, paths) == {}


@pytest.mark.slow
@pytest.mark.parametrize("look", [LIGHT, DARK, ON_PHONE, {**ON_PHONE, "color_scheme": "dark"}])
def test_every_page_can_be_used_by_everybody(look: dict[str, Any], browser: Browser, base: str, axe: str) -> None:
    assert all_findings(browser, base, axe, look, [*PAGES, *RICH]) == {}


@pytest.mark.parametrize("look", [LIGHT, {**ON_PHONE, "color_scheme": "dark"}])
def test_a_report_can_be_used_by_everybody(
    look: dict[str, Any], browser: Browser, demo_index: Lake, axe: str, tmp_path: Path
) -> None:
    demo_index.report(tmp_path / "site")
    tables = sorted((tmp_path / "site" / "tables").glob("shop-orders*.html"))
    pages = [*sorted((tmp_path / "site").glob("*.html")), *tables[:1]]
    assert len(pages) >= 4
    assert all_findings(browser, "file://", axe, look, [path.as_uri() for path in pages]) == {}


def test_pages_fit_a_phone(browser: Browser, base: str) -> None:
    context = browser.new_context(base_url=base, **ON_PHONE)
    page = watched(context)
    for path in PAGES:
        page.goto(path)
        settled(page)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path
    context.close()


# The lake and its tables ----------------------------------------------------------------------------------------------


def test_from_home_by_value_to_a_table_and_back(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Look into your lake")).to_be_visible()
    expect(page.get_by_role("figure", name="Tables by number of rows").locator("li .bar").first).to_be_visible()
    page.get_by_placeholder("A name, or a value such as Berlin").fill("Berlin")
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url("**/find?q=Berlin")
    page.get_by_role("link", name="world/capital_cities.csv").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("world/capital_cities.csv")
    page.go_back()
    expect(page).to_have_url(re.compile(r"/find\?q=Berlin$"))
    page.go_back()
    expect(page.get_by_role("heading", name="Look into your lake")).to_be_visible()


def test_facets_and_sorting_are_in_the_address(page: Page) -> None:
    page.goto("/")
    page.get_by_role("complementary", name="Filters").get_by_role("link", name=re.compile("^shop")).click()
    expect(page).to_have_url(re.compile("folder=shop"))
    rows = page.locator("table.data tbody th")
    assert all(text.startswith("shop/") for text in rows.all_inner_texts())
    page.get_by_role("link", name="Columns", exact=True).click()
    expect(page).to_have_url(re.compile("folder=shop.*sort=columns"))
    page.get_by_role("link", name=re.compile("Remove the filter folder")).click()
    expect(page).not_to_have_url(re.compile("folder"))


def test_a_table_shows_what_is_in_it(page: Page) -> None:
    page.goto("/table?name=shop/orders.csv")
    settled(page)
    sample = page.get_by_role("region", name="Sample rows")
    expect(sample.locator("thead th").first).to_contain_text("order_id")
    assert sample.locator("thead svg.bars").count() >= 5
    expect(sample.locator("thead")).to_contain_text("70.5% missing")
    expect(page.locator(".first")).to_contain_text("mostly missing")
    expect(page.locator("section", has=page.locator("#joins"))).to_contain_text("shop/order_lines.parquet")
    keys = page.locator("section", has=page.locator("#keys"))
    expect(keys).to_contain_text("shop/customers.csv")
    expect(page.locator("section", has=page.locator("#like"))).to_contain_text("alike")
    page.get_by_role("link", name="Everything about every column").click()
    page.locator(".column-detail summary", has_text="total").click()
    expect(page.locator(".column-detail", has_text="total")).to_contain_text("quartiles")
    page.locator(".first").get_by_role("link", name="note").click()
    expect(page.locator("tr:target")).to_contain_text("note")
    expect(page.locator("tr:target")).to_be_in_viewport()


def test_bars_of_all_columns_stand_on_one_line(page: Page) -> None:
    page.goto("/table?name=shop/orders.csv")
    settled(page)
    bars = page.get_by_role("region", name="Sample rows").locator("svg.bars").all()
    assert len(bars) == 7
    assert len({(box["y"], box["height"]) for bar in bars if (box := bar.bounding_box())}) == 1


def test_dependencies_are_looked_for_when_asked(page: Page) -> None:
    page.goto("/table?name=shop/categories.csv")
    settled(page)
    section = page.locator("section", has=page.locator("#fds"))
    section.get_by_role("link", name="Look for them").click()
    settled(page)
    expect(section.locator("ul.finds, p.muted").first).to_be_visible()


def test_where_one_can_get_from_a_table(page: Page) -> None:
    page.goto("/table?name=shop/orders.csv")
    settled(page)
    section = page.locator("section", has=page.locator("#paths"))
    expect(section.locator(".steps").first).to_contain_text("shop/orders.csv.")
    section.locator(".find-head a").first.click()
    expect(page).to_have_url(re.compile("/table\\?name="))


def test_names_for_columns_without_one(page: Page) -> None:
    page.goto("/problems")
    page.get_by_role("link", name="Look for them").click()
    settled(page)
    page.get_by_role("region", name="Headers in doubt").get_by_role("link", name="legacy/cust_dump.csv").first.click()
    settled(page)
    section = page.locator("section", has=page.locator("#names"))
    expect(section.locator("li strong").first).to_have_text("customer_id")
    expect(section).to_contain_text("shares values with columns of this name")


def test_inclusions_are_looked_for_when_asked(page: Page) -> None:
    page.goto("/map")
    settled(page)
    section = page.locator("section", has=page.locator("#inclusions"))
    section.get_by_role("link", name="Look for them").click()
    settled(page)
    expect(section.locator("tbody tr").first).to_contain_text("order_id")
    page.goto("/table?name=shop/orders.csv")
    settled(page)
    page.get_by_role("link", name="All columns that are in others").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Columns that are in others")
    expect(page.locator("tbody tr").first).to_contain_text("shop/orders.csv")


def test_the_history_of_a_table(browser: Browser, axe: str, tmp_path: Path) -> None:
    with serving(three_versions(tmp_path).path) as (_, base):
        assert all_findings(browser, base, axe, LIGHT, ["/table?name=t.csv"]) == {}
        context = browser.new_context(base_url=base)
        page = watched(context)
        page.goto("/table?name=t.csv")
        settled(page)
        section = page.locator("section", has=page.locator("#history"))
        expect(section.locator("tbody tr")).to_have_count(3)
        section.get_by_role("link", name="Compare with version 1").click()
        expect(page.locator("main")).to_contain_text("no longer a key")
        page.go_back()
        expect(page.get_by_role("heading", level=1)).to_have_text("t.csv")
        assert page.wrong == []  # type: ignore[attr-defined]
        context.close()


def test_long_work_shows_progress_and_is_cancelled(page: Page, server: tuple[int, str]) -> None:
    page.goto("/table?name=mobility/bike_trips.csv.gz")
    settled(page)
    section = page.locator("section", has=page.locator("#fds"))
    # Workers that are held up: work is as long as the test wants it to be.
    tell_workers(server[0], signal.SIGSTOP)
    try:
        section.get_by_role("link", name="Look for them").click()
        expect(section.get_by_role("progressbar")).to_be_visible()
        section.get_by_role("button", name="Cancel").click()
        expect(section).to_contain_text("Cancelled.")
    finally:
        tell_workers(server[0], signal.SIGCONT)
    section.get_by_role("button", name="Ask again").click()
    settled(page)
    expect(section).not_to_contain_text("Cancelled.")


# Search with a file ---------------------------------------------------------------------------------------------------


def test_search_with_a_file_choose_join_download_and_search_on(page: Page, demo_lake: Path, tmp_path: Path) -> None:
    searched(page, demo_lake)
    expect(page.locator("#key")).to_have_value("date")
    expect(page.locator("#target")).to_have_value("rides")
    card = page.get_by_role("article", name="mean_temp_c of weather/daily_weather.parquet")
    expect(card).to_contain_text("strong")
    expect(card.locator(".coefficient")).to_have_text(re.compile(r"\+0\.91.*\+0\.90 to \+0\.93"))
    card.scroll_into_view_if_needed()
    points = card.locator("figure.chart svg .points path")
    assert points.count() > 100
    points.first.hover(force=True)
    expect(page.locator(".tip")).to_have_text(re.compile(r"^rides: [0-9,.]+\s+mean_temp_c: [0-9.-]+$"))
    page.mouse.move(0, 0)
    expect(page.locator(".tip")).to_be_hidden()
    card.get_by_label(re.compile("Add")).check()
    page.get_by_role("button", name="Join the chosen columns").click()
    page.wait_for_url("**/result?job=*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("730 rows", timeout=LONG)
    expect(page.get_by_role("region", name="What each column adds").last).to_contain_text("daily_weather.mean_temp_c")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    download.value.save_as(tmp_path / "joined.csv")
    kept = pc.read_csv(tmp_path / "joined.csv")
    assert kept.num_rows == 730
    assert "daily_weather.mean_temp_c" in kept.column_names
    page.get_by_role("link", name="Search with this table").click()
    expect(page.get_by_role("heading", name="What do you want to explain?")).to_be_visible(timeout=LONG)
    assert "daily_weather.mean_temp_c" in str(page.locator("#target").inner_text())
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("730 rows")
    page.get_by_role("region", name="The join elsewhere").get_by_text("Code", exact=True).click()
    expect(page.locator(".snippet").first).to_contain_text('AS "daily_weather.mean_temp_c"')


def test_joinable_tables_are_cards_with_code_and_a_join(page: Page, demo_lake: Path) -> None:
    page.goto("/search?query=table:shop/orders.csv&key=customer_id")
    settled(page)
    card = page.get_by_role("article", name="shop/customers.csv by customer_id")
    expect(card).to_contain_text("of yours are there, exact")
    expect(card).to_contain_text("of theirs are yours")
    expect(card).to_contain_text("In both")
    card.get_by_text("Code", exact=True).click()
    card.get_by_role("button", name="Copy the polars code").click()
    expect(page.locator("#said")).to_have_text("Copied.")
    assert "import polars" in page.evaluate("navigator.clipboard.readText()")
    card.get_by_role("button", name="Join with shop/customers.csv").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("4,000 rows", timeout=LONG)
    expect(page.get_by_role("region", name="Preview").last.locator("thead")).to_contain_text("first_name")


def test_another_key_and_number_are_chosen(page: Page) -> None:
    page.goto(f"/search?query=table:{RIDES}")
    settled(page)
    page.locator("#target").select_option("member_rides")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page).to_have_url(re.compile("target=member_rides"))
    settled(page)
    expect(page.get_by_role("heading", name="Columns that move with member_rides")).to_be_visible()
    page.locator("#target").select_option("")
    page.get_by_role("button", name="Search", exact=True).click()
    settled(page)
    expect(page.locator("#correlated")).to_have_count(0)
    expect(page.locator("#joinable")).to_be_visible()


def test_a_file_is_dropped(page: Page) -> None:
    page.goto("/search")
    drop = """form => {
        const files = new DataTransfer();
        files.items.add(new File(["city,size\\nBerlin,3.6\\nParis,2.1\\nRome,2.8\\nMadrid,3.3\\n"], "cities.csv"));
        form.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
    }"""
    page.locator("[data-drop]").evaluate(drop)
    page.wait_for_url("**/search?query=upload*")
    expect(page.locator("#key")).to_have_value("city", timeout=LONG)
    settled(page)
    expect(page.locator("section", has=page.locator("#joinable"))).to_contain_text("world/capital_cities.csv")
    page.goto("/search")
    expect(page.locator(".files")).to_contain_text("cities.csv")
    page.get_by_role("button", name="Forget cities.csv").click()
    expect(page.locator("main")).to_contain_text("None yet.")


def test_a_file_that_is_not_taken_says_why(browser: Browser, base: str, tmp_path: Path) -> None:
    context = browser.new_context(base_url=base)
    page = watched(context)
    page.goto("/search")
    (tmp_path / "x.docx").write_bytes(b"PK")
    page.set_input_files("input[type=file]", tmp_path / "x.docx")
    expect(page.locator("[data-drop-said]")).to_contain_text("send CSV")
    context.close()


def test_hostile_files_run_nothing(page: Page, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    path = tmp_path / "<svg onload=alert(2)>.csv"
    rows = "".join(
        f'"{each}",{n},{n * n}\n'
        for n, each in enumerate([evil, "<script>alert(3)</script>", "Berlin", "Paris", "Rome"])
    )
    path.write_text(f'"{evil}","=1+1",z\n{rows}')
    page.goto("/search")
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/search?query=upload*")
    expect(page.get_by_role("heading", name="What do you want to explain?")).to_be_visible(timeout=LONG)
    settled(page)
    page.get_by_text(re.compile("3 columns")).click()
    expect(page.get_by_role("region", name="First rows")).to_contain_text("<script>alert(3)")
    assert page.locator("img[src=x]").count() == 0


# Two tables, the map --------------------------------------------------------------------------------------------------


def test_two_tables_side_by_side(page: Page) -> None:
    page.goto("/pair")
    page.get_by_label("First table").fill("table:shop/orders.csv")
    page.get_by_label("Second table").fill("table:shop/customers.csv")
    page.get_by_role("button", name="Join", exact=True).click()
    settled(page)
    plan = page.locator("section", has=page.locator("#plan"))
    expect(plan.locator(".words")).to_contain_text("customer_id")
    expect(plan.get_by_role("region", name="Joined rows").locator("tbody tr")).to_have_count(10)
    plan.get_by_text("Code", exact=True).click()
    expect(plan.locator(".snippet")).to_have_count(len(PLAN_DIALECTS))
    plan.get_by_role("button", name="Make the joined table").click()
    page.wait_for_url("**/result?job=*")
    expect(page.get_by_role("link", name="Search with this table")).to_be_visible(timeout=LONG)


class _OtherSite(BaseHTTPRequestHandler):
    """A page that sends who opens it elsewhere: to the address behind its question mark."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        there = self.path.partition("?")[2]
        self.wfile.write(f'<a href="{there}">there</a>'.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_link_of_another_site_can_be_followed_but_asks_nothing_itself(
    scripts: bool, browser: Browser, base: str
) -> None:
    there = f"{base}/map/inclusions?minimum=0.6{int(scripts)}"
    with ThreadingHTTPServer(("127.0.0.1", 0), _OtherSite) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        context = browser.new_context(java_script_enabled=scripts)
        page = context.new_page()
        page.goto(f"http://localhost:{site.server_port}/?{there}")
        page.get_by_role("link", name="there").click()
        if not scripts:
            page.get_by_role("link", name="Look for it").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Columns that are in others", timeout=LONG)
        assert page.url == there
        context.close()
        site.shutdown()


def test_the_map_is_filtered_zoomed_and_shared(page: Page, base: str) -> None:
    page.goto("/map")
    settled(page)
    expect(page.locator("#map .node").first).to_be_visible(timeout=LONG)
    every = page.locator("#map .node:not(.gone)").count()
    page.get_by_label("Name contains").fill("shop/")
    expect(page).to_have_url(re.compile("name=shop"))
    assert 0 < page.locator("#map .node:not(.gone)").count() < every
    page.locator("#map .node:not(.gone)", has_text="orders.csv").first.click()
    panel = page.locator("#map-panel")
    expect(panel).to_contain_text("shop/orders.csv")
    expect(panel).to_contain_text("refers to")
    address = page.url
    before = page.locator("#map > g").get_attribute("transform")
    page.get_by_role("button", name="Zoom in").click()
    assert page.locator("#map > g").get_attribute("transform") != before
    page.locator("#map").focus()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    page.goto(address)
    expect(page.locator("#map-panel")).to_contain_text("shop/orders.csv", timeout=LONG)
    expect(page.get_by_label("Name contains")).to_have_value("shop/")
    settled(page)
    shown = page.get_by_role("region", name="Links between tables").locator("tbody tr:visible")
    assert all("shop/" in text for text in shown.all_inner_texts())


#: Pairs of names on the map that lie on one another, and names that lie on another's dot.
_MET = """() => {
    const names = [...document.querySelectorAll("#map .names text:not(.gone, .quiet)")].map((each) => each.getBoundingClientRect());
    const dots = [...document.querySelectorAll("#map .node:not(.gone) circle")].map((each) => each.getBoundingClientRect());
    const meet = (a, b) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
    const met = names.flatMap((a, at) => names.slice(at + 1).filter((b) => meet(a, b)));
    const round = (a, b) => Math.hypot(a.x + a.width / 2 - b.x - b.width / 2, a.y + a.height / 2 - b.y - b.height / 2) < (a.width + b.width) / 2 - 1;
    return { names: names.length, met: met.length, dots: dots.flatMap((a, at) => dots.slice(at + 1).filter((b) => round(a, b))).length };
}"""  # noqa: E501


@pytest.mark.parametrize("look", [LIGHT, ON_PHONE])
def test_nothing_on_the_map_lies_on_something_else(look: dict[str, Any], browser: Browser, base: str) -> None:
    context = browser.new_context(base_url=base, **look)
    page = watched(context)
    page.goto("/map")
    settled(page)
    found = page.evaluate(_MET)
    assert (found["met"], found["dots"]) == (0, 0)
    assert found["names"] >= 5
    if look is LIGHT:
        assert found["names"] > 60, "most tables have their name"
        hidden = page.locator("#map .names text.quiet").count()
        for _ in range(5):
            page.get_by_role("button", name="Zoom in").click()
        page.wait_for_timeout(300)
        assert page.locator("#map .names text.quiet").count() <= hidden
        assert page.evaluate(_MET)["met"] == 0
    legend = page.get_by_label("Colours: folders")
    expect(legend).to_contain_text("shop")
    expect(legend).to_contain_text("other folders")
    context.close()


def test_the_table_with_the_most_links_has_its_name(browser: Browser, tmp_path: Path, spark: SparkSession) -> None:
    """Many tables around one, all called alike: what tells them apart is shown, and the one in the middle is."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "ddf--entities--geo--country.csv").write_text(
        "country,continent\n" + "".join(f"c{n * 37 % 999},x{n % 5}\n" for n in range(90))
    )
    for at in range(40):
        rows = "".join(f"{n}{at},c{n * 37 % 999},{n * at % 13}\n" for n in range(90) if (n + at) % 9)
        name = f"ddf--datapoints--indicator_{chr(97 + at % 26) * 9}{at}--by--geo--time.csv"
        (tmp_path / "lake" / name).write_text(f"number,country,value\n{rows}")
    lake = lakescope.index(tmp_path / "lake", tmp_path / "lake.idx", spark=spark)
    with serving(lake.path) as (_, address):
        context = browser.new_context(base_url=address, **LIGHT)
        page = watched(context)
        page.goto("/map")
        settled(page)
        shown = page.locator("#map .names text:not(.quiet)").all_text_contents()
        assert "entities--geo--country" in " ".join(shown)
        assert len(shown) > 30
        assert not any("datapoints" in each for each in shown)
        context.close()


def test_titles_of_axes_lie_beside_their_numbers(page: Page) -> None:
    page.goto(f"/search?query=table:{RIDES}&key=date&target=rides")
    settled(page)
    figures = page.locator("figure.chart:has(svg)").all()
    assert len(figures) > 8
    for figure in figures[:6]:
        assert (
            figure.evaluate("""figure => {
            const box = (each) => each.getBoundingClientRect();
            const texts = [...figure.querySelectorAll("svg .titles text, svg .ticks text")].map(box);
            const plot = box(figure.querySelector("svg"));
            const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
            const inside = (each) => each.left > plot.left - 1 && each.right < plot.right + 1;
            const meets = (each, at) => texts.slice(at + 1).some((other) => meet(each, other));
            return texts.filter((each, at) => !inside(each) || meets(each, at)).length;
        }""")
            == 0
        )


def test_charts_of_small_lakes(browser: Browser, tmp_path: Path, spark: SparkSession) -> None:
    """One table has its chart; none has words instead."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.csv").write_text("x,y\n" + "".join(f"{n},{n % 7}\n" for n in range(50)))
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "bad.parquet").write_bytes(b"PAR1 and no more")
    for name in ("one", "none"):
        lake = lakescope.index(tmp_path / name, tmp_path / f"{name}.idx", spark=spark)
        with serving(lake.path) as (_, address):
            context = browser.new_context(base_url=address)
            page = watched(context)
            page.goto("/")
            if name == "one":
                expect(page.locator(".distribution li")).to_have_text(
                    [re.compile("0 to 10 .*0 "), re.compile("10 to 100 .*1 ")]
                )
            else:
                expect(page.locator("main")).to_contain_text("There is no table here.")
            page.goto("/map")
            settled(page)
            expect(page.locator("[data-map-said]")).to_contain_text("0 of 0 linked tables")
            assert page.wrong == []  # type: ignore[attr-defined]
            context.close()


# By keyboard, without scripts, in the dark ----------------------------------------------------------------------------


def test_the_keyboard_is_enough(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("customer")
    page.keyboard.press("Enter")
    page.wait_for_url("**/find?q=customer")


def test_a_table_is_chosen_on_the_map_by_keyboard(page: Page) -> None:
    page.goto("/map")
    settled(page)
    page.get_by_label("Name contains").focus()
    page.keyboard.type("shop/orders")
    page.keyboard.press("Enter")
    expect(page.locator("#map-panel")).to_contain_text("refers to")
    expect(page).to_have_url(re.compile("table=shop%2Forders.csv"))
    page.keyboard.press("Tab")
    page.locator("#map").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#map-panel")).to_be_hidden()


def test_a_theme_is_kept(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/search")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_pages_work_without_scripts(browser: Browser, base: str, demo_lake: Path) -> None:
    context = browser.new_context(base_url=base, java_script_enabled=False)
    page = context.new_page()
    page.goto("/table?name=shop/orders.csv")
    page.locator("section", has=page.locator("#joins")).get_by_role("link", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Joins")
    expect(page.locator("main")).to_contain_text("shop/order_lines.parquet")
    page.goto("/search")
    page.set_input_files("input[type=file]", demo_lake / RIDES)
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/search?query=upload*")
    for _ in range(60):
        if page.get_by_role("heading", name="What do you want to explain?").count():
            break
        page.wait_for_timeout(500)
        page.reload()
    expect(page.locator("#key")).to_have_value("date")
    page.goto("/map")
    expect(page.locator("progress")).to_be_hidden()
    page.get_by_role("link", name="All links as a list").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Links between tables")
    context.close()


def test_nothing_chosen_is_told_where_one_chooses(page: Page, browser: Browser, base: str) -> None:
    asked = f"/search?query=table:{RIDES}&key=date&target=rides"
    page.goto(asked)
    settled(page)
    page.get_by_role("button", name="Join the chosen columns").click()
    expect(page.locator("[data-none-chosen]")).to_be_visible()
    assert "/search?" in page.url
    context = browser.new_context(base_url=base, java_script_enabled=False)
    plain = context.new_page()
    plain.goto(asked.replace("/search", "/search/correlated"))
    plain.get_by_role("button", name="Join the chosen columns").click()
    expect(plain.get_by_role("alert")).to_contain_text("No column was chosen")
    expect(plain.locator("#target")).to_have_value("rides")
    context.close()


def test_types_and_problems_are_facets_on_a_phone_too(browser: Browser, base: str) -> None:
    context = browser.new_context(base_url=base, **ON_PHONE)
    page = watched(context)
    page.goto("/")
    page.get_by_text("Types and problems").click()
    page.locator(".narrow-facets").get_by_role("link", name="date").click()
    expect(page).to_have_url(re.compile("type=date"))
    expect(page.locator(".narrow-facets").get_by_role("link", name="With problems")).to_be_visible()
    assert page.wrong == []  # type: ignore[attr-defined]
    context.close()


def test_the_token_is_typed_where_it_is_missing(browser: Browser, demo_index: Lake) -> None:
    with serving(demo_index.path, "--host", "0.0.0.0") as (_, address):
        place, _, token = address.partition("/?token=")
        place = f"http://127.0.0.1:{place.rpartition(':')[2]}"
        context = browser.new_context(base_url=place)
        page = watched(context)
        page.goto("/?like=shop")
        expect(page.locator("body")).not_to_have_css("background-color", "rgba(0, 0, 0, 0)")
        assert page.locator("img").first.evaluate("each => each.naturalWidth") > 0
        page.get_by_label("Token").fill("something else")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("this is not the token")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_label("Name contains")).to_have_value("shop")
        assert page.url == f"{place}/?like=shop"
        # The answer to a page without the token is all that a browser complains of.
        assert all("401" in each for each in page.wrong)  # type: ignore[attr-defined]
        assert len(page.wrong) <= 2  # type: ignore[attr-defined]
        context.close()


# Other lakes ----------------------------------------------------------------------------------------------------------


def odd_tables(folder: Path) -> None:
    """Tables at the ends of what there is: long and hostile names, many columns, no rows, no values, no keys."""
    long = "a_long_name_that_says_all_" * 7
    deep = folder / "deep" / ("folder_of_one_long_word" * 5)
    deep.mkdir(parents=True)
    (deep / ("Aussenbeziehungen" * 6 + ".csv")).write_text("id,x\n" + "".join(f"{n},{n * 2}\n" for n in range(40)))
    words = "".join(f"{n},{'word' * 40},{n * 2}\n" for n in range(40))
    (folder / f"{long}.csv").write_text(f"id,{'header_without_end' * 9},x\n{words}")
    cells = "".join(f"{n},<script>alert(3)</script>,=1+{n}\n" for n in range(30))
    (folder / "<img src=x onerror=alert(1)>.csv").write_text(f'id,"<b onclick=alert(2)>",=cmd\n{cells}')
    rows = "".join(",".join(str(n * m % 997) for m in range(1, 201)) + "\n" for n in range(60))
    (folder / "wide.csv").write_text(",".join(f"column_{n}" for n in range(200)) + f"\n{rows}")
    (folder / "header_only.csv").write_text("a,b,c\n")
    (folder / "all_missing.csv").write_text("a,b,c\n" + ",,\n" * 50)
    (folder / "constant.csv").write_text("a,b,c\n" + "1,x,NA\n" * 50)
    (folder / "one_row.csv").write_text("k,v\nBerlin,3\n")
    (folder / "nameless.csv").write_text("a,a,,\n1,2,3,4\n5,6,7,8\n")
    (folder / "empty.csv").write_text("")
    (folder / "bad.parquet").write_bytes(b"PAR1 and no more")


def pages_of(tables: list[str]) -> list[str]:
    return [f"/table?{urlencode({'name': table})}" for table in tables]


def test_odd_tables_have_pages_like_all_others(browser: Browser, axe: str, tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "odd").mkdir()
    odd_tables(tmp_path / "odd")
    lake = lakescope.index(tmp_path / "odd", tmp_path / "odd.idx", spark=spark)
    tables = lake.tables()["table"].to_pylist()
    assert len(tables) == 9
    with serving(lake.path) as (_, address):
        assert all_findings(browser, address, axe, LIGHT, ["/", "/problems", "/map", *pages_of(tables)]) == {}
        assert all_findings(browser, address, "", ON_PHONE, ["/", *pages_of(tables)]) == {}


def real_files(most: int) -> list[Path]:
    """Some small files of each collection of open data that lies beside the repository."""
    lakes = Path(os.environ.get("LAKESCOPE_LAKES", Path(__file__).parents[2] / "shared" / "data" / "lakes"))
    if not lakes.is_dir():
        pytest.skip(f"there are no lakes in {lakes}")
    files = [sorted(each for each in folder.rglob("*") if each.is_file()) for folder in sorted(lakes.iterdir())]
    some = [each for found in files for each in found if each.stat().st_size < 2_000_000]
    return some[:: max(1, len(some) // most)]


def walk_of(lake: Lake, each: int) -> list[str]:
    """Pages about a lake: of its largest tables, of middling and of small ones."""
    sizes = lake.tables().sort_by([("rows", "descending")])["table"].to_pylist()
    names = [*sizes[:each], *sizes[len(sizes) // 2 :][:each], *sizes[-(each + 1) // 2 :]]
    return [
        *("/", "/map", "/problems", "/?type=date", "/find?q=Germany"),
        *pages_of(names),
        *(f"/search?{urlencode({'query': f'table:{name}'})}" for name in names[:each]),
        f"/pair?{urlencode({'left': f'table:{names[0]}', 'right': f'table:{names[1]}'})}",
    ]


def test_pages_of_real_lakes_can_be_used(browser: Browser, axe: str, tmp_path: Path, spark: SparkSession) -> None:
    """The same on open data as it is; more of it, and in the dark, when slow tests are asked for."""
    lake = lakescope.index(real_files(30), tmp_path / "real.idx", spark=spark)
    with serving(lake.path) as (_, address):
        assert all_findings(browser, address, axe, LIGHT, walk_of(lake, 2)) == {}
        assert all_findings(browser, address, axe, ON_PHONE, walk_of(lake, 1)) == {}


@pytest.mark.slow
def test_many_pages_of_real_lakes_can_be_used(browser: Browser, axe: str, tmp_path: Path, spark: SparkSession) -> None:
    lake = lakescope.index(real_files(60), tmp_path / "real.idx", spark=spark)
    with serving(lake.path) as (_, address):
        for look in (LIGHT, DARK, {**ON_PHONE, "color_scheme": "dark"}):
            assert all_findings(browser, address, axe, look, walk_of(lake, 4)) == {}
