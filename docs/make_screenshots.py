"""Screenshots of the web app on the demo lake: ``python docs/make_screenshots.py lakescope-demo/lake.idx``.

Needs playwright (the development requirements have it) and a chromium, which is looked for on the path.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
from playwright.sync_api import Page, expect, sync_playwright

HERE = Path(__file__).resolve().parent
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
WEATHER = "weather/daily_weather.parquet"

#: Whether the charts within the window are there.
_ALL_DRAWN = """() => [...document.querySelectorAll("figure[data-chart]")].every((figure) => {
    const box = figure.getBoundingClientRect();
    return box.top > innerHeight || box.bottom < 0 || "drawn" in figure.dataset;
})"""


def settled(page: Page) -> None:
    """Wait until nothing is loaded any more and all charts are drawn."""
    expect(page.locator("[aria-busy=true], [data-loading], [data-job], #map-busy")).to_have_count(0, timeout=180_000)
    page.wait_for_function(_ALL_DRAWN)
    page.wait_for_timeout(700)


def visits(lake: Path, path: Path) -> None:
    """A file to search with, which is not in the lake: visits of a beach on each day, more when it is warm and dry."""
    dice = random.Random(7)
    lines = ["day,visits"]
    for row in pq.read_table(lake / WEATHER).to_pylist():
        count = max(0, round(400 + 45 * row["mean_temp_c"] - 30 * min(row["rain_mm"], 12) + dice.gauss(0, 110)))
        lines.append(f"{row['date']},{count}")
    path.write_text("\n".join(lines) + "\n")


def visit(page: Page, base: str, mine: Path, out: Path, kind: str) -> None:
    """Visit every page and keep how it looks."""

    def keep(name: str) -> None:
        settled(page)
        if not kind or name in ("home", "correlated"):
            page.screenshot(path=out / f"web-{name}{kind}.png")

    page.goto(base)
    keep("home")
    page.goto(f"{base}/table?name=shop/orders.csv")
    keep("table")
    page.goto(f"{base}/search")
    page.set_input_files("input[type=file]", mine)
    page.wait_for_url("**/search?query=upload*")
    settled(page)
    keep("ask")
    page.locator("#correlated").evaluate("node => scrollTo(0, node.getBoundingClientRect().top + scrollY - 24)")
    keep("correlated")
    page.locator("#joinable").evaluate("node => scrollTo(0, node.getBoundingClientRect().top + scrollY - 24)")
    keep("joinable")
    page.goto(f"{base}/map")
    settled(page)
    if not kind:
        page.locator(".map-card").screenshot(path=out / "web-map.png")
    page.goto(f"{base}/pair?left=table:shop/orders.csv&right=table:shop/customers.csv")
    keep("pair")


def shots(base: str, mine: Path, out: Path) -> None:
    """All pages in light and dark, and on a phone."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for kind, size, scheme in (("", WIDE, "light"), ("-dark", WIDE, "dark"), ("-phone", PHONE, "light")):
            context = browser.new_context(viewport=size, color_scheme=scheme)
            page = context.new_page()
            page.set_default_timeout(180_000)
            visit(page, base, mine, out, kind)
            context.close()
        browser.close()


def main() -> None:
    """Serve an index and visit it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", type=Path, help="index of the demo lake; the lake lies beside it")
    parser.add_argument("--out", type=Path, default=HERE / "images")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "lakescope", "serve", str(options.index), "--port", "8123"]
    server = subprocess.Popen(command)
    try:
        for _ in range(100):
            time.sleep(0.2)
            try:
                urllib.request.urlopen("http://127.0.0.1:8123/healthz").close()
                break
            except OSError:
                continue
        with tempfile.TemporaryDirectory() as folder:
            mine = Path(folder) / "beach_visits.csv"
            visits(options.index.parent / "lake", mine)
            shots("http://127.0.0.1:8123", mine, options.out)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
