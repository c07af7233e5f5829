"""Getting this package to the executors of a cluster.

Executors need the dependencies (numpy, pyarrow, numba, xxhash, ...), which a cluster's image or ``spark.archives`` provides.
The package itself travels with the build, as one zip through ``addArtifacts``, so that workers always run the very code that
planned the build. Local sessions share the interpreter and need nothing.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from lakescope.errors import BuildFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_package(session: SparkSession, staging: Path) -> None:
    """Make the package importable in the workers of a session that is not local."""
    master = session.conf.get("spark.master", "") or ""
    if master.startswith("local"):
        return
    archive = zip_package(staging)
    try:
        session.addArtifacts(str(archive), pyfile=True)
    except Exception as error:
        raise BuildFailed(
            f"could not send the package to the executors: {error}",
            hint="install lakescope on the cluster's Python, or pass it with --py-files",
        ) from error


def zip_package(folder: Path) -> Path:
    """The package's own code as an importable zip."""
    import lakescope

    root = Path(lakescope.__file__).parent
    archive = folder / "lakescope.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc"):
                target.write(path, Path("lakescope") / path.relative_to(root))
    return archive
