"""Characters as programs see them, the same in every system that runs them.

Systems disagree about letter case outside ASCII, about what is a letter, and about what is white space. Programs
therefore change characters by tables that are written out here (Latin, Greek and Cyrillic), which every system can
follow to the letter.
"""

from __future__ import annotations

import functools
import unicodedata

import numpy as np
import numpy.typing as npt

#: What is taken off both ends of a cell.
SPACES = "".join(chr(point) for point in range(0x3001) if chr(point).isspace())

_CASED = (range(0x41, 0x250), range(0x1E00, 0x1F00), range(0x386, 0x3CF), range(0x400, 0x530))
_PAIRS = [
    (char, char.lower())
    for block in _CASED
    for char in map(chr, block)
    if len(char.lower()) == 1 and char.lower() != char and char.lower().upper() == char
]
#: Letters that have a small form, and these, in the same order.
LARGE = "".join(large for large, _ in _PAIRS)
SMALL = "".join(small for _, small in _PAIRS)

#: Blocks of letters with accents: Latin, Greek and Cyrillic. Without, they are letters of ASCII, or of the latter two.
_ACCENTED = (range(0xC0, 0x250), range(0x1E00, 0x1F00), range(0x386, 0x3CF), range(0x400, 0x530), range(0x1F00, 0x2000))
_PLAIN = (range(0x41, 0x7B), range(0x386, 0x530))
_BARE = [
    (char, bare_char)
    for block in _ACCENTED
    for char in map(chr, block)
    if (bare_char := unicodedata.normalize("NFD", char)[0]) != char and any(ord(bare_char) in each for each in _PLAIN)
] + [("Ø", "O"), ("ø", "o"), ("Ł", "L"), ("ł", "l"), ("Đ", "D"), ("đ", "d"), ("ı", "i"), ("ς", "σ")]
#: Letters with accents, and those without in the same order.
ACCENTED = "".join(accented for accented, _ in _BARE)
BARE = "".join(bare for _, bare in _BARE)

#: What is dropped to leave letters and digits: the space, the punctuation of ASCII, and its typographic forms.
PUNCTUATION = "".join(chr(point) for point in range(0x20, 0x7F) if not chr(point).isalnum()) + "\u00a0‘’“”–—"

TO_SMALL = str.maketrans(LARGE, SMALL)
TO_LARGE = str.maketrans(SMALL, LARGE)
TO_BARE = str.maketrans(ACCENTED, BARE)
WITHOUT_PUNCTUATION = str.maketrans("", "", PUNCTUATION)
WITHOUT_DIGITS = str.maketrans("", "", "0123456789")

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


#: What a table of code points holds for those that are dropped.
DROPPED = 0xFFFF


def bare(text: str) -> str:
    """Letters and digits alone, small and without accents: what stays the same however a key is written."""
    return text.translate(TO_BARE).translate(TO_SMALL).translate(WITHOUT_PUNCTUATION)


@functools.cache
def bare_table() -> npt.NDArray[np.uint16]:
    """What :func:`bare` makes of every code point up to the last one that it changes."""
    last = max(map(ord, LARGE + ACCENTED + PUNCTUATION))
    points = [bare(chr(point)) for point in range(last + 1)]
    return np.array([ord(char) if char else DROPPED for char in points], np.uint16)
