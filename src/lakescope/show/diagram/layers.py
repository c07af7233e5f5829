"""Layers of a diagram: cycles are broken, and every table stands behind the tables it refers to."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

Pairs = Sequence[tuple[int, int]]


def acyclic_ranks(size: int, pairs: Pairs) -> list[int]:
    """Each node's rank in an order that has few of the pairs the wrong way round.

    Takes nodes nothing is left before; where there is a cycle, the one with the most after and the least before it.
    """
    after: list[list[int]] = [[] for _ in range(size)]
    before = [0] * size
    for one, other in pairs:
        after[one].append(other)
        before[other] += 1

    def urgency(node: int) -> tuple[bool, int, int]:
        return (before[node] > 0, before[node] - len(after[node]) if before[node] else 0, node)

    queue = [urgency(node) for node in range(size)]
    heapq.heapify(queue)
    rank = [-1] * size
    ranks = iter(range(size))
    while queue:
        entry = heapq.heappop(queue)
        node = entry[2]
        if rank[node] >= 0 or entry != urgency(node):
            continue
        rank[node] = next(ranks)
        for other in after[node]:
            before[other] -= 1
            if rank[other] < 0:
                heapq.heappush(queue, urgency(other))
    return rank


def layers_of(heights: Sequence[float], pairs: Pairs, cap: float) -> list[int]:
    """The layer of each node: behind those before it, where there is room for it below the cap.

    Those with the longest path behind them choose first, as in Coffman and Graham's algorithm; then those with more
    after than before them move up to them.
    """
    rank = acyclic_ranks(len(heights), pairs)
    before: list[set[int]] = [set() for _ in heights]
    after: list[set[int]] = [set() for _ in heights]
    for one, other in pairs:
        first, second = (one, other) if rank[one] < rank[other] else (other, one)
        after[first].add(second)
        before[second].add(first)
    order = sorted(range(len(heights)), key=rank.__getitem__)
    below = [0] * len(heights)
    for node in reversed(order):
        below[node] = 1 + max((below[other] for other in after[node]), default=0)

    layer = [-1] * len(heights)
    filled: dict[int, float] = defaultdict(float)
    waiting = [len(nodes) for nodes in before]
    queue = [(-below[node], rank[node], node) for node in order if not waiting[node]]
    heapq.heapify(queue)
    while queue:
        node = heapq.heappop(queue)[2]
        at = 1 + max((layer[other] for other in before[node]), default=-1)
        while filled[at] and filled[at] + heights[node] > cap:
            at += 1
        layer[node] = at
        filled[at] += heights[node]
        for other in after[node]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(queue, (-below[other], rank[other], other))

    for node in reversed(order):
        if len(after[node]) > len(before[node]):
            nearest = min(layer[other] for other in after[node]) - 1
            room = (at for at in range(nearest, layer[node], -1) if filled[at] + heights[node] <= cap)
            at = next(room, layer[node])
            filled[layer[node]] -= heights[node]
            filled[at] += heights[node]
            layer[node] = at
    used = {at: i for i, at in enumerate(sorted(set(layer)))}
    return [used[at] for at in layer]
