"""What all counters of distinct values have in common: the interface of spec section 2.3, and its taxonomy (2.2).

A counter is fed with 64-bit hashes (or with values, which become hashes through the one canonical form), forgets
order and repetition, merges losslessly with another of the same parameters, and says how sure it is.
"""

from __future__ import annotations

import copy
import inspect
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, Self

from lakescope.array_types import I64, U64
from lakescope.errors import BadRequest
from lakescope.sketches import codec

#: Distinct values a counter is sized for where nothing is said.
N_MAX = 1_000_000_000


class Interval(NamedTuple):
    """An estimate with the interval that holds the truth with the confidence it was asked for."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Traits:
    """Where an estimator stands in the study's taxonomies, and what it is good for (spec 2.2 and 2.9)."""

    observable: str
    intuition: str
    family: str
    low_range: bool = True
    needs_n_max: bool = False
    set_operations: bool = False
    membership: bool = False
    deletions: bool = False
    slow: bool = False


class Counter(ABC):
    """A mergeable synopsis of a set of values that estimates how many there are."""

    #: The name it goes by on the command line and in stored bytes.
    name: ClassVar[str]
    traits: ClassVar[Traits]
    _version: ClassVar[int] = 1

    def update(self, values: Any) -> Self:
        """Add values: an array, series, one-column frame, scalar iterable; nulls do not count."""
        from lakescope.values.hashed import hashes_of

        for hashes in hashes_of(values):
            self.update_hashes(hashes)
        return self

    @abstractmethod
    def update_hashes(self, hashes: U64, counts: I64 | None = None) -> None:
        """Add values by their hashes. ``counts`` say how often each occurs, which only a few counters keep."""

    def merge(self, other: Self) -> Self:
        """Add everything ``other`` has seen: the same as one pass over both. Refuses other parameters."""
        if type(other) is not type(self):
            theirs = getattr(other, "name", type(other).__name__)
            raise BadRequest(f"cannot merge counters of two kinds: {self.name} and {theirs}")
        given = other.parameters()
        for name, value in self.parameters().items():
            if given[name] != value:
                raise BadRequest(
                    f"cannot merge two {self.name} counters: {name} is {value!r} in one, {given[name]!r} in the other",
                    hint=f"make both with the same {name}",
                )
        self._merge(other)
        return self

    @abstractmethod
    def _merge(self, other: Self) -> None: ...

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What two counters must share to be merged; also what to make another one with."""

    @abstractmethod
    def estimate(self) -> float:
        """Estimated number of distinct values; 0 if there was none."""

    @abstractmethod
    def standard_error(self) -> float:
        """Relative standard error of the estimate as it stands now; 0 where it is exact."""

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Interval that holds the true count with this confidence."""
        estimate, spread = self.estimate(), z_score(confidence) * self.standard_error()
        if self.below_range:
            return self.at_least(), estimate * (1 + spread)
        if self.saturated:
            return self.at_least(), math.inf
        return max(self.at_least(), estimate * (1 - spread)), estimate * (1 + spread)

    def at_least(self) -> float:
        """A number of distinct values that were certainly seen."""
        return 0.0

    @property
    @abstractmethod
    def memory_bits(self) -> int:
        """Size of the synopsis as the literature counts it: what must be kept, without the program's own overhead."""

    @property
    def saturated(self) -> bool:
        """Whether the synopsis is so full that its estimate is only a lower bound."""
        return False

    @property
    def below_range(self) -> bool:
        """Whether so few values were seen that the estimator's formula does not hold yet."""
        return False

    def warning(self) -> str | None:
        """What makes the estimate doubtful, if anything does."""
        if self.saturated:
            return "saturated: a lower bound; size it for more values"
        return "below its range: over-estimates" if self.below_range else None

    def fields(self) -> codec.Fields:
        """Parameters and content, for storing."""
        return {**self.parameters(), **self._content()}

    @abstractmethod
    def _content(self) -> codec.Fields: ...

    @classmethod
    def from_fields(cls, fields: codec.Fields) -> Self:
        made = cls(**{name: fields[name] for name in inspect.signature(cls).parameters})
        made._restore(fields)
        return made

    @abstractmethod
    def _restore(self, fields: codec.Fields) -> None: ...

    def to_bytes(self) -> bytes:
        """The counter as bytes, with name, version, parameters and a checksum; equal for equal content."""
        return codec.pack(self.name, self._version, self.fields())

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Self:
        """A counter from its bytes; damaged bytes and those of another counter are refused."""
        return cls.from_fields(codec.unpack(data, cls.name, cls._version))

    def copy(self) -> Self:
        return copy.deepcopy(self)

    def __or__(self, other: Self) -> Self:
        """A counter of the union."""
        return self.copy().merge(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counter) and type(other) is type(self) and other.to_bytes() == self.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        low, high = self.interval()
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({given}): about {self.estimate():,.0f} (95%: {low:,.0f} to {high:,.0f})"


def z_score(confidence: float) -> float:
    """Standard deviations of a normal distribution that hold this share of it."""
    if not 0 < confidence < 1:
        raise BadRequest(f"confidence must lie between 0 and 1, not {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def check_positive(name: str, value: float) -> None:
    """Refuse a parameter that is not a positive number."""
    if not value > 0 or not math.isfinite(value):
        raise BadRequest(f"{name} must be a positive number, not {value}")


def check_between(name: str, value: int, low: int, high: int) -> None:
    """Refuse a parameter beyond its bounds."""
    if not low <= value <= high:
        raise BadRequest(f"{name} must lie between {low} and {high}, not {value}")


def power_of_two(wanted: float) -> int:
    """The exponent of the smallest power of two that is at least as large."""
    return max(0, math.ceil(math.log2(wanted)))
