import random
import re
import sqlite3
import xml.etree.ElementTree as ElementTree
from contextlib import closing
from functools import partial
from itertools import pairwise

import duckdb
import pytest

from helpers.effort import lines_run
from lakescope.show.diagram import Box, Column, Edge, mermaid, sql, svg

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "</text><script>alert(1)</script>",
    '"><script>',
    "a\nb",
    "]]>&amp;",
    "nul\x00\x1f\x7f",
    "\ud800 alone",
    "\ufffe\uffff",
    "\u202eright to left",
    "%%{init: {}}%%",
    "direction TB",
    '--"; DROP TABLE x; --',
    "a\r-- b\u2028c\x85d",
    "~a~b~",
    "",
    "  ",
    "客户/订单.csv",
    "n" * 300,
]


def box(table, text, *, key=(), foreign=(), rows=10):
    pairs = (item.split(":") for item in text.split())
    return Box(table, tuple(Column(name, kind, name in key, name in foreign) for name, kind in pairs), rows)


def edge(child, parent, inclusion=1.0, verified=True, orphans=()):
    """An edge from ``table.column`` to ``table.column``."""
    (table, column), (other, referred) = child.split("."), parent.split(".")
    return Edge(table, (column,), other, (referred,), inclusion, verified, orphans)


def shop():
    boxes = [
        box("customer", "id:integer name:text", key=["id"], rows=59),
        box("order", "id:integer customer_id:integer placed:date", key=["id"], foreign=["customer_id"], rows=1),
        box("line", "order_id:integer no:integer sku:code", key=["order_id", "no"], foreign=["order_id", "sku"]),
        box("product", "sku:code price:money", key=["sku"], rows=2_345_678),
        box("employee", "id:integer boss:integer", key=["id"], foreign=["boss"]),
        box("note", "a:text b:text"),
    ]
    edges = [
        edge("order.customer_id", "customer.id"),
        edge("line.order_id", "order.id", verified=False),
        edge("line.sku", "product.sku", 0.973, orphans=("x<1>", "y")),
        edge("employee.boss", "employee.id", 0.99999, verified=False, orphans=("7",)),
    ]
    return boxes, edges


def random_schema(tables, seed, *, alone=0.15, cycles=0.05):
    chance = random.Random(seed)
    names = [f"db.sqlite::t{i}" if i % 2 else f"sales/2021/{i}.csv" for i in range(tables)]
    foreign = {name: [] for name in names}
    edges = []
    for i in range(1, int(tables * (1 - alone))):
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            j = chance.randrange(tables) if chance.random() < cycles else int(i * chance.random() ** 3)
            column = f"t{j}_id"
            if column not in foreign[names[i]]:
                foreign[names[i]].append(column)
                share = chance.choice([1.0, 1.0, 0.97])
                edges.append(Edge(names[i], (column,), names[j], ("id",), share, chance.random() < 0.6, ()))
    boxes = []
    for name in names:
        columns = [Column("id", "integer", True, False)]
        columns += [Column(column, "integer", False, True) for column in foreign[name]]
        columns += [Column(f"c{k}", "text", False, False) for k in range(chance.randrange(12))]
        boxes.append(Box(name, tuple(columns), chance.randrange(10**7)))
    return boxes, edges


def groups(root, name):
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == name]


def lines(root):
    return [path for path in root.iter(f"{SVG}path") if (path.get("class") or "").startswith("edge ")]


def words(element):
    """The texts that are shown, without tooltips."""
    return [text.text for text in element.iter(f"{SVG}text")]


def title(element):
    return element.find(f"{SVG}title").text


def places(root):
    """Left, top, right and bottom of each table."""
    found = {}
    for group in groups(root, "table"):
        x, y = map(float, re.findall(r"[-\d.]+", group.get("transform")))
        card = next(rect for rect in group.iter(f"{SVG}rect") if rect.get("class") == "card")
        found[group.get("data-table")] = (x, y, x + float(card.get("width")), y + float(card.get("height")))
    return found


def points(path):
    """The points of a path, its corners among them."""
    return [tuple(map(float, point)) for point in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.get("d"))]


def assert_tidy(root):
    """All within the picture, no table on another one, and no line through a table."""
    _, _, width, height = map(float, root.get("viewBox").split())
    boxes = sorted(places(root).values())
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        for other in boxes[i + 1 :]:
            assert other[0] >= right or other[1] >= bottom or other[3] <= top
    for path in lines(root):
        way = points(path)
        assert all(0 <= x <= width and 0 <= y <= height for x, y in way)
        for (x, y), (u, v) in pairwise(way):
            low, high, up, down = min(x, u), max(x, u), min(y, v), max(y, v)
            for left, top, right, bottom in boxes:
                assert high < left + 0.2 or low > right - 0.2 or down < top + 0.2 or up > bottom - 0.2


# --- SVG --------------------------------------------------------------------------------------------------------------


def test_svg_has_a_group_for_each_table_and_a_line_for_each_edge():
    boxes, edges = shop()
    root = ElementTree.fromstring(svg(boxes, edges))
    assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
    assert title(root) == "Schema of 6 tables with 4 foreign keys"
    assert "order (customer_id) refers to customer (id) (verified)" in root.find(f"{SVG}desc").text
    assert [group.get("data-table") for group in groups(root, "table")] == [box.table for box in boxes]
    assert [path.get("class") for path in lines(root)] == ["edge solid", "edge dashed", "edge solid", "edge dashed"]
    assert [(group.get("data-child"), group.get("data-parent")) for group in groups(root, "relation")] == [
        ("order", "customer"),
        ("line", "order"),
        ("line", "product"),
        ("employee", "employee"),
    ]
    assert_tidy(root)


def test_svg_shows_keys_types_and_row_counts():
    boxes, edges = shop()
    tables = {
        group.get("data-table"): words(group) for group in groups(ElementTree.fromstring(svg(boxes, edges)), "table")
    }
    assert tables["customer"] == ["customer", "59 rows", "PK", "id", "integer", "name", "text"]
    assert tables["order"][:2] == ["order", "1 row"]
    assert tables["line"][2:8] == ["PK", "FK", "order_id", "integer", "PK", "no"]
    assert tables["product"] == ["product", "2.3M rows", "PK", "sku", "code", "price", "text"]


def test_svg_says_how_many_values_are_found_and_which_are_not():
    relations = groups(ElementTree.fromstring(svg(*shop())), "relation")
    assert [words(group) for group in relations] == [[], [], ["97.3%"], [">99.9%"]]
    assert title(relations[0]) == "order (customer_id) refers to customer (id): verified"
    assert title(relations[2]).endswith("97.3% of its values, verified; not found: x<1>, y")
    assert title(relations[3]).endswith("inferred; not found: 7")


def test_svg_lines_lead_from_the_row_of_the_parent_to_the_row_of_the_child():
    boxes = [
        box("parent", "id:integer name:text", key=["id"]),
        box("child", "id:integer x:text parent_id:integer", key=["id"], foreign=["parent_id"]),
    ]
    root = ElementTree.fromstring(svg(boxes, [edge("child.parent_id", "parent.id")]))
    (line,) = lines(root)
    parent, child = places(root)["parent"], places(root)["child"]
    assert parent[2] < child[0]
    start, end = points(line)[0], points(line)[-1]
    assert (start[0], end[0]) == (parent[2], child[0])
    assert 27 <= start[1] - parent[1] <= 45, "the first row, that of the key"
    assert 45 <= end[1] - child[1] <= 63, "the second row: foreign keys come right after keys"


def test_svg_shows_some_of_many_columns_but_all_that_edges_use():
    wide = Box("wide", tuple(Column(f"c{i}", "text", i == 30, False) for i in range(40)), 3)
    child = box("child", "r:text", foreign=["r"])
    root = ElementTree.fromstring(svg([wide, child], [edge("child.r", "wide.c20")]))
    shown = words(groups(root, "table")[0])
    assert [word for word in shown if word.startswith("c")] == ["c30", "c20", "c0", "c1", "c2", "c3", "c4", "c5"]
    assert shown[-1] == "+ 32 more"
    more = next(text for text in root.iter(f"{SVG}text") if text.text == "+ 32 more")
    assert re.fullmatch("c6, c7, .*, …", title(more))
    exact = Box("exact", tuple(Column(f"c{i}", "text", False, False) for i in range(7)), 3)
    assert "more" not in svg([exact], [])


@pytest.mark.parametrize("name", HOSTILE)
def test_svg_is_well_formed_whatever_the_names(name):
    boxes = [
        Box(name, (Column(name, name, True, False), Column(name + "2", "text", False, True)), 1),
        Box(name + "!", (Column(name, "text", True, True),), 1),
    ]
    edges = [Edge(name + "!", (name,), name, (name,), 0.5, False, (name, name))]
    text = svg(boxes, [*edges, Edge(name, (name + "2",), name, (name,), 1.0, True, ())])
    root = ElementTree.fromstring(text.encode())
    assert len(groups(root, "table")) == len(lines(root)) == 2
    assert "<script" not in text
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= set(
        "svg title desc style rect path text g".split()
    )
    assert_tidy(root)


def test_svg_cuts_long_names_in_the_middle_and_keeps_them_in_tooltips():
    table, column = "lake/" + "long/" * 20 + "end.csv", "start_" + "of_" * 30 + "name"
    root = ElementTree.fromstring(svg([Box(table, (Column(column, "text", True, False),), 1)], []))
    (group,) = groups(root, "table")
    name, row = words(group)[0], words(group)[3]
    assert re.fullmatch("lake/.{1,10}….{1,20}/end.csv", name)
    assert re.fullmatch("start_.{1,10}….{1,20}name", row)
    assert group.get("data-table") == table
    assert title(group) == f"{table}: 1 row, 1 column"
    assert column in [element.text for element in root.iter(f"{SVG}title")]


def test_svg_draws_a_self_reference_as_a_loop_at_the_side():
    employee = box("employee", "id:integer boss:integer mentor:integer", key=["id"], foreign=["boss", "mentor"])
    edges = [edge("employee.boss", "employee.id"), edge("employee.mentor", "employee.id", 0.9, verified=False)]
    root = ElementTree.fromstring(svg([employee], edges))
    right = places(root)["employee"][2]
    loops = [points(path) for path in lines(root)]
    for loop in loops:
        assert loop[0][0] == loop[-1][0] == right
        assert loop[0][1] > loop[-1][1], "from the lower row up to the key"
        assert max(x for x, _ in loop) > right + 10
    assert max(loops[0]) < max(loops[1]), "loops do not lie on top of each other"
    assert_tidy(root)


def test_svg_copes_with_cycles():
    boxes = [box(name, "id:integer a:integer b:integer", key=["id"], foreign=["a", "b"]) for name in "pqrs"]
    ring = [edge(f"{one}.a", f"{other}.id") for one, other in ("pq", "qr", "rs", "sp", "pp")]
    both = [edge("p.b", "r.id", 0.5), edge("r.b", "p.id", 0.5)]
    root = ElementTree.fromstring(svg(boxes, ring + both))
    assert len(lines(root)) == 7
    assert_tidy(root)


def test_svg_ends_meet_missing_columns_at_the_header_and_missing_tables_nowhere():
    boxes = [box("a", "id:integer", key=["id"]), box("b", "x:integer")]
    root = ElementTree.fromstring(svg(boxes, [edge("b.gone", "a.id"), edge("b.x", "gone.id"), edge("gone.x", "a.id")]))
    (line,) = lines(root)
    top = places(root)["b"][1]
    assert top < points(line)[-1][1] < top + 27


def test_svg_places_parents_left_of_children():
    boxes, edges = random_schema(40, 5, cycles=0)
    at = places(ElementTree.fromstring(svg(boxes, edges)))
    for each in edges:
        if each.child_table != each.parent_table:
            assert at[each.parent_table][2] < at[each.child_table][0]


@pytest.mark.parametrize("seed", range(6))
def test_svg_of_fifty_tables_is_tidy(seed):
    root = ElementTree.fromstring(svg(*random_schema(50, seed, alone=0.1 * seed)))
    assert len(groups(root, "table")) == 50
    assert_tidy(root)


def test_svg_of_a_star_is_no_tower():
    boxes = [box("hub", "id:integer", key=["id"])]
    boxes += [box(f"t{i}", "id:integer hub_id:integer x:text", key=["id"], foreign=["hub_id"]) for i in range(60)]
    root = ElementTree.fromstring(svg(boxes, [edge(f"t{i}.hub_id", "hub.id") for i in range(60)]))
    _, _, width, height = map(float, root.get("viewBox").split())
    assert 0.5 < width / height < 3
    assert_tidy(root)


def test_svg_stands_tables_without_edges_below_the_others():
    boxes, edges = shop()
    at = places(ElementTree.fromstring(svg(boxes, edges)))
    assert at["note"][1] > max(bottom for name, (_, _, _, bottom) in at.items() if name != "note")


def test_svg_is_the_same_every_time():
    boxes, edges = random_schema(30, 3)
    assert svg(boxes, edges) == svg(list(boxes), tuple(edges))


def test_svg_of_nothing():
    root = ElementTree.fromstring(svg([], []))
    assert title(root) == "Schema of 0 tables with 0 foreign keys"
    assert groups(root, "table") == lines(root) == []


def test_svg_of_four_times_the_tables_is_not_sixteen_times_the_work():
    few, many = (lines_run(partial(svg, *random_schema(tables, 1))) for tables in (100, 400))
    assert many < 12 * few


def test_svg_of_500_tables():
    boxes, edges = random_schema(500, 1)
    assert len(lines(ElementTree.fromstring(svg(boxes, edges)))) == len(edges) > 400


def test_svg_is_light_or_dark_and_needs_nothing_from_outside():
    text = svg(*shop())
    assert "@media(prefers-color-scheme:dark)" in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|<script|href", text)


# --- Mermaid ----------------------------------------------------------------------------------------------------------


def test_mermaid_of_a_shop():
    assert mermaid(*shop()) == (
        """erDiagram
    "customer" {
        integer id PK
        text name
    }
    "order" {
        integer id PK
        integer customer_id FK
        date placed
    }
    "line" {
        integer order_id PK, FK
        integer no PK
        code sku FK
    }
    "product" {
        code sku PK
        text price
    }
    "employee" {
        integer id PK
        integer boss FK
    }
    "note" {
        text a
        text b
    }
    "customer" ||--o{ "order" : "customer_id"
    "order" ||..o{ "line" : "order_id"
    "product" ||--o{ "line" : "sku (97.3%)"
    "employee" ||..o{ "employee" : "boss (>99.9%)"
"""
    )


def test_mermaid_keeps_odd_names_as_comments():
    columns = [Column(name, "text", False, False) for name in ("unit price", "unit-price", "1st", "PK", "größe", 'a"b')]
    assert mermaid([Box('db.sqlite::my "best" 50% table', tuple(columns), 1)], []) == (
        """erDiagram
    "db.sqlite::my 'best' 50\N{FULLWIDTH PERCENT SIGN} table" {
        text unit_price "unit price"
        text unit_price_2 "unit-price"
        text _1st "1st"
        text _PK "PK"
        text größe
        text a_b "a'b"
    }
"""
    )


def test_mermaid_tells_tables_apart_and_names_all_columns_of_an_edge():
    boxes = [box('a"', "x:text y:text"), box("a'", "x:text y:text")]
    text = mermaid(boxes, [Edge('a"', ("x", "y"), "a'", ("x", "y"), 1.0, True, ())])
    assert '''"a'_2" ||--o{ "a'" : "x, y"''' in text


@pytest.mark.parametrize("name", HOSTILE)
def test_mermaid_has_the_same_form_whatever_the_names(name):
    boxes = [Box(name, (Column(name, name, True, False),), 1), Box(name + "!", (Column(name, "text", True, True),), 1)]
    text = mermaid(boxes, [Edge(name + "!", (name,), name, (name,), 0.5, False, (name,))])
    text.encode()
    assert len(text.splitlines()) == 8
    entity, comment = r'"[^"%\\~`;#<>]+"', r'"[^"%\\~`;#<>]*"'
    forms = [r"erDiagram"]
    forms += [rf"    {entity} \{{", rf"        text \w+ PK( {comment})?", r"    \}"]
    forms += [rf"    {entity} \{{", rf"        text \w+ PK, FK( {comment})?", r"    \}"]
    forms += [rf'    {entity} \|\|\.\.o\{{ {entity} : "[^"%\\~`;#<>]* \(50\.0%\)"']
    for line, form in zip(text.splitlines(), forms, strict=True):
        assert re.fullmatch(form, line), line
    assert not re.search(r"direction\s+TB", text)


def test_mermaid_of_nothing():
    assert mermaid([], []) == "erDiagram\n"


# --- SQL --------------------------------------------------------------------------------------------------------------


def test_sql_of_a_shop():
    assert sql(*shop()) == (
        """ALTER TABLE "customer" ADD PRIMARY KEY ("id");
ALTER TABLE "order" ADD PRIMARY KEY ("id");
ALTER TABLE "line" ADD PRIMARY KEY ("order_id", "no");
ALTER TABLE "product" ADD PRIMARY KEY ("sku");
ALTER TABLE "employee" ADD PRIMARY KEY ("id");
ALTER TABLE "order" ADD FOREIGN KEY ("customer_id") REFERENCES "customer" ("id");
ALTER TABLE "line" ADD FOREIGN KEY ("order_id") REFERENCES "order" ("id");  -- inferred, not verified
-- 97.3% only: ALTER TABLE "line" ADD FOREIGN KEY ("sku") REFERENCES "product" ("sku");
-- SELECT DISTINCT c."sku" FROM "line" AS c LEFT JOIN "product" AS p ON c."sku" = p."sku" """
        """WHERE p."sku" IS NULL AND c."sku" IS NOT NULL;
-- >99.9% only: ALTER TABLE "employee" ADD FOREIGN KEY ("boss") REFERENCES "employee" ("id");
-- SELECT DISTINCT c."boss" FROM "employee" AS c LEFT JOIN "employee" AS p ON c."boss" = p."id" """
        """WHERE p."id" IS NULL AND c."boss" IS NOT NULL;
"""
    )


def test_sql_makes_referred_columns_unique_that_are_no_key():
    boxes = [box("country", "id:integer iso:code", key=["id"]), box("city", "iso:code", foreign=["iso"])]
    boxes.append(box("river", "iso:code", foreign=["iso"]))
    assert sql(boxes, [edge("city.iso", "country.iso"), edge("river.iso", "country.iso")]).splitlines() == [
        'ALTER TABLE "country" ADD PRIMARY KEY ("id");',
        'ALTER TABLE "country" ADD UNIQUE ("iso");',
        'ALTER TABLE "city" ADD FOREIGN KEY ("iso") REFERENCES "country" ("iso");',
        'ALTER TABLE "river" ADD FOREIGN KEY ("iso") REFERENCES "country" ("iso");',
    ]


def uncommented(text):
    """The statements of a comment, as taking off the dashes gives them."""
    lines = text.splitlines(keepends=True)
    assert all(line.startswith("-- ") for line in lines)
    return "".join(line.removeprefix("-- ") for line in lines)


@pytest.mark.parametrize(
    "name", ["sales/2021.csv", "db.sqlite::orders", 'a "b"', "two\nlines", '\r--"; x', "\u2028\x85"]
)
def test_sql_orphan_query_finds_orphans(name):
    quoted = '"' + name.replace('"', '""') + '"'
    parent = Box("parent", (Column("a", "integer", True, False), Column("b", "text", True, False)), 2)
    child = Box(name, (Column(name, "integer", False, True), Column("y", "text", False, True)), 5)
    text = sql([parent, child], [Edge(name, (name, "y"), "parent", ("a", "b"), 0.5, True, ())])
    query = "SELECT" + uncommented(text.partition("\n")[2]).partition("SELECT")[2]
    rows = "(1, 'u'), (2, 'v'), (3, 'w'), (3, 'w'), (NULL, 'w'), (3, NULL)"
    setup = [
        "CREATE TABLE parent (a INTEGER, b VARCHAR)",
        "INSERT INTO parent VALUES (1, 'u'), (2, 'v')",
        f"CREATE TABLE {quoted} ({quoted} INTEGER, y VARCHAR)",
        f"INSERT INTO {quoted} VALUES {rows}",
    ]
    with closing(sqlite3.connect(":memory:")) as lite, duckdb.connect() as duck:
        for statement in setup:
            lite.execute(statement)
            duck.execute(statement)
        duck.execute(text)
        assert lite.execute(query).fetchall() == duck.execute(query).fetchall() == [(3, "w")]


@pytest.mark.parametrize("name", HOSTILE)
def test_sql_comments_hold_whatever_the_names(name):
    boxes = [Box(name, (Column(name, "text", False, True),), 1)]
    text = sql(boxes, [Edge(name, (name,), name, (name,), 0.5, False, (name,))])
    text.encode()
    assert "\0" not in text
    assert all(line.startswith("-- ") for line in text.splitlines())


def test_sql_of_nothing():
    assert sql([], []) == ""
