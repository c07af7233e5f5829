"""Files that visitors bring: kept apart by visitor, bounded in size and number, forgotten after a while.

There is room for so many bytes of all. Where it is full, files of whoever has most make room for who has less, those
first that nobody asked about for longest (:func:`lakescope.faces.serving.visitors.giving_way`).

A file lies in a private directory under a random name; what its owner calls it is only ever shown. Who does not know
the visitor's secret (a cookie) cannot name the file, and nothing of a request becomes part of a path.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lakescope.errors import BadRequest, NotFound
from lakescope.faces.serving.folders import OwnFolder
from lakescope.faces.serving.held import Held
from lakescope.faces.serving.refusals import Refused, busy, too_large
from lakescope.faces.serving.visitors import NOBODY, Claim, Owner, giving_way, owner_of
from lakescope.show.text import printable, shorten, size_text

#: Formats that are taken, by the end of a file's name. Not workbooks and databases: their readers do too much.
SUFFIXES = {
    ".csv": ".csv",
    ".tsv": ".tsv",
    ".txt": ".csv",
    ".parquet": ".parquet",
    ".pq": ".parquet",
    ".json": ".json",
    ".jsonl": ".jsonl",
    ".ndjson": ".jsonl",
    ".arrow": ".arrow",
    ".feather": ".feather",
}
#: Files a visitor may have, and bytes of all visitors, in sizes of the largest upload.
MOST, _ALL = 20, 20
#: The part of all bytes that a file takes up at least, however small it is; forgotten files that are remembered.
_SMALLEST, _REMEMBERED = 1 / 2_000, 1_000
#: Seconds after which a file that nobody asked about is forgotten.
KEPT = 4 * 3600.0
_PIECE = 1 << 20
#: Files that are text, bytes of one that are looked at, and the share of them that no text holds.
_TEXTS = frozenset((".csv", ".tsv", ".json", ".jsonl"))
_LOOKED_AT, _STRANGE = 65_536, 0.02
_CONTROLS = bytes(each for each in range(32) if each not in b"\t\n\v\f\r\x1b") + b"\x7f"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of a visitor; ``made`` says how, if it is the result of a join, ``holds`` what of the lake is in it."""

    id: str
    visitor: str
    name: str
    path: Path
    size: int
    made: str = ""
    holds: tuple[Held, ...] = ()
    owner: Owner = NOBODY
    added: float = field(default_factory=time.time)


class Uploads:
    """The files of all visitors, in a directory that goes with the server."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._own = OwnFolder("lakescope-files-")
        self._folder = self._own.path
        self._lock = threading.Lock()
        self._files: dict[str, Upload] = {}
        self._used: dict[str, float] = {}
        #: Files that made room for others, and whose they were.
        self._displaced: OrderedDict[str, str] = OrderedDict()

    @property
    def places(self) -> list[str]:
        """Where the files lie."""
        return [str(self._folder)]

    def close(self) -> None:
        """Forget all files."""
        self._own.remove()

    def add(self, visitor: str, name: str, stream: BinaryIO) -> Upload:
        """Take a file."""
        suffix = SUFFIXES.get(PurePosixPath(name.replace("\\", "/")).suffix.lower())
        if suffix is None:
            raise BadRequest(f"cannot read {shown_name(name)!r}", hint="send CSV, TSV, Parquet, JSON lines or Arrow")
        self._check_room(visitor)
        place = self._place(suffix)
        try:
            with place.open("xb") as out:
                while piece := stream.read(_PIECE):
                    if out.tell() + len(piece) > self.largest:
                        raise too_large(size_text(self.largest))
                    out.write(piece)
            if not place.stat().st_size:
                raise BadRequest(f"{shown_name(name)!r} is empty", hint="send a file with a header and rows")
            if suffix in _TEXTS and _is_binary(place):
                hint = "send CSV, TSV, Parquet, JSON lines or Arrow"
                raise BadRequest(f"{shown_name(name)!r} is not text", hint=hint)
            return self._keep(visitor, name, place, "")[0]
        except BaseException:
            shutil.rmtree(place.parent, ignore_errors=True)
            raise

    def place(self) -> Path:
        """Where the result of a join may be written."""
        return self._place(".parquet")

    def keep(
        self, visitor: str, name: str, place: Path, made: str, holds: tuple[Held, ...] = ()
    ) -> tuple[Upload, Upload | None]:
        """Take the result of a join that was written to such a place; and which file was forgotten to make room."""
        return self._keep(visitor, name, place, made, holds)

    def find(self, visitor: str, number: str) -> Upload:
        """A file of a visitor's."""
        with self._lock:
            self._expire()
            found = self._files.get(number)
            if found is None or not secrets.compare_digest(found.visitor, visitor):
                if self._displaced.get(number) == visitor:
                    message = "the file was forgotten to make room for somebody who has fewer"
                    raise NotFound(message, hint="send it again; forget those that you do not need")
                raise NotFound(
                    "no such file of yours", hint="files are kept for some hours, in one browser: send it again"
                )
            self._used[number] = time.time()
            return found

    def of_visitor(self, visitor: str) -> list[Upload]:
        """The files of a visitor, the latest first."""
        with self._lock:
            return sorted(
                (each for each in self._files.values() if each.visitor == visitor), key=lambda each: -each.added
            )

    def held(self) -> tuple[int, int]:
        """How many files there are, and their bytes."""
        with self._lock:
            return len(self._files), sum(each.size for each in self._files.values())

    def remove(self, visitor: str, number: str) -> None:
        """Forget a file."""
        found = self.find(visitor, number)
        with self._lock:
            self._drop(found)

    def _place(self, suffix: str) -> Path:
        folder = self._folder / secrets.token_hex(16)
        folder.mkdir(mode=0o700)
        return folder / f"table{suffix}"

    def _check_room(self, visitor: str) -> None:
        """Refuse a file of a visitor who has as many as one may: none that was sent goes without being asked."""
        if len(self.of_visitor(visitor)) >= MOST:
            raise _too_many()

    def _keep(
        self, visitor: str, name: str, place: Path, made: str, holds: tuple[Held, ...] = ()
    ) -> tuple[Upload, Upload | None]:
        number, size, owner = secrets.token_urlsafe(16), place.stat().st_size, owner_of(visitor)
        upload = Upload(number, visitor, shown_name(name), place, size, made, holds, owner)
        with self._lock:
            self._expire()
            mine = [each for each in self._files.values() if each.visitor == visitor]
            gone = None
            if len(mine) >= MOST and not made:  # another one was sent meanwhile
                raise _too_many()
            if len(mine) >= MOST:  # results first: they can be made again
                gone = min(mine, key=lambda each: (not each.made, self._used[each.id]))
            self._make_room(upload, gone)
            if gone is not None and gone.id in self._files:
                self._drop(gone)
            self._files[upload.id] = upload
            self._used[upload.id] = time.time()
        return upload, gone

    def _make_room(self, new: Upload, gone: Upload | None) -> None:
        """Forget files of whoever has most, if it is more than the owner of a new one will have, who gives one up."""
        room = _ALL * self.largest
        there = [each for each in self._files.values() if each is not gone]
        by_use = sorted(there, key=lambda each: self._used[each.id])
        claims = [Claim((each.owner,), _taken_up(each, room), each) for each in by_use]
        going = giving_way(claims, Claim((new.owner,), _taken_up(new, room), None), room=room, each=room)
        if going is None:
            raise busy("the server holds as many files as it may")
        for each in going:
            self._drop(each)
            self._displaced[each.id] = each.visitor
            if len(self._displaced) > _REMEMBERED:
                self._displaced.popitem(last=False)

    def _expire(self) -> None:
        now = time.time()
        for each in list(self._files.values()):
            if now - self._used[each.id] > KEPT:
                self._drop(each)

    def _drop(self, upload: Upload) -> None:
        self._files.pop(upload.id, None)
        self._used.pop(upload.id, None)
        shutil.rmtree(upload.path.parent, ignore_errors=True)


def _taken_up(upload: Upload, room: int) -> int:
    """What a file counts for: its bytes, or what a file costs that has hardly any."""
    return max(upload.size, int(room * _SMALLEST))


def _too_many() -> Refused:
    message = f"you have {MOST} files here, which is as many as one may have"
    return Refused(HTTPStatus.CONFLICT, "too-many-files", message, hint="forget one of your files first")


def _is_binary(place: Path) -> bool:
    """Whether what should be text holds what no text does; UTF-16, which says what it is, does."""
    with place.open("rb") as file:
        head = file.read(_LOOKED_AT)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    return len(head) - len(head.translate(None, _CONTROLS)) > _STRANGE * len(head)


def shown_name(name: str) -> str:
    """What a file is called: the last part of what its owner says, made printable and not too long."""
    return shorten(printable(PurePosixPath(name.replace("\\", "/")).name) or "table", 120)
