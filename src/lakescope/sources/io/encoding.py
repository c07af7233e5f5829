"""How the bytes of a text file become characters, judged from its head.

UTF-8 unless proven otherwise. For the rest, guessers made for web pages fail on lakes, where a file of a million ASCII
cells holds three accents: so each candidate is judged by whether the characters it yields fit the letters next to them
(an upper-case Z with caron inside a lower-case word does not, nor does a Cyrillic letter between Latin ones, nor a
word of accents only).
"""

from __future__ import annotations

import codecs
import unicodedata
from dataclasses import dataclass

#: Byte order marks and what they announce; that of UTF-16 is the beginning of that of UTF-32.
BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
#: In order of preference: an earlier one wins a draw.
_CANDIDATES = ("cp1252", "mac_roman", "cp1250", "cp1251", "koi8_r", "cp1253", "shift_jis", "gb18030", "big5", "euc_kr")
_MULTIBYTE = ("shift_jis", "gb18030", "big5", "euc_kr")


@dataclass(frozen=True, slots=True)
class EncodingTuning:
    """How much is looked at to tell an encoding."""

    #: Characters beyond ASCII that an encoding of several bytes must have to be believed: any few stray bytes make some
    #: ideograph. Not measured: a guess.
    multibyte_least: int = 16
    #: Bytes of lines that are not UTF-8 that are looked at. Not measured: a bound on time.
    evidence: int = 4096


ENCODING = EncodingTuning()

_PUNCTUATION = (
    "\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u2022\u00a0\u00b0\u00a3\u20ac\u00ae\u00a9\u2122\u00bd\u00a7\u00b2"
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How bytes become text: ``transcode`` names a codec that must be undone before tokenising (UTF-16, UTF-32)."""

    bom: int = 0
    transcode: str | None = None
    fallback: str = "cp1252"


def detect_encoding(head: bytes) -> Encoding:
    """Byte order mark, wide characters without one, or the best guess for cells that are not UTF-8."""
    bom, wide = detect_wide(head)
    if bom or wide:
        return Encoding(bom, wide)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=False)
    except UnicodeDecodeError:
        return Encoding(fallback=_guess(head))
    return Encoding()


def detect_wide(head: bytes) -> tuple[int, str | None]:
    """Length of the byte order mark, and the codec if characters are wide (UTF-16, UTF-32)."""
    for bom, name in BOMS.items():
        if head.startswith(bom):
            return len(bom), None if name == "utf-8" else name
    if len(head) >= 4 and b"\0" in head:
        even, odd = head[0::2].count(0), head[1::2].count(0)
        half = len(head) / 2
        if odd > 0.4 * half and even < 0.1 * half:
            return 0, "utf-16-le"
        if even > 0.4 * half and odd < 0.1 * half:
            return 0, "utf-16-be"
    return 0, None


def _guess(head: bytes) -> str:
    evidence = b"\n".join(line for line in head.splitlines() if not is_utf8(line))[: ENCODING.evidence]
    return max(_CANDIDATES, key=lambda name: (_fitness(evidence, name), -_CANDIDATES.index(name)))


def is_utf8(line: bytes) -> bool:
    """Whether a line can be read as UTF-8."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _fitness(evidence: bytes, encoding: str) -> float:
    """Mean judgement of the non-ASCII characters an encoding yields."""
    text = " " + evidence.decode(encoding, "replace") + " "
    judged = [_judge(text[i - 1], char, text[i + 1]) for i, char in enumerate(text) if ord(char) > 127]
    if encoding in _MULTIBYTE and len(judged) < ENCODING.multibyte_least:
        # Any few stray bytes make some ideograph.
        return -1.0
    return sum(judged) / len(judged) if judged else -1.0


def _judge(before: str, char: str, after: str) -> float:
    if char in _PUNCTUATION:
        return 0.5
    if not char.isalpha():
        return -1.0
    neighbours = [near for near in (before, after) if near.isalpha()]
    script = _script(char)
    if any(_script(near) != script for near in neighbours):
        return -1.0
    if script == "LATIN" and any(ord(near) > 127 for near in neighbours):
        # Accents seldom stand side by side.
        return -0.5
    if (before.islower() and char.isupper()) or (char.islower() and after.isupper()):
        return -1.0
    return 1.0 if neighbours else 0.2


def _script(char: str) -> str:
    script = unicodedata.name(char, "?").split(" ")[0]
    return "JAPANESE" if script in ("CJK", "HIRAGANA", "KATAKANA") else script
