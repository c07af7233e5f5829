"""Kernels: each compiled for one signature only, whatever the source, and all of them by the warm-up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Run apart: other tests call kernels with whatever they like.
SCRIPT = """
import sys
from lakescope.build import kernels as build_kernels
from lakescope.build.scan import TableScan
from lakescope.build.warmup import warm
from lakescope.profile import kernels as profile_kernels
from lakescope.profile.column import ColumnState
from lakescope.build.correlations import BuiltSketch
from lakescope.sketches import correlation_kernels, gram_kernels
from lakescope.sketches import kernels as sketch_kernels
from lakescope.sources import plan
from lakescope.sources.formats import csv_kernel, header_kernel
from lakescope.sources.discover import discover
from lakescope.values import kernels as value_kernels

def compiled():
    return {
        f"{module.__name__}.{name}": len(kernel.signatures)
        for module in (
            *(value_kernels, profile_kernels, sketch_kernels, correlation_kernels, gram_kernels, csv_kernel),
            *(header_kernel, build_kernels),
        )
        for name, kernel in vars(module).items()
        if hasattr(kernel, "signatures") and not name.startswith("_")
    }

warm()
before = compiled()
found, _ = discover(sys.argv[1:])
for target in (10_000, 1 << 30):
    for table in found:
        for unit in plan(table, target):
            scan = TableScan(unit.table, unit.ordinal)
            list(scan.scan(unit))
            list(scan.take_tokens())
            for keyed in scan.sketches.finish(whole=target > 10_000).values():
                keyed.merge(BuiltSketch.from_bytes(keyed.to_bytes()))
            for state in scan.states.values():
                again = ColumnState.from_bytes(state.to_bytes())
                again.merge(ColumnState.from_bytes(state.to_bytes()))
assert len(found) > 20, found
assert compiled() == before, (before, compiled())
assert max(before.values()) == 1, before
"""


def test_one_signature_per_kernel(demo_lake: Path) -> None:
    """A second signature would mean compiling twice: for read-only and writable buffers, or for two integer widths."""
    folders = [str(demo_lake / folder) for folder in ("shop", "weather", "web", "mobility", "world")]
    ran = subprocess.run([sys.executable, "-c", SCRIPT, *folders], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
