"""Compiled search over the mapped inverted index: look tokens up, merge lists, JOSIE, MinHash agreements.

The index may lie in several files; kernels are told where in memory each begins and never go beyond its end: a number
out of range, which only a damaged file can hold, ends a search with ``DAMAGED``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

DAMAGED = -1
#: What a search read: lists, their entries, sets, decisions.
LISTS, ENTRIES, SETS, DECISIONS = range(4)
#: Share of the cost of all lists that is not worth a decision.
_LITTLE = 0.1
#: What a set is counted from that must not be found: no sum of weights makes it positive.
EXCLUDED = -(1 << 30)


def _item(kind: types.Type) -> Any:
    """Reads the item of an array by the address of the array."""

    @intrinsic
    def item(typing_context, address, index):
        def codegen(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
            return builder.load(builder.gep(pointer, [arguments[1]]))

        return kind(types.uint64, types.int64), codegen

    return item


_i32 = _item(types.int32)
_i64 = _item(types.int64)
_u32 = _item(types.uint32)
_u64 = _item(types.uint64)


@njit(inline="always", cache=True)
def _file_of(bounds, number):
    """The file whose range holds a number."""
    low, high = 0, bounds.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if bounds[middle] <= number:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def find_groups(tokens, bits, bounds, directories, hashes, groups, sizes):
    """The groups of tokens, in order, and how many of the tokens each holds."""
    found = np.empty(tokens.size, np.int32)
    n = 0
    shift = np.uint64(64 - bits)
    for token in tokens:
        t = max(token, np.uint64(1))
        slot = np.int64(t >> shift)
        file = _file_of(bounds, slot)
        at = max(np.int64(0), _i64(directories[file], slot - bounds[file]))
        end = min(_i64(directories[file], slot - bounds[file] + 1), sizes[file])
        while at < end and _u64(hashes[file], at) < t:
            at += 1
        if at < end and _u64(hashes[file], at) == t:
            found[n] = _i32(groups[file], at)
            n += 1
    found = np.sort(found[:n])
    weights = np.empty(n, np.int32)
    kept = 0
    for i in range(n):
        if kept and found[kept - 1] == found[i]:
            weights[kept - 1] += 1
        else:
            found[kept] = found[i]
            weights[kept] = 1
            kept += 1
    return found[:kept], weights[:kept]


@njit(cache=True)
def locate(numbers, bounds, starts, items, sizes):
    """Where in memory the items of each number lie, and how many; a size of ``DAMAGED`` if not in the file."""
    places = np.empty(numbers.size, np.uint64)
    counts = np.empty(numbers.size, np.int64)
    for i in range(numbers.size):
        number = np.int64(numbers[i])
        if number < 0 or number >= bounds[-1]:
            counts[i] = DAMAGED
            continue
        file = _file_of(bounds, number)
        begin = _i64(starts[file], number - bounds[file])
        end = _i64(starts[file], number - bounds[file] + 1)
        counts[i] = end - begin if 0 <= begin <= end <= sizes[file] else DAMAGED
        places[i] = items[file] + np.uint64(4 * begin)
    return places, counts


@njit(cache=True)
def _read_list(place, length, weight, counts):
    """Add a weight to the count of every set of a list; False if the list holds a number that is no set."""
    sets = np.uint32(counts.size)
    whole = True
    for j in range(length):
        s = _u32(place, j)
        if s < sets:
            counts[s] += weight
        else:
            whole = False
    return whole


@njit(cache=True)
def merge_few(places, lengths, weights, counts, touched):
    """MergeList-D for short lists: notes the sets it meets instead of looking at all afterwards. Returns how many."""
    n = 0
    sets = np.uint32(counts.size)
    for i in range(places.size):
        if lengths[i] < 0:
            return DAMAGED
        for j in range(lengths[i]):
            s = _u32(places[i], j)
            if s >= sets:
                return DAMAGED
            c = counts[s]
            if c == 0:
                touched[n] = s
                n += 1
            counts[s] = c + weights[i]
    return n


@njit(cache=True)
def merge_lists(places, lengths, weights, counts):
    """MergeList-D: the overlap of every set that shares a token, one list a group (spec 3.4)."""
    whole = True
    for i in range(places.size):
        whole = lengths[i] >= 0 and _read_list(places[i], lengths[i], weights[i], counts) and whole
    return whole


@njit(cache=True)
def take_largest(counts, k):
    """The ``k`` sets with the largest counts, equal ones by number; forgets all counts."""
    kth = _kth_largest(counts, k, np.int32(0))
    sets, overlaps = np.empty(counts.size, np.int32), np.empty(counts.size, np.int32)
    n = 0
    for s in range(counts.size):
        c = counts[s]
        if c >= kth and c > 0:
            sets[n] = s
            overlaps[n] = c
            n += 1
    counts[:] = 0
    return largest(sets[:n], overlaps[:n], k)


@njit(cache=True)
def largest(sets, counts, k):
    """The ``k`` sets with the largest counts, equal ones by number."""
    n = sets.size
    if k < n:
        kth = np.partition(counts, n - k)[n - k]
        chosen = np.empty(n, np.int64)
        kept = ties = 0
        for i in range(n):
            if counts[i] > kth:
                chosen[kept] = i
                kept += 1
        for i in range(n):
            if counts[i] == kth:
                chosen[kept + ties] = i
                ties += 1
        tied = chosen[kept : kept + ties]
        chosen[kept : kept + ties] = tied[np.argsort(sets[tied])]
        chosen = chosen[:k]
    else:
        chosen = np.arange(n)
    keys = (-counts[chosen].astype(np.int64) << 32) + sets[chosen]
    chosen = chosen[np.argsort(keys)]
    return sets[chosen], counts[chosen]


@njit(cache=True)
def _kth_largest(counts, k, floor):
    """The ``k``-th largest count if it is more than ``floor``, else ``floor``. Cheap if few counts come near it."""
    heap = np.full(k, floor, np.int32)
    kth = floor
    for c in counts:
        if c > kth:
            i = 0
            while True:
                child = 2 * i + 1
                if child >= k:
                    break
                if child + 1 < k and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= c:
                    break
                heap[i] = heap[child]
                i = child
            heap[i] = c
            kth = heap[0]
    return kth


@njit(cache=True)
def _overlap(groups, weights, begin, place, size):
    """Tokens of the query from its ``begin``-th group on that a set holds; galloping through the set."""
    total = 0
    at = 0
    for i in range(begin, groups.size):
        g = groups[i]
        if at >= size:
            break
        if _i32(place, at) < g:
            step = 1
            while at + step < size and _i32(place, at + step) < g:
                step <<= 1
            low, high = at + (step >> 1), min(at + step, size)
            while high - low > 1:
                middle = (low + high) >> 1
                if _i32(place, middle) < g:
                    low = middle
                else:
                    high = middle
            at = high
        if at < size and _i32(place, at) == g:
            total += weights[i]
            at += 1
    return total


@njit(inline="always", cache=True)
def _worse(overlap, number, than_overlap, than_number):
    return overlap < than_overlap or (overlap == than_overlap and number > than_number)


@njit(cache=True)
def _push(heap_overlaps, heap_sets, used, overlap, number):
    """Put a set into a heap of the best ones, whose root is the worst of them; returns how many it holds."""
    k = heap_overlaps.size
    if used < k:
        i = used
        used += 1
        while i > 0:
            parent = (i - 1) >> 1
            if not _worse(overlap, number, heap_overlaps[parent], heap_sets[parent]):
                break
            heap_overlaps[i], heap_sets[i] = heap_overlaps[parent], heap_sets[parent]
            i = parent
        heap_overlaps[i], heap_sets[i] = overlap, number
        return used
    if not _worse(heap_overlaps[0], heap_sets[0], overlap, number):
        return used
    i = 0
    while True:
        child = 2 * i + 1
        if child >= k:
            break
        if child + 1 < k and _worse(
            heap_overlaps[child + 1], heap_sets[child + 1], heap_overlaps[child], heap_sets[child]
        ):
            child += 1
        if not _worse(heap_overlaps[child], heap_sets[child], overlap, number):
            break
        heap_overlaps[i], heap_sets[i] = heap_overlaps[child], heap_sets[child]
        i = child
    heap_overlaps[i], heap_sets[i] = overlap, number
    return used


@njit(cache=True)
def _probe(number, groups, weights, begin, set_bounds, set_starts, set_items, set_sizes):
    """Tokens of the query from its ``begin``-th group on that a set of the lake holds; ``DAMAGED`` if unreadable."""
    file = _file_of(set_bounds, number)
    first = _i64(set_starts[file], number - set_bounds[file])
    last = _i64(set_starts[file], number - set_bounds[file] + 1)
    if not 0 <= first <= last <= set_sizes[file]:
        return DAMAGED
    place = set_items[file] + np.uint64(4 * first)
    size = last - first
    # The suffix of the set from the query's next group on (the position filter's point of view).
    low, high = np.int64(-1), size
    while high - low > 1:
        middle = (low + high) >> 1
        if _i32(place, middle) < groups[begin]:
            low = middle
        else:
            high = middle
    return _overlap(groups, weights, begin, place + np.uint64(4 * high), size - high)


@njit(cache=True)
def _closing(kth, seen, left_weight, at):
    """Where lists will have been read until no new set can win, if the best counts go on growing as they did."""
    rate = kth / max(1, seen)
    until = at
    while until < left_weight.size - 1 and kth + rate * (left_weight[at] - left_weight[until]) <= left_weight[until]:
        until += 1
    return until


@njit(cache=True)
def _closed(kth, left_weight, at):
    """Where fewer of the query's tokens are left than the ``k``-th best set holds: no new set can win."""
    while at < left_weight.size - 1 and kth <= left_weight[at]:
        at += 1
    return at


@njit(cache=True)
def _boost(groups, weights, begin, set_bounds, set_starts, set_items, set_sizes, counts, k, kth, read):
    """The smallest overlap among ``k`` of the sets with the largest counts: a floor for the answer."""
    lowest = np.int64(1) << 60
    found = 0
    for strict in (True, False):
        for s in range(counts.size):
            c = counts[s]
            if c < kth or found == k or (c == kth if strict else c != kth):
                continue
            more = _probe(s, groups, weights, begin, set_bounds, set_starts, set_items, set_sizes)
            read[SETS] += 1
            lowest = min(lowest, c + max(more, 0))
            found += 1
    return lowest if found == k else 0


@njit(cache=True)
def _finish(groups, weights, begin, left, set_bounds, set_starts, set_items, set_sizes, counts, kth, alive, k, read):
    """Read the sets that can still win, those with the largest counts first, until no other can. Forgets all counts."""
    rest, known = np.empty(alive, np.int32), np.empty(alive, np.int64)
    n = 0
    for s in range(counts.size):
        if counts[s] + left >= kth:
            rest[n] = s
            known[n] = counts[s]
            n += 1
    counts[:] = 0
    overlaps, sets = np.empty(k, np.int64), np.empty(k, np.int32)
    used = 0
    for j in np.argsort((-known << 32) + rest):
        if used == k and not _worse(overlaps[0], sets[0], known[j] + left, rest[j]):
            # Those that follow have a smaller count, or the same and a larger number.
            break
        more = _probe(rest[j], groups, weights, begin, set_bounds, set_starts, set_items, set_sizes)
        if more < 0:
            read[LISTS] = DAMAGED
            break
        read[SETS] += 1
        used = _push(overlaps, sets, used, known[j] + more, rest[j])
    return sets[:used], overlaps[:used].astype(np.int32)


@njit(cache=True)
def josie(groups, weights, places, lengths, set_bounds, set_starts, set_items, set_sizes, counts, k, costs, read):
    """JOSIE-D: the ``k`` sets with the largest overlap, reading lists or sets, whichever is worth more (spec 3.7).

    Returns (sets, overlaps), not in order; ``read`` learns what was read, or of damage. Lists are counted in place,
    as MergeList does; at times the counts decide: whether sets never met can still win, which of those met can, and
    whether to read on in lists or in the sets that are left. Sets already met may be read early if that closes the
    search to new ones sooner. Every count is a lower bound of an overlap, so the answer is exact whatever is decided.
    """
    total = groups.size
    left_weight = np.zeros(total + 1, np.int64)
    left_cost = np.zeros(total + 1, np.float64)
    for i in range(total - 1, -1, -1):
        left_weight[i] = left_weight[i + 1] + weights[i]
        left_cost[i] = left_cost[i + 1] + costs[0] + costs[1] * lengths[i]
    # A decision looks at all sets: worth it only where more than that can be saved.
    decision = costs[4] * counts.size
    worth = max(4 * decision, _LITTLE * left_cost[0])
    floor = np.int64(0)
    at = 0
    while at < total and left_cost[at] > (1 - _LITTLE) * left_cost[0]:
        at += 1
    for i in range(total):
        if lengths[i] < 0 or not _read_list(places[i], lengths[i], weights[i], counts):
            read[LISTS] = DAMAGED
            break
        read[LISTS] += 1
        read[ENTRIES] += lengths[i]
        if i + 1 < at or left_cost[i + 1] < worth:
            continue
        read[DECISIONS] += 1
        left = left_weight[i + 1]
        seen = left_weight[0] - left
        kth = np.int64(_kth_largest(counts, k, np.int32(floor)))
        probe = costs[2] + costs[3] * (total - i - 1)
        if kth <= left:
            at = _closing(kth, seen, left_weight, i + 1)
            better = _closed(kth + kth * left // max(1, seen), left_weight, i + 1)
            if k * probe < left_cost[better] - left_cost[at] and kth > 0:
                floor = max(
                    kth,
                    _boost(groups, weights, i + 1, set_bounds, set_starts, set_items, set_sizes, counts, k, kth, read),
                )
                kth = floor
                at = _closed(kth, left_weight, i + 1)
            if kth <= left:
                at = max(at, i + 2)
                continue
        alive = 0
        for c in counts:
            alive += c + left >= kth
        if alive * probe <= left_cost[i + 1]:
            return _finish(
                groups, weights, i + 1, left, set_bounds, set_starts, set_items, set_sizes, counts, kth, alive, k, read
            )
        # Fewer sets will be left when half of what is left is read.
        at = i + 2
        while at < total and left_cost[at] > 0.5 * left_cost[i + 1]:
            at += 1
    return take_largest(counts, k)


@njit(cache=True)
def probe_sets(groups, weights, places, lengths, set_bounds, set_starts, set_items, set_sizes, seen, k, read):
    """ProbeSet-D: read every set when it is first met, unless the position filter rules it out (spec 3.4)."""
    overlaps, sets = np.empty(k, np.int64), np.empty(k, np.int32)
    used = 0
    met = np.empty(seen.size, np.int32)
    n_met = 0
    left = 0
    for w in weights:
        left += w
    for i in range(groups.size):
        if read[LISTS] < 0 or (used == k and overlaps[0] > left):
            break
        left -= weights[i]
        if lengths[i] < 0:
            read[LISTS] = DAMAGED
            break
        read[LISTS] += 1
        read[ENTRIES] += lengths[i]
        for j in range(lengths[i]):
            s = _i32(places[i], j)
            if s < 0 or s >= seen.size:
                read[LISTS] = DAMAGED
                break
            if seen[s] != 0:
                continue
            seen[s] = 1
            met[n_met] = s
            n_met += 1
            if used == k and weights[i] + left < overlaps[0]:
                continue
            more = _probe(s, groups, weights, i + 1, set_bounds, set_starts, set_items, set_sizes) if left else 0
            if more < 0:
                read[LISTS] = DAMAGED
                break
            read[SETS] += 1
            used = _push(overlaps, sets, used, weights[i] + more, s)
    for j in range(n_met):
        seen[met[j]] = 0
    return sets[:used], overlaps[:used].astype(np.int32)


@njit(cache=True)
def agreements(signature, position_bounds, values, sets, count, slots, found, masks):
    """Which sets agree with a signature in which positions.

    ``found`` receives the sets, ``masks`` a bit a position of each; ``slots`` holds -1 for every set and does so again
    afterwards. Returns how many were found, or ``DAMAGED``.
    """
    words = masks.shape[1]
    n = 0
    whole = True
    for p in range(signature.size):
        file = _file_of(position_bounds, p)
        base = (p - position_bounds[file]) * count
        low, high = np.int64(-1), np.int64(count)
        while high - low > 1:
            middle = (low + high) >> 1
            if _u32(values[file], base + middle) < signature[p]:
                low = middle
            else:
                high = middle
        at = high
        while at < count and _u32(values[file], base + at) == signature[p]:
            s = _i32(sets[file], base + at)
            at += 1
            if s < 0 or s >= slots.size:
                whole = False
                break
            slot = slots[s]
            if slot < 0:
                slot = n
                slots[s] = n
                found[n] = s
                for w in range(words):
                    masks[n, w] = 0
                n += 1
            masks[slot, p >> 6] |= np.uint64(1) << np.uint64(p & 63)
    for j in range(n):
        slots[found[j]] = -1
    return n if whole else DAMAGED
