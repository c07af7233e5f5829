"""Tracks between layers: lines that leave one point share a trunk, trunks that would meet lie side by side."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakescope.show.diagram.layers import acyclic_ranks

TRACK = 9.0
#: Lines whose ends differ by less are taken for one height.
_NEAR = 4.0


@dataclass(slots=True, eq=False)
class Trunk:
    """What leaves one point at the left of a channel, and the heights of where it goes at its right."""

    left: float
    rights: list[float]
    track: int = 0

    @property
    def low(self) -> float:
        return min(self.left, *self.rights)

    @property
    def high(self) -> float:
        return max(self.left, *self.rights)


def _bends(net: Trunk) -> bool:
    return net.high - net.low > 0.05


def _cost(one: Trunk, other: Trunk) -> float:
    """Crossings, and above all lines on top of each other, if a net's track is left of another's."""
    low, high = other.low, other.high
    return (
        (one.low - 0.1 < other.left < one.high + 0.1)
        + sum(low - 0.1 < right < high + 0.1 for right in one.rights)
        + 20 * sum(abs(other.left - right) < _NEAR for right in one.rights)
    )


def assign_tracks(nets: Iterable[Trunk]) -> int:
    """Gives nets that overlap different tracks, in an order with few crossings; returns how many tracks there are."""
    bent = [net for net in nets if _bends(net)]
    down = [net for net in bent if sum(net.rights) > net.left * len(net.rights)]
    up = [net for net in bent if sum(net.rights) <= net.left * len(net.rights)]
    order = sorted(down, key=lambda net: -net.left) + sorted(up, key=lambda net: net.left)
    rank = acyclic_ranks(len(order), _on_top(order))
    order = [order[i] for i in sorted(range(len(order)), key=rank.__getitem__)]
    for _ in range(12):
        swapped = False
        for i in range(len(order) - 1):
            if _cost(order[i + 1], order[i]) < _cost(order[i], order[i + 1]):
                order[i], order[i + 1] = order[i + 1], order[i]
                swapped = True
        if not swapped:
            break
    tracks: list[list[tuple[float, float]]] = []
    for net in order:
        span = (net.low - 6, net.high + 6)
        at = len(tracks)
        while at and not _overlaps(tracks[at - 1], span):
            at -= 1
        if at == len(tracks):
            tracks.append([])
        insort(tracks[at], span)
        net.track = at
    return len(tracks)


def _on_top(nets: Sequence[Trunk]) -> list[tuple[int, int]]:
    """Pairs of nets whose lines lie on top of each other unless the first one's track is left of the second's."""
    lefts = sorted((net.left, i) for i, net in enumerate(nets))
    pairs = []
    for i, net in enumerate(nets):
        for right in net.rights:
            at = bisect_left(lefts, (right - _NEAR, -1))
            while at < len(lefts) and lefts[at][0] < right + _NEAR:
                if lefts[at][1] != i:
                    pairs.append((lefts[at][1], i))
                at += 1
    return pairs


def _overlaps(spans: Sequence[tuple[float, float]], span: tuple[float, float]) -> bool:
    """Whether a span meets any of some that are sorted and apart."""
    at = bisect_left(spans, span)
    return (at < len(spans) and spans[at][0] < span[1]) or (at > 0 and spans[at - 1][1] > span[0])
