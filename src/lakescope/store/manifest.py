"""The manifest: the one small file that says which segment files make up the index.

A reader that has read it knows every file by name, size and checksum; replacing it by one rename is what publishes a
build.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from lakescope.errors import BadRequest, IndexDamaged
from lakescope.values.canonical import VALUES_VERSION

#: Version of the directory layout and file schemas; a reader refuses any other by name.
FORMAT_VERSION = 5
MANIFEST = "manifest.json"
_MEND = "run `lakescope repair`, or build the index again"


class OtherFormat(IndexDamaged):
    """An index that another version of lakescope wrote."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One immutable file of a segment, by its path below the index."""

    path: str
    kind: str
    rows: int
    size: int
    checksum: str

    @property
    def segment(self) -> str:
        """The folder of the segment it belongs to."""
        return os.path.dirname(self.path)  # noqa: PTH120


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index consists of, at one generation."""

    generation: int
    created: str
    version: str
    sources: list[str]
    summary: dict[str, Any]
    files: list[SegmentFile] = field(default_factory=list)
    #: What was asked to be indexed, and how: what an update looks at again.
    given: dict[str, Any] = field(default_factory=dict)

    def of_kind(self, kind: str, segment: str | None = None) -> list[SegmentFile]:
        """The files of a kind: all, or those of one segment."""
        return [file for file in self.files if file.kind == kind and segment in (None, file.segment)]

    @property
    def segments(self) -> list[str]:
        """The segments, oldest first."""
        return list(dict.fromkeys(file.segment for file in self.files))

    def dump(self) -> str:
        body = {"format": FORMAT_VERSION, "values": VALUES_VERSION, **asdict(self)}
        return json.dumps({**body, "checksum": _checksum(body)}, indent=1, ensure_ascii=True)

    @classmethod
    def load(cls, index: Path) -> Manifest:
        """Read the manifest of an index, refusing what is not one, is damaged, or is of another format."""
        path = index / MANIFEST
        try:
            text = path.read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise _no_index(index) from None
        except PermissionError as error:
            raise BadRequest(f"cannot read {path}: {error.strerror}", hint="ask for the right to read it") from error
        except (OSError, UnicodeDecodeError) as error:
            raise IndexDamaged(f"cannot read {path}: {error}", hint="restore it, or run `lakescope repair`") from error
        return cls.parse(path, text)

    @classmethod
    def parse(cls, path: Path | str, text: str) -> Manifest:
        """The manifest that a text is; ``path`` is what errors call it."""
        try:
            body = json.loads(text)
            checksum = body.pop("checksum")
            found = body.pop("format"), body.pop("values")
            whole = checksum == _checksum({"format": found[0], "values": found[1], **body})
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise IndexDamaged(f"{path} is damaged: {error}", hint=_MEND) from error
        if found != (FORMAT_VERSION, VALUES_VERSION):
            raise OtherFormat(
                f"{path} is of format {found[0]} (values {found[1]}); this version reads format {FORMAT_VERSION} "
                f"(values {VALUES_VERSION})",
                hint="build the index again with this version of lakescope",
            )
        if not whole:
            raise IndexDamaged(
                f"{path} is damaged: its checksum does not match",
                hint=_MEND,
            )
        try:
            files = [SegmentFile(**file) for file in body.pop("files")]
            return cls(**body, files=files)
        except (KeyError, TypeError) as error:
            raise IndexDamaged(f"{path} is damaged: {error}", hint=_MEND) from error


def _checksum(body: dict[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return xxhash.xxh64_hexdigest(text.encode())


def _no_index(index: Path) -> BadRequest:
    if not index.exists():
        return BadRequest(f"there is no index at {index}", hint=f"build one: lakescope index DATA --out {index}")
    return BadRequest(
        f"{index} is not a Lakescope index (it has no {MANIFEST})",
        hint="give the directory that `lakescope index ... --out` wrote",
    )


def file_checksum(path: str | os.PathLike[str]) -> str:
    """XXH64 of a file's bytes."""
    digest = xxhash.xxh64()
    with Path(path).open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
