"""The mergeable state of one column: everything its profile needs, fed by batches, added across units.

One pass, bounded memory: counts and moments are exact, distinct counts come from the frequent-value table while it is
exact and from HyperLogLog++ beyond, quantiles from KLL, top values and shapes from Misra-Gries, all from the same
distinct cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lakescope.profile import kernels as k
from lakescope.sketches import codec
from lakescope.sketches.frequent import FrequentValues, Texts
from lakescope.sketches.grams import GramSketch
from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
from lakescope.sketches.minhash import MinHash
from lakescope.sketches.quantiles import Quantiles
from lakescope.values.canonical import Kind
from lakescope.values.cells import Cells
from lakescope.values.characters import character_table
from lakescope.values.kernels import xxh64_cells

_NAME, _VERSION = "column", 2

#: Bytes of a text extreme that are kept.
EXTREME_LIMIT = 200
#: Shapes that are counted exactly. A part of the state.
_SHAPES_LIMIT = 512
#: Values counted exactly for each q-gram that is kept.
_VALUES_PER_GRAM = 8
_KINDS = [kind for kind in Kind if kind is not Kind.NULL]


def values_limit(columns: int) -> int:
    """Distinct values counted exactly in each column, by the width of the table: very wide tables count less."""
    return 8192 if columns <= 64 else (1024 if columns <= 512 else 256)


def _fresh_integers() -> npt.NDArray[np.int64]:
    ints = np.zeros(k.N_INTEGERS, np.int64)
    ints[k.LENGTH_MIN] = np.iinfo(np.int64).max
    return ints


def _fresh_floats() -> npt.NDArray[np.float64]:
    return np.array([np.inf, -np.inf, 0.0, 0.0, 0.0] * k.N_FAMILIES)


@dataclass(slots=True)
class ColumnState:
    """Everything seen of one column so far.

    ``signature`` is fed by whoever knows the distinct values of a whole piece: a value met in every batch costs it
    once. ``grams`` are fed where joins are wanted.
    """

    position: int
    source_type: str = "text"
    limit: int = 8192
    cells: int = 0
    empty: int = 0
    markers: int = 0
    undecodable: int = 0
    ints: npt.NDArray[np.int64] = field(default_factory=_fresh_integers)
    floats: npt.NDArray[np.float64] = field(default_factory=_fresh_floats)
    lengths: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(k.N_LENGTHS, np.int64))
    low: bytes | None = None
    high: bytes | None = None
    distinct: HyperLogLogPlusPlus = field(default_factory=HyperLogLogPlusPlus)
    signature: MinHash = field(default_factory=MinHash)
    grams: GramSketch = field(init=False)
    values: FrequentValues = field(init=False)
    shapes: FrequentValues = field(default_factory=lambda: FrequentValues(_SHAPES_LIMIT))
    numbers: Quantiles = field(default_factory=Quantiles)
    moments: Quantiles = field(default_factory=Quantiles)
    clocks: Quantiles = field(default_factory=Quantiles)

    def __post_init__(self) -> None:
        self.values = FrequentValues(self.limit)
        self.grams = GramSketch(self.limit // _VALUES_PER_GRAM)

    def meet(self, source_type: str, limit: int) -> None:
        """Take note of a piece of the column: its type, and how many values its width allows to count exactly."""
        known = {self.source_type, source_type} - {"null"}
        self.source_type = min(known, default="null")
        self.limit = min(self.limit, limit)
        self.values.lower(limit)
        self.grams.lower(limit // _VALUES_PER_GRAM)

    def update(self, cells: Cells) -> None:
        """Add the cells of one batch."""
        self.cells += cells.rows - cells.missing
        self.empty += cells.empty
        self.markers += cells.markers
        self.undecodable += cells.undecodable
        if not cells.kinds.size:
            return
        k.measure(
            *(cells.kinds, cells.numbers, cells.counts, cells.lengths, cells.leading, cells.digits, cells.decimals),
            *(self.ints, self.floats, self.lengths),
        )
        texts = Texts(cells.written, cells.text, cells.altered, cells.cstarts, cells.cends)
        self.values.update(cells.hashes, cells.counts, texts)
        self.distinct.update_hashes(cells.hashes)
        self._update_shapes(cells)
        self._update_extremes(cells)
        for family, sketch in enumerate((self.numbers, self.moments, self.clocks)):
            sketch.update(k.numbers_of(cells.kinds, cells.numbers, cells.counts, family))

    def _update_shapes(self, cells: Cells) -> None:
        n = cells.kinds.size
        out = np.empty(int(np.minimum(cells.wends - cells.wstarts, 4 * k.SHAPE_LIMIT).sum()) + 8, np.uint8)
        starts, ends, counts = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
        found = k.shapes(
            *(cells.written, cells.wstarts, cells.wends, cells.lengths, cells.counts, character_table()),
            *(out, starts, ends, counts),
        )
        starts, ends = starts[:found], ends[:found]
        self.shapes.update(xxh64_cells(out, starts, ends), counts[:found], Texts.of(out, starts, ends))

    def _update_extremes(self, cells: Cells) -> None:
        low, high = k.extremes(cells.written, cells.text, cells.altered, cells.cstarts, cells.cends)
        self._extend(cells.canonical_at(low)[:EXTREME_LIMIT], cells.canonical_at(high)[:EXTREME_LIMIT])

    def _extend(self, low: bytes | None, high: bytes | None) -> None:
        if low is not None and (self.low is None or low < self.low):
            self.low = low
        if high is not None and (self.high is None or high > self.high):
            self.high = high

    def merge(self, other: ColumnState) -> None:
        """Add everything another state of the same column has seen."""
        self.cells += other.cells
        self.empty += other.empty
        self.markers += other.markers
        self.undecodable += other.undecodable
        self.meet(other.source_type, other.limit)
        self._merge_statistics(other)
        self.lengths += other.lengths
        self._extend(other.low, other.high)
        self.distinct.merge(other.distinct)
        self.signature.merge(other.signature)
        self.grams.merge(other.grams)
        self.values.merge(other.values)
        self.shapes.merge(other.shapes)
        self.numbers.merge(other.numbers)
        self.moments.merge(other.moments)
        self.clocks.merge(other.clocks)

    @property
    def mean_length(self) -> float:
        """Mean number of characters of a cell."""
        return int(self.ints[k.LENGTH_SUM]) / max(1, self.filled)

    def _merge_statistics(self, other: ColumnState) -> None:
        mine, theirs = self.ints, other.ints
        merged = mine + theirs
        for index in (k.LENGTH_MAX, k.DIGITS_MAX, k.DECIMALS_MAX):
            merged[index] = max(mine[index], theirs[index])
        merged[k.LENGTH_MIN] = min(mine[k.LENGTH_MIN], theirs[k.LENGTH_MIN])
        self.ints = merged
        for family in range(k.N_FAMILIES):
            merged[k.PLACED + family] = mine[k.PLACED + family]
            at = k.N_FLOATS * family
            self.floats[at + k.MINIMUM] = min(self.floats[at + k.MINIMUM], other.floats[at + k.MINIMUM])
            self.floats[at + k.MAXIMUM] = max(self.floats[at + k.MAXIMUM], other.floats[at + k.MAXIMUM])
            n = int(theirs[k.PLACED + family])
            if n:
                mean, rest = float(other.floats[at + k.MEAN]), float(other.floats[at + k.MEAN_REST])
                k.combine_moments(self.ints, self.floats, family, n, mean, rest, float(other.floats[at + k.M2]))

    @property
    def kinds(self) -> dict[Kind, int]:
        """Non-null cells by kind."""
        counts = self.ints[: k.LENGTH_MIN].tolist()
        return {kind: counts[kind] for kind in _KINDS}

    @property
    def filled(self) -> int:
        """Number of non-null cells."""
        return int(self.ints[k.KIND_0 + 1 : k.KIND_0 + 9].sum())

    def to_bytes(self) -> bytes:
        lengths = np.flatnonzero(self.lengths)
        fields: codec.Fields = {
            "position": self.position,
            "source_type": self.source_type,
            "limit": self.limit,
            "counts": [self.cells, self.empty, self.markers, self.undecodable],
            "ints": self.ints,
            "floats": self.floats,
            "length_bins": lengths.astype(np.uint16),
            "length_counts": self.lengths[lengths],
            "has_extremes": self.low is not None,
            "low": self.low or b"",
            "high": self.high or b"",
            "signature": self.signature.values,
        }
        for prefix, part in self._parts().items():
            fields.update({f"{prefix}.{name}": value for name, value in part.fields().items()})
        return codec.pack(_NAME, _VERSION, fields)

    def _parts(self) -> dict[str, HyperLogLogPlusPlus | FrequentValues | GramSketch | Quantiles]:
        return {
            "g": self.grams,
            "d": self.distinct,
            "v": self.values,
            "s": self.shapes,
            "n": self.numbers,
            "m": self.moments,
            "c": self.clocks,
        }

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> ColumnState:
        fields = codec.unpack(data, _NAME, _VERSION)
        state = cls(fields["position"], fields["source_type"], fields["limit"], *fields["counts"])
        state.ints, state.floats = fields["ints"].copy(), fields["floats"].copy()
        state.lengths[fields["length_bins"]] = fields["length_counts"]
        if fields["has_extremes"]:
            state.low, state.high = fields["low"], fields["high"]
        state.signature.values = fields["signature"].copy()

        def part(prefix: str) -> codec.Fields:
            return {name[2:]: value for name, value in fields.items() if name.startswith(prefix + ".")}

        state.grams = GramSketch.from_fields(part("g"))
        state.distinct = HyperLogLogPlusPlus.from_fields(part("d"))
        state.values = FrequentValues.from_fields(part("v"))
        state.shapes = FrequentValues.from_fields(part("s"))
        state.numbers = Quantiles.from_fields(part("n"))
        state.moments = Quantiles.from_fields(part("m"))
        state.clocks = Quantiles.from_fields(part("c"))
        return state
