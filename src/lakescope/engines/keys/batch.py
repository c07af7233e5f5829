"""All pairs of a very large lake on Spark: a task that finds the children of some of its columns."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa

from lakescope.engines.joins.joinable import JoinSearch
from lakescope.engines.keys.answers import Estimator, Inclusion
from lakescope.engines.keys.search import KeySearch
from lakescope.results import arrow_schema
from lakescope.store.index import Index


@dataclass(frozen=True, slots=True)
class InclusionBatchTuning:
    """How an answer is handed to Spark."""

    #: Records of a batch of the answer. Not measured: a bound of memory.
    records: int = 10_000


BATCHES = InclusionBatchTuning()


@functools.lru_cache(maxsize=2)
def _opened(path: str, generation: int) -> KeySearch:
    """The index as a worker has it: opened once, whatever number of parts."""
    index = Index(path)
    joins = JoinSearch(index) if index.manifest.summary["join"] is not None else None
    return KeySearch(index, joins)


@dataclass(frozen=True, slots=True)
class SearchInclusions:
    """Task: each input row is the number of a part; the columns of a part are those that leave it as remainder."""

    path: str
    generation: int
    parts: int
    minimum: float
    estimator: Estimator
    verify: bool
    least: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        search = _opened(self.path, self.generation)
        schema = arrow_schema(Inclusion)
        for batch in batches:
            for part in batch.column(0).to_pylist():
                # Columns are in order of their size: every part gets small and large ones.
                parents = search.pairs.columns.numbers[part :: self.parts].tolist()
                found = search.children_of(
                    self.minimum, self.estimator, verify=self.verify, least=self.least, parents=parents
                )
                records = [asdict(each) for some in found for each in search.records_of(some)]
                for begin in range(0, len(records), BATCHES.records):
                    yield pa.RecordBatch.from_pylist(records[begin : begin + BATCHES.records], schema=schema)
