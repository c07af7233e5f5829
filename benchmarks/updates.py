"""What does it cost to keep an index up to date, and what do segments cost questions?

*Cost.* A lake of small tables is indexed; then a share of its tables is written anew and the index updated, several
times. Both from nothing, as the command line does it: the start of Python, of Spark where it is needed, and kernels.
CPU time is that of the whole process tree.

*Segments.* The same tables three times: in one segment, in as many as updates of a share each leave, and in the one
that compaction makes of these. The same questions are put to all three in turn, in one warm process; an answer that
differs from that of the one segment stops the benchmark. What is compared is CPU time a question; tables
are drawn at random. "Opened for it" opens the index for each question, as the command line does.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import common
from common import Json, Section, Spread, at_most, say
from lakescope.demo import write_many_csvs
from lakescope.lake import Lake

Question = Callable[[Lake], object]
#: The same tables in one segment, in many, and in one again.
NAMES = ("one", "many", "compacted")


def command(what: str, index: Path, root: Path | None = None) -> common.Run:
    """Run one command on an index, in a process of its own."""
    run = common.run_system("lakescope-kept", {"command": what, "index": str(index), "root": str(root)})
    say(f"{what} {index.name}: {run.cpu:.1f} CPU-s, {run.wall:.1f} s")
    return run


def tables_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.csv"))


def rewrite(paths: list[Path]) -> None:
    """Change tables: the last row once more."""
    for path in paths:
        content = path.read_bytes()
        path.write_bytes(content + content[content[:-1].rindex(b"\n") + 1 :])


# --- cost ---------------------------------------------------------------------------------------------------------


def cost(options: argparse.Namespace) -> Section:
    folder = common.data_folder("updates-cost", keep=options.keep)
    lake, index = folder / "lake", folder / "lake.idx"
    written = write_many_csvs(lake, tables=options.tables)
    builds = [command("index", index, lake) for _ in range(options.repeats)]
    dice = random.Random(1)
    share = max(1, round(options.tables * options.share))
    updates = []
    for _ in range(options.repeats):
        rewrite(dice.sample(tables_of(lake), share))
        updates.append(command("update", index))
    nothing = [command("update", index) for _ in range(options.repeats)]
    ratio = common.ratios([run.cpu for run in updates], [run.cpu for run in builds])
    figures: Json = {
        "tables": options.tables,
        "bytes": written.bytes,
        "changed": share,
        "build_cpu_s": Spread.of([run.cpu for run in builds]),
        "update_cpu_s": Spread.of([run.cpu for run in updates]),
        "nothing_cpu_s": Spread.of([run.cpu for run in nothing]),
        "update_of_build": ratio,
        "versions": builds[0].report["versions"],
    }
    lines = [
        ["index everything", f"{options.tables:,}", figures["build_cpu_s"], Spread.of([run.wall for run in builds])],
        ["update", f"{share:,}", figures["update_cpu_s"], Spread.of([run.wall for run in updates])],
        ["update, nothing changed", "0", figures["nothing_cpu_s"], Spread.of([run.wall for run in nothing])],
    ]
    text = (
        f"## Cost\n\n{options.tables:,} tables, {common.show_bytes(written.bytes)}; {share:,} of them are changed.\n\n"
    )
    text += common.table(["what", "tables scanned", "CPU-s", "seconds"], lines)
    return text, figures, [at_most(f"update of {options.share:.0%} / rebuild, CPU", 0.05, ratio)]


# --- segments -----------------------------------------------------------------------------------------------------


def in_segments(folder: Path, options: argparse.Namespace) -> dict[str, Path]:
    """The same tables in one segment, in many, and in one again."""
    lake, parts = folder / "lake", folder / "later"
    write_many_csvs(lake, tables=options.tables)
    one, many, compacted = (folder / f"{name}.idx" for name in NAMES)
    command("index", one, lake)
    dice = random.Random(2)
    paths = tables_of(lake)
    held_back = dice.sample(paths, (options.segments - 1) * max(1, round(options.tables * options.share)))
    for path in held_back:
        target = parts / path.relative_to(lake)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    command("index", many, lake)
    index = Lake.open(many)
    each = len(held_back) // (options.segments - 1)
    for number in range(options.segments - 1):
        for path in held_back[number * each : (number + 1) * each]:
            (parts / path.relative_to(lake)).rename(path)
        index.update()
    say(f"{len(index._index.manifest.segments)} segments")
    shutil.copytree(many, compacted)
    command("compact", compacted)
    return {"one": one, "many": many, "compacted": compacted}


def questions(lake: Lake, count: int) -> dict[str, list[Question]]:
    """Questions by kind."""
    dice = random.Random(3)
    names = lake.tables()["table"].to_pylist()
    columns = lake.columns(fields=["table", "column"])
    keys = list(zip(columns["table"].to_pylist(), columns["column"].to_pylist(), strict=True))
    sketches = lake._correlations.sketches
    pairs = []
    for number in dice.sample(range(sketches.pairs), min(count, sketches.pairs)):
        key = sketches.key(int(sketches.owners[number]))
        pairs.append((key["table"], key["columns"], sketches.column_of(number)))

    def joinable(table: str, column: str, **asked: float) -> Question:
        return lambda lake: lake.joinable(table, on=column, **asked).to_dicts()  # type: ignore[arg-type]

    def correlated(table: str, key: list[str], target: str) -> Question:
        return lambda lake: lake.correlated(table, key=key, target=target).to_dicts()

    def profile(table: str) -> Question:
        return lambda lake: lake.profile(table).to_dict()

    asked = dice.sample(keys, min(count, len(keys)))
    return {
        "joinable, best 10": [joinable(*each, k=10) for each in asked],
        "joinable, threshold 0.7": [joinable(*each, threshold=0.7) for each in asked],
        "correlated": [correlated(*each) for each in pairs],
        "profile": [profile(name) for name in dice.sample(names, min(count, len(names)))],
    }


def same(one: object, other: object) -> bool:
    """Equal, numbers to nine digits: the order of sums depends on what lies beside."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= 1e-9 * max(1.0, abs(one)) or (one != one and other != other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def timed(question: Question, lake: Lake) -> tuple[float, object]:
    began = time.process_time()
    answer = question(lake)
    return time.process_time() - began, answer


def segments(options: argparse.Namespace) -> Section:
    if options.indexes is None:
        places = in_segments(common.data_folder("updates-segments", keep=options.keep), options)
    else:
        places = {name: options.indexes / f"{name}.idx" for name in NAMES}
    lakes = {name: Lake.open(path) for name, path in places.items()}
    for lake in lakes.values():
        lake.warm()
    asked = questions(lakes["one"], options.questions)
    asked["opened for it: profile"] = asked["profile"][: options.opened]
    asked["opened for it: joinable, best 10"] = asked["joinable, best 10"][: options.opened]
    spent: dict[str, dict[str, list[float]]] = {kind: {name: [] for name in lakes} for kind in asked}
    for kind, some in asked.items():
        rounds: dict[str, list[float]] = {name: [0.0] * options.repeats for name in lakes}
        # A round before those that count: it reads from disk what the others find in memory.
        for round_ in range(-1, options.repeats):
            for question in some:
                wanted: object = None
                for name in common.alternated(list(lakes), round_):
                    lake = Lake.open(places[name]) if kind.startswith("opened") else lakes[name]
                    seconds, answer = timed(question, lake)
                    if round_ >= 0:
                        rounds[name][round_] += seconds / len(some)
                    wanted = answer if wanted is None else wanted
                    if not same(answer, wanted):
                        raise RuntimeError(f"{kind}: {name} answers otherwise")
        spent[kind] = rounds
        say(f"{kind}: " + ", ".join(f"{name} {1e3 * min(times):.3g} ms" for name, times in rounds.items()))
    lines, figures, aims = [], {}, []
    for kind, rounds in spent.items():
        slower = common.ratios(rounds["many"], rounds["one"])
        after = common.ratios(rounds["compacted"], rounds["one"])
        milliseconds = {name: Spread.of([1e3 * each for each in times]) for name, times in rounds.items()}
        figures[kind] = {"cpu_ms": milliseconds, "many_of_one": slower, "compacted_of_one": after}
        lines.append([kind, *milliseconds.values(), slower, after])
        aims.append(at_most(f"{kind}: {options.segments} segments / one", 2.0, slower))
        aims.append(at_most(f"{kind}: compacted / one", 1.2, after))
    text = f"## Segments\n\n{options.tables:,} tables; CPU-ms a question, mean of {options.questions} questions, "
    text += f"median of {options.repeats} rounds. All answers were equal.\n\n"
    heads = ["question", "one segment", f"{options.segments} segments", "compacted", "many / one", "compacted / one"]
    return text + common.table(heads, lines), {"tables": options.tables, **figures}, aims


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--only", nargs="+", choices=["cost", "segments"], help="parts to run")
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=0.01, help="share of the tables that an update brings")
    parser.add_argument("--segments", type=int, default=20)
    parser.add_argument("--questions", type=int, default=200, help="of each kind")
    parser.add_argument("--indexes", type=Path, help="segments: the indexes of an earlier run with --keep")
    parser.add_argument("--opened", type=int, default=10, help="questions for each of which the index is opened")
    options = parser.parse_args()
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    common.prime()
    sections, body, aims = common.run_parts({"cost": cost, "segments": segments}, options, __doc__, "updates")
    from systems import _version

    versions = _version("lakescope", "pyspark", "numba", "numpy", "pyarrow")
    common.publish("updates", "Updates", body, sections, aims, versions, options.out)


if __name__ == "__main__":
    main()
