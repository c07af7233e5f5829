"""Measure the bias of HyperLogLog's raw estimate and write the tables that HyperLogLog++ corrects it with.

For every precision from 4 to 18 some 200 set sizes between 0.1 m and 5.5 m, each the mean of at least a thousand
random sets of hashes (Heule et al. 2013, section 5.2; their tables are not copied). One set grows through all sizes.
Takes some minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

POINTS = 200
PRECISIONS = range(4, 19)
OUT = Path(__file__).resolve().parents[1] / "src" / "lakescope" / "sketches" / "hll_bias.f32"


def measure(precision: int, sets: int, seed: int) -> np.ndarray:
    """Two rows: mean raw estimates at the sizes, and by how much they are too high."""
    from lakescope.sketches.kernels import hll_dense_update
    from lakescope.sketches.loglog import raw_estimate

    m = 1 << precision
    sizes = np.unique(np.linspace(max(1.0, 0.1 * m), 5.5 * m, POINTS).round().astype(np.int64))
    sizes = np.concatenate([sizes, np.full(POINTS - sizes.size, sizes[-1])])
    totals = np.zeros(POINTS)
    chance = np.random.default_rng([seed, precision])
    for _ in range(sets):
        registers = np.zeros(m, np.uint8)
        hashes = chance.integers(0, 2**64, int(sizes[-1]), dtype=np.uint64)
        done = 0
        for place, size in enumerate(sizes.tolist()):
            if size > done:
                hll_dense_update(registers, hashes[done:size], precision)
                done = size
            totals[place] += raw_estimate(registers)
    means = totals / sets
    return np.stack([means, means - sizes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=1000, help="random sets a precision (more for small ones)")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    tables = []
    for precision in PRECISIONS:
        # Small sketches scatter more, and cost less.
        sets = options.sets * max(1, 1 << (12 - precision) // 2) if precision < 12 else options.sets
        tables.append(measure(precision, sets, options.seed))
        print(f"precision {precision}: {sets} sets, bias from {tables[-1][1][0]:.1f} to {tables[-1][1][-1]:.1f}")
    options.out.write_bytes(np.stack(tables).astype("<f4").tobytes())
    print(f"{options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
