"""Cells of CSV that a spreadsheet would take for formulas (CWE-1236): which they are, and an apostrophe before them.

The patterns mean the same to Python and to Arrow: every character they name is spelt out.
"""

from __future__ import annotations

import re

#: What begins a formula (OWASP), also in the wide and small forms that East Asian spreadsheets take for the same signs,
#: or ends the cell before it.
_SIGNS = "=+\\-@|%" + "＝＋－＠｜％" + "﹦﹢﹣﹫﹪" + "−" + "\\t\\r\\n\\x00"
#: What may stand before it unseen: controls, spaces, marks of no width or of direction, a byte order mark.
_UNSEEN = (
    "\\x00-\\x20\\x7f-\\x9f\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
)
FORMULA = f"^[{_UNSEEN}]*[{_SIGNS}]|^[\\t\\r\\n\\x00]"
#: A plain number, which no spreadsheet computes.
NUMBER = "^[ ]*[+\\-−]?[0-9][0-9.,]*([eE][+\\-]?[0-9]+)?%?[ ]*$"

_FORMULA, _NUMBER = re.compile(FORMULA), re.compile(NUMBER)


def guarded_text(text: str) -> str:
    """A text with an apostrophe before what would be a formula."""
    return f"'{text}" if _FORMULA.search(text) and not _NUMBER.fullmatch(text) else text
