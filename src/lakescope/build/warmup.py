"""Compiling the kernels once, while the JVM starts.

The first build on a machine compiles the kernels. Left to the workers, each of them would
compile all of them at the same time; compiled here they wait in numba's cache when the first worker looks. Later builds
find the cache filled and skip this.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakescope.array_types import U64
    from lakescope.values.cells import Cells


def start_warming() -> threading.Thread:
    """Compile in the background what is not compiled yet; join the thread before work begins."""
    thread = threading.Thread(target=_warm_if_cold, name="lakescope-warmup", daemon=True)
    thread.start()
    return thread


def _warm_if_cold() -> None:
    import lakescope.values

    folder = Path(lakescope.values.__file__).parent
    changed = (folder / "kernels.py").stat().st_mtime
    # What was compiled from an older source numba compiles again.
    if not any(file.stat().st_mtime >= changed for file in (folder / "__pycache__").glob("kernels.analyse-*.nbi")):
        warm()


def warm() -> None:
    """Run every kernel on a few cells."""
    import numpy as np

    from lakescope.profile.column import ColumnState
    from lakescope.profile.summary import summarise
    from lakescope.sketches.frequent import FrequentValues, Texts
    from lakescope.sketches.hashset import HashSet
    from lakescope.sources.formats import csv_kernel
    from lakescope.sources.formats.csv_dialect import detect_dialect
    from lakescope.sources.io.encoding import Encoding
    from lakescope.values.cells import understand
    from lakescope.values.text import TextColumn

    text = np.frombuffer(b"a,b\n1,2\n2021-03-04,x\n", np.uint8)
    dialect = detect_dialect(text, whole=True, encoding=Encoding())
    csv_kernel.resync(text, text.size, csv_kernel.MIDDLE, dialect.delimiter, dialect.quote, 0, dialect.newline, 2, 4)
    starts, ends = np.array([4, 6, 8], np.int32), np.array([5, 7, 18], np.int32)
    state = ColumnState(0)
    cells = understand(TextColumn("warm", text, starts, ends))
    state.update(cells)
    state.grams.update(cells)
    _warm_correlations(cells)
    state.merge(ColumnState.from_bytes(state.to_bytes()))
    summarise("warm", "warm", state, 3)
    hashes = np.arange(1, 8000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state.distinct.update_hashes(hashes)
    state.distinct.update_hashes(hashes)
    state.distinct.estimate()
    state.distinct.update_hashes(hashes)
    places = np.zeros(hashes.size, np.int32)
    few = FrequentValues(16)
    for _ in range(2):
        few.update(hashes, np.ones(hashes.size, np.int64), Texts.of(text.copy(), places, places + np.int32(1)))
    tokens = HashSet()
    tokens.add(hashes)
    state.signature.update_hashes(tokens.sorted())
    _warm_inverted(tokens.sorted())


def _warm_correlations(cells: Cells) -> None:
    """Sketch a table of two columns that comes in two pieces."""
    from lakescope.build.correlations import BuiltSketch, TableSketches

    table = TableSketches()
    for order in (0, 3):
        table.add([("key", cells), ("number", cells)], order)
    for keyed in table.finish(whole=False).values():
        keyed.merge(BuiltSketch.from_bytes(keyed.to_bytes()))


def _warm_inverted(hashes: U64) -> None:
    """Build an inverted index of one set."""
    from lakescope.build.inverted import build_inverted, local_exchange
    from lakescope.build.tokens import RawTokens, TokenBuffer, TokenCut
    from lakescope.sketches.minhash import MinHash
    from lakescope.store.segment import ShardWriter

    cut = TokenCut(1, 1)
    key = cut.set_key("warm", "warm")
    buffer = TokenBuffer(cut)
    buffer.add(key, hashes)
    with tempfile.TemporaryDirectory(prefix="lakescope-") as folder:
        raw = RawTokens(folder)
        for bucket, payload in buffer.take():
            raw.add(bucket, iter([payload]))
        sketches = ShardWriter(folder, "sketches")
        sketch = {"table": "warm", "column": "warm", "position": 0, "key": key}
        sketches.add({**sketch, "signature": MinHash().values.tobytes()})
        files = raw.close(), sketches.close()
        if files[0] and files[1]:
            build_inverted(local_exchange, Path(folder), [files[0][0]], [files[1]], cut, files[0][1])
