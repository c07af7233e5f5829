"""Theta sketches that somebody else has made: reading the compact form of Apache DataSketches.

A Theta sketch keeps the hashes below a threshold theta, a share of all possible ones; how many there are, divided by
theta, estimates the distinct values. The hashes are MurmurHash3 of the writer's own bytes and never meet ours, so a
sketch is read for its count alone: the estimate, and how far it may be off.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

_COMPACT = 3
_PLAIN, _COMPRESSED = 3, 4
_EMPTY = 1 << 2
_ALL = float((1 << 63) - 1)
#: Of a standard normal, two-sided 95%.
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class CompactTheta:
    """So many hashes were kept of all below ``theta``, the share of possible hashes."""

    retained: int
    theta: float

    @classmethod
    def of(cls, data: bytes) -> CompactTheta:
        """Read the beginning of a compact sketch, plain or compressed; ValueError if it is none."""
        if len(data) < 8:
            raise ValueError("too short for a Theta sketch")
        longs, version, family, flags = data[0] & 0x3F, data[1], data[2], data[5]
        if family != _COMPACT or version not in (_PLAIN, _COMPRESSED):
            raise ValueError(f"not a compact Theta sketch of version {_PLAIN} or {_COMPRESSED}")
        try:
            return _compressed(data, longs) if version == _COMPRESSED else _plain(data, longs, bool(flags & _EMPTY))
        except struct.error as error:
            raise ValueError("a Theta sketch that was cut off") from error

    @property
    def estimate(self) -> float:
        return self.retained / self.theta

    @property
    def exact(self) -> bool:
        """Whether every hash was kept."""
        return self.theta == 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the number of distinct values lies with 95% confidence.

        Each of n values is kept with probability theta: the numbers n for which what was kept is no surprise, the score
        interval of a binomial, not fewer than were kept.
        """
        if self.exact:
            return float(self.retained), float(self.retained)
        spread = _Z * _Z * (1 - self.theta)
        middle = self.retained + spread / 2
        around = math.sqrt(spread * (self.retained + spread / 4))
        return max(self.retained, (middle - around) / self.theta), (middle + around) / self.theta


def _plain(data: bytes, longs: int, empty: bool) -> CompactTheta:
    if longs == 1:
        return CompactTheta(0 if empty else 1, 1.0)
    (retained,) = struct.unpack_from("<I", data, 8)
    theta = struct.unpack_from("<Q", data, 16)[0] / _ALL if longs > 2 else 1.0
    return _checked(retained, theta)


def _compressed(data: bytes, longs: int) -> CompactTheta:
    """Hashes packed to fewer bits; theta, if it is there, comes before their number, which has bytes of its own."""
    width = data[4]
    theta = struct.unpack_from("<Q", data, 8)[0] / _ALL if longs > 1 else 1.0
    start = 8 * longs
    if len(data) < start + width:
        raise ValueError("a Theta sketch that was cut off")
    return _checked(int.from_bytes(data[start : start + width], "little"), theta)


def _checked(retained: int, theta: float) -> CompactTheta:
    if not 0 < theta <= 1:
        raise ValueError("a Theta sketch with a threshold out of range")
    return CompactTheta(retained, theta)
