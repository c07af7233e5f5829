"""Rare q-grams: the sketch of a column, their index, and the tables that they find."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

import lakescope
from lakescope.engines.transforms.clock import Clock
from lakescope.errors import BadRequest
from lakescope.lake import Lake
from lakescope.sketches.gram_kernels import LONGEST, SHORTEST, Q
from lakescope.sketches.grams import GramSketch
from lakescope.store.manifest import MANIFEST, Manifest
from lakescope.values.alphabet import bare
from lakescope.values.canonical import Kind
from lakescope.values.cells import Cells, understand
from lakescope.values.hashing import HASH_SEED
from lakescope.values.text import TextColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHARACTERS = st.sampled_from("abcXYZ 0129-_.,éÉŁøßΣσЖ日😀\u0301\u00a0’")
TEXTS = st.lists(st.one_of(st.text(_CHARACTERS, max_size=12), st.text(max_size=8)), max_size=40)


def cells_of(texts: list[str]) -> Cells:
    raw = [text.encode("utf-8", "replace") for text in texts]
    lengths = np.array([len(each) for each in raw], np.int32)
    ends = np.cumsum(lengths, dtype=np.int32)
    data = np.frombuffer(b"".join(raw) or b" ", np.uint8)
    return understand(TextColumn("column", data, (ends - lengths).astype(np.int32), ends))


def sketch_of(texts: list[str], limit: int) -> GramSketch:
    sketch = GramSketch(limit)
    sketch.update(cells_of(texts))
    return sketch


def plain(texts: list[str], limit: int) -> tuple[list[int], list[bool]]:
    """The smallest hashes, and which of them belong to one value, without kernels."""
    owners: dict[str, set[int]] = {}
    cells = cells_of(texts)
    for place in range(cells.kinds.size):
        written = cells.written[cells.wstarts[place] : cells.wends[place]].tobytes().decode("utf-8", "replace")
        text = bare(written[:LONGEST])
        least = {Kind.TEXT: SHORTEST, Kind.CODE: SHORTEST, Kind.INTEGER: Q}.get(Kind(int(cells.kinds[place])))
        if least is not None and len(text) >= least:
            for start in range(max(1, len(text) - Q + 1)):
                owners.setdefault(text[start : start + Q], set()).add(int(cells.hashes[place]))
    ranked = sorted((xxhash.xxh64_intdigest(gram.encode(), HASH_SEED), len(held) == 1) for gram, held in owners.items())
    return [gram for gram, _ in ranked[:limit]], [alone for _, alone in ranked[:limit]]


@settings(deadline=None)
@given(TEXTS, st.sampled_from([4, 32, 1024]))
def test_the_sketch_is_that_of_plain_python(texts: list[str], limit: int) -> None:
    grams, owners = sketch_of(texts, limit).sorted()
    assert (grams.tolist(), (owners != 0).tolist()) == plain(texts, limit)


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS, st.sampled_from([4, 32, 1024]))
def test_any_cut_gives_the_same_sketch(one: list[str], two: list[str], three: list[str], limit: int) -> None:
    whole = sketch_of([*one, *two, *three], limit).fields()
    pieces = [sketch_of(each, limit) for each in (three, one, two)]
    merged = GramSketch.from_fields(pieces[0].fields())
    for piece in pieces[1:]:
        merged.merge(piece)
    again = merged.fields()
    assert all(np.array_equal(whole[name], again[name]) for name in whole)


def test_a_sketch_of_many_values_is_bounded() -> None:
    names = [f"{number:08x}" for number in np.random.default_rng(1).integers(1 << 32, size=20_000).tolist()]
    sketch = sketch_of(names, 1024)
    grams, _ = sketch.sorted()
    assert grams.tolist() == plain(names, 1024)[0]
    assert grams.size == 1024
    assert sketch._slots.size <= 8192


def test_what_keeps_a_key_the_same() -> None:
    """Case, accents and punctuation change nothing; dates and decimals have no q-grams."""
    one, other = sketch_of(["Łódź (Śródmieście)"], 64), sketch_of(["LODZ-SRODMIESCIE"], 64)
    assert one.sorted()[0].tolist() == other.sorted()[0].tolist()
    assert not sketch_of(["2024-03-07", "12.3456", "1234", "ab"], 64).sorted()[0].size
    assert sketch_of(["12345", "abc"], 64).sorted()[0].size == 2


# A lake ---------------------------------------------------------------------------------------------------------------

SYLLABLES = "ka mo ri te lan dor bel sa ni vic tor ham ster wil son er ma re phi lo".split()


def people(count: int, seed: int) -> list[tuple[str, str]]:
    dice = np.random.default_rng(seed)
    made: dict[tuple[str, str], None] = {}
    while len(made) < count:
        first, last = ("".join(dice.choice(SYLLABLES, size=n).tolist()).capitalize() for n in (2, 3))
        made[first, last] = None
    return list(made)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """Users by their mail addresses, the same people as they are, and others."""
    folder = tmp_path_factory.mktemp("grams") / "lake"
    folder.mkdir()
    known = people(120, 1)

    def write(name: str, head: str, rows: list[str]) -> None:
        (folder / name).write_text("\n".join([head, *rows, ""]))

    write("users.csv", "mail,age", [f"{a[0]}.{b}@example.org,{n % 50}".lower() for n, (a, b) in enumerate(known[20:])])
    write("people.csv", "first,last,town", [f"{a},{b},town {n}" for n, (a, b) in enumerate(known[:100])])
    write("names.csv", "name,height", [f"{a} {b},{n / 7:.3f}" for n, (a, b) in enumerate(known[10:110])])
    for number in range(12):
        rows = [f"{a} {b},{n * number}" for n, (a, b) in enumerate(people(80, 10 + number))]
        write(f"strangers{number}.csv", "name,points", rows)
    return lakescope.index(folder, folder.with_suffix(".idx"), spark=spark)


def test_tables_that_join_after_a_transformation(lake: Lake) -> None:
    found = {each.table: each for each in lake.autojoin("people.csv")}
    assert set(found) == {"users.csv", "names.csv"}
    users = found["users.csv"]
    assert users.direction == "query->table"
    assert (set(users.columns), users.keys) == ({"first", "last"}, ("mail",))
    assert users.coverage == pytest.approx(0.8)
    assert users.pairs == 80
    assert users.shared > 2 * users.expected
    plan = lakescope.autojoin(lake.location("people.csv"), users.location)
    assert str(plan.program) == users.program
    assert found["names.csv"].pairs == 90


def test_a_query_that_is_not_in_the_lake(lake: Lake) -> None:
    known = people(120, 1)[:60]
    found = lake.autojoin({"who": [f"{b.upper()}, {a}" for a, b in known]}, k=1)
    assert [each.table for each in found] in (["people.csv"], ["names.csv"])
    assert found.info["joined"] >= 2
    assert len(lake.autojoin({"number": list(range(100))})) == 0


def test_tables_that_join_as_they_are_are_only_named(lake: Lake) -> None:
    found = lake.autojoin({"name": [f"{a} {b}" for a, b in people(120, 1)[10:110]]})
    assert "names.csv" not in [each.table for each in found]
    assert "names.csv" in " ".join(found.notes)


def test_a_lake_of_nothing_but_partners(tmp_path: Path, spark: SparkSession) -> None:
    """Where all columns share with the query what it has, nothing tells what chance would share."""
    known = people(80, 1)
    for year in (2021, 2022, 2023):
        rows = [f"{b.upper()}/{a.upper()}" for a, b in known[year - 2021 :]]
        (tmp_path / f"{year}.csv").write_text("\n".join(["member", *rows, ""]))
    lake = lakescope.index(tmp_path, tmp_path.with_suffix(".idx"), spark=spark)
    found = lake.autojoin({"name": [f"{a} {b}" for a, b in known]})
    assert [(each.table, each.pairs) for each in found] == [("2021.csv", 80), ("2022.csv", 79), ("2023.csv", 78)]


def test_time_that_is_up(lake: Lake) -> None:
    clock = Clock()
    clock.stop()
    found = lake.autojoin("people.csv", budget=clock)
    assert len(found) == 0
    assert "not looked at" in " ".join(found.notes)


def test_what_cannot_be_asked(lake: Lake) -> None:
    for wrong in ({"k": 0}, {"candidates": 0}, {"budget": 0.0}):
        with pytest.raises(BadRequest):
            lake.autojoin("people.csv", **wrong)  # type: ignore[arg-type]


def test_an_index_without_q_grams_says_so(lake: Lake) -> None:
    path = Path(lake.path) / MANIFEST
    before = path.read_text("utf-8")
    manifest = Manifest.load(Path(lake.path))
    kept = [file for file in manifest.files if file.kind != "grams"]
    try:
        path.write_text(dataclasses.replace(manifest, files=kept).dump(), "utf-8")
        old = lakescope.open(lake.path)
        assert old.tables().num_rows == 15
        with pytest.raises(BadRequest, match="no q-grams") as refused:
            old.autojoin("people.csv")
        assert "again" in (refused.value.hint or "")
    finally:
        path.write_text(before, "utf-8")


def test_on_the_command_line(lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from lakescope.faces.cli import main

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["lakescope", "autojoin", *arguments])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    code, out, _ = run("people.csv", lake.path, "--format", "json", "-k", "1", "--budget", "2m")
    (told,) = json.loads(out)
    assert (code, told["table"], told["direction"]) == (0, "names.csv", "query->table")
    code, _, err = run("people.csv", lake.path, "--out", "x.csv")
    assert (code, "--out does nothing here" in err, "autojoin my.csv TABLE" in err) == (2, True, True)
    code, _, err = run("people.csv", "people.csv", "-k", "3")
    assert (code, "-k does nothing here" in err, "autojoin my.csv lake.idx" in err) == (2, True, True)
    code, _, err = run(lake.path, "people.csv")
    assert (code, "is an index" in err) == (2, True)
