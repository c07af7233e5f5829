"""``python -m lakescope.demo OUT``: write the demo lake, one big CSV or many small ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lakescope.demo import truth_path, write_big_csv, write_demo_lake, write_many_csvs
from lakescope.errors import LakescopeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, write, say what was written."""
    parser = argparse.ArgumentParser(prog="python -m lakescope.demo", description=__doc__)
    parser.add_argument(
        "out", metavar="OUT", help="folder of the lake or of the many CSVs, or file name of the big CSV"
    )
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the rows of the growing tables")
    bulk = parser.add_mutually_exclusive_group()
    bulk.add_argument("--big", type=int, metavar="BYTES", help="write one CSV of about this many bytes instead")
    bulk.add_argument("--many", type=int, metavar="N", help="write this many small CSVs instead")
    given = parser.parse_args(arguments)
    try:
        if given.big is not None:
            written = write_big_csv(given.out, bytes=given.big, seed=given.seed)
        elif given.many is not None:
            written = write_many_csvs(given.out, tables=given.many, seed=given.seed)
        else:
            truth = write_demo_lake(given.out, seed=given.seed, scale=given.scale)
            count = f"{len(truth.tables)} tables and {len(truth.broken)} broken files"
            print(f"{count}, {sum(truth.files.values()):,} bytes in {given.out}; truth in {truth_path(given.out)}")
            return 0
    except LakescopeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{written.files} files, {written.rows:,} rows, {written.bytes:,} bytes in {written.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
