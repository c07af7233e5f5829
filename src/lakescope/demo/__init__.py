"""A seeded demo lake with planted, known truth, and bulk files for benchmarks.

The lake looks like that of a trading company that also collects open data. What is planted in it (joins, keys,
correlations, dependencies, missing headers, broken files) is measured on the data written and kept as
:class:`DemoTruth` beside the lake. Names and codes are real, figures are invented.
"""

from __future__ import annotations

from lakescope.demo.big import write_big_csv
from lakescope.demo.generate import write_demo_lake
from lakescope.demo.many import write_many_csvs
from lakescope.demo.truth import DemoTruth, truth_path
from lakescope.demo.written import Written

__all__ = ["DemoTruth", "Written", "truth_path", "write_big_csv", "write_demo_lake", "write_many_csvs"]
