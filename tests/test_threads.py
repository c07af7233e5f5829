"""One lake, many threads: each gets what a single thread gets, also while the lake is updated."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import lakescope
from helpers.answers import same
from helpers.histories import built_here, write_table
from lakescope.errors import LakescopeError
from lakescope.lake import Lake

THREADS = 16
#: What is no question, or answers from what was opened last whatever it is.
CHANGES = {"open", "newer", "close", "update", "add", "remove", "compact"}
#: Questions that are not asked here, and why.
LEFT_OUT = {
    **dict.fromkeys(("joinable_batch", "autojoin_batch", "correlated_batch", "inclusions_batch"), "asked by Spark"),
    **dict.fromkeys(("dependencies", "dependencies_batch", "suggest_headers_batch"), "asked by Spark"),
    "push": "writes to object storage",
}
Ask = Callable[[Lake], Any]


class Scene:
    """A lake of small tables, of which those that begin with s stay as they are; what becomes of the others."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lake, self.index = folder, folder / "lake", folder / "lake.idx"
        self.lake.mkdir()
        dice = random.Random(7)
        for number in range(4):
            write_table(self.lake / f"s{number}.csv", dice)
            write_table(self.lake / f"v{number}.csv", dice)
        words = [f"only here {number}" for number in range(300)]
        for name, held in (("s8.csv", words), ("s9.csv", words[:200])):
            rows = [f"{word},{dice.randrange(50) + row}" for row, word in enumerate(held)]
            (self.lake / name).write_text("\n".join(["key,num", *rows, ""]))
        built_here(self.lake, self.index)
        write_table(self.lake / "s4.csv", dice)
        lakescope.open(self.index).update()
        self._outs = count()
        shutil.copytree(self.lake, folder / "first" / "lake")
        shutil.copytree(self.index, folder / "first" / "lake.idx")
        lake = lakescope.open(self.index)
        #: Finds of tables that stay, to be asked about.
        self.join = next(each for each in lake.joinable("s0.csv", on="key", k=50) if each.table[0] == "s")
        self.path = next(each for each in lake.join_paths("s8.csv", "key") if each.table[0] == "s")
        self.find = next(each for each in lake.correlated("s0.csv", "key", "num", k=200) if each.table[0] == "s")

    def reset(self) -> None:
        """As it was in the beginning."""
        for name in ("lake", "lake.idx"):
            shutil.rmtree(self.folder / name)
            shutil.copytree(self.folder / "first" / name, self.folder / name)

    def changes(self) -> Iterator[Callable[[Lake], object]]:
        """What is done to the lake, one after the other: each publishes a generation."""
        dice = random.Random(9)
        write_table(self.lake / "v1.csv", dice)
        yield Lake.update
        yield lambda lake: lake.remove("v2.csv")
        write_table(self.folder / "w.csv", dice)
        yield lambda lake: lake.add(self.folder / "w.csv")
        (self.lake / "v0.csv").unlink()
        write_table(self.lake / "v5.csv", dice)
        yield Lake.update
        yield Lake.compact

    def out(self, suffix: str = "") -> Path:
        """Where nothing lies yet."""
        return self.folder / f"out{next(self._outs)}{suffix}"

    def questions(self) -> dict[str, list[Ask]]:
        """Every question by its name, with the ways to ask it."""
        join, path, find = self.join, self.path, self.find
        stays, key = "s0.csv", {"key": "key", "target": "num"}
        frame = {"value": ["w1", "w2", "w3", "w40"]}
        return {
            "tables": [lambda lake: lake.tables().to_pylist()],
            "columns": [
                lambda lake: lake.columns().to_pylist(),
                lambda lake: lake.columns(stays).to_pylist(),
                lambda lake: lake.columns(fields=["table", "column", "distinct"]).to_pylist(),
            ],
            "problems": [lambda lake: lake.problems().to_pylist()],
            "info": [lambda lake: {name: lake.info()[name] for name in ("tables", "columns", "rows")}],
            "find": [lambda lake: lake.find("key").to_dicts()],
            "map": [lambda lake: lake.map().to_dict()],
            "timings": [lambda lake: type(lake.timings()).__name__],
            "profile": [lambda lake: lake.profile(stays).to_dict()],
            "joinable": [
                lambda lake: lake.joinable(stays, on="key", k=5).to_dicts(),
                lambda lake: lake.joinable("s1.csv", on="key", k=3, rank="significance").to_dicts(),
                lambda lake: lake.joinable("s2.csv", k=5).to_dicts(),
                lambda lake: lake.joinable(stays, on="key", threshold=0.3).to_dicts(),
                lambda lake: lake.joinable("s1.csv", on="key", threshold=0.2, engine="lsh").to_dicts(),
                lambda lake: lake.joinable("s3.csv", on="key", threshold=0.2, verify=True).to_dicts(),
                lambda lake: lake.joinable(frame, on="value").to_dicts(),
            ],
            "joinable_stages": [lambda lake: [each.to_dicts() for each in lake.joinable_stages(stays, "key", 4)]],
            "join_paths": [lambda lake: lake.join_paths("s8.csv", "key", threshold=0.3).to_dicts()],
            "join_code": [lambda lake: lake.join_code(stays, join)],
            "path_code": [lambda lake: lake.path_code("s8.csv", path)],
            "head": [lambda lake: lake.head(stays, 3).to_pylist()],
            "describe": [lambda lake: lake.describe(stays).to_dicts()],
            "joined": [lambda lake: lake.joined(stays, "key", join.table, join.column, most=20).table.to_pylist()],
            "shared_columns": [lambda lake: lake.shared_columns(stays, "s1.csv").to_dicts()],
            "location": [lambda lake: lake.location(stays)],
            "autojoin": [lambda lake: len(lake.autojoin(stays, candidates=1, budget=0.01)) <= 1],
            "correlated": [
                lambda lake: lake.correlated(stays, **key).to_dicts(),
                lambda lake: lake.correlated("s1.csv", **key, retrieval="qcr", measure="spearman").to_dicts(),
                lambda lake: lake.correlated("s2.csv", **key, retrieval="csk").to_dicts(),
                lambda lake: lake.correlated(stays, ["key", "day"], "num", agg="sum").to_dicts(),
            ],
            "scatter": [lambda lake: lake.scatter(stays, "key", "num", find)],
            "scatter_points": [lambda lake: lake.scatter_points(stays, "key", "num", find).to_pylist()],
            "correlation_code": [lambda lake: lake.correlation_code(stays, "key", find, target="num")],
            "augment_code": [lambda lake: lake.augment_code(stays, "key", "num", [find], ["added"])],
            "augment": [lambda lake: lake.augment("s8.csv", "key", "num", self.out(".csv"), 2).to_dicts()],
            "augmented": [lambda lake: lake.augmented(stays, "key", "num", [find])[0].to_pylist()],
            "inclusions": [
                lambda lake: lake.inclusions(minimum=0.3).to_dicts(),
                lambda lake: lake.inclusions(minimum=0.5, verify=True).to_dicts(),
                lambda lake: lake.inclusions(minimum=0.5, estimator="bottomk").to_dicts(),
                lambda lake: lake.inclusions(minimum=0.3, table="s1.csv").to_dicts(),
            ],
            "foreign_keys": [lambda lake: lake.foreign_keys(minimum=0.3).to_dicts()],
            "primary_keys": [lambda lake: lake.primary_keys().to_dicts()],
            "key_diagram": [lambda lake: lake.key_diagram("mermaid")],
            "suggest_headers": [
                lambda lake: lake.suggest_headers(stays).to_dicts(),
                lambda lake: lake.suggest_headers("s1.csv", method="thesis").to_dicts(),
            ],
            "name_columns": [lambda lake: lake.name_columns(stays, self.out(".csv"))],
            "check_headers": [lambda lake: lake.check_headers().to_dicts()],
            "evaluate_headers": [lambda lake: len(lake.evaluate_headers(0.2)) > 0],
            "learn_headers": [Lake.learn_headers],
            "report": [lambda lake: lake.report(self.out(), "json").tables],
            "warm": [Lake.warm],
            "history": [lambda lake: [each.columns for each in lake.history("v1.csv")]],
            "versions": [lambda lake: lake.versions("v1.csv")],
            "drift": [lambda lake: [(each.column, each.changes) for each in lake.drift("v1.csv", minimum=0)]],
            "verify": [Lake.verify, lambda lake: lake.verify(deep=True).to_dicts()],
        }


def said(ask: Ask, lake: Lake) -> Any:
    """An answer without what says when it was, or the error."""
    try:
        return untimed(ask(lake))
    except LakescopeError as error:
        return f"{type(error).__name__}: {error.message}"


def untimed(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: untimed(value) for name, value in answer.items() if name not in ("since", "until", "scanned")}
    return [untimed(value) for value in answer] if isinstance(answer, list | tuple) else answer


def generation(lake: Lake) -> int:
    return int(lake.info()["generation"])


def test_every_question_is_asked(tmp_path: Path) -> None:
    """Those that come new must be asked by many threads, too."""
    public = {name for name, of in vars(Lake).items() if callable(of) and not name.startswith("_")}
    asked = set(Scene(tmp_path).questions())
    assert asked | set(LEFT_OUT) == public - CHANGES
    assert not asked & set(LEFT_OUT)


@pytest.mark.parametrize(
    "seconds", [pytest.param(10, id="short"), pytest.param(150, id="long", marks=pytest.mark.slow)]
)
def test_threads_that_share_a_lake_get_what_one_gets(tmp_path: Path, seconds: float) -> None:
    """All questions at once, while the lake is updated, tables are added and removed, and segments compacted."""
    scene = Scene(tmp_path)
    questions = {(name, way): ask for name, ways in scene.questions().items() for way, ask in enumerate(ways)}
    right: dict[int, dict[Any, Any]] = {}

    def record() -> None:
        lake = lakescope.open(scene.index)
        lake.warm()
        right[generation(lake)] = {which: said(ask, lake) for which, ask in questions.items()}

    record()
    for change in scene.changes():
        change(lakescope.open(scene.index))
        record()
    scene.reset()
    lake = lakescope.open(scene.index)
    first = generation(lake)
    asked: Counter[str] = Counter()
    wrong: list[Any] = []
    began = time.monotonic()
    dealt = count()

    def ask(number: int) -> None:
        dice = random.Random(number)
        # All of them once, one after the other; then those that take little more often.
        order, quick = sorted(questions), [which for which in questions if which[0] in ("joinable", "correlated")]
        while not wrong and ((turn := next(dealt)) < len(order) or time.monotonic() - began < seconds):
            which = order[turn] if turn < len(order) else dice.choice(quick if dice.random() < 0.8 else order)
            before = generation(lake)
            try:
                found = said(questions[which], lake)
            except BaseException as error:
                wrong.append((which, repr(error)))
                raise
            possible = [right[each][which] for each in range(before, generation(lake) + 1)]
            if not any(same(found, each) for each in possible):
                wrong.append((which, found, possible))
            asked[which[0]] += 1

    threads = [threading.Thread(target=ask, args=[number]) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for step, change in enumerate(scene.changes()):
        time.sleep(max(0.0, began + step * seconds / 6 - time.monotonic()))
        change(lake)
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    assert generation(lake) == first + 5 == max(right)
    assert set(asked) == {name for name, _ in questions}
