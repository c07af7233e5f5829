"""Compiled search over the mapped inverted index: look tokens up, merge lists, JOSIE, MinHash agreements.

The index may lie in several files; kernels are told where in memory each begins and never go beyond its end: a number
out of range, which only a damaged file can hold, ends a search with ``DAMAGED``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from lakescope.engines.joins.costs import OF_PAGE
from lakescope.store.inverted import PAGE_BITS, PAGE_WORDS

DAMAGED, TOO_MANY = -1, -2
#: What a search read: lists, their entries, sets, decisions.
LISTS, ENTRIES, SETS, DECISIONS = range(4)


@dataclass(frozen=True, slots=True)
class JosieTuning:
    """When JOSIE decides, on what, and how it reads. None of it changes an answer, only how soon it is there.

    ``benchmarks/joins.py`` measures all of it together, on a collection like open data and on two where nothing can be
    skipped (``benchmarks/results/joins.md``). "Not measured" means that no record
    compares other values of that field by itself.
    """

    #: Share of the cost of all lists that is read before the first decision. Not measured: set with marks in
    #: room of their own, when the benchmark began to take the median of three rounds.
    first_share: float = 0.03
    #: Share of the cost of all lists that is not worth another decision. Not measured: chosen so that a query where
    #: nothing can be skipped costs no more than a merge (the rows "dense" and "crowded" of the benchmark).
    little: float = 0.1
    #: Share of the cost of all lists that is not worth another decision when only sets met before can win, but are too
    #: many to be read: a few lists more change that little. Not measured.
    some: float = 0.5
    #: What is read between two decisions costs as much as so many of them, at least. Not measured.
    looks: int = 24
    #: Share of all sets up to which those met are noted, instead of looking at all. Not measured.
    few: float = 0.125
    #: Share of what the lists that are left would cost that sets may cost, to be read instead. Not measured.
    cheaper: float = 0.5
    #: Share of what the lists that are left would cost from which on sets are not looked at twice: at a glance they are
    #: too dear. Not measured.
    hopeless: float = 2.0
    #: Sets are given up when they have cost so many times what was expected ... Not measured.
    wrong: float = 1.5
    #: ... and such a share of what the lists would. Not measured.
    give_up: float = 0.1
    #: Sets read between two looks at whether those that follow, read alike, would cost more than the lists. Not
    #: measured.
    window: int = 32
    #: Share of what the lists cost that are left when sets are given up, which is read before sets are thought of
    #: again. Not measured.
    again: float = 0.5
    #: Share of what it may save that is spent on knowing early how good the best sets are, at most. Not measured.
    early: float = 0.1
    #: Sets read for each one that is wanted: to know early how good the best are, and where many hold a whole query.
    #: Not measured.
    tries: int = 16
    #: Items of a set for each group looked for up to which it is read beside marks instead. Not measured: as many items
    #: as a look-up costs by the ``Costs`` that are assumed before any are measured.
    scanned: int = 8
    #: Share of the cost of all lists that is spent on finding sets that hold the whole query, at most. Not measured.
    whole: float = 0.03
    #: Of the query's rarest lists so many must agree before a set is read for it. Not measured.
    agree: int = 8
    #: Share of ``whole`` that is saved when no such set was found by then. Not measured.
    hope: float = 0.75
    #: Sets by which the cost of reading many is estimated at a glance ... Not measured.
    glanced: int = 8
    #: ... where that is not hopeless ... Not measured.
    priced: int = 64
    #: ... and sets that are read for it. Not measured.
    tried: int = 16
    #: Groups of the lake for each of a query's up to which the query's are marked, so that sets can be read one after
    #: the other. Not measured.
    apart: int = 64
    #: The fewest sets that are worth marking a query's groups for. Not measured.
    marked: int = 4
    #: Groups that there is room for marks of, at most: 16 MB. Not measured: a bound of memory.
    marks: int = 1 << 22
    #: Items of a set between two looks at whether it can still win. Not measured.
    items: int = 1024
    #: Lists that are fetched ahead: a short list is read sooner than memory answers. Not measured.
    ahead: int = 8
    #: Counts looked at together: compilers vectorise blocks of known length. Not measured.
    block: int = 64


JOSIE = JosieTuning()

# Kernels take numbers of their module for constants, which they are compiled with; the fields above say what each is.
_FIRST, _LITTLE, _SOME, _LOOKS, FEW = JOSIE.first_share, JOSIE.little, JOSIE.some, JOSIE.looks, JOSIE.few
_CHEAPER, _HOPELESS, _WRONG, _GIVE_UP = JOSIE.cheaper, JOSIE.hopeless, JOSIE.wrong, JOSIE.give_up
_WINDOW, _AGAIN, _EARLY, _TRIES, _SCANNED = JOSIE.window, JOSIE.again, JOSIE.early, JOSIE.tries, JOSIE.scanned
_WHOLE, _AGREE, _HOPE = JOSIE.whole, JOSIE.agree, JOSIE.hope
_GLANCED, _PRICED, _TRIED = JOSIE.glanced, JOSIE.priced, JOSIE.tried
_APART, _MARKED, MARKS, _ITEMS = JOSIE.apart, JOSIE.marked, JOSIE.marks, JOSIE.items
_AHEAD, _BLOCK = JOSIE.ahead, JOSIE.block


#: What is known of a file of sets: where its beginnings and its items lie, how many items; the same of its pages, and
#: where the bitmaps lie.
_STARTS, _GROUPS, _SIZE, _PAGE_STARTS, _PAGES, _PAGE_COUNT, _BITS = range(7)
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
_f64 = _item(types.float64)


def _fetching() -> Any:
    """Has memory fetched that is read soon; any address will do."""

    @intrinsic
    def fetch(typing_context, address):
        def codegen(context, builder, signature, arguments):
            kind, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
            told = ir.FunctionType(ir.VoidType(), [kind, whole, whole, whole])
            ahead = builder.module.declare_intrinsic("llvm.prefetch", [kind], told)
            place = builder.inttoptr(arguments[0], kind)
            builder.call(ahead, [place, *(ir.Constant(whole, each) for each in (0, 3, 1))])
            return context.get_dummy_value()

        return types.void(types.uint64), codegen

    return fetch


_prefetch = _fetching()


def _counting() -> Any:
    """Counts the bits of a word that are set."""

    @intrinsic
    def ones(typing_context, word):
        def codegen(context, builder, signature, arguments):
            return builder.ctpop(arguments[0])

        return types.int64(types.uint64), codegen

    return ones


_ones = _counting()


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


@njit(nogil=True, cache=True)
def look_up(tokens, bits, bounds, directories, hashes, groups, sizes):
    """The group of each token, -1 of those that are not known, and how many are.

    In three passes, of which the first two only fetch: places in memory that depend on no comparison are fetched many
    at a time, and waiting for memory is all that this does.
    """
    shift = np.uint64(64 - bits)
    files, begins, ends = (
        np.empty(tokens.size, np.int32),
        np.empty(tokens.size, np.int64),
        np.empty(tokens.size, np.int64),
    )
    for i in range(tokens.size):
        slot = np.int64(max(tokens[i], np.uint64(1)) >> shift)
        file = _file_of(bounds, slot)
        files[i] = file
        begins[i] = max(np.int64(0), _i64(directories[file], slot - bounds[file]))
        ends[i] = min(_i64(directories[file], slot - bounds[file] + 1), sizes[file])
    first = np.empty(tokens.size, np.uint64)
    for i in range(tokens.size):
        if begins[i] < ends[i]:
            first[i] = _u64(hashes[files[i]], begins[i])
    found = np.empty(tokens.size, np.int32)
    known = 0
    for i in range(tokens.size):
        t = max(tokens[i], np.uint64(1))
        file, at, end = files[i], begins[i], ends[i]
        found[i] = -1
        if at < end and first[i] < t:
            at += 1
            while at < end and _u64(hashes[file], at) < t:
                at += 1
        if at < end and _u64(hashes[file], at) == t:
            found[i] = _i32(groups[file], at)
            known += 1
    return found, known


@njit(nogil=True, cache=True)
def tokens_of_groups(groups, order, of, hashes):
    """The tokens of some groups, by the order of a file's tokens by group; False if the order leads out of the file."""
    begins, total = np.empty(groups.size, np.int64), 0
    for i in range(groups.size):
        low, high = np.int64(0), np.int64(order.size)
        while low < high:
            middle = (low + high) >> 1
            if not 0 <= order[middle] < of.size:
                return np.empty(0, np.uint64), False
            if of[order[middle]] < groups[i]:
                low = middle + 1
            else:
                high = middle
        begins[i] = low
        while low < order.size and 0 <= order[low] < of.size and of[order[low]] == groups[i]:
            low += 1
        total += low - begins[i]
    found = np.empty(total, np.uint64)
    at = 0
    for i in range(groups.size):
        place = begins[i]
        while place < order.size and 0 <= order[place] < of.size and of[order[place]] == groups[i]:
            if at >= total or order[place] >= hashes.size:
                return found, False
            found[at] = hashes[order[place]]
            at += 1
            place += 1
    return found, at == total


@njit(nogil=True, cache=True)
def count_sets(groups, bounds, starts, lost, losses, held):
    """Add to ``held`` how many sets hold each group, without those that were lost; False if there is no such group.

    ``lost`` are groups in order of which ``losses`` sets are gone; a group of -1 is nobody's.
    """
    for i in range(groups.size):
        group = np.int64(groups[i])
        if group < 0:
            continue
        if group >= bounds[-1]:
            return False
        file = _file_of(bounds, group)
        place = group - bounds[file]
        held[i] += _i64(starts[file], place + 1) - _i64(starts[file], place)
        if lost.size:
            at = np.searchsorted(lost, group)
            if at < lost.size and lost[at] == group:
                held[i] -= losses[at]
    return True


@njit(nogil=True, cache=True)
def look_up_once(tokens, directory, shift, known, starts, groups, counts):
    """All groups of some tokens in a dictionary of several segments, and the count of each token; 0: not known.

    In passes, of which the first ones only fetch, as in :func:`look_up`.
    """
    places = np.empty(tokens.size, np.int64)
    for i in range(tokens.size):
        places[i] = directory[max(tokens[i], np.uint64(1)) >> shift]
    held = np.zeros(tokens.size, np.int32)
    total = 0
    for i in range(tokens.size):
        token = max(tokens[i], np.uint64(1))
        at, end = places[i], directory[(token >> shift) + np.uint64(1)]
        while at < end and known[at] < token:
            at += 1
        places[i] = -1
        if at < end and known[at] == token:
            places[i] = at
            held[i] = counts[at]
            total += starts[at + 1] - starts[at]
    found = np.empty(total, np.int32)
    n = 0
    for place in places:
        if place >= 0:
            for entry in range(starts[place], starts[place + 1]):
                found[n] = groups[entry]
                n += 1
    return found, held


@njit(nogil=True, cache=True)
def find_groups(tokens, bits, bounds, directories, hashes, groups, sizes):
    """The groups of tokens, in order, how many of the tokens each holds, and the group of each token, as looked up."""
    every, n = look_up(tokens, bits, bounds, directories, hashes, groups, sizes)
    found = np.sort(every[every >= 0])
    weights = np.empty(n, np.int32)
    kept = 0
    for i in range(n):
        if kept and found[kept - 1] == found[i]:
            weights[kept - 1] += 1
        else:
            found[kept] = found[i]
            weights[kept] = 1
            kept += 1
    return found[:kept], weights[:kept], every


@njit(nogil=True, cache=True)
def locate(numbers, bounds, starts, items, sizes):
    """Where in memory the items of each number lie, how many, a size of ``DAMAGED`` if not in the file; and in all."""
    places = np.empty(numbers.size, np.uint64)
    counts = np.empty(numbers.size, np.int64)
    total = np.int64(0)
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
        total += max(counts[i], np.int64(0))
    return places, counts, total


@njit(nogil=True, cache=True)
def narrow(places, lengths, first, last):
    """Of lists only the sets from ``first`` up to ``last``, in place: they are in order, and bisected. How many."""
    total = np.int64(0)
    for i in range(places.size):
        begin, end = np.int64(0), lengths[i]
        for bound in (first, last):
            low, high = begin, lengths[i]
            while low < high:
                middle = (low + high) >> 1
                if _i32(places[i], middle) < bound:
                    low = middle + 1
                else:
                    high = middle
            if bound == first:
                begin = low
            end = low
        if lengths[i] > 0:
            places[i] += np.uint64(4 * begin)
            lengths[i] = max(np.int64(0), end - begin)
            total += lengths[i]
    return total


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def note_lists(places, lengths, weights, begin, end, counts, met, n):
    """MergeList-D over short lists: notes sets when it first meets them. How many are noted, or ``DAMAGED``."""
    sets = np.uint32(counts.size)
    for i in range(begin, end):
        if lengths[i] < 0:
            return DAMAGED
        if i + _AHEAD < end:
            _prefetch(places[i + _AHEAD])
        for j in range(lengths[i]):
            s = _u32(places[i], j)
            if s >= sets:
                return DAMAGED
            c = counts[s]
            if c == 0:
                met[n] = s
                n += 1
            counts[s] = c + weights[i]
    return n


@njit(nogil=True, cache=True)
def merge_lists(places, lengths, weights, begin, end, counts):
    """MergeList-D: adds to the overlap of every set of the lists, one list a group (spec 3.4). False of damage."""
    whole = True
    for i in range(begin, end):
        if i + _AHEAD < end:
            _prefetch(places[i + _AHEAD])
        whole = lengths[i] >= 0 and _read_list(places[i], lengths[i], weights[i], counts) and whole
    return whole


@njit(nogil=True, cache=True)
def merge_files(groups, weights, bounds, files, most, counts, met, read):
    """MergeList-D over the lists of some files: counts sets by their numbers in the lake, and notes them.

    ``bounds`` says which groups each file holds; ``files`` where its beginnings and its lists lie, how many entries it
    has, and where the numbers lie that its sets have in the lake, and how many. How many sets are noted; ``TOO_MANY``
    if there are more entries than ``most``, or ``DAMAGED``.
    """
    places, lengths = np.empty(groups.size, np.uint64), np.empty(groups.size, np.int64)
    of_file = np.empty(groups.size, np.int64)
    file, entries = 0, np.int64(0)
    for i in range(groups.size):
        while file < bounds.shape[0] and groups[i] >= bounds[file, 1]:
            file += 1
        if file == bounds.shape[0] or groups[i] < bounds[file, 0]:
            return DAMAGED
        local = groups[i] - bounds[file, 0]
        begin, end = _i64(files[file, 0], local), _i64(files[file, 0], local + 1)
        if not 0 <= begin <= end <= np.int64(files[file, 2]):
            return DAMAGED
        places[i], lengths[i], of_file[i] = files[file, 1] + np.uint64(4 * begin), end - begin, file
        entries += end - begin
    read[LISTS], read[ENTRIES] = groups.size, entries
    if entries > most:
        return TOO_MANY
    n = 0
    for i in range(groups.size):
        numbers, sets = files[of_file[i], 3], np.int64(files[of_file[i], 4])
        if i + _AHEAD < groups.size:
            _prefetch(places[i + _AHEAD])
        for j in range(lengths[i]):
            s = np.int64(_i32(places[i], j))
            if s < 0 or s >= sets:
                return DAMAGED
            number = _i32(numbers, s)
            if number < 0:
                continue
            c = counts[number]
            if c == 0:
                met[n] = number
                n += 1
            counts[number] = c + weights[i]
    return n


@njit(nogil=True, cache=True)
def take_largest(counts, room, k):
    """The ``k`` sets with the largest counts, equal ones by number; forgets all counts."""
    kth = _kth_largest(counts, k, np.int32(0))
    sets = room[: _at_least(counts, max(kth, 1), np.uint64(counts.size), room)]
    overlaps = counts[sets]
    counts[:] = 0
    return largest(sets, overlaps, k)


@njit(nogil=True, cache=True)
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


@njit(inline="always", cache=True)
def _replace_least(heap, c):
    """Put a count in place of the smallest of a heap."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= c:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = c


@njit(nogil=True, cache=True)
def _kth_largest(counts, k, floor):
    """The ``k``-th largest count if it is more than ``floor``, else ``floor``. Cheap if few counts come near it."""
    heap = np.full(k, floor, np.int32)
    blocks = counts.size // _BLOCK
    for block in range(blocks):
        begin = np.uint64(block * _BLOCK)
        if _any_above(counts, begin, heap[0]):
            for c in counts[begin : begin + np.uint64(_BLOCK)]:
                if c > heap[0]:
                    _replace_least(heap, c)
    for c in counts[blocks * _BLOCK :]:
        if c > heap[0]:
            _replace_least(heap, c)
    return heap[0]


@njit(nogil=True, cache=True)
def _kth_largest_of(sets, counts, k, floor):
    """The ``k``-th largest count of some sets, or ``floor`` if it is less."""
    heap = np.full(k, floor, np.int32)
    for s in sets:
        if counts[s] > heap[0]:
            _replace_least(heap, counts[s])
    return heap[0]


@njit(inline="always", cache=True)
def _any_above(counts, begin, bound):
    """Whether the block of counts that begins there holds one above a bound.

    Written so that compilers take many at once: a known number of steps, and places that cannot be negative.
    """
    above = np.int32(0)
    for j in range(_BLOCK):
        above |= np.int32(counts[begin + np.uint64(j)] > bound)
    return above > 0


@njit(nogil=True, cache=True)
def _overlap(groups, weights, left_weight, begin, place, size, enough):
    """Tokens of the query from its ``begin``-th group on that a set holds, galloping through the set.

    Stops when fewer than ``enough`` can be reached: what it returns is then too few. Returns how many groups it looked
    for, too, and no items.
    """
    total = looked = 0
    at = 0
    for i in range(begin, groups.size):
        if at >= size or total + left_weight[i] < enough:
            break
        looked += 1
        g = groups[i]
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
    return total, looked, 0


@njit(inline="always", cache=True)
def _close(groups, begin, marks):
    """Whether the query's groups from its ``begin``-th on lie so close together that they can be marked.

    Those of a set of a damaged file may be in no order: then they are not.
    """
    return 0 <= np.int64(groups[-1]) - groups[begin] < min(_APART * (groups.size - begin), marks[0].size - 1)


def room_for_marks(groups: int) -> tuple[Any, ...]:
    """Memory to mark queries in, of a lake of so many groups: what `_mark` fills and `_unmark` empties.

    The weight of each group and a bit, as far from the first group, or from the first of its page, as it is; what the
    groups of each page and of those that follow weigh; and the groups that weigh more than one, by page.
    """
    room = min(groups, MARKS) + 2
    pages = (room >> PAGE_BITS) + 3
    return (
        np.zeros(room, np.int32),
        np.zeros(pages * PAGE_WORDS, np.uint64),
        np.zeros(pages + 1, np.int64),
        np.zeros(pages + 1, np.int32),
        np.zeros(room, np.int32),
    )


@njit(inline="always", cache=True)
def _pages(groups, begin):
    """How many pages the query's groups from its ``begin``-th on reach over, if they are in order."""
    return (groups[-1] >> PAGE_BITS) - (groups[begin] >> PAGE_BITS) + 1


@njit(nogil=True, cache=True)
def _mark(groups, weights, begin, marks, sets):
    """Mark the query's groups from its ``begin``-th on.

    Returns whether it did: not if they lie too far apart, or for so few sets that it is not worth it.
    """
    if sets < _MARKED or not _close(groups, begin, marks):
        return False
    of_group, words, left, heavy_starts, heavy = marks
    first = groups[begin]
    base, room = first & ~((1 << PAGE_BITS) - 1), _pages(groups, begin) << PAGE_BITS
    page, n = 0, 0
    heavy_starts[0] = 0
    for i in range(begin, groups.size):
        of_group[_place(groups[i], first, of_group.size)] = weights[i]
        inside = _place(groups[i], base, room)
        words[inside >> 6] |= np.uint64(1) << np.uint64(inside & 63)
        left[inside >> PAGE_BITS] += weights[i]
        while page < inside >> PAGE_BITS:
            page += 1
            heavy_starts[page] = n
        if weights[i] > 1:
            heavy[n] = i
            n += 1
    heavy_starts[page + 1] = n
    for i in range(page, 0, -1):
        left[i - 1] += left[i]
    return True


@njit(nogil=True, cache=True)
def _unmark(groups, begin, marks):
    of_group, words, left, _, _ = marks
    for i in range(begin, groups.size):
        of_group[_place(groups[i], groups[begin], of_group.size)] = 0
    pages = _pages(groups, begin)
    words[: pages * PAGE_WORDS] = 0
    left[:pages] = 0


@njit(inline="always", cache=True)
def _place(group, first, size):
    """Where the mark of a group is: no further than the end, even if a damaged file holds any number."""
    return min(np.uint32(group - first), np.uint32(size - 1))


@njit(inline="always", cache=True)
def _marked_weight(place, begin, end, of_group, first, room):
    """What the items of a set from one place to another weigh in the query."""
    total = np.int64(0)
    for j in range(begin, end):
        total += of_group[_place(_i32(place, j), first, room)]
    return total


@njit(inline="always", cache=True)
def _common_bits(place, words, begin):
    """How many groups a page of a set shares with the marks that begin at a word."""
    total = np.int64(0)
    for j in range(PAGE_WORDS):
        total += _ones(_u64(place, j) & words[np.uint64(begin + j)])
    return total


@njit(inline="always", cache=True)
def _heavier(place, groups, weights, heavy):
    """What the groups of a page that weigh more than one add to their number, of those that a set holds."""
    total = np.int64(0)
    for i in heavy:
        inside = groups[i] & ((1 << PAGE_BITS) - 1)
        held = _u64(place, inside >> 6) >> np.uint64(inside & 63) & np.uint64(1)
        total += np.int64(held) * (weights[i] - 1)
    return total


@njit(nogil=True, cache=True)
def _scan(groups, weights, begin, marks, stored, enough):
    """As ``_overlap``, by reading all of a set beside the marks of the query; returns how many items it read, too.

    A page of which the set has a bitmap is compared as a whole.
    """
    of_group, words, left, heavy_starts, heavy = marks
    place, at, size, page, last_page, pages, bits = stored
    first, room = groups[begin], groups[-1] - groups[begin] + 2
    base, top = first >> PAGE_BITS, groups[-1] >> PAGE_BITS
    total, read = np.int64(0), np.int64(0)
    while at < size:
        # Items up to the next page with a bitmap, not too many at a time.
        stop = min(at + _ITEMS, size)
        ended = stop
        if page < last_page and _i32(pages, 3 * page) <= top:
            number, begins, ends = _i32(pages, 3 * page) - base, _i32(pages, 3 * page + 1), _i32(pages, 3 * page + 2)
            if number < 0 or not begins < ends <= size or ends <= at:
                return np.int64(DAMAGED), 0, 0
            if begins <= stop:
                stop, ended = max(at, np.int64(begins)), np.int64(ends)
                bitmap = bits + np.uint64(8 * PAGE_WORDS * page)
                few = heavy[heavy_starts[number] : heavy_starts[number + 1]]
                total += _common_bits(bitmap, words, number * PAGE_WORDS) + _heavier(bitmap, groups, weights, few)
                read += OF_PAGE + few.size
                page += 1
        total += _marked_weight(place, at, stop, of_group, first, room)
        read += stop - at
        whole = ended > stop
        at = ended
        reached = _i32(place, at - 1)
        # Of a page that is not read to its end, all counts as if it were left.
        following = (reached >> PAGE_BITS) + whole
        if reached >= groups[-1] or total + left[_place(following, base, left.size)] < enough:
            break
    return total, 0, read


@njit(inline="always", cache=True)
def _worse(overlap, number, than_overlap, than_number):
    return overlap < than_overlap or (overlap == than_overlap and number > than_number)


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _suffix(number, group, set_bounds, set_files):
    """How a set goes on from a group of the query on.

    (where its items lie, the first one, how many there are, the pages with a bitmap from and to, where these and their
    bitmaps lie), the first item ``DAMAGED`` if unreadable.
    """
    file = _file_of(set_bounds, number)
    of_file = set_files[file]
    local = number - set_bounds[file]
    first, last = _i64(of_file[_STARTS], local), _i64(of_file[_STARTS], local + 1)
    page, last_page = np.int64(0), np.int64(0)
    if of_file[_PAGE_COUNT]:
        page, last_page = _i64(of_file[_PAGE_STARTS], local), _i64(of_file[_PAGE_STARTS], local + 1)
    pages = of_file[_PAGES]
    items, count = np.int64(of_file[_SIZE]), np.int64(of_file[_PAGE_COUNT])
    if not (0 <= first <= last <= items and 0 <= page <= last_page <= count):
        return np.uint64(0), np.int64(DAMAGED), np.int64(0), page, page, pages, pages
    place = of_file[_GROUPS] + np.uint64(4 * first)
    low, high = np.int64(-1), last - first
    while high - low > 1:
        middle = (low + high) >> 1
        if _i32(place, middle) < group:
            low = middle
        else:
            high = middle
    while page < last_page and _i32(pages, 3 * page + 2) <= high:
        page += 1
    return place, high, last - first, page, last_page, pages, of_file[_BITS]


@njit(nogil=True, cache=True)
def _effort(stored):
    """What it takes to read a set to its end beside marks, in items."""
    _, at, size, page, last_page, pages, _ = stored
    items = size - at
    for i in range(page, last_page):
        items -= max(0, _i32(pages, 3 * i + 2) - _i32(pages, 3 * i + 1) - OF_PAGE)
    return max(items, np.int64(0))


@njit(nogil=True, cache=True)
def _probe(number, groups, weights, left_weight, begin, marks, marked, enough, set_bounds, set_files):
    """Tokens of the query from its ``begin``-th group on that a set of the lake holds; ``DAMAGED`` if unreadable.

    Less than ``enough`` need not be exact. Returns how many groups were looked for, and items read, too. ``marks`` are
    the query's, if it was marked.
    """
    stored = _suffix(number, groups[begin], set_bounds, set_files)
    place, at, size, _, _, _, _ = stored
    if at < 0:
        return DAMAGED, 0, 0
    if marked and _effort(stored) < _SCANNED * (groups.size - begin):
        return _scan(groups, weights, begin, marks, stored, enough)
    return _overlap(groups, weights, left_weight, begin, place + np.uint64(4 * at), size - at, enough)


@njit(nogil=True, cache=True)
def _left(amounts):
    """What is left from each place on: sums of all that follow."""
    left = np.zeros(amounts.size + 1, amounts.dtype)
    for i in range(amounts.size - 1, -1, -1):
        left[i] = left[i + 1] + amounts[i]
    return left


@njit(nogil=True, cache=True)
def _all_left(weights, lengths, costs):
    """Sums from each place of a query on: of its weights, of the cost of its lists, and of their entries."""
    n = weights.size
    left_weight, left_cost, left_entries = np.empty(n + 1, np.int64), np.empty(n + 1), np.empty(n + 1, np.int64)
    weight, cost, entries = np.int64(0), 0.0, np.int64(0)
    left_weight[n], left_cost[n], left_entries[n] = weight, cost, entries
    for i in range(n - 1, -1, -1):
        length = max(lengths[i], np.int64(0))
        weight += weights[i]
        cost += costs[0] + costs[1] * length
        entries += length
        left_weight[i], left_cost[i], left_entries[i] = weight, cost, entries
    return left_weight, left_cost, left_entries


@njit(nogil=True, cache=True)
def _closing(kth, seen, left_weight, at):
    """Where lists will have been read until no new set can win, if the best counts go on growing as they did."""
    rate = kth / max(1, seen)
    low, high = at - 1, left_weight.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if kth + rate * (left_weight[at] - left_weight[middle]) <= left_weight[middle]:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True, cache=True)
def _closed(kth, left_weight, at):
    """Where fewer of the query's tokens are left than the ``k``-th best set holds: no new set can win."""
    low, high = at - 1, left_weight.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if kth <= left_weight[middle]:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True, cache=True)
def _at_least(counts, least, most, out):
    """Sets with at least such a count, in order. Returns how many, or more than ``most`` as soon as it is known."""
    below = np.int32(least - 1)
    blocks = counts.size // _BLOCK
    n = np.uint64(0)
    for block in range(blocks):
        begin = np.uint64(block * _BLOCK)
        if _any_above(counts, begin, below):
            n = _note_above(counts, begin, begin + np.uint64(_BLOCK), below, out, n)
            if n > most:
                return np.int64(n)
    n = _note_above(counts, np.uint64(blocks * _BLOCK), np.uint64(counts.size), below, out, n)
    return np.int64(n)


@njit(inline="always", cache=True)
def _note_above(counts, begin, end, below, out, n):
    """Note the sets of a range with counts above a bound, after the ``n`` noted before; no branch to mispredict."""
    for s in range(begin, end):
        out[n] = s
        n += np.uint64(counts[s] > below)
    return n


@njit(nogil=True, cache=True)
def _affordable(sets, groups, begin, set_bounds, set_files, close, costs, budget, most):
    """Some sets that can be read for so much in all, looking at them included, none of which costs over ``most``."""
    n = 0
    for s in sets:
        budget -= costs[2]
        if budget < 0:
            break
        effort = _effort(_suffix(s, groups[begin], set_bounds, set_files))
        cost = _cost_of_set(effort, groups.size - begin, close, costs)
        if cost <= min(most, budget):
            budget -= cost
            sets[n] = s
            n += 1
    return sets[:n]


@njit(nogil=True, cache=True)
def _boost(groups, weights, left_weight, begin, set_bounds, set_files, marks, best, counts, k, read):
    """The ``k``-th largest overlap among sets with large counts, all of which are read: a floor for the answer."""
    heap = np.zeros(k, np.int32)
    marked = _mark(groups, weights, begin, marks, best.size)
    for s in best:
        more, _, _ = _probe(
            *(s, groups, weights, left_weight, begin, marks, marked, 0),
            *(set_bounds, set_files),
        )
        read[SETS] += 1
        if counts[s] + more > heap[0]:
            _replace_least(heap, np.int32(counts[s] + more))
    if marked:
        _unmark(groups, begin, marks)
    return np.int64(heap[0])


@njit(nogil=True, cache=True)
def _leaders(sets, counts, kth, out):
    """Those of some sets that count more than the ``k``-th best, then those that count as much."""
    n = 0
    for s in sets:
        if counts[s] > kth:
            out[n] = s
            n += 1
    for s in sets:
        if n == out.size:
            break
        if counts[s] == kth:
            out[n] = s
            n += 1
    return out[:n]


@njit(nogil=True, cache=True)
def _count_of(sets, counts, least):
    """How many of some sets have at least such a count."""
    n = 0
    for s in sets:
        n += counts[s] >= least
    return n


@njit(nogil=True, cache=True)
def _alive(sets, counts, sizes, left, kth, out):
    """Those of some sets that can still reach the ``k``-th best: enough counted, and large enough. How many."""
    n = 0
    least = max(kth - left, 1)
    for s in sets:
        if counts[s] >= least and sizes[s] >= kth:
            out[n] = s
            n += 1
    return n


@njit(nogil=True, cache=True)
def _cost_of_set(effort, groups_left, close, costs):
    """What it costs to read a set to its end: looking for every group of a query that is left, or all in order."""
    if close and effort < _SCANNED * groups_left:
        return costs[2] + costs[5] * effort
    return costs[2] + costs[3] * groups_left


@njit(nogil=True, cache=True)
def _cost_of_sets(
    candidates, counts, sizes, groups, left_weight, begin, set_bounds, set_files, kth, k, close, costs, most
):
    """What it will cost to read sets that can still win: each until it has missed more than it may (spec 3.5).

    Estimated by ``most`` of them, if they are many. Those that cannot win any more cost nothing.
    """
    left = left_weight[begin]
    seen = left_weight[0] - left
    # Where sets hold the whole query, the first few that do end the search.
    whole = kth == left_weight[0]
    many = min(candidates.size, _TRIES * k) if whole else candidates.size
    step = max(1, many // most)
    cost = 0.0
    for i in range(0, many, step):
        s = candidates[i]
        spare = counts[s] + left - kth
        if spare < 0 or sizes[s] < kth:
            continue
        effort = _effort(_suffix(s, groups[begin], set_bounds, set_files))
        looked = 1.0 if whole else min(1.0, (spare + 1) / max(1e-9, (1 - counts[s] / seen) * left))
        cost += costs[2] + looked * (_cost_of_set(effort, groups.size - begin, close, costs) - costs[2])
    return cost * step


@njit(nogil=True, cache=True)
def _cost_by_trial(
    candidates, counts, sizes, groups, weights, left_weight, begin, set_bounds, set_files, marks, kth, costs, read
):
    """What reading sets that can still win will cost, by reading a few: later lists hold more than counts tell."""
    step = candidates.size // _TRIED
    marked = _mark(groups, weights, begin, marks, _TRIED)
    cost = 0.0
    for i in range(_TRIED):
        s = candidates[i * step]
        if counts[s] + left_weight[begin] < kth or sizes[s] < kth:
            continue
        more, looked, items = _probe(
            *(s, groups, weights, left_weight, begin, marks, marked, kth - counts[s]),
            *(set_bounds, set_files),
        )
        read[SETS] += 1
        # Damage is met again, and told, when all are read.
        cost += costs[2] + costs[3] * looked + costs[5] * items if more >= 0 else 0.0
    if marked:
        _unmark(groups, begin, marks)
    return cost * step


@njit(nogil=True, cache=True)
def _by_count(candidates, counts):
    """Sets by their counts, the largest first, equal ones by number; as they are if they are in order."""
    ordered = ascending = True
    least = most = np.int64(counts[candidates[0]]) if candidates.size else np.int64(0)
    for j in range(1, candidates.size):
        one, other = candidates[j - 1], candidates[j]
        ascending &= one < other
        ordered &= (counts[one] > counts[other]) | ((counts[one] == counts[other]) & (one < other))
        least, most = min(least, np.int64(counts[other])), max(most, np.int64(counts[other]))
    if ordered:
        return candidates
    if not ascending or most - least > candidates.size:
        return candidates[np.argsort((-counts[candidates].astype(np.int64) << 32) + candidates)]
    # As many places as there are sets of each count, the largest count first.
    ends = np.zeros(most - least + 2, np.int64)
    for s in candidates:
        ends[most - counts[s] + 1] += 1
    for j in range(1, ends.size):
        ends[j] += ends[j - 1]
    sorted_ = np.empty_like(candidates)
    for s in candidates:
        sorted_[ends[most - counts[s]]] = s
        ends[most - counts[s]] += 1
    return sorted_


@njit(nogil=True, cache=True)
def _rivals(ordered, counts, begin, least):
    """How many of some sets in order of their counts, from ``begin`` on, have at least such a count."""
    low, high = begin, ordered.size
    while low < high:
        middle = (low + high) >> 1
        if counts[ordered[middle]] >= least:
            low = middle + 1
        else:
            high = middle
    return low - begin


@njit(nogil=True, cache=True)
def _finish(
    groups,
    weights,
    left_weight,
    begin,
    set_bounds,
    set_files,
    marks,
    counts,
    candidates,
    kth,
    k,
    costs,
    budget,
    rest,
    read,
):
    """Read the sets that can still win, those with the largest counts first, until no other can.

    Gives up (no sets, though there are candidates) when more was read than ``budget`` allows, or when those that can
    still win would cost more than ``rest``, what the lists do, if they cost as much as the last ones.
    """
    left = left_weight[begin]
    overlaps, sets = np.empty(k, np.int64), np.empty(k, np.int32)
    used = 0
    marked = _mark(groups, weights, begin, marks, candidates.size)
    ordered = _by_count(candidates, counts)
    window, before = 0, budget
    for j in range(ordered.size):
        s = ordered[j]
        if used == k:
            window += 1
            if window == 1:
                before = budget
            elif window > _WINDOW:
                rivals = _rivals(ordered, counts, j, overlaps[0] - left)
                if rivals * (before - budget) > _WINDOW * rest:
                    used = 0
                    break
                window = 0
        known = np.int64(counts[s])
        if used == k and not _worse(overlaps[0], sets[0], known + left, s):
            # Those that follow have a smaller count, or the same and a larger number.
            break
        enough = max(kth, overlaps[0] if used == k else 0) - known
        more, looked, items = _probe(
            *(s, groups, weights, left_weight, begin, marks, marked, enough),
            *(set_bounds, set_files),
        )
        if more < 0:
            read[LISTS] = DAMAGED
            break
        read[SETS] += 1
        if more >= enough:
            used = _push(overlaps, sets, used, known + more, s)
        budget -= costs[2] + costs[3] * looked + costs[5] * items
        if budget < 0:
            used = 0
            break
    if marked:
        _unmark(groups, begin, marks)
    return sets[:used], overlaps[:used].astype(np.int32)


@njit(inline="always", cache=True)
def _gallop(place, at, end, number):
    """The first place from ``at`` on of a list that holds a number or a larger one."""
    step = 1
    while at + step < end and _i32(place, at + step) < number:
        step <<= 1
    low, high = at + (step >> 1) - 1, min(at + step, end)
    while high - low > 1:
        middle = (low + high) >> 1
        if _i32(place, middle) < number:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True, cache=True)
def _holders(
    groups,
    weights,
    left_weight,
    places,
    lengths,
    set_bounds,
    set_files,
    marks,
    sizes,
    counts,
    k,
    costs,
    budget,
    read,
):
    """The first ``k`` sets, by number, that hold the whole query: nothing can be better. None if too dear to know.

    Small numbers, flags, years and the like are held by more sets than anybody asks for. Lists are in order of the
    sets, so the rarest of them are gone through side by side, and the sets that all of them name are read.
    """
    found = np.empty(k, np.int32)
    if lengths[0] < k:
        return found[:0]
    begin = min(_AGREE, groups.size)
    at = np.zeros(begin, np.int64)
    n = looks = 0
    all_of_it = budget
    marked = False
    for j in range(lengths[0]):
        s = _i32(places[0], j)
        if s < 0 or s >= counts.size:
            read[LISTS] = DAMAGED
            break
        looks += 1
        budget -= costs[1]
        if counts[s] < 0 or sizes[s] < left_weight[0]:
            continue
        agree = True
        for i in range(1, begin):
            at[i] = _gallop(places[i], at[i], lengths[i], s)
            looks += 1
            budget -= _SCANNED * costs[1]
            if at[i] >= lengths[i] or _i32(places[i], at[i]) != s:
                agree = False
                break
        if agree and begin < groups.size:
            if not marked and n == 1:
                marked = _mark(groups, weights, begin, marks, k)
            enough = left_weight[begin]
            more, looked, items = _probe(
                *(s, groups, weights, left_weight, begin, marks, marked, enough),
                *(set_bounds, set_files),
            )
            if more < 0:
                read[LISTS] = DAMAGED
                break
            read[SETS] += 1
            budget -= costs[2] + costs[3] * looked + costs[5] * items
            agree = more == enough
        if agree:
            found[n] = s
            n += 1
        if n == k or budget < (0 if n else _HOPE * all_of_it):
            break
    if marked:
        _unmark(groups, begin, marks)
    if n == k:
        read[LISTS], read[ENTRIES] = begin, looks
    return found[:n]


@njit(nogil=True, cache=True)
def josie(
    groups,
    weights,
    places,
    lengths,
    set_bounds,
    set_files,
    marks,
    sizes,
    counts,
    met,
    k,
    least,
    costs,
    read,
):
    """JOSIE-D: the ``k`` sets with the largest overlap, reading lists or sets, whichever is worth more (spec 3.7).

    Returns (sets, overlaps), not in order; ``read`` learns what was read, or of damage. Lists are counted in place,
    as MergeList does; at times the counts decide: whether sets never met can still win, which of those met can, and
    whether to read on in lists or in the sets that are left. Sets already met may be read early if that closes the
    search to new ones sooner. Every count is a lower bound of an overlap, so the answer is exact whatever is decided.
    As long as few sets are met they are noted, so that a decision looks at them alone. Sets with an overlap below
    ``least`` are not wanted: elsewhere there are ``k`` that have as much.
    """
    total = groups.size
    left_weight, left_cost, left_entries = _all_left(weights, lengths, costs)
    stored = (set_bounds, set_files)
    holders = _holders(
        *(groups, weights, left_weight, places, lengths, *stored, marks, sizes, counts),
        *(k, costs, _WHOLE * left_cost[0], read),
    )
    if holders.size == k or read[LISTS] < 0:
        # What is best of all, or damage.
        return holders, np.full(holders.size, left_weight[0], np.int32)
    n_met = 0
    noting, is_open = True, True
    kth, boosted = np.int64(least), np.int64(0)
    candidates = met[:0]
    at, until = 0, _spent(left_cost, 0, _FIRST * left_cost[0])
    if kth > 0:
        until = max(until, min(total, _closed(kth, left_weight, 0)))
    while at < total:
        noting = noting and left_entries[0] - left_entries[until] <= FEW * counts.size
        if noting:
            n_met = note_lists(places, lengths, weights, at, until, counts, met, n_met)
        if n_met < 0 or not (noting or merge_lists(places, lengths, weights, at, until, counts)):
            read[LISTS] = DAMAGED
            noting = is_open = False
            break
        at = until
        read[LISTS], read[ENTRIES] = at, left_entries[0] - left_entries[at]
        # Counts of some sets lie apart: each costs what a few entries of a list do.
        looking = 4 * costs[1] * (n_met if is_open else candidates.size)
        if is_open and not noting:
            looking = costs[4] * counts.size
        rest = left_cost[at]
        little = _LITTLE if is_open else _SOME
        until = _spent(left_cost, at, max(_LOOKS * looking, little * (left_cost[0] - rest), little * rest))
        if rest < _LOOKS * looking or until == total:
            until = total
            continue
        read[DECISIONS] += 1
        left = left_weight[at]
        seen = left_weight[0] - left
        close = _close(groups, at, marks)
        if is_open:
            some = met[:n_met]
            floor = np.int32(kth)
            kth = np.int64(_kth_largest_of(some, counts, k, floor) if noting else _kth_largest(counts, k, floor))
            if 0 < kth <= left:
                closing = _closing(kth, seen, left_weight, at)
                # To know sooner what the best sets hold saves the lists after that, at most.
                budget = _EARLY * left_cost[closing] - (0.0 if noting else looking)
                tries = int(budget / max(1.0, costs[2]))
                best = met[:0]
                if tries >= k and seen >= 2 * boosted:
                    boosted = seen
                    half = max(np.int64(1), kth >> 1)
                    # Where more sets may be read in the end than lists are worth, none is read early.
                    worth = np.int64(min(float(counts.size), rest / max(1.0, costs[2])))
                    if noting:
                        some, rivals = met[:n_met], _count_of(met[:n_met], counts, half)
                    else:
                        rivals = _at_least(counts, half, np.uint64(worth), met)
                        some = met[:rivals]
                    if rivals <= worth:
                        best = _leaders(some, counts, kth, np.empty(min(_TRIES * k, tries), np.int32))
                        dear = min(budget / k, rest / rivals)
                        best = _affordable(best, groups, at, *stored, close, costs, budget, dear)
                if best.size >= k:
                    kth = max(
                        kth,
                        _boost(
                            *(groups, weights, left_weight, at, *stored, marks, best, counts, k, read),
                        ),
                    )
                    until = max(until, min(total, _closed(kth, left_weight, at)))
                else:
                    until = max(until, closing)
            if kth <= left:
                continue
            if not noting:
                affordable = rest / max(1.0, costs[2])
                most = min(float(counts.size), affordable) if kth < left_weight[0] else float(counts.size)
                n = _at_least(counts, max(kth - left, 1), np.uint64(most), met)
                if n > most:
                    continue
                some = met[:n]
            is_open = False
            candidates = some.copy()
        else:
            kth = np.int64(_kth_largest_of(candidates, counts, k, np.int32(kth)))
        priced = (groups, left_weight, at, *stored, kth, k, close, costs)
        if _cost_of_sets(candidates, counts, sizes, *priced, _GLANCED) > _HOPELESS * rest:
            continue
        tried = 0.0
        if candidates.size > _TRIED * _TRIED:
            tried = _cost_by_trial(
                *(candidates, counts, sizes, groups, weights, left_weight, at, *stored, marks, kth, costs, read),
            )
            if tried > _CHEAPER * rest:
                continue
        candidates = candidates[: _alive(candidates, counts, sizes, left, kth, candidates)]
        cost = max(tried, _cost_of_sets(candidates, counts, sizes, *priced, _PRICED))
        if cost <= _CHEAPER * rest:
            found, overlaps = _finish(
                *(groups, weights, left_weight, at, *stored),
                *(marks, counts, candidates, kth, k, costs, max(_WRONG * cost, _GIVE_UP * rest), rest, read),
            )
            if found.size or read[LISTS] < 0 or not candidates.size:
                _forget(counts, met[:n_met], noting)
                return found, overlaps
            # The lists tell as well, and by now sooner.
            until = max(until, _spent(left_cost, at, _AGAIN * rest))
    if is_open and not noting:
        return take_largest(counts, met, k)
    some = met[:n_met] if is_open else candidates
    found, overlaps = largest(some, counts[some], k)
    _forget(counts, met[:n_met], noting)
    return found, overlaps


@njit(nogil=True, cache=True)
def _spent(left_cost, at, cost):
    """The first place after ``at`` by which so much has been spent since."""
    low, high = at, left_cost.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if left_cost[at] - left_cost[middle] < cost:
            low = middle
        else:
            high = middle
    return high


@njit(inline="always", cache=True)
def _forget(counts, met, noted):
    """Counts are 0 again: those of the sets met if they were noted, else all."""
    if noted:
        for s in met:
            counts[s] = 0
    else:
        counts[:] = 0


@njit(nogil=True, cache=True)
def look_at(counts, room):
    """Looks at all sets as a decision does."""
    return _kth_largest(counts, 10, np.int32(0)) + _at_least(counts, 1, np.uint64(counts.size), room)


@njit(nogil=True, cache=True)
def overlaps_of(numbers, groups, weights, set_bounds, set_files, marks, enough, out):
    """The overlap of each of some sets, exact if it is ``enough``; False of damage."""
    left_weight = _left(weights.astype(np.int64))
    marked = _mark(groups, weights, 0, marks, numbers.size)
    whole = True
    for j in range(numbers.size):
        out[j], _, _ = _probe(
            *(numbers[j], groups, weights, left_weight, 0, marks, marked, enough),
            *(set_bounds, set_files),
        )
        whole = whole and out[j] >= 0
    if marked:
        _unmark(groups, 0, marks)
    return whole


@njit(nogil=True, cache=True)
def probe_sets(groups, weights, places, lengths, set_bounds, set_files, seen, k, read):
    """ProbeSet-D: read every set when it is first met, unless the position filter rules it out (spec 3.4)."""
    overlaps, sets = np.empty(k, np.int64), np.empty(k, np.int32)
    used = 0
    met = np.empty(seen.size, np.int32)
    n_met = 0
    left_weight = _left(weights.astype(np.int64))
    nothing = np.empty(0, np.int32)
    marks = (nothing, np.empty(0, np.uint64), np.empty(0, np.int64), nothing, nothing)
    for i in range(groups.size):
        if read[LISTS] < 0 or (used == k and overlaps[0] > left_weight[i]):
            break
        left = left_weight[i + 1]
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
            enough = overlaps[0] - weights[i] if used == k else 0
            more = 0
            if left:
                more, _, _ = _probe(
                    *(s, groups, weights, left_weight, i + 1, marks, False, enough),
                    *(set_bounds, set_files),
                )
            if more < 0:
                read[LISTS] = DAMAGED
                break
            read[SETS] += 1
            used = _push(overlaps, sets, used, weights[i] + more, s)
    for j in range(n_met):
        seen[met[j]] = 0
    return sets[:used], overlaps[:used].astype(np.int32)


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def gather(places, sizes, out):
    """Hashes of all sketches one after the other."""
    at = 0
    for key in range(places.size):
        for j in range(sizes[key]):
            out[at] = _u64(places[key], j)
            at += 1


@njit(nogil=True, cache=True)
def number(hashes, known, directory, shift, out):
    """The place of every hash among all known ones, which are in order.

    Those with the same highest bits lie between two neighbours of ``directory``.
    """
    for i in range(hashes.size):
        h = hashes[i]
        bucket = np.int64(h >> shift)
        low, high = directory[bucket] - 1, directory[bucket + 1]
        while high - low > 1:
            middle = (low + high) >> 1
            if known[middle] <= h:
                low = middle
            else:
                high = middle
        out[i] = low


@njit(nogil=True, cache=True)
def quadrants(side_of, limit, keys, numbers, starts, pair_starts, sides, rows, same, other):
    """How often the numeric columns of some keys are on the same side of their cut as a query, and how often not.

    ``side_of`` says of every numbered hash whether the query is above its cut there (1), below (2) or neither; none
    after the number ``limit`` is its. ``keys`` are the sketches to look at, ``numbers`` the hashes of all sketches,
    ``rows`` says which rows of words are the sides above and below. Fills ``same`` and ``other`` for every pair of
    these keys, one after the other.
    """
    mine_above, mine_below, looked = np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.zeros(64, np.uint8)
    place = 0
    for key in keys:
        mine = numbers[starts[key] : starts[key + 1]]
        words = (mine.size + 63) >> 6
        if words > mine_above.size:
            mine_above, mine_below = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
            looked = np.zeros(64 * words, np.uint8)
        n = _up_to(mine, limit)
        used = (n + 63) >> 6
        for i in range(n):
            # Unsigned: an index that could be negative is looked at twice.
            looked[np.uint64(i)] = side_of[np.uint64(mine[np.uint64(i)])]
        looked[n : 64 * used] = 0
        eight = looked.view(np.uint64)
        for w in range(used):
            up = down = np.uint64(0)
            for b in range(8):
                sides_of_eight = eight[np.uint64(8 * w + b)]
                up |= _low_bits(sides_of_eight) << np.uint64(8 * b)
                down |= _low_bits(sides_of_eight >> np.uint64(1)) << np.uint64(8 * b)
            mine_above[w], mine_below[w] = up, down
        for pair in range(pair_starts[key], pair_starts[key + 1]):
            agree = np.int64(0)
            differ = np.int64(0)
            for w in range(used):
                up = _u64(sides[pair], rows[0] * words + w)
                down = _u64(sides[pair], rows[1] * words + w)
                if rows[2]:
                    down &= ~up
                agree += _ones((mine_above[w] & up) | (mine_below[w] & down))
                differ += _ones((mine_above[w] & down) | (mine_below[w] & up))
            same[place] = agree
            other[place] = differ
            place += 1


@njit(nogil=True, inline="always", cache=True)
def _low_bits(eight):
    """The lowest bits of eight bytes, side by side: multiplying moves each to its place in the uppermost byte."""
    return ((eight & np.uint64(0x0101010101010101)) * np.uint64(0x0102040810204080)) >> np.uint64(56)


@njit(nogil=True, inline="always", cache=True)
def _up_to(numbers, limit):
    """How many of some numbers in order are not larger than one."""
    low, high = np.int64(-1), np.int64(numbers.size)
    while high - low > 1:
        middle = (low + high) >> 1
        if numbers[middle] <= limit:
            low = middle
        else:
            high = middle
    return high
