"""Which counter, how large, how good: parameter rules (spec 2.6) and the advisor (2.9).

A :class:`Design` is a counter before it is made: its parameters with the error they promise and the bytes they take.
Errors are relative standard errors unless said otherwise; the numbers of the study are those at 1%.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lakescope.errors import BadRequest, NotFound
from lakescope.sketches.akmv import AKMV
from lakescope.sketches.ams import AMS
from lakescope.sketches.bitmaps import BloomFilter, LinearCounting, load_factor
from lakescope.sketches.bjkst import BJKST
from lakescope.sketches.counter import N_MAX, Counter, check_positive, power_of_two
from lakescope.sketches.exact import Exact
from lakescope.sketches.fm import FM, PCSA
from lakescope.sketches.gee import GEE
from lakescope.sketches.hyperloglog import HyperLogLogPlusPlus
from lakescope.sketches.loglog import HyperLogLog, LogLog, SuperLogLog
from lakescope.sketches.mincount import MinCount

#: The twelve, in the order of the study.
TWELVE: tuple[type[Counter], ...] = (
    *(FM, PCSA, AMS, BJKST, LogLog, SuperLogLog),
    *(HyperLogLog, HyperLogLogPlusPlus, MinCount, AKMV, LinearCounting, BloomFilter),
)
BASELINES: tuple[type[Counter], ...] = (Exact, GEE)
BY_NAME: dict[str, type[Counter]] = {kind.name: kind for kind in (*TWELVE, *BASELINES)}

#: Bytes an exact count takes a value.
_EXACT_BYTES = 8
#: The least error that a counter is designed for.
_LEAST_ERROR = 1e-4
#: Bytes that are too many for one counter where nothing is said.
_PLENTY = 100_000_000


@dataclass(frozen=True, slots=True)
class Design:
    """A counter to be made."""

    kind: type[Counter]
    parameters: dict[str, Any]
    error: float
    bytes: int
    note: str = ""

    @property
    def name(self) -> str:
        return self.kind.name

    def make(self) -> Counter:
        return self.kind(**self.parameters)


def counter_kind(name: str) -> type[Counter]:
    """A counter by its name on the command line."""
    if name not in BY_NAME:
        raise NotFound.among("counter", name, BY_NAME)
    return BY_NAME[name]


def design(name: str, *, error: float | None = None, memory: float | None = None, n_max: float | None = None) -> Design:
    """The counter for a target error (1% if nothing is said), or the best one that fits into ``memory`` bytes."""
    kind = counter_kind(name)
    n = n_max or N_MAX
    check_positive("n_max", n)
    if error is not None and memory is not None:
        raise BadRequest("give either an error or a memory, not both", hint="the one follows from the other")
    if memory is None:
        target = 0.01 if error is None else error
        if not _LEAST_ERROR <= target < 1:
            raise BadRequest(f"error must lie between {_LEAST_ERROR} and 1, not {target}")
        return _RULES[kind](target, n)
    check_positive("memory", memory)
    return _fitting(kind, memory, n)


def _fitting(kind: type[Counter], memory: float, n: float) -> Design:
    """The most accurate design that takes at most so many bytes: bisection over the error."""
    low, high = _LEAST_ERROR, 0.999
    if (finest := _RULES[kind](low, n)).bytes <= memory:
        return finest
    coarsest = _RULES[kind](high, n)
    if coarsest.bytes > memory:
        raise BadRequest(
            f"{kind.name} takes at least {coarsest.bytes:,} bytes for {n:,.0f} values, not {memory:,.0f}",
            hint="give it more memory, or take hll++",
        )
    for _ in range(60):
        middle = math.sqrt(low * high)
        if _RULES[kind](middle, n).bytes <= memory:
            high = middle
        else:
            low = middle
    return _RULES[kind](high, n)


def _fm(error: float, n: float) -> Design:
    functions = math.ceil(1 / error**2)
    return Design(FM, {"functions": functions}, 0.78 / math.sqrt(functions), 8 * functions)


def _pcsa(error: float, n: float) -> Design:
    p = max(4, power_of_two((0.78 / error) ** 2))
    return Design(PCSA, {"precision": p}, 0.78 / math.sqrt(1 << p), 8 << p, _from(8 << p))


def _ams(error: float, n: float) -> Design:
    return Design(AMS, {"copies": 1}, 1.0, 1, "cannot be tuned: within a factor c with chance 1 - 2/c")


def _bjkst(error: float, n: float) -> Design:
    limit = math.ceil(576 / error**2)
    kept = min(n, limit)
    size = math.ceil(kept * (64 + 6) / 8)
    return Design(BJKST, {"limit": limit}, error, size, f"exact up to {limit:,} values")


def _loglog(error: float, n: float) -> Design:
    p = _precision(1.3, error)
    return Design(LogLog, {"precision": p}, 1.3 / math.sqrt(1 << p), _registers(6, p), _from(6 << p))


def _superloglog(error: float, n: float) -> Design:
    p = _precision(1.05, error)
    made = SuperLogLog(p, n)
    bits = made.memory_bits >> p
    parameters = {"precision": p, "n_max": n}
    return Design(SuperLogLog, parameters, 1.05 / math.sqrt(1 << p), _registers(bits, p), _from(6 << p))


def _hll(error: float, n: float) -> Design:
    p = _precision(1.04, error)
    return Design(HyperLogLog, {"precision": p}, 1.04 / math.sqrt(1 << p), _registers(6, p))


def _hllpp(error: float, n: float) -> Design:
    p = min(18, _precision(1.04, error))
    note = "" if 1.04 / math.sqrt(1 << p) <= error else "the largest there is"
    return Design(HyperLogLogPlusPlus, {"precision": p}, 1.04 / math.sqrt(1 << p), _registers(6, p), note)


def _mincount(error: float, n: float) -> Design:
    p = max(1, power_of_two(1 / (3 * error**2)))
    return Design(MinCount, {"precision": p, "k": 3}, 1 / math.sqrt(3 << p), 8 * 3 << p)


def _akmv(error: float, n: float) -> Design:
    k = math.ceil(2 + 2 / (math.pi * error**2))
    return Design(AKMV, {"k": k}, math.sqrt(2 / (math.pi * (k - 2))), 16 * k, f"exact up to {k:,} values; mean error")


def _lc(error: float, n: float) -> Design:
    bits = max(8, math.ceil(n / load_factor(error, n)))
    return Design(LinearCounting, {"bits": bits}, error, math.ceil(bits / 8), f"for at most {n:,.0f} values")


def _bf(error: float, n: float) -> Design:
    """Four bits a value as in the study; more where few values would err more than asked for."""
    bits = 4.0
    while _bloom_error(bits, n) > error and bits < 1e6:
        bits *= 1.25
    size = max(64, math.ceil(bits * n))
    return Design(
        *(BloomFilter, {"bits": size, "functions": 3}, _bloom_error(bits, n), math.ceil(size / 8)),
        f"for at most {n:,.0f} values",
    )


def _bloom_error(bits: float, n: float) -> float:
    load = 3 / bits
    return math.sqrt(max(0.0, math.expm1(load) - load) / (bits * n)) / load


def _exact(error: float, n: float) -> Design:
    return Design(Exact, {}, 0.0, math.ceil(_EXACT_BYTES * n), "grows with the values")


def _gee(error: float, n: float) -> Design:
    """On distinct values the error is 1 - sqrt(rate)."""
    rate = (1 - error) ** 2
    return Design(GEE, {"rate": rate}, error, math.ceil(16 * rate * n), "a sample of rows; error on distinct values")


def _precision(spread: float, error: float) -> int:
    return min(20, max(4, power_of_two((spread / error) ** 2)))


def _registers(bits: int, precision: int) -> int:
    return math.ceil(bits * (1 << precision) / 8)


def _from(values: int) -> str:
    return f"over-estimates below some {values:,} values"


_RULES: dict[type[Counter], Callable[[float, float], Design]] = {
    FM: _fm,
    PCSA: _pcsa,
    AMS: _ams,
    BJKST: _bjkst,
    LogLog: _loglog,
    SuperLogLog: _superloglog,
    HyperLogLog: _hll,
    HyperLogLogPlusPlus: _hllpp,
    MinCount: _mincount,
    AKMV: _akmv,
    LinearCounting: _lc,
    BloomFilter: _bf,
    Exact: _exact,
    GEE: _gee,
}


# --- advice ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Needs:
    """What somebody needs of a counter (spec 2.9)."""

    error: float = 0.01
    memory: float | None = None
    n_max: float | None = None
    small: bool = False
    set_operations: bool = False
    membership: bool = False
    deletions: bool = False
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Advice:
    """A counter with what speaks for and against it; ``fits`` if nothing forbids it."""

    design: Design
    fits: bool
    score: float
    reasons: tuple[str, ...]


def advise(needs: Needs) -> list[Advice]:
    """All counters, the best first, each with its reasons."""
    found = [_judge(name, needs) for name in BY_NAME]
    return sorted(found, key=lambda advice: (not advice.fits, -advice.score, advice.design.bytes, advice.design.name))


def _judge(name: str, needs: Needs) -> Advice:
    kind = BY_NAME[name]
    traits = kind.traits
    reasons: list[str] = []
    fits = True
    made = design(name, error=needs.error, n_max=needs.n_max)
    if needs.memory is not None and made.bytes > needs.memory:
        try:
            made = design(name, memory=needs.memory, n_max=needs.n_max)
            reasons.append(f"made smaller to fit {needs.memory:,.0f} bytes: error {made.error:.2%}")
        except BadRequest as error:
            return Advice(made, False, 0.0, (error.message,))
    if needs.memory is None and made.bytes > _PLENTY:
        fits = False
        reasons.append(f"takes {made.bytes / 1e6:,.0f} MB")
    score = -math.log10(max(made.error, 1e-6)) - 0.25 * math.log10(max(1, made.bytes))
    if traits.needs_n_max and needs.n_max is None:
        fits = False
        reasons.append("needs to know the largest number of values beforehand")
    for wanted, has, what in (
        (needs.set_operations, traits.set_operations, "intersections and differences"),
        (needs.membership, traits.membership, "a test of membership"),
        (needs.deletions, traits.deletions, "deletions"),
    ):
        if wanted and not has:
            fits = False
            reasons.append(f"has no {what}")
        elif wanted:
            score += 1
            reasons.append(f"has {what}")
    if not traits.low_range:
        fits = fits and not needs.small and kind is not AMS
        score -= 1
        reasons.append("only the order of magnitude" if kind is AMS else "wrong for few values")
    if traits.slow:
        fits = fits and not needs.fast
        score -= 1
        reasons.append("slow")
    if kind is GEE:
        fits = False
        reasons.append("a sample of rows has no useful guarantee")
    if kind is HyperLogLogPlusPlus:
        score += 0.5
        reasons.append("near exact for few values, small, fast, any number of values")
    if made.note:
        reasons.append(made.note)
    return Advice(replace(made), fits, score, tuple(reasons))
