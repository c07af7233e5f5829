"""A working directory made to do harm: what it would like to be run leaves a marker, then fails."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc

import lakescope

#: Modules that processes of this package import, or that Python imports by itself.
MODULES = ("json.py", "numpy.py", "sitecustomize.py", "usercustomize.py", "lakescope/__init__.py")
_CONSOLE_SCRIPT = "import sys\nfrom lakescope.faces.cli import main\nsys.exit(main())\n"


@dataclass(frozen=True, slots=True)
class PlantedPlace:
    """A lake in which somebody types a command, the folder of temporary files, and what was run there."""

    root: Path

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    @property
    def markers(self) -> list[str]:
        """What was run or written that should not have been."""
        return sorted(path.name for path in (self.root / "markers").iterdir())

    def command(self, *arguments: str) -> list[str]:
        """A command as pip installs it: the folder of its script comes first on the path, not the working directory."""
        return [sys.executable, str(self.root / "scripts" / "lakescope"), *arguments]

    def environment(self) -> dict[str, str]:
        """The environment of somebody who set nothing up, with this package in reach."""
        own = ("LAKESCOPE_", "NUMBA_", "SPARK_", "PYSPARK_", "PYTHON", "JAVA_HOME")
        bare = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        package = str(Path(lakescope.__file__).parent.parent)
        return {**bare, "PYTHONPATH": package, "TMPDIR": str(self.root / "uploads"), "NUMBA_OPT": "3"}


def plant(root: Path) -> PlantedPlace:
    """A lake of some tables with traps among them, and traps in the folder of temporary files."""
    place = PlantedPlace(root)
    for folder in ("lake", "uploads", "markers", "scripts", "bin", "jars"):
        (root / folder).mkdir(parents=True)
    (root / "scripts" / "lakescope").write_text(_CONSOLE_SCRIPT)
    for folder in (place.lake, root / "uploads"):
        for module in MODULES:
            _trap(folder / module, root / "markers")
        (folder / ".numba_config.yaml").write_text(f"cache_dir: {root / 'markers' / 'numba'}\n")
    # PySpark looks for Spark above the working directory.
    spark = root / "bin" / "spark-submit"
    spark.write_text(f"#!/bin/sh\n: > '{root / 'markers' / 'spark-submit'}'\nexit 1\n")
    spark.chmod(0o755)
    _write_tables(place.lake)
    return place


def _trap(path: Path, markers: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    marker = markers / f"{path.parent.name}-{path.name}"
    path.write_text(f"open({str(marker)!r}, 'w').close()\nraise ImportError('code of the working directory')\n")


def _write_tables(lake: Path) -> None:
    rows = range(60)
    people = [f"{n},Ada {n * 7 % 60},{n * 3 % 50},{n * 2.5}" for n in rows]
    (lake / "people.csv").write_text("\n".join(["id,name,town,height", *people, ""]))
    (lake / "members.csv").write_text("\n".join(["member,fee", *(f"{n},{n * 5}" for n in rows), ""]))
    (lake / "names.csv").write_text("\n".join(["person", *(f"Ada  {n}" for n in rows), ""]))
    (lake / "plain.csv").write_text("\n".join(["id,height", *(f"{n},{n * 2.5}" for n in rows), ""]))
    orc.write_table(pa.table({"id": list(rows), "weight": [n * 0.5 for n in rows]}), lake / "weights.orc")
