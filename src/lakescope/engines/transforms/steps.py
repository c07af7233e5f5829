"""Steps of a program: each takes a text and gives a text, or nothing where it is undefined (section 4.3).

The physical operators of the thesis are ``Split`` with ``SelectK`` in one step, and ``Substring`` as ``Slice`` and
``Case``. More are here where they pay: runs of digits or letters, numbers with leading zeros, months, initials, accents
and punctuation. An empty text is the same as none: what a step makes of it never joins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lakescope.values.alphabet import (
    MONTHS,
    TO_BARE,
    TO_LARGE,
    TO_SMALL,
    WITHOUT_DIGITS,
    WITHOUT_PUNCTUATION,
)

#: Runs of one kind of character, as a pattern that Python, Java, RE2 and Rust read alike.
RUNS = {"digits": "[0-9]+", "word": r"[^ -/:-@\[-`{-~]+", "capitalised": r"[A-Z][^A-Z -/:-@\[-`{-~]*"}
#: The first letter of every word: what stays of the first group.
INITIALS = "([^ ])[^ ]* *"

_PATTERNS = {kind: re.compile(pattern) for kind, pattern in RUNS.items()}
_INITIALS = re.compile(INITIALS)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def ordinal(index: int, what: str) -> str:
    """``0`` as the first, ``-1`` as the last, ``-2`` as the second last."""
    if index == -1:
        return f"the last {what}"
    place = index if index >= 0 else -index - 1
    word = _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"
    return f"the {word} {what}" if index >= 0 else f"the {word} last {what}"


@dataclass(frozen=True, slots=True)
class SplitPiece:
    """One of the pieces between separators; from the back if ``index`` is negative."""

    separator: str
    index: int

    def apply(self, text: str) -> str:
        pieces = text.split(self.separator)
        return pieces[self.index] if -len(pieces) <= self.index < len(pieces) else ""

    def words(self, of: str) -> str:
        separator = "a space" if self.separator == " " else repr(self.separator)
        if self.index == 0:
            return f"{of} before {separator}"
        if self.index == -1:
            return f"{of} after the last {separator.removeprefix('a ')}"
        return (
            f"{ordinal(self.index, 'part')} of {of} between {repr(self.separator) if separator[0] != 'a' else 'spaces'}"
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One of the runs of a kind of character."""

    kind: Literal["digits", "word", "capitalised"]
    index: int

    def apply(self, text: str) -> str:
        runs = _PATTERNS[self.kind].findall(text)
        return str(runs[self.index]) if -len(runs) <= self.index < len(runs) else ""

    def words(self, of: str) -> str:
        what = {"digits": "number", "word": "word", "capitalised": "capitalised part"}[self.kind]
        return f"{ordinal(self.index, what)} in {of}"


@dataclass(frozen=True, slots=True)
class Slice:
    """Characters from ``start`` until before ``stop``, as Python slices: negative ones count from the end."""

    start: int
    stop: int | None

    def __post_init__(self) -> None:
        if self.stop is not None and self.start < 0 <= self.stop:
            raise ValueError("a slice that starts from the end ends there, too")
        if self.stop is not None and (self.start < 0) == (self.stop < 0) and self.stop <= self.start:
            raise ValueError("a slice ends after its start")

    def apply(self, text: str) -> str:
        return text[self.start : self.stop]

    def words(self, of: str) -> str:
        start, stop = self.start, self.stop
        if start == 0 and stop is not None:
            if stop > 0:
                return f"the first {_characters(stop)} of {of}"
            return f"{of} without its last {_characters(-stop)}"
        if stop is None:
            if start < 0:
                return f"the last {_characters(-start)} of {of}"
            return f"{of} without its first {_characters(start)}"
        if start >= 0 and stop > 0:
            place = f"character {start + 1}" if stop == start + 1 else f"characters {start + 1} to {stop}"
            return f"{place} of {of}"
        return f"{of}[{start}:{stop}]"


def _characters(count: int) -> str:
    return "character" if count == 1 else f"{count} characters"


@dataclass(frozen=True, slots=True)
class Case:
    """Small letters, large letters, or a large first one."""

    kind: Literal["lower", "upper", "capital"]

    def apply(self, text: str) -> str:
        if self.kind == "capital":
            return text[:1].translate(TO_LARGE) + text[1:].translate(TO_SMALL)
        return text.translate(TO_SMALL if self.kind == "lower" else TO_LARGE)

    def words(self, of: str) -> str:
        return (
            f"{of} in {'lower case' if self.kind == 'lower' else 'upper case'}"
            if self.kind != "capital"
            else (f"{of} with a capital first letter")
        )


@dataclass(frozen=True, slots=True)
class Digits:
    """A whole number with zeros before it up to a ``width``; undefined for anything else."""

    width: int

    def apply(self, text: str) -> str:
        if not text or text.translate(WITHOUT_DIGITS):
            return ""
        return text.lstrip("0").rjust(self.width, "0")

    def words(self, of: str) -> str:
        return f"{of} without leading zeros" if self.width == 1 else f"{of} with zeros to {self.width} digits"


@dataclass(frozen=True, slots=True)
class Month:
    """A month by its number, its English name or the first three letters of it; undefined for anything else."""

    form: Literal["number", "two digits", "name", "short"]

    def apply(self, text: str) -> str:
        return MONTH_FORMS[self.form].get(text.translate(TO_SMALL), "")

    def words(self, of: str) -> str:
        form = {
            "number": "as a number",
            "two digits": "as two digits",
            "name": "as a name",
            "short": "as three letters",
        }
        return f"the month {of} {form[self.form]}"


def _month_forms() -> dict[str, dict[str, str]]:
    """For each form, what it makes of every way to write a month."""
    forms: dict[str, dict[str, str]] = {}
    for form in ("number", "two digits", "name", "short"):
        forms[form] = {}
        for number, name in enumerate(MONTHS, start=1):
            made = {"number": str(number), "two digits": f"{number:02}", "name": name, "short": name[:3]}[form]
            for written in (str(number), f"{number:02}", name.lower(), name[:3].lower()):
                forms[form][written] = made
    return forms


MONTH_FORMS = _month_forms()


@dataclass(frozen=True, slots=True)
class Initials:
    """The first letter of every word between spaces."""

    def apply(self, text: str) -> str:
        return _INITIALS.sub(r"\1", text).replace(" ", "")

    def words(self, of: str) -> str:
        return f"the initials of {of}"


@dataclass(frozen=True, slots=True)
class Drop:
    """Without spaces and punctuation."""

    def apply(self, text: str) -> str:
        return text.translate(WITHOUT_PUNCTUATION)

    def words(self, of: str) -> str:
        return f"{of} without spaces and punctuation"


@dataclass(frozen=True, slots=True)
class Unaccent:
    """Letters without their accents."""

    def apply(self, text: str) -> str:
        return text.translate(TO_BARE)

    def words(self, of: str) -> str:
        return f"{of} without accents"


Step = SplitPiece | Run | Slice | Case | Digits | Month | Initials | Drop | Unaccent

STEPS: dict[str, type[Step]] = {
    "split": SplitPiece,
    "run": Run,
    "slice": Slice,
    "case": Case,
    "digits": Digits,
    "month": Month,
    "initials": Initials,
    "drop": Drop,
    "unaccent": Unaccent,
}
