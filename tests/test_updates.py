"""An index that lives: whatever its history, it answers like one that was built now."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakescope
from helpers.answers import answers, differing
from helpers.histories import write_table
from lakescope.build import update as update_module
from lakescope.build.build import build
from lakescope.build.progress import Progress
from lakescope.errors import BadRequest, NotFound
from lakescope.lake import Lake
from lakescope.store.index import Index
from lakescope.store.manifest import SegmentFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def arrays_of(path: Path) -> dict[str, list[list[Any]]]:
    """Everything of the inverted index."""
    index = Index(path)
    return {
        kind: [[array.tolist() for array in index.arrays(file).values()] for file in index.manifest.of_kind(kind)]
        for kind in ("tokens", "postings", "sets", "forest")
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_history_answers_like_a_fresh_build(tmp_path: Path, spark: SparkSession, seed: int) -> None:
    dice = random.Random(seed)
    folder, index = tmp_path / "lake", tmp_path / "lake.idx"
    folder.mkdir()
    for number in range(6):
        write_table(folder / f"t{number}.csv", dice)
    build(folder, index, spark=spark)
    most = 1
    for step in range(4):
        names = sorted(path.name for path in folder.iterdir())
        for _ in range(dice.randrange(1, 4)):
            what = dice.choice(["add", "change", "remove"])
            if what == "add":
                write_table(folder / f"t{dice.randrange(6, 20)}.csv", dice)
            elif what == "change":
                write_table(folder / dice.choice(names), dice)
            elif len(names) > 2:
                (folder / names.pop(dice.randrange(len(names)))).unlink(missing_ok=True)
        # On Spark and in this process alike.
        done = update_module.update(index, spark=spark if step % 2 else None)
        most = max(most, done.segments)
    fresh = tmp_path / "fresh.idx"
    build(folder, fresh, spark=spark)
    lake = Lake.open(index)
    wanted = answers(Lake.open(fresh))
    assert not differing(answers(lake), wanted)
    lake.warm()
    assert not differing(answers(lake), wanted), "compiled"
    assert most > 2
    lake.compact(spark=spark)
    assert not differing(answers(lake), wanted), "compacted"
    assert len(Index(index).manifest.segments) == 1
    assert arrays_of(index) == arrays_of(fresh)
    lake.verify()


@pytest.fixture
def small(tmp_path: Path, spark: SparkSession) -> Lake:
    folder = tmp_path / "lake"
    folder.mkdir()
    for number in range(3):
        write_table(folder / f"t{number}.csv", random.Random(number))
    (folder / "broken.parquet").write_bytes(b"PAR1 no")
    build(folder, tmp_path / "lake.idx", spark=spark)
    return Lake.open(tmp_path / "lake.idx")


def names_of(lake: Lake) -> list[str]:
    return [str(name) for name in lake.tables()["table"].to_pylist()]


def test_nothing_changed_publishes_nothing(small: Lake) -> None:
    """Not even that what could not be read still cannot."""
    before = small.info()["generation"]
    done = small.update()
    assert done.nothing
    assert small.info()["generation"] == before


def test_an_update_without_spark_tells_how_far_it_is(small: Lake, tmp_path: Path) -> None:
    dice = random.Random(5)
    for number in range(3):
        write_table(tmp_path / "lake" / f"more{number}.csv", dice)
    told: list[Progress] = []
    update_module.update(small.path, progress=told.append)
    assert (told[-1].tables, told[-1].units, told[-1].units_total) == (3, 3, 3)
    assert told[-1].bytes == told[-1].bytes_total > 0


def test_a_table_that_could_not_be_read_is_mended(small: Lake, tmp_path: Path) -> None:
    assert "broken.parquet" in small.problems()["table"].to_pylist()
    write_table(tmp_path / "lake/broken.csv", random.Random(5))
    (tmp_path / "lake/broken.parquet").unlink()
    done = small.update()
    assert done.added == ("broken.csv",)
    assert "broken.parquet" not in small.problems()["table"].to_pylist()
    assert small.info()["errors"] == 0


def test_what_is_removed_stays_removed(small: Lake, tmp_path: Path) -> None:
    assert small.remove("t1.csv").removed == ("t1.csv",)
    assert names_of(small) == ["t0.csv", "t2.csv"]
    write_table(tmp_path / "lake/t1.csv", random.Random(9))
    assert small.update().added == ()
    assert names_of(small) == ["t0.csv", "t2.csv"]
    with pytest.raises(NotFound, match="no table named"):
        small.remove("t1.csv")


def test_more_locations(small: Lake, tmp_path: Path, spark: SparkSession) -> None:
    """A table of the same name elsewhere gives both the name of their folder, as in a build of both."""
    (tmp_path / "more").mkdir()
    write_table(tmp_path / "more/t0.csv", random.Random(10))
    write_table(tmp_path / "more/other.csv", random.Random(11))
    small.add(tmp_path / "more")
    assert lakescope.open(small.path).info()["sources"][1:] == [str(tmp_path / "more")]
    build([tmp_path / "lake", tmp_path / "more"], tmp_path / "both.idx", spark=spark)
    assert not differing(answers(small), answers(Lake.open(tmp_path / "both.idx")))
    assert "more/t0.csv" in names_of(small)
    write_table(tmp_path / "more/new.csv", random.Random(12))
    assert small.update().added == ("new.csv",)


def test_a_source_that_is_gone_is_no_reason_to_forget_it(small: Lake, tmp_path: Path) -> None:
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    with pytest.raises(BadRequest, match="nothing at"):
        small.update()
    # What a disk was mounted at is there without it.
    (tmp_path / "lake").mkdir()
    with pytest.raises(BadRequest, match="lake is empty now"):
        small.update()
    assert len(names_of(Lake.open(small.path))) == 3
    (tmp_path / "lake/README.md").write_text("moved\n")
    small.update()
    assert not names_of(small)


def test_a_source_that_cannot_be_listed_is_no_reason_to_forget_it(
    small: Lake, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions do not bind the superuser, so the refusal is made here."""
    scan, locked = os.scandir, tmp_path / "lake"

    def refuse(path: Any) -> Any:
        if path == locked:
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(BadRequest, match=r"lake cannot be listed: .*Permission denied") as refused:
        small.update()
    assert "bring it back" in str(refused.value.hint)
    assert len(names_of(Lake.open(small.path))) == 3
    # What was never read is not missed.
    (tmp_path / "more").mkdir()
    write_table(tmp_path / "more/one.csv", random.Random(1))
    build([locked, tmp_path / "more"], tmp_path / "half.idx", spark=spark)
    assert update_module.update(tmp_path / "half.idx").nothing
    monkeypatch.undo()
    assert {"t0.csv", "t1.csv", "t2.csv"} <= {*update_module.update(tmp_path / "half.idx").added}


def test_what_is_added_must_be_there(small: Lake, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"nothing at .*nowhere") as refused:
        small.add(tmp_path / "nowhere")
    assert "check the path" in str(refused.value.hint)
    assert small.update().nothing


def test_equal_correlations_are_in_order_of_their_names_in_any_history(tmp_path: Path, spark: SparkSession) -> None:
    """Where they are cut off, too: copies of a table in other segments are no better."""
    folder = tmp_path / "lake"
    folder.mkdir()
    write_table(folder / "b.csv", random.Random(1))
    shutil.copy(folder / "b.csv", folder / "d.csv")
    build(folder, tmp_path / "lake.idx", spark=spark)
    for name in ("c.csv", "a.csv"):
        shutil.copy(folder / "b.csv", folder / name)
        update_module.update(tmp_path / "lake.idx")
    lake = Lake.open(tmp_path / "lake.idx")
    for ready in (lambda: None, lake.warm):
        ready()
        for most in (1, 2, 3):
            found = lake.correlated(folder / "b.csv", key="key", target="num", k=most, own=True)
            assert [each.table for each in found] == ["a.csv", "b.csv", "c.csv"][:most]


def test_a_reader_keeps_what_it_opened(small: Lake, tmp_path: Path, spark: SparkSession) -> None:
    reader = Lake.open(small.path)
    before = answers(reader)
    write_table(tmp_path / "lake/t0.csv", random.Random(20))
    small.update()
    small.compact(spark=spark)
    assert not differing(answers(reader), before)


def test_sheets_of_a_workbook_come_and_go_with_it(small: Lake, tmp_path: Path) -> None:
    from lakescope.demo.xlsx import write_xlsx

    write_xlsx(tmp_path / "lake/book.xlsx", {"one": pa.table({"a": [1, 2]}), "two": pa.table({"b": [3]})})
    assert small.update().added == ("book.xlsx",)
    assert {"book.xlsx::one", "book.xlsx::two"} <= set(names_of(small))
    (tmp_path / "lake/book.xlsx").unlink()
    assert set(small.update().removed) == {"book.xlsx::one", "book.xlsx::two"}
    assert not any("book" in name for name in names_of(small))


def test_a_sheet_is_removed_alone(small: Lake, tmp_path: Path) -> None:
    """And stays so when its file changes; when nothing else is left of the file, that is left out, too."""
    from lakescope.demo.xlsx import write_xlsx

    book = tmp_path / "lake/book.xlsx"
    write_xlsx(book, {"one": pa.table({"a": [1, 2]}), "two": pa.table({"b": [3]})})
    small.update()
    assert small.remove("book.xlsx::two").removed == ("book.xlsx::two",)
    assert [name for name in names_of(small) if "book" in name] == ["book.xlsx::one"]
    write_xlsx(book, {"one": pa.table({"a": [1, 2, 5]}), "two": pa.table({"b": [3, 4]})})
    assert small.update().changed == ("book.xlsx",)
    assert [name for name in names_of(small) if "book" in name] == ["book.xlsx::one"]
    assert small.remove("book.xlsx::one").removed == ("book.xlsx::one",)
    assert small.update().nothing
    assert not any("book" in name for name in names_of(small))
    assert small.add(book).added == ("book.xlsx",)
    assert [name for name in names_of(small) if "book" in name] == ["book.xlsx::one", "book.xlsx::two"]


def test_what_was_removed_is_there_again_once_it_is_added(small: Lake, tmp_path: Path) -> None:
    from lakescope.demo.xlsx import write_xlsx

    write_xlsx(tmp_path / "lake/book.xlsx", {"one": pa.table({"a": [1, 2]}), "two": pa.table({"b": [3]})})
    small.update()
    before = names_of(small)
    small.remove("t1.csv", "book.xlsx::two")
    assert small.add(tmp_path / "lake/t1.csv").added == ("t1.csv",)
    assert names_of(small) == [name for name in before if name != "book.xlsx::two"]
    small.add(tmp_path / "lake")
    assert names_of(small) == before
    assert small.update().nothing


def test_a_frame_can_be_removed(tmp_path: Path, spark: SparkSession) -> None:
    frames = {name: pa.table({"a": [1, 2]}) for name in ("kept", "gone")}
    lake = lakescope.index(frames, tmp_path / "frames.idx", spark=spark)
    assert lake.remove("gone").removed == ("gone",)
    assert names_of(lake) == ["kept"]
    assert lake.update().nothing


def test_what_cannot_even_be_opened_is_tried_again_only_when_it_changes(small: Lake, tmp_path: Path) -> None:
    """A workbook and a database are opened by the plan already; why they could not be is told all along."""
    for name, magic in (("book.xlsx", b"PK\x03\x04"), ("base.sqlite", b"SQLite format 3\0")):
        (tmp_path / "lake" / name).write_bytes(magic + b" no such thing")
    assert set(small.update().added) == {"book.xlsx", "base.sqlite"}
    told = small.problems().to_pylist()
    assert {"book.xlsx", "base.sqlite"} <= {problem["table"] for problem in told}
    generation = small.info()["generation"]
    assert small.update().nothing
    assert small.info()["generation"] == generation
    write_table(tmp_path / "lake/t0.csv", random.Random(21))
    assert small.update().changed == ("t0.csv",)
    assert small.problems().to_pylist() == told
    assert small.update(retry=True).changed == ("base.sqlite", "book.xlsx", "broken.parquet")
    assert small.problems().to_pylist() == told
    (tmp_path / "lake/book.xlsx").unlink()
    assert small.update().removed == ("book.xlsx",)
    assert "book.xlsx" not in small.problems()["table"].to_pylist()


def test_the_index_of_what_is_gone_says_so(tmp_path: Path, small: Lake) -> None:
    for number in range(3):
        (tmp_path / f"lake/t{number}.csv").unlink()
    (tmp_path / "lake/broken.parquet").unlink()
    write_table(tmp_path / "lake/z.csv", random.Random(3))
    small.update()
    assert names_of(small) == ["z.csv"]
    assert small.joinable("z.csv", on="key").to_dicts() == []
    assert len(Index(small.path).manifest.segments) == 1, "a segment of which all is gone goes"


def test_many_segments_are_advised_against(small: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_module, "ADVICE", replace(update_module.ADVICE, many_segments=2))
    for number in range(3):
        write_table(tmp_path / f"lake/n{number}.csv", random.Random(number))
        done = small.update()
    assert done.segments == 4
    assert "compact" in (done.advice or "")


def test_a_profile_reads_columns_of_one_segment(small: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    for name in ("new", "newer", "newest"):
        write_table(tmp_path / "lake" / f"{name}.csv", dice)
        small.update()
    assert len(small._index.manifest.segments) == 4
    read, checked = list[str](), Index._checked

    def counted(index: Index, file: SegmentFile, **which: Any) -> pa.Table:
        read.append(file.kind)
        return checked(index, file, **which)

    monkeypatch.setattr(Index, "_checked", counted)
    for name in small.tables()["table"].to_pylist():
        read.clear()
        assert Lake.open(small.path).profile(name).columns
        assert read.count("columns") == 1


def test_columns_of_a_table_are_the_same_however_they_are_read(small: Lake, tmp_path: Path) -> None:
    dice = random.Random(6)
    for name in ("t1", "new", "t1"):
        write_table(tmp_path / "lake" / f"{name}.csv", dice)
        small.update()
    whole = small.columns()
    for name in names_of(small):
        wanted = [record for record in whole.to_pylist() if record["table"] == name]
        cold, prepared = Index(small.path), Index(small.path)
        prepared.prepare(["type"])
        for index in (cold, prepared, small._index):
            assert index.columns_of(name).to_pylist() == wanted
        assert "columns" not in prepared._cache
    assert prepared.columns_of("nowhere").num_rows == 0


def test_on_the_command_line(small: Lake, tmp_path: Path) -> None:
    from lakescope.faces.cli.app import app

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 0, result.output
        return result.stdout

    write_table(tmp_path / "lake/t9.csv", random.Random(9))
    assert "1 added: t9.csv" in run("update", small.path)
    assert "1 removed: t9.csv" in run("remove", small.path, "t9.csv")
    assert '"removed": [' in run("remove", small.path, "t0.csv", "--format", "json")
    (tmp_path / "more").mkdir()
    write_table(tmp_path / "more/m.csv", random.Random(10))
    assert "m.csv" in run("add", small.path, str(tmp_path / "more"), "-q")
    write_table(tmp_path / "more/w.csv", random.Random(11))
    assert "w.csv" in run("watch", small.path, "--once")
    assert names_of(lakescope.open(small.path)) == ["m.csv", "t1.csv", "t2.csv", "w.csv"]


def test_tokens_of_sets_are_found_again(small: Lake) -> None:
    """What the order by group is for: the tokens of a set, whatever files they lie in."""
    from lakescope.engines.joins import kernels
    from lakescope.engines.joins.inverted import InvertedIndex

    assert kernels  # loaded: a part then reads by them
    (part,) = InvertedIndex(small._index).parts
    segment = part.segment
    for number in range(int(segment.set_bounds[-1])):
        tokens = segment.tokens_of_set(number)
        assert part.tokens_of_set(number).tolist() == np.sort(tokens).tolist()
        assert np.unique(tokens).size == segment.sizes[number]
        assert segment.holds_groups(segment.groups_of_tokens(tokens), number).all()
