"""Reports of lakes of growing size: CPU time of `lakescope report`, and how large its pages are.

Each lake is a part of the largest one. A report is written by the command in a process of its own, everything counted:
start-up, opening the index, references, joins, pages. Only ours is measured; no peer makes pages of joins and
references.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import common
from common import Aim, Json, Spread


def written(index: Path, out: Path) -> float:
    """CPU-seconds of the command."""
    before = common._children_cpu()
    command = [sys.executable, "-m", "lakescope", "report", str(index), "--out", str(out), "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    return common._children_cpu() - before


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1_000], help="tables of the lakes")
    options = parser.parse_args()
    import lakescope
    from lakescope.build.session import spark_session
    from lakescope.demo import write_many_csvs

    folder = common.data_folder("report", keep=options.keep)
    with spark_session(master="local[*]") as spark:
        for tables in options.sizes:
            write_many_csvs(folder / f"lake{tables}", tables=tables)
            lakescope.index(str(folder / f"lake{tables}"), folder / f"{tables}.idx", spark=spark)
            common.say(f"{tables:,} tables are indexed")
    costs: dict[int, list[float]] = {tables: [] for tables in options.sizes}
    for _ in range(options.repeats):
        for tables in options.sizes:
            costs[tables].append(written(folder / f"{tables}.idx", folder / f"site{tables}"))
            common.say(f"{tables:,} tables: {costs[tables][-1]:.1f} CPU-s")
    rows, body = [], {}
    for tables in options.sizes:
        site = folder / f"site{tables}"
        sizes = [path.stat().st_size for path in site.rglob("*.html")]
        seconds, each = Spread.of(costs[tables]), Spread.of([1000 * cost / tables for cost in costs[tables]])
        start = (site / "index.html").stat().st_size
        body[str(tables)] = {"cpu_s": seconds, "index_bytes": start, "largest": max(sizes), "bytes": sum(sizes)}
        columns = lakescope.open(folder / f"{tables}.idx").info()["columns"]
        shown = [common.show_bytes(size) for size in (start, max(sizes), sum(sizes))]
        rows.append([f"{tables:,}", f"{columns:,}", str(seconds), str(each), *shown])
    head = ["tables", "columns", "CPU-s", "CPU-ms a table", "first page", "largest page", "all pages"]
    told: Json = {"sizes": body}
    most, least = max(options.sizes), min(options.sizes)
    marginal = [
        (a - b) / (most - least) / (b / least) for a, b in zip(costs[most], costs[least], strict=True) if most > least
    ]
    aims: list[Aim] = [
        common.at_most(f"CPU time of {most:,} tables", 60.0 * most / 1_000, Spread.of(costs[most]), " s"),
        common.at_most("first page", 2.0, body[str(most)]["index_bytes"] / 1e6, " MB"),
        common.at_most("largest page", 1.0, max(each["largest"] for each in body.values()) / 1e6, " MB"),
    ]
    if marginal:
        aims.append(common.at_most("one table more, against the mean of the small lake", 1.5, Spread.of(marginal)))
    about = " ".join((__doc__ or "").split("\n\n", 1)[1].split())
    versions = {name: version(name) for name in ("lakescope", "numpy", "numba", "pyarrow")}
    common.publish("report", "Reports", told, [common.table(head, rows), about], aims, versions, options.out)


if __name__ == "__main__":
    main()
