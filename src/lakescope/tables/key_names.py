"""How much the name of a column says about the table it refers to: ``cust_no``, ``CustomerId``, ``o_custkey``.

Names are cut into words; words that say "this is a key" (id, key, no, ...) say nothing about whose. What is left is
compared with the words of the other table and of its key, tolerant of plurals and abbreviations (Chen et al. 2014).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

#: Words that mark a key without saying whose.
_MARKS = frozenset(
    (
        "id ids key keys no nr num number code cd fk pk sk ref uid uuid guid pid oid rid seq idx index kod kode clave "
        "nummer nro"
    ).split()
)
_FIRST_MARKS = frozenset("id fk pk key ref".split())
#: Words that say nothing at all.
_EMPTY = frozenset("col column field attr attribute var val value link unnamed".split())
#: Words around the name of a table that say what kind of table it is.
_KINDS = frozenset("dim fact tbl tab table t vw view ref lookup lkp master data dbo public main".split())
#: Endings that may be glued to a word: custkey, partno, userid.
_GLUED = ("keyid", "key", "code", "guid", "uuid", "num", "id", "no", "nr")
#: Words that end so without being a key.
_WHOLE = frozenset(
    "paid valid invalid void avoid grid solid fluid liquid rapid hybrid covid acid braid turkey monkey".split()
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+|\d+")


@lru_cache(maxsize=1 << 16)
def words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: OrderID, order_id and ORDER-ID are the same two."""
    return tuple(word.lower() for word in _WORD.findall(name))


@lru_cache(maxsize=1 << 16)
def telling(name: str, prefix: str | None = None) -> tuple[str, ...]:
    """The words of a column's name that may say what it refers to; not a first one that all of its table share."""
    kept = []
    found = words(name)
    for word in found[1:] if len(found) > 1 and found[0] == prefix else found:
        if word in _MARKS or word in _EMPTY or len(word) == 1 or word.isdigit():
            continue
        ending = _glued(word)
        kept.append(_singular(word[: -len(ending)] if ending else word))
    return tuple(kept)


def _glued(word: str) -> str:
    """The ending of a word that marks a key, if it has one."""
    if word in _WHOLE:
        return ""
    return next((ending for ending in _GLUED if word.endswith(ending) and len(word) > len(ending) + 1), "")


@lru_cache(maxsize=1 << 16)
def marks_key(name: str) -> bool:
    """Whether a name says that it is a key: by its last word or the end of it, or by its first (``id_city``)."""
    found = words(name)
    if not found:
        return False
    return found[-1] in _MARKS or found[0] in _FIRST_MARKS or _glued(found[-1]) in ("key", "keyid", "id", "code")


@lru_cache(maxsize=1 << 16)
def table_words(table: str) -> tuple[str, ...]:
    """The words of a table's own name: the last part of its path or database, without extension and kind."""
    own = table.rsplit("::", 1)[-1].rsplit("/", 1)[-1]
    own = re.sub(
        r"(\.(csv|tsv|txt|parquet|json|jsonl|ndjson|arrow|feather|orc|xlsx?|gz|bz2|zst))+$", "", own, flags=re.I
    )
    own = own.rsplit(".", 1)[-1]
    found = tuple(_singular(word) for word in words(own))
    kept = tuple(word for word in found if word not in _KINDS)
    return kept or found


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=1 << 16)
def alike(a: str, b: str) -> float:
    """How alike two words are: 1 if equal, less if one abbreviates the other."""
    if a == b:
        return 1.0
    short, long = sorted((a, b), key=len)
    if len(short) < 2 or short[0] != long[0]:
        return 0.0
    if long.startswith(short):
        return 0.9 if len(short) >= 4 else 0.8 if len(short) == 3 else 0.5
    if len(short) >= 3 and _abbreviates(short, long):
        return 0.7
    common = _common_prefix(short, long)
    return 0.7 if common >= 4 and common >= 0.7 * len(short) else 0.0


def _abbreviates(short: str, long: str) -> bool:
    """Whether the letters of a word occur in order in a longer one."""
    rest = iter(long)
    return all(letter in rest for letter in short)


def _common_prefix(a: str, b: str) -> int:
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def similarity(mine: Sequence[str], theirs: Sequence[str]) -> float:
    """The share of the words that find one alike on the other side, both ways, the shorter name's more."""
    if not mine or not theirs:
        return 0.0
    there = sum(max(alike(word, other) for other in theirs) for word in mine) / len(mine)
    back = sum(max(alike(word, other) for other in mine) for word in theirs) / len(theirs)
    initials = "".join(word[0] for word in theirs)
    if len(theirs) > 1 and "".join(mine) == initials:
        return 0.8
    if "".join(mine) == "".join(theirs):
        return 1.0
    return 0.35 * max(there, back) + 0.65 * (there + back) / 2


def same_key(one: str, other: str) -> bool:
    """Whether two names say that they are keys of the same thing: ``customer_id`` and ``CustomerNo``, not ``id``."""
    return marks_key(one) and marks_key(other) and telling(one) == telling(other) != ()


def common_prefix_word(columns: Sequence[str]) -> str | None:
    """The first word that most columns of a table share (``o_orderkey, o_custkey``): it belongs to the table."""
    if len(columns) < 3:
        return None
    firsts = Counter(found[0] for found in map(words, columns) if len(found) > 1)
    for word, count in firsts.most_common(1):
        if count >= 0.8 * len(columns):
            return word
    return None
