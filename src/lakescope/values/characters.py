"""What the kernels must know of single characters: letter case, digits, and whether NFC can touch them."""

from __future__ import annotations

import functools
import itertools
import unicodedata

import numpy as np
import numpy.typing as npt

#: Class of a character, in the low two bits.
OTHER, UPPER, LOWER, DIGIT = range(4)
#: Bit of characters that NFC leaves alone whatever stands beside them.
STABLE = 4

_SIZE = 65536
_HANGUL_VOWELS_AND_TAILS = range(0x1160, 0x1200)
#: Ideographs and Hangul syllables: NFC leaves them alone.
_WHOLE = (range(0x3400, 0xA000), range(0xAC00, 0xD7A4))
#: Where characters that are made of two may stand: not among ideographs, Hangul syllables (made of vowels and tails),
#: surrogates and private ones.
_COMPOSED = (range(0x3400), range(0xA000, 0xAC00), range(0xF900, 0x20000), range(0x2F800, 0x30000))


@functools.cache
def character_table() -> npt.NDArray[np.uint8]:
    """One byte for each code point below 65,536; letters without case count as lower case."""
    chars = np.arange(_SIZE, dtype=np.uint32).view("U1")
    letters = np.where(np.strings.isupper(chars), UPPER, LOWER)
    table = np.where(np.strings.isalpha(chars), letters, np.where(np.strings.isdigit(chars), DIGIT, OTHER))
    stable = np.ones(_SIZE, np.bool_)
    stable[list(_second_halves())] = False
    looked_at = np.ones(_SIZE, np.bool_)
    for whole in _WHOLE:
        looked_at[whole.start : whole.stop] = False
    for point in np.flatnonzero(looked_at & stable).tolist():
        char = chr(point)
        stable[point] = unicodedata.is_normalized("NFC", char) and not unicodedata.combining(char)
    table[stable] |= STABLE
    table[0xD800:0xE000] = 0
    return table.astype(np.uint8)


def _second_halves() -> set[int]:
    """Characters of the table that may fuse with the one before them."""
    fusing = set(_HANGUL_VOWELS_AND_TAILS)
    for point in itertools.chain(*_COMPOSED):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            fusing.add(int(parts[1], 16))
    return {point for point in fusing if point < _SIZE}
