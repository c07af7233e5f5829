"""Kernels: each compiled for one signature only, whatever the source, and all of them by the warm-up."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from lakescope.pipeline.scan import TableScan
from lakescope.pipeline.warmup import warm
from lakescope.profile import kernels as profile_kernels
from lakescope.profile.column import ColumnState
from lakescope.sketches import kernels as sketch_kernels
from lakescope.sources import csv_kernel, plan
from lakescope.sources.discover import discover
from lakescope.values import kernels as value_kernels

MODULES: list[ModuleType] = [value_kernels, profile_kernels, sketch_kernels, csv_kernel]


def compiled() -> dict[str, int]:
    """Signatures of the kernels that are called from Python."""
    return {
        f"{module.__name__}.{name}": len(kernel.signatures)
        for module in MODULES
        for name, kernel in vars(module).items()
        if hasattr(kernel, "signatures") and not name.startswith("_")
    }


@pytest.mark.parametrize("target", [10_000, 1 << 30])
def test_one_signature_per_kernel(demo_lake: Path, target: int) -> None:
    """A second signature would mean compiling twice: for read-only and writable buffers, or for two integer widths."""
    warm()
    before = compiled()
    found, _ = discover([str(demo_lake / folder) for folder in ("shop", "weather", "web", "mobility", "world")])
    for table in found:
        for unit in plan(table, target):
            scan = TableScan(unit.table, unit.ordinal)
            scan.scan(unit)
            for state in scan.states.values():
                again = ColumnState.from_bytes(state.to_bytes())
                again.merge(ColumnState.from_bytes(state.to_bytes()))
    assert compiled() == before
    assert max(before.values()) == 1
