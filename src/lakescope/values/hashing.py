"""The one hash: XXH64 with seed 42 over the UTF-8 bytes of the canonical text (Law 9).

Equal to Spark SQL's ``xxhash64`` of one string column, so any engine can join our hashes. The compiled twin that runs
over whole columns is ``values.kernels.xxh64``.
"""

from __future__ import annotations

import numpy as np
import xxhash

#: Seed of the one hash, Spark's default.
HASH_SEED = 42
#: The largest hash: a sketch of the smallest hashes with this threshold holds all of them.
LAST_HASH = np.uint64(2**64 - 1)


def hash_text(canonical_text: str) -> int:
    """Hash a canonical text to an unsigned 64-bit integer."""
    return xxhash.xxh64_intdigest(canonical_text.encode("utf-8", "replace"), HASH_SEED)
