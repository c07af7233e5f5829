"""What a file is: by the end of its name, checked against its first bytes, because names lie."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lakescope.sources.io.encoding import BOMS

#: Bytes of the head that are looked at.
HEAD_BYTES = 512

#: Format by the end of the name.
EXTENSIONS = {
    **dict.fromkeys(["csv", "tsv", "tab", "txt", "psv", "dat"], "csv"),
    **dict.fromkeys(["json", "geojson"], "json"),
    **dict.fromkeys(["jsonl", "ndjson"], "jsonl"),
    **dict.fromkeys(["parquet", "pq"], "parquet"),
    **dict.fromkeys(["arrow", "feather", "ipc"], "arrow"),
    "orc": "orc",
    **dict.fromkeys(["xlsx", "xls", "xlsm", "xlsb", "ods"], "excel"),
    **dict.fromkeys(["sqlite", "sqlite3", "db"], "sqlite"),
    "duckdb": "duckdb",
}
#: Compression by the end of the name, called as pyarrow calls it.
COMPRESSIONS = {"gz": "gzip", "gzip": "gzip", "bz2": "bz2", "zst": "zstd", "zstd": "zstd"}
#: Formats whose files can together be one table.
JOINABLE = frozenset(["csv", "json", "jsonl", "parquet", "arrow", "orc"])

#: Extensions of text that anything may hide behind: the content decides alone.
VAGUE = frozenset(["dat", "db", "txt"])
_DOCUMENTS = frozenset(
    "md rst pdf png jpg jpeg gif svg webp ico bmp tif tiff html htm css js ts py pyc ipynb r rmd java scala c cpp h go "
    "rs sh bat ps1 sql yml yaml toml ini cfg conf properties log xml xsd doc docx ppt pptx odt odp rtf tex bib mp3 mp4 "
    "wav avi mov webm woff woff2 ttf otf exe dll so jar whl lock crc md5 sha256 sig license gitignore".split()
)
#: Names of documents, unless the ending is one of data: authors.txt is a document, authors.csv is a table.
_DOCUMENT_NAMES = re.compile(
    r"(readme|licen[sc]e|copying|changelog|changes|authors|notice|contributing|todo|requirements|robots|makefile"
    r"|dockerfile|version|install)([._-].*)?(\.txt)?|.*\.(db|sqlite|sqlite3|duckdb)[.-](wal|shm|journal)",
    re.IGNORECASE | re.DOTALL,
)
_ARCHIVES = frozenset(["zip", "tar", "tgz", "tbz2", "7z", "rar", "xz", "lz4", "lzma", "z", "br", "snappy", "lzo"])
_OTHER_DATA = frozenset(
    "avro h5 hdf5 hdf mat npy npz pkl pickle rds rda rdata sas7bdat xpt dta sav por shp dbf mdb accdb nc grib fits "
    "msgpack bson protobuf pb thrift lance vortex".split()
)
_DATA = frozenset(EXTENSIONS) | _ARCHIVES | _OTHER_DATA
_COMPRESSED = [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")]
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
_MAGIC = [
    (0, b"PAR1", "parquet"),
    (0, b"PARE", "parquet"),
    (0, b"ARROW1", "arrow"),
    (0, b"FEA1", "arrow"),
    (0, b"\xff\xff\xff\xff", "arrow"),
    (0, b"ORC", "orc"),
    (0, b"SQLite format 3\0", "sqlite"),
    (8, b"DUCK", "duckdb"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"PK\x05\x06", "zip"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "excel"),
]
_LFS_POINTER = b"version https://git-lfs"
_MARKUP = re.compile(rb"\s*(<!doctype html|<html|<\?xml|<table)", re.IGNORECASE)
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[\[{])")

Kind = Literal["table", "document", "unknown", "pointer"]


@dataclass(frozen=True, slots=True)
class Name:
    """What the name of a file promises: the end of the name, the format and the compression it stands for."""

    extension: str
    format: str | None
    compression: str | None
    document: bool

    @classmethod
    def of(cls, name: str) -> Name:
        """Read a file's name."""
        stem, _, last = name.lower().rpartition(".")
        compression = COMPRESSIONS.get(last) if stem else None
        if compression:
            stem, _, last = stem.rpartition(".")
        extension = last if stem else ""
        data = extension in _DATA and extension != "txt"
        document = extension in _DOCUMENTS or (not data and _DOCUMENT_NAMES.fullmatch(name) is not None)
        return cls(extension, EXTENSIONS.get(extension), compression, document)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a file is. ``mismatch`` says in words how its content differs from its name, if it does."""

    kind: Kind
    format: str = ""
    compression: str | None = None
    mismatch: str = ""


def sniff(head: bytes) -> tuple[str | None, str | None]:
    """Format and compression that the first bytes prove; ``zip`` may be a workbook or any archive."""
    for magic, compression in _COMPRESSED:
        if head.startswith(magic):
            return None, compression
    if _BZIP2.match(head):
        return None, "bz2"
    if not _controls(head[:64]):
        return None, None  # 'ORCID,name' is not an ORC file
    for offset, magic, name in _MAGIC:
        if head[offset : offset + len(magic)] == magic:
            return name, None
    return None, None


def is_text(head: bytes) -> bool:
    """Whether these bytes look like text in some encoding: hardly any control characters, or wide characters."""
    if head.startswith(tuple(BOMS)):
        return True
    wide = min(head[::2].count(0), head[1::2].count(0)) == 0 and head.count(0) > 0.4 * len(head)
    return wide or _controls(head) <= 0.02 * len(head)


def _controls(head: bytes) -> int:
    return sum(byte < 9 or (13 < byte < 32 and byte != 27) for byte in head)


def judge(name: Name, head: bytes) -> Judgement:
    """Decide what a file is from its name and its first bytes, which are of the unpacked file if it is compressed."""
    if head.startswith(_LFS_POINTER):
        return Judgement("pointer")
    real, _ = sniff(head)
    if real is not None:
        expected = name.format is None or name.extension in VAGUE or name.format == real
        return Judgement("table", real, None, "" if expected else f"{_ARTICLE[real]} file")
    if name.format is None:
        return _judge_unnamed(name, head)
    if name.extension in VAGUE and head and not is_text(head):
        return Judgement("unknown")
    if name.extension == "db" and head:
        return Judgement("table", "csv", None, "text")
    if name.format == "excel" and head and is_text(head):
        return Judgement("document") if _MARKUP.match(head) else Judgement("table", "csv", None, "text")
    return Judgement("table", name.format)


def _judge_unnamed(name: Name, head: bytes) -> Judgement:
    if name.extension in _ARCHIVES or name.extension in _OTHER_DATA or not is_text(head):
        return Judgement("unknown")
    if _MARKUP.match(head):
        return Judgement("document")
    return Judgement("table", "json" if _JSON.match(head) else "csv")


_ARTICLE = {
    "parquet": "a Parquet",
    "arrow": "an Arrow",
    "orc": "an ORC",
    "sqlite": "an SQLite",
    "duckdb": "a DuckDB",
    "zip": "a zip",
    "excel": "an Excel",
}


def why_unknown(name: Name, judgement: Judgement) -> str:
    """What to tell about a file whose format is not known."""
    if name.extension in _ARCHIVES or judgement.format == "zip":
        return "an archive or a compression that is not read: unpack it first"
    if name.extension in _OTHER_DATA:
        return f"{name.extension} files are not read: convert it to Parquet or CSV"
    return "binary data of unknown format"
