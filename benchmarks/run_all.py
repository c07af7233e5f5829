"""Run all benchmarks at their full sizes and say which aims were met. Takes some hours and up to 11 GB of disk.

``--quick`` takes small sizes instead, to see that everything runs; its numbers mean little.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import common
from common import Aim

QUICK = {
    "scan_many": "--tables 40 --fewer 10 --subset 3 --repeats 1",
    "scan_big": "--bytes 20M --sizes 20M,80M --size-repeats 1 --repeats 1",
    "accuracy": "--bytes 20M --rows 60000 --seeds 40 --values 3000000 --trials 10 --stream 200000",
    "counters": "--max 1e5 --seeds 3 --size 200000",
    "joins": "--sets 2000 --queries 20 --peer-sets 300",
    "joins_build": "--tokens 100000 200000 --skewed 200000 --columns 200 --repeats 1",
    "correlations": "--tables 20 --queries 2 --sizes 256 --haystacks 3 --trials 20 --sketches 3000 --speed-queries 20",
    "dependencies": "--rows 1000 --columns 10 --seeds 2 --sensor-rows 20000",
    "autojoin": "--rows 200 --sizes 100 1000 --pairs 5 --asked 1 --spark 5000 --repeats 1",
    "headers": "--split 0.02 --corpora 100 --growth-splits 1 --sketched 3 --files 10",
    "inclusions": "--sizes 100 1000 --trials 4 --columns 300 --pairs 2000 --scale 0.01",
    "databases": "--rows 20000 --repeats 1",
    "report": "--sizes 10 20 --repeats 1",
    "fuzz": "--minutes 0.2",
    "updates": "--tables 40 --segments 4 --questions 5 --opened 2 --repeats 1",
    "serve_load": "--tables 40 --columns 5 --users 4 --minutes 0.2",
    "soak": "--minutes 0.5 --tables 10 --every 3",
    "scale": "--tables 20 40 60 --sets 300 600 1200 --questions 20",
}


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--lake", type=Path, help="a folder of real CSVs for scan_many")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    aims: list[Aim] = []
    failed = []
    for name, quick in QUICK.items():
        command = [sys.executable, str(common.HERE / f"{name}.py"), "--out", str(options.out)]
        command += quick.split() if options.quick else ["--repeats", str(options.repeats)]
        command += ["--keep"] if options.keep else []
        command += ["--lake", str(options.lake)] if options.lake and name == "scan_many" else []
        common.say(f"=== {name}")
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
            continue
        result = json.loads((options.out / f"{name}.json").read_text())
        aims += [Aim(**aim) for aim in result["aims"]]
    print("# Summary\n\n" + common.aims_table(aims))
    for name in failed:
        print(f"\n{name} did not finish: see above")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
