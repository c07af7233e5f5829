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
#: Where characters that are made of two may stand: not among ideographs, Hangul syllables (made of vowels and tails),
#: surrogates and private ones.
_COMPOSED = (range(0x3400), range(0xA000, 0xAC00), range(0xF900, 0x20000), range(0x2F800, 0x30000))


@functools.cache
def character_table() -> npt.NDArray[np.uint8]:
    """One byte for each code point below 65,536; letters without case count as lower case."""
    table = np.zeros(_SIZE, np.uint8)
    seconds = _second_halves()
    for point in range(_SIZE):
        char = chr(point)
        if char.isalpha():
            table[point] = UPPER if char.isupper() else LOWER
        elif char.isdigit():
            table[point] = DIGIT
        if point not in seconds and unicodedata.is_normalized("NFC", char) and not unicodedata.combining(char):
            table[point] |= STABLE
    table[0xD800:0xE000] = 0
    return table


def _second_halves() -> set[int]:
    """Characters that may fuse with the one before them."""
    fusing = set(_HANGUL_VOWELS_AND_TAILS)
    for point in itertools.chain(*_COMPOSED):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            fusing.add(int(parts[1], 16))
    return fusing
