"""Writing the whole demo lake."""

from __future__ import annotations

import shutil
from pathlib import Path

from lakescope.demo import broken
from lakescope.demo.builder import LakeBuilder
from lakescope.demo.tables import city, crm, legacy, partners, quality, schools, science, shop, staff, usa, web, world
from lakescope.demo.truth import DemoTruth, truth_path
from lakescope.errors import BadRequest

_MODULES = (world, usa, science, city, shop, crm, web, staff, partners, schools, quality, legacy)


def write_demo_lake(path: str | Path, *, seed: int = 42, scale: float = 1.0) -> DemoTruth:
    """Write the demo lake into the folder ``path`` and its truth beside it as ``<path>.truth.json``.

    The same seed and scale give the same bytes. ``scale`` multiplies the rows of the tables that grow in real life
    (orders, trips, readings, events); memory does not grow with it. An earlier demo lake at ``path`` is replaced; a
    folder that holds anything else is refused.
    """
    root = Path(path)
    if not scale > 0:
        raise BadRequest(
            f"the scale must be above 0, not {scale}", hint="1 gives a few megabytes, 100 about 140, 700 a gigabyte"
        )
    _make_room(root)
    root.mkdir(parents=True, exist_ok=True)
    planted = tuple(fact for module in _MODULES for fact in module.FACTS)
    lake = LakeBuilder(root, seed=seed, scale=scale, planted=planted)
    for module in _MODULES:
        module.write(lake)
    broken.write(lake)
    truth = lake.finish()
    truth.save(truth_path(root))
    return truth


def _make_room(root: Path) -> None:
    """Remove an earlier demo lake, and nothing but that."""
    if root.exists() and not root.is_dir():
        raise BadRequest(f"{root} is a file", hint="name a folder that does not exist yet")
    present = {p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir()} if root.exists() else set()
    if not present:
        return
    known = set(DemoTruth.load(truth_path(root)).files) if truth_path(root).exists() else set()
    if strange := sorted(present - known):
        raise BadRequest(
            f"{root} holds files that are not of a demo lake, such as {strange[0]!r}",
            hint="name an empty folder or one that does not exist yet",
        )
    shutil.rmtree(root)
    truth_path(root).unlink()
