"""Headers as texts: their normal forms, which of them mean nothing, and how two of them differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

#: How a header that was found relates to the true one; the classes of the thesis' error analysis (3.8).
Match = Literal["exact", "spacing", "word form", "shorter form", "granularity", "synonym", "incorrect"]
MATCHES: tuple[Match, ...] = (
    *("exact", "spacing", "word form", "shorter form", "granularity", "synonym"),
    "incorrect",
)

_SPACE = re.compile(r"\s+")
_MARKS = str.maketrans("", "", ".;:!?,")
_WORD = re.compile(r"[^\W_]+")
_ENDINGS = (
    ("ies", "y"),
    ("sses", "ss"),
    ("ches", "ch"),
    ("xes", "x"),
    ("ing", ""),
    ("ed", ""),
    ("ss", "ss"),
    ("s", ""),
)
_NUMBERED = re.compile(r"(.+)_(\d+)")
#: Words that stand for each other in headers.
_SYNONYMS = (
    {"#", "no", "nr", "num", "number", "rank", "rk", "pos", "position", "place"},
    {"country", "nation", "nationality"},
    {"location", "venue", "place", "site", "city", "town", "stadium", "arena", "ground"},
    {"team", "club", "side"},
    {"name", "title"},
    {"result", "outcome", "score"},
    {"person", "name", "player", "athlete"},
    {"notes", "note", "comments", "comment", "remarks", "remark"},
    {"points", "pts", "score"},
    {"year", "season", "date"},
    {"film", "movie"},
    {"amount", "total", "sum"},
    {"sex", "gender"},
    {"type", "kind", "category", "class"},
    {"price", "cost"},
    {"phone", "telephone"},
    {"company", "firm", "organisation", "organization"},
    {"id", "identifier", "key", "code"},
)


def normalised(header: str) -> str:
    """A header as it is compared: trimmed, inner white space single, lower case (3.3); nothing else is changed."""
    return _SPACE.sub(" ", header).strip().lower()


def schema_form(header: str) -> str:
    """A header as it is looked up in a corpus of schemata: besides, without the marks ``. ; : ! ? ,`` (3.3)."""
    return _SPACE.sub(" ", header.translate(_MARKS)).strip().lower()


def as_written(names: Sequence[str]) -> list[str]:
    """The headers of a table before the reader numbered those that repeat: ``total, total_2`` are two of one name."""
    given = set(names)
    found = []
    for name in names:
        numbered = _NUMBERED.fullmatch(name)
        found.append(numbered[1] if numbered and numbered[1] in given else name)
    return found


def match(found: str, true: str) -> Match:
    """How a header relates to the true one, the closest class that fits."""
    a, b = normalised(found), normalised(true)
    if a == b:
        return "exact"
    x, y = _WORD.findall(a), _WORD.findall(b)
    if "".join(x) == "".join(y) and x:
        return "spacing"
    x, y = [_stem(word) for word in x], [_stem(word) for word in y]
    if x == y and x:
        return "word form"
    if _abbreviates(x, y) or _abbreviates(y, x):
        return "shorter form"
    if x and y and (set(x) <= set(y) or set(y) <= set(x)):
        return "granularity"
    if any({a, *x} & group and {b, *y} & group for group in _SYNONYMS):
        return "synonym"
    return "incorrect"


def _stem(word: str) -> str:
    """A word without the ending that its number or form adds; rough, as it need only tell forms of one word."""
    for ending, kept in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + kept
    return word


def _abbreviates(short: list[str], long: list[str]) -> bool:
    """Whether words are cut-off words of others, one by one, or their initials."""
    if len(short) == 1 and len(long) > 1 and short[0] == "".join(word[0] for word in long):
        return True
    if not short or len(short) != len(long) or short == long:
        return False
    return all(a == b or (len(a) < len(b) and b[0] == a[0] and _within(a, b)) for a, b in zip(short, long, strict=True))


def _within(short: str, long: str) -> bool:
    """Whether the letters of one word occur in the other in order."""
    letters = iter(long)
    return all(letter in letters for letter in short)
