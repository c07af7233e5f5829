"""Small mergeable states over hashes. Pure: no files, no Spark.

The twelve counters of distinct values, the exact baseline, the sampling one and HyperLogLog with deletions are here by
name; each takes values or hashes, merges, estimates with an interval and turns into bytes:

>>> from lakescope.sketches import HyperLogLogPlusPlus
>>> counter = HyperLogLogPlusPlus().update(["Rome", "Oslo", "Rome"])
>>> round(counter.estimate())
2
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakescope.sketches.akmv import AKMV
    from lakescope.sketches.ams import AMS
    from lakescope.sketches.bitmaps import BloomFilter, LinearCounting
    from lakescope.sketches.bjkst import BJKST
    from lakescope.sketches.counter import Counter
    from lakescope.sketches.deletable import DeletableHyperLogLog
    from lakescope.sketches.exact import Exact
    from lakescope.sketches.fm import FM, PCSA
    from lakescope.sketches.gee import GEE
    from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
    from lakescope.sketches.loglog import HyperLogLog, LogLog, SuperLogLog
    from lakescope.sketches.mincount import MinCount

__all__ = [
    "AKMV",
    "AMS",
    "BJKST",
    "FM",
    "GEE",
    "PCSA",
    "BloomFilter",
    "Counter",
    "DeletableHyperLogLog",
    "Exact",
    "HyperLogLog",
    "HyperLogLogPlusPlus",
    "LinearCounting",
    "LogLog",
    "MinCount",
    "SuperLogLog",
]

_MODULES = {
    "AKMV": "akmv",
    "AMS": "ams",
    "BJKST": "bjkst",
    "FM": "fm",
    "GEE": "gee",
    "PCSA": "fm",
    "BloomFilter": "bitmaps",
    "Counter": "counter",
    "DeletableHyperLogLog": "deletable",
    "Exact": "exact",
    "HyperLogLog": "loglog",
    "HyperLogLogPlusPlus": "hyperloglog",
    "LinearCounting": "bitmaps",
    "LogLog": "loglog",
    "MinCount": "mincount",
    "SuperLogLog": "loglog",
}


def __getattr__(name: str) -> Any:
    # The kernels behind the counters take a second to load: only for who counts.
    if name in _MODULES:
        return getattr(import_module(f"lakescope.sketches.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'lakescope.sketches' has no attribute {name!r}")
