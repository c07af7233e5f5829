"""What the benchmarks share: CPU time of a process tree, the machine, spreads, tables, results.

Standard library only, since peers run in environments of their own. Linux only: it reads /proc.

How CPU time is counted. A system runs in a child process of its own. The harness is a "subreaper": whatever the child
leaves behind (Spark's JVM outlives its driver) becomes the harness' own child and is waited for, so the kernel's
RUSAGE_CHILDREN holds user and system time of all of them. One kind of process is missing there: PySpark's daemon
ignores SIGCHLD, so the kernel drops the time of the Python workers it forked. Their time is read from /proc/PID/stat,
by the child before it stops Spark and five times a second by the harness, and added unless the harness reaped the
worker itself. Costs of a phase inside a run (start-up apart) are differences of the same numbers summed over the live
process tree. A process other than the one that asks is exact to the kernel's tick (10 ms).
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import functools
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
RESULTS = HERE / "results"

_TICK = os.sysconf("SC_CLK_TCK")
_SUBREAPER = 36
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

Json = dict[str, Any]


# --- processes -------------------------------------------------------------------------------------------------------


def become_subreaper() -> None:
    """Orphans below this process become its children instead of init's."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    own: float  # CPU-seconds, user and system
    reaped: float  # ... of children it waited for


def _processes() -> dict[int, Process]:
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            stat = Path("/proc", name, "stat").read_text()
        except OSError:
            continue
        fields = stat[stat.rindex(")") + 2 :].split()
        user, system, child_user, child_system = (int(text) / _TICK for text in fields[11:15])
        found[int(name)] = Process(int(name), int(fields[1]), user + system, child_user + child_system)
    return found


def tree(root: int) -> list[Process]:
    """A process and all its descendants that live."""
    processes = _processes()
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        if pid in processes:
            found.append(processes[pid])
            waiting += children.get(pid, [])
    return found


def tree_cpu(root: int | None = None) -> float:
    """CPU-seconds of a process tree so far, with those of its dead that were waited for."""
    root = root or os.getpid()
    mine = resource.getrusage(resource.RUSAGE_SELF)  # to the microsecond
    exact = {os.getpid(): mine.ru_utime + mine.ru_stime}
    return sum(exact.get(process.pid, process.own) + process.reaped for process in tree(root))


def python_workers(processes: Iterable[Process]) -> list[Process]:
    """PySpark's Python workers: children of its daemon, which they were forked from."""
    processes = list(processes)
    daemons = {process.pid for process in processes if "pyspark.daemon" in _command(process.pid)}
    return [process for process in processes if process.pid in daemons and process.parent in daemons]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def peak_memory(pid: int) -> int:
    """Largest resident set of a process so far, in bytes (VmHWM); 0 if it is gone."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


class _Sampler(threading.Thread):
    """Watches the tree of a child: CPU time of Python workers, largest resident sets."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.worker_cpu: dict[int, float] = {}
        self.worker_peak: dict[int, int] = {}
        self.other_peak: dict[str, int] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            processes = tree(self.root)
            workers = {process.pid: process for process in python_workers(processes)}
            for process in processes:
                peak = peak_memory(process.pid)
                if process.pid in workers:
                    self.worker_cpu[process.pid] = process.own
                    self.worker_peak[process.pid] = max(peak, self.worker_peak.get(process.pid, 0))
                else:
                    kind = "java" if "java" in _command(process.pid).split(" ")[0] else "python"
                    self.other_peak[kind] = max(peak, self.other_peak.get(kind, 0))

    def end(self) -> None:
        self._ended.set()
        self.join()


@dataclass(slots=True)
class Run:
    """One run of a system in a process of its own: what it reported, and what the harness saw."""

    report: Json
    cpu: float
    wall: float
    worker_peaks: list[int]
    peaks: dict[str, int]

    @property
    def peak(self) -> int:
        return max([*self.worker_peaks, *self.peaks.values(), 0])


def run_system(system: str, job: Json, *, python: str = sys.executable, env: dict[str, str] | None = None) -> Run:
    """Run ``systems.py SYSTEM`` on a job; raises RuntimeError with the end of its output if it fails."""
    become_subreaper()
    with tempfile.TemporaryDirectory(prefix="lakescope-bench-") as folder:
        job_file, report_file, log_file = (Path(folder, name) for name in ("job.json", "report.json", "log.txt"))
        job_file.write_text(json.dumps({**job, "scratch": folder}))
        before, began = _children_cpu(), time.monotonic()
        with log_file.open("wb") as log:
            command = [python, str(HERE / "systems.py"), system, str(job_file), str(report_file)]
            child = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(env or {})}, cwd=folder)
            sampler = _Sampler(child.pid)
            sampler.start()
            code = child.wait()
        wall = time.monotonic() - began
        sampler.end()
        reaped = _reap()
        if code or not report_file.exists():
            tail = log_file.read_text("utf-8", "replace").splitlines()[-15:]
            raise RuntimeError(f"{system} failed with code {code}:\n" + "\n".join(tail))
        report = json.loads(report_file.read_text())
        workers = {**sampler.worker_cpu, **{int(pid): cpu for pid, cpu in report.get("workers", {}).items()}}
        lost = sum(cpu for pid, cpu in workers.items() if pid not in reaped)
        cpu = _children_cpu() - before + lost
        return Run(report, cpu, wall, list(sampler.worker_peak.values()), sampler.other_peak)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _reap(seconds: float = 60.0) -> set[int]:
    """Wait for everything the child left behind."""
    reaped = set()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid:
            reaped.add(pid)
        else:
            time.sleep(0.05)
    return reaped


# --- numbers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range over the rounds."""

    median: float
    low: float
    high: float
    rounds: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values), [round(value, 6) for value in values])

    def __str__(self) -> str:
        return f"{figure(self.median)} ({figure(self.low)}-{figure(self.high)})"


def figure(x: float) -> str:
    """Three significant digits, no exponent."""
    if x == 0 or abs(x) >= 100:
        return f"{x:,.0f}"
    return f"{x:.3g}" if abs(x) >= 1e-3 else f"{x:.1e}"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ours over theirs, round by round."""
    return Spread.of([a / b for a, b in zip(ours, theirs, strict=True)])


def parse_bytes(text: str) -> int:
    """``256M``, ``2G`` (binary units) or plain bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise argparse.ArgumentTypeError(f"not a size: {text!r}")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def show_bytes(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.2f} GB"


# --- results ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aim:
    """A promise, what was measured, and whether it was kept; None if it was not measured."""

    what: str
    wanted: str
    measured: str
    met: bool | None


def at_most(what: str, limit: float, value: Spread | float | None, unit: str = "") -> Aim:
    """An aim whose median must not exceed ``limit``."""
    wanted = f"<= {figure(limit)}{unit}"
    if value is None:
        return Aim(what, wanted, "not measured", None)
    median = value.median if isinstance(value, Spread) else value
    return Aim(what, wanted, (str(value) if isinstance(value, Spread) else figure(value)) + unit, median <= limit)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table that also reads well as plain text."""
    body = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(headers), *body]) for i in range(len(headers))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return "\n".join([line(headers), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, body)])


def aims_table(aims: Sequence[Aim]) -> str:
    words = {True: "met", False: "NOT MET", None: "not measured"}
    return table(["aim", "wanted", "measured", ""], [(a.what, a.wanted, a.measured, words[a.met]) for a in aims])


def machine() -> Json:
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        system = platform.system()
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(int(memory[1]) / (1 << 20), 1) if memory else None,
        "cpu": cpu[1].strip() if cpu else platform.machine(),
        "os": system,
        "load_at_start": round(_LOAD, 2),
    }


_LOAD = os.getloadavg()[0]


def command() -> str:
    """How this was called; of paths only their last part, since the rest differs from machine to machine."""
    arguments = [Path(argument).name if "/" in argument else argument for argument in sys.argv[1:]]
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *arguments])


def publish(
    name: str, title: str, body: Json, sections: Sequence[str], aims: Sequence[Aim], versions: Json, out: Path
) -> None:
    """Print the result and write NAME.json and NAME.md."""
    here = machine()
    date = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    sorted_versions = dict(sorted(versions.items()))
    head = {"name": name, "date": date, "command": command(), "machine": here, "versions": sorted_versions}
    told = ", ".join(f"{library} {version}" for library, version in sorted_versions.items())
    text = [
        f"# {title}",
        f"{date}; `{head['command']}`  \n{here['cores']} cores, {here['memory_gb']} GB, {here['cpu']}, {here['os']}; "
        f"load when it began {here['load_at_start']}  \n{told}",
        *sections,
        *(["## Aims", aims_table(aims)] if aims else []),
    ]
    out.mkdir(parents=True, exist_ok=True)
    markdown = "\n\n".join(text) + "\n"
    whole = {**head, **body, "aims": [asdict(aim) for aim in aims]}
    (out / f"{name}.json").write_text(json.dumps(whole, indent=1, default=_plain) + "\n")
    (out / f"{name}.md").write_text(markdown)
    print("\n" + markdown, flush=True)


def _plain(thing: object) -> object:
    if isinstance(thing, Spread | Aim):
        return asdict(thing)
    if hasattr(thing, "item"):
        return thing.item()
    raise TypeError(type(thing).__name__)


Section = tuple[str, Json, list[Aim]]


def run_parts(
    parts: dict[str, Callable[[argparse.Namespace], Section]], options: argparse.Namespace, about: str | None, name: str
) -> tuple[list[str], Json, list[Aim]]:
    """Run the parts of a benchmark: their texts and what they measured, and all aims.

    With ``--only`` the others are as the results in ``--out`` have them, each with when and how it was measured.
    """
    told: dict[str, Json] = {}
    earlier = options.out / f"{name}.json"
    if options.only and not earlier.exists() and earlier.with_suffix(".md").exists():
        sys.exit(
            f"{earlier} is not here: the other parts of {name}.md would be lost; run it whole, or name another --out"
        )
    if options.only and earlier.exists():
        told = {part: {} | each for part, each in json.loads(earlier.read_text()).get("parts", {}).items()}
        for each in told.values():
            each.setdefault("measured", f"Measured {each['date']}; `{each['command']}`.")
    for part, run in parts.items():
        if options.only and part not in options.only:
            continue
        text, figures, reached = run(options)
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        told[part] = {"text": text, "figures": figures, "aims": reached, "date": now, "command": command()}
        say(f"{part} done")
    kept = [told[part] for part in parts if part in told]
    sections = [each["text"] + (f"\n\n{each['measured']}" if "measured" in each else "") for each in kept]
    sections.append(" ".join((about or "").split("\n\n", 1)[1].split()))
    aims = [aim if isinstance(aim, Aim) else Aim(**aim) for each in kept for aim in each["aims"]]
    return sections, {"parts": {part: told[part] for part in parts if part in told}}, aims


def say(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)


def free_bytes() -> int:
    DATA.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(DATA).free


# --- what runs need --------------------------------------------------------------------------------------------------


def arguments(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="rounds; every system runs once in each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--keep", action="store_true", help="keep the generated data in benchmarks/data")
    return parser


def alternated(systems: Sequence[str], round_: int) -> list[str]:
    """The systems in another order each round: every second round backwards, every pair of rounds turned by one."""
    turn = round_ // 2 % len(systems)
    turned = [*systems[turn:], *systems[:turn]]
    return turned[::-1] if round_ % 2 else turned


def data_folder(name: str, *, keep: bool = False) -> Path:
    """A fresh folder in benchmarks/data that goes when the process ends, however it ends, unless it is to be kept."""
    folder = DATA / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if not keep:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def warm_up_tables() -> list[str]:
    """Sixteen small tables that every system reads before its time counts; not those of the comparison."""
    from lakescope.demo import write_many_csvs

    folder = data_folder("warm-up")
    write_many_csvs(folder, tables=16, seed=7)
    return sorted(str(path) for path in folder.rglob("*.csv"))


def prime() -> None:
    """One uncounted build, so that no run pays for compiling kernels: numba keeps them for all later processes."""
    say("an uncounted build first (compiled kernels are cached from now on)")
    run_system("prime", {"warm_up": warm_up_tables()})


def ydata_python() -> tuple[str | None, str]:
    """The Python of an environment with ydata-profiling, made on first use in the user's cache; or None and why."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = named if named.is_absolute() else Path.home() / ".cache"
    folder = cache / "lakescope" / "benchmarks" / f"ydata-{sys.version_info.major}.{sys.version_info.minor}"
    python, stamp = folder / "bin" / "python", folder / "complete"
    if stamp.exists():
        return str(python), ""
    say("setting up ydata-profiling in an environment of its own (once)")
    base = getattr(sys, "_base_executable", sys.executable)
    try:
        subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None, "ydata-profiling: no environment could be made for it"
    # The package was renamed; pkg_resources, which some of its dependencies want, left setuptools with version 81.
    for package in ("ydata-profiling", "fg-data-profiling"):
        install = [str(python), "-m", "pip", "install", "--quiet", package, "setuptools<81"]
        check = [str(python), str(HERE / "systems.py"), "ydata", "--check"]
        if all(subprocess.run(step, capture_output=True, check=False).returncode == 0 for step in (install, check)):
            stamp.touch()
            return str(python), ""
    shutil.rmtree(folder, ignore_errors=True)
    return None, "ydata-profiling: could not be installed here"
