"""Does it hold for long? Updates and questions together, every answer checked, memory and file handles watched.

A server answers over loopback, a process of its own writes: tables come, change and go, the index is updated every few
seconds, and compacted when an update advises it. Meanwhile visitors ask what joins, what correlates and what is in a
table. Answers are compared with an oracle that knows the tables and nothing of the index: overlaps counted with sets of
Python, coefficients of joins done by hand, rows and distinct values counted. While a server follows, an answer may be
that of any lake that was there within the last minute; at the end it must be that of the last one. Memory is what
processes hold for themselves: flat if its median of the last fifth of the time exceeds that of the second fifth by at
most a tenth. Handles are what they have open or mapped, each file of each segment among them, so that they come and go
with segments: they are counted before and after everything, when the index is one segment and every table was asked
about. None may be of a file of the index that was removed, and of those that are not of the index the process that was
started may hold no more; workers come and go.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np

from common import Aim, Json, arguments, at_most, data_folder, publish, say, table, tree
from lakescope.faces.serving.service import QUICK
from serve_load import _resident, started, warm

WORDS = [f"w{number}" for number in range(400)]
#: Seconds for which an answer of an older lake is right.
_BEHIND = 60.0
_CLOSE = 1e-6
#: What is in the path of every file of the index.
_IN_INDEX = "/soak/lake.idx/"


@dataclass(frozen=True)
class Rows:
    """A table as the oracle knows it."""

    keys: tuple[str, ...]
    numbers: tuple[float, ...]

    def means(self) -> dict[str, float]:
        found: dict[str, list[float]] = {}
        for key, number in zip(self.keys, self.numbers, strict=True):
            found.setdefault(key, []).append(number)
        return {key: statistics.fmean(numbers) for key, numbers in found.items()}


Lake = dict[str, Rows]


def drawn(dice: random.Random) -> Rows:
    count = dice.randrange(20, 200)
    pool = dice.sample(WORDS, dice.randrange(20, 150))
    slope = dice.choice([-1.0, 0.0, 1.0])
    keys = tuple(dice.choice(pool) for _ in range(count))
    return Rows(keys, tuple(round(slope * WORDS.index(key) + dice.gauss(0, 40), 3) for key in keys))


def write(path: Path, rows: Rows) -> None:
    lines = [f"{key},{number}" for key, number in zip(rows.keys, rows.numbers, strict=True)]
    path.write_text("\n".join(["key,num", *lines, ""]))


# --- the oracle -------------------------------------------------------------------------------------------------------


def joins(lake: Lake, name: str, k: int) -> list[list[object]]:
    mine = set(lake[name].keys)
    found = [(len(mine & set(rows.keys)), other) for other, rows in lake.items() if other != name]
    best = sorted((each for each in found if each[0]), key=lambda each: (-each[0], each[1]))[:k]
    return [[other, "key", overlap] for overlap, other in best]


def coefficient(lake: Lake, name: str, other: str) -> float:
    mine, theirs = lake[name].means(), lake[other].means()
    common = sorted(set(mine) & set(theirs))
    return float(np.corrcoef([mine[key] for key in common], [theirs[key] for key in common])[0, 1])


def right(lake: Lake, kind: str, name: str, status: int, body: Json) -> bool:
    """Whether an answer is that of a lake."""
    if name not in lake:
        return status == 404
    if status != 200:
        return False
    if kind == "joinable":
        told = [[each["table"], each["column"], each["overlap"]] for each in body["data"]["records"]]
        return told == joins(lake, name, 5)
    if kind == "correlated":
        for each in body["data"]["records"]:
            if each["table"] not in lake:
                return False
            known = each["coefficient"] == "pearson" and each["exact"]
            if known and abs(coefficient(lake, name, each["table"]) - each["correlation"]) > _CLOSE:
                return False
        return True
    rows = lake[name]
    key = next(each for each in body["data"]["columns"] if each["name"] == "key")
    return bool(body["data"]["rows"] == len(rows.keys) and key["distinct"] == len(set(rows.keys)))


# --- who asks, who writes, who watches --------------------------------------------------------------------------------


@dataclass
class Story:
    """What happens meanwhile: lakes with the time when each was replaced, answers, and what processes hold."""

    lakes: list[tuple[float, Lake]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    updates: list[Json] = field(default_factory=list)
    samples: list[Json] = field(default_factory=list)
    #: What processes hold before and after everything.
    at_rest: list[Json] = field(default_factory=list)

    def possible(self, since: float) -> list[Lake]:
        """Lakes whose answer may be right for a question that was asked then."""
        with self.lock:
            return [lake for until, lake in self.lakes if until > since - _BEHIND]

    def replace(self, lake: Lake) -> None:
        """From now on there is another lake; it may be answered from as soon as it is written."""
        with self.lock:
            last = self.lakes[-1][1]
            self.lakes[-1] = (time.monotonic() + 30.0, last)
            self.lakes.append((float("inf"), lake))
            self.lakes = [each for each in self.lakes if each[0] > time.monotonic() - 2 * _BEHIND]


def get(port: int, path: str) -> tuple[int, Json]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as response:
            return response.status, dict(json.load(response))
    except urllib.error.HTTPError as error:
        return error.code, dict(json.load(error))


def path_of(kind: str, name: str) -> str:
    table_ = quote(f"table:{name}")
    return {
        "joinable": f"/api/v1/joinable?query={table_}&on=key&k=5",
        "correlated": f"/api/v1/correlated?query={table_}&key=key&target=num&k=3",
        "profile": f"/api/v1/table?name={quote(name)}",
    }[kind]


def visitor(port: int, story: Story, ended: threading.Event, seed: int, pause: float) -> None:
    dice = random.Random(seed)
    while not ended.wait(dice.expovariate(1 / pause)):
        names = sorted({name for lake in story.possible(time.monotonic()) for name in lake})
        kind, name = dice.choice(["joinable", "correlated", "profile"]), dice.choice(names)
        began = time.monotonic()
        try:
            status, body = get(port, path_of(kind, name))
        except OSError as error:
            story.wrong.append(f"{kind} {name}: {error}")
            continue
        ok = any(right(lake, kind, name, status, body) for lake in story.possible(began))
        with story.lock:
            story.asked[kind] = story.asked.get(kind, 0) + 1
            if not ok:
                story.wrong.append(f"{kind} {name}: {status} {json.dumps(body)[:300]}")


class Writer:
    """A process that updates the index when it is told to."""

    def __init__(self, index: Path) -> None:
        command = [sys.executable, __file__, "--writes", str(index)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, what: str) -> Json:
        """Have it update or compact, and hear what became of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def writes(index: str) -> None:
    """What the writer does for each line: an update, and compaction when it is advised or asked for."""
    import lakescope

    lake = lakescope.open(index)
    for line in sys.stdin:
        done = lake.update()
        compacted = done.segments > 1 and (done.advice is not None or line.strip() == "compact")
        if compacted:
            lake.compact()
        print(json.dumps({"generation": done.generation, "seconds": done.seconds, "compacted": compacted}), flush=True)


def changed(folder: Path, lake: Lake, dice: random.Random) -> Lake:
    """Some tables come, change and go."""
    made = dict(lake)
    for _ in range(dice.randrange(1, 4)):
        what = dice.choice(["add", "change", "change", "remove"])
        if what == "remove" and len(made) > 20:
            gone = dice.choice(sorted(made))
            del made[gone]
            (folder / gone).unlink()
            continue
        name = f"t{dice.randrange(1000):03d}.csv" if what == "add" else dice.choice(sorted(made))
        made[name] = drawn(dice)
        write(folder / name, made[name])
    return made


def sample(began: float, roots: dict[str, int]) -> Json:
    """What processes hold by now."""
    found: Json = {"seconds": round(time.monotonic() - began, 1)}
    for role, pid in roots.items():
        processes = [process.pid for process in tree(pid)]
        handles = [name for each in processes for name in _open_files(each)]
        found[role] = {
            "memory": sum(_resident(each) for each in processes),
            "handles": len(handles),
            "removed": sum(_IN_INDEX in name and name.endswith("(deleted)") for name in handles),
            "others": sum(_IN_INDEX not in name for name in _open_files(pid)),
            "processes": len(processes),
        }
    return found


def _open_files(pid: int) -> list[str]:
    """What a process has open, and the files of the index that it has mapped."""
    found = []
    for each in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):  # closed meanwhile
            found.append(os.readlink(each))  # noqa: PTH115
    with contextlib.suppress(OSError):
        mapped = (line.split(maxsplit=5)[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines())
        found += sorted({name for name in mapped if _IN_INDEX in name})
    return found


# --- the run ----------------------------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> Story:
    place = data_folder("soak", keep=options.keep)
    folder, index = place / "lake", place / "lake.idx"
    folder.mkdir()
    dice = random.Random(options.seed)
    lake = {f"t{number:03d}.csv": drawn(dice) for number in range(options.tables)}
    for name, rows in lake.items():
        write(folder / name, rows)
    subprocess.run([sys.executable, "-m", "lakescope", "index", str(folder), "--out", str(index), "-q"], check=True)
    story = Story(lakes=[(float("inf"), lake)])
    server, port = started(index)
    writer = Writer(index)
    ended = threading.Event()
    try:
        warm(port)
        began = time.monotonic()
        roots = {"server": server.pid, "writer": writer.process.pid}
        writer.tell("compact")
        settle(port, story, lake)
        story.at_rest.append(sample(began, roots))
        asking = [
            threading.Thread(target=visitor, args=(port, story, ended, seed, options.pause))
            for seed in range(options.visitors)
        ]
        for thread in asking:
            thread.start()
        last = began
        while time.monotonic() - began < 60 * options.minutes:
            lake = changed(folder, lake, dice)
            story.replace(lake)
            story.updates.append(writer.tell("update"))
            while time.monotonic() - last < options.every:
                time.sleep(0.5)
            last = time.monotonic()
            story.samples.append(sample(began, roots))
        ended.set()
        for thread in asking:
            thread.join()
        writer.tell("compact")
        settle(port, story, lake)
        # Whoever is being asked may still answer from the lake before.
        time.sleep(2 * QUICK)
        story.at_rest.append(sample(began, roots))
    finally:
        ended.set()
        writer.close()
        server.terminate()
        server.communicate(timeout=30)
    return story


def settle(port: int, story: Story, lake: Lake) -> None:
    """When nothing changes any more, every answer is that of this lake."""
    time.sleep(20)
    for name in sorted(lake):
        for kind in ("joinable", "correlated", "profile"):
            status, body = get(port, path_of(kind, name))
            story.asked["at rest"] = story.asked.get("at rest", 0) + 1
            if not right(lake, kind, name, status, body):
                story.wrong.append(f"at rest: {kind} {name}: {status} {json.dumps(body)[:300]}")


def memory_of(story: Story, role: str) -> tuple[float, float]:
    """Medians of the second and of the last fifth of the time."""
    seen = [each[role]["memory"] for each in story.samples]
    fifth = max(1, len(seen) // 5)
    return statistics.median(seen[fifth : 2 * fifth] or seen), statistics.median(seen[-fifth:])


def report(options: argparse.Namespace, story: Story) -> None:
    from lakescope import __version__

    for each in story.wrong[:10]:
        say(f"wrong: {each}")
    answers = sum(story.asked.values())
    compactions = sum(each["compacted"] for each in story.updates)
    rows, aims = [], [at_most("wrong answers", 0, float(len(story.wrong)))]
    for role in ("server", "writer"):
        memory, (before, after) = memory_of(story, role), (each[role] for each in story.at_rest)
        most = max(each[role]["handles"] for each in story.samples)
        held = (before["processes"], before["handles"], most, after["handles"], after["removed"])
        others = after["others"] - before["others"]
        rows.append([role, *(f"{each / 1e6:,.0f}" for each in memory), *held])
        aims.append(at_most(f"{role}: memory, late / early", 1.1, memory[1] / max(1.0, memory[0])))
        aims.append(Aim(f"{role}: more handles not of the index", "<= 0", f"{others}", others <= 0))
        aims.append(at_most(f"{role}: handles of files that were removed", 0, float(after["removed"])))
    text = (
        f"{options.minutes:g} minutes, {len(story.updates)} updates and {compactions} compactions of a lake of about "
        f"{options.tables} tables; {options.visitors} visitors, {answers:,} answers, {len(story.wrong)} wrong."
    )
    heads = ["who", "memory early, MB", "late", "processes", "handles before", "at most", "after", "of removed files"]
    body = {
        "minutes": options.minutes, "answers": story.asked, "wrong": story.wrong[:50], "updates": len(story.updates),
        "compactions": compactions, "samples": story.samples, "at_rest": story.at_rest,
    }  # fmt: skip
    about = " ".join((__doc__ or "").split("\n\n", 1)[1].split())
    sections = [text, table(heads, rows), about]
    publish("soak", "Updates and questions together", body, sections, aims, {"lakescope": __version__}, options.out)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--visitors", type=int, default=4)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two questions of a visitor")
    parser.add_argument("--every", type=float, default=8.0, help="seconds between two updates")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writes", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.writes:
        writes(options.writes)
    else:
        report(options, run(options))


if __name__ == "__main__":
    main()
