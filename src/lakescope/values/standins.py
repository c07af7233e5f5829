"""Texts that people write where there is no value: "unknown", 999, 1900-01-01.

Unlike the null markers of :mod:`lakescope.values.canonical` these may be meant, so nothing is ever made null by them;
who knows the rest of a column decides whether one is suspicious there.
"""

from __future__ import annotations

import re

_WORDS = frozenset(
    (
        "unknown;not known;unspecified;not specified;not available;not applicable;not given;not provided;no data;"
        "no value;none given;missing;undefined;tbd;to be determined;to be announced;tba;?;??;???;-;--;---;.;..;"
        "xxx;xxxx;unbekannt;inconnu;desconocido;sconosciuto;onbekend;empty;blank;dummy;default"
    ).split(";")
)
_DAYS = ("1900-01-01", "1899-12-30", "1899-12-31", "1970-01-01", "1753-01-01", "0001-01-01", "9999-12-31", "2999-12-31")
#: Numbers that stand for nothing: nines, and negative ones, ones and eights.
_NUMBER = re.compile(r"-?9{2,}(\.9+)?|-1|-9|-8{2,}|-7{2,}")
#: Codes of one digit, or of all of them in order.
_CODE = re.compile(r"(\d)\1{3,}|0123456789|123456789|12345|1234")


def is_word_for_nothing(text: str) -> bool:
    """A word for "no value", in any case."""
    return text.lower() in _WORDS


def is_day_for_nothing(text: str) -> bool:
    """A day that systems write for none; only telling where it is the first or last of its column."""
    return text[:10] in _DAYS


def is_number_for_nothing(text: str) -> bool:
    """A number such as -1 or 999; only telling where it lies beyond all others of its column."""
    return _NUMBER.fullmatch(text) is not None


def is_code_for_nothing(text: str) -> bool:
    """A code such as 00000 or 12345."""
    return _CODE.fullmatch(text) is not None
