"""Notebooks: what objects show there, and examples that keep executing."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbclient import NotebookClient

import lakescope
from lakescope.engines.joins.answers import Joinable
from lakescope.engines.transforms.program import Expression, Piece, Program
from lakescope.lake import Lake
from lakescope.results import Results
from lakescope.show.charts import Svg, histogram_chart, scatter_chart, share_bar
from lakescope.show.notebook import plan_html, profile_html, results_html, words_html

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))
HOSTILE = "<script>alert('x')</script>\"'&\x07"


class Tags(HTMLParser):
    """Elements, attributes and text; what is not well-formed is an error."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in ("br", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check(source: str) -> Tags:
    """Self-contained: no script, no style sheet, no picture from elsewhere, no handler, no fixed text colour."""
    found = Tags(source)
    assert found.tags.isdisjoint({"script", "style", "img", "link", "iframe", "pre"})
    assert not {name for name in found.attributes if name.startswith("on") or name in ("src", "href")}
    assert "color:black" not in source
    assert "background:#fff" not in source
    return found


def test_everything_shows_itself(demo_index: Lake) -> None:
    people = {"name": ["Ada Lovelace", "Alan Turing", "Grace Hopper", "Edsger Dijkstra"]}
    authors = {"author": ["Turing, Alan", "Hopper, Grace", "Lovelace, Ada", "Dijkstra, Edsger"]}
    plan = lakescope.autojoin(people, authors)
    rides = ("mobility/bike_rides_daily.csv", "date", "rides")
    found = demo_index.correlated(*rides)
    joins = demo_index.joinable("shop/orders.csv", "customer_id")
    shown: dict[str, tuple[Any, str]] = {
        "lake": (demo_index, f"{demo_index.info()['tables']:,}"),
        "profile": (demo_index.profile("shop/orders.csv"), "70.5%"),
        "joins": (joins, "shop/customers.csv"),
        "correlations": (found, "weather/daily_weather.parquet"),
        "headers": (demo_index.suggest_headers("legacy/cust_dump.csv"), "first_name"),
        "plan": (plan, "100% of the right rows joined"),
        "nothing": (lakescope.autojoin(people, {"x": ["1", "2"]}), "No transformation found"),
        "fuzzy": (lakescope.fuzzyjoin(people, {"name": ["Ada Lovelace", "Alan Turin"]}, "name"), "joins"),
        "scatter": (demo_index.scatter(*rides, found[0]), "mean_temp_c"),
    }
    for name, (what, text) in shown.items():
        assert text in check(what._repr_html_()).text, name
    assert "<svg" in demo_index.key_diagram("svg")._repr_html_()
    assert repr(plan) == plan.words()


def test_notes_and_what_is_not_shown_are_told() -> None:
    one = Joinable(
        *("t", "c", 1, 1.0, 1.0, 1.0, True, "q", 1, 1, 1.0, 1.0, "1:1", "text", 0.0, 0.0, "high", (), ("a",), ()),
    )
    many = Results(Joinable, [one] * 40, notes=[HOSTILE])
    text = check(many._repr_html_()).text
    assert "10 more" in text
    assert "<script>" in text
    assert "nothing found" in check(Results(Joinable, [])._repr_html_()).text


def test_columns_of_sentences_have_room() -> None:
    html = results_html(["table", "score", "reasons"], [["a.csv", "1", "all keys are referred to, " * 3]], [], [1])
    assert [part.split("em")[0] for part in html.split("min-width:")[1:]] == ["5", "12"]


def test_a_picture_is_text_as_well() -> None:
    drawn = scatter_chart([(1.0, 2.0), (3.0, 4.0)], title=HOSTILE, x=HOSTILE, y=HOSTILE)
    assert isinstance(drawn, str)
    assert drawn.startswith("<svg")
    assert len(repr(drawn)) < 40
    check(drawn._repr_html_())
    assert Svg("<svg width='9'></svg>")._repr_html_().startswith("<div")


#: Texts that are likely to hold what looks like a tag, an end of one, or an entity.
TAGGED = st.lists(
    st.sampled_from(["<b>", "</b>", "<i x='", '"', "'", "&lt;", "&", "\x07", "é", "a b"]), max_size=12
).map("".join)


@settings(deadline=None)
@given(st.one_of(st.text(max_size=60), TAGGED), st.lists(st.integers(0, 10**9), max_size=30))
def test_no_text_escapes(hostile: str, counts: list[int]) -> None:
    assert check(results_html([hostile], [[hostile]], [hostile])).tags.isdisjoint({"b", "i"})
    assert check(words_html(hostile)).tags <= {"div"}
    bins = [{"low": hostile, "high": hostile, "count": count} for count in counts]
    drawn = histogram_chart(bins, title=hostile)
    assert check(drawn).tags <= {"svg", "rect", "title"}
    assert drawn.count("<rect") == (len(counts) if any(counts) else 0)


@settings(deadline=None)
@given(st.floats(allow_nan=False))
def test_a_bar_stays_in_its_place(share: float) -> None:
    drawn = share_bar(share, width=50)
    check(drawn)
    whole, filled = (float(width) for width in re.findall(r'<rect width="([^"]+)"', drawn))
    assert 0 <= filled <= whole == 50


def test_hostile_profiles_and_plans() -> None:
    problem = {"severity": "error", "code": HOSTILE, "count": 1, "detail": HOSTILE}
    text = check(profile_html({"table": HOSTILE, "rows": 1, "columns": [], "problems": [problem]})).text
    assert text.count("<script>") == 3
    copied = Program((Expression((Piece("a"),)),), (Piece(HOSTILE),))
    plan: dict[str, Any] = {
        **{"direction": "left->right", "single": True, "coverage": 0.5, "source_coverage": 0.25, "keys": [HOSTILE]},
        **{"programs": [{**copied.to_dict(), "words": HOSTILE}], "notes": [HOSTILE], "reason": ""},
        "evidence": [{"row": {"a": HOSTILE}, "key": HOSTILE, "shared": HOSTILE, "borne_out": True}],
    }
    assert check(plan_html(plan, HOSTILE, HOSTILE)).text.count("<script>") == 7
    plan["evidence"][0]["borne_out"] = False
    assert check(plan_html(plan, HOSTILE, HOSTILE)).text.count("<script>") == 4


# Examples -------------------------------------------------------------------------------------------------------------


def outputs(cell: Any) -> list[tuple[str, tuple[str, ...]]]:
    """Kinds of what a cell shows; what is on standard error depends on the machine."""
    return [
        (output.output_type, tuple(sorted(output.get("data", {}))))
        for output in cell.get("outputs", [])
        if output.get("name") != "stderr"
    ]


def printed(cell: Any) -> str:
    return "".join(output.text for output in cell.get("outputs", []) if output.get("name") == "stdout")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_an_example_shows_what_it_says(name: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("*.idx", "augmented.csv"))
    known = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    ran = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    here = {"metadata": {"path": str(tmp_path / "examples")}}
    # The package that is tested, wherever the kernel begins. A cell that fails raises.
    tested = {**os.environ, "PYTHONPATH": str(Path(lakescope.__file__).resolve().parents[1])}
    NotebookClient(ran, timeout=300, kernel_name="python3", resources=here).execute(env=tested)
    for before, after in zip(known.cells, ran.cells, strict=True):
        assert outputs(before) == outputs(after), before.source
        assert printed(before) == printed(after), before.source
    assert sum(bool(outputs(cell)) for cell in known.cells) >= 8


def test_examples_name_no_machine() -> None:
    assert len(NOTEBOOKS) == 2
    for name in NOTEBOOKS:
        text = (EXAMPLES / f"{name}.ipynb").read_text("utf-8")
        for place in (tempfile.gettempdir(), str(Path.home()), str(EXAMPLES.parent), "/home/", "/Users/", "C:\\\\"):
            assert place not in text, (name, place)
    known = (EXAMPLES / "README.md").read_text("utf-8")
    for folder in (EXAMPLES / "data").iterdir():
        assert f"`data/{folder.name}`" in known
