"""Publish a copy of an index on object storage: immutable files first, the manifest last.

Files have names that no other build gives, so whatever is there already need not be sent again, and a reader of the
generation before finds its files until the generation after the next. A reader sees the old index or the new one: the
manifest is one object, and replacing it is what publishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakescope.errors import BadRequest, LakescopeError
from lakescope.sources.io import files
from lakescope.store.index import Index
from lakescope.store.manifest import MANIFEST, Manifest

_SEGMENTS = "segments/"


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was sent: files and bytes; ``kept`` files were there already, ``removed`` ones are named no more."""

    target: str
    generation: int
    files: int
    bytes: int
    kept: int
    removed: int


def push(index: Index, target: str, progress: Callable[[int, int], None] | None = None) -> Pushed:
    """Copy the generation of an index that is open to a URI. ``progress`` is told bytes done and bytes in all."""
    if files.local_path(target) is not None:
        raise BadRequest(f"{target} is a local path", hint="push to a URI: s3://bucket/lake.idx; copy a directory else")
    if index.traffic is not None:
        raise BadRequest(f"{index.path} lies elsewhere already", hint="push the directory that was built")
    try:
        return _pushed(index, target, progress)
    except (OSError, ValueError, ImportError) as error:
        hint = "check the address and your right to write there; run it again: what was sent is not sent twice"
        raise LakescopeError(f"cannot write {files.display(target)}: {files.reason_of(error)}", hint=hint) from error


def _pushed(index: Index, target: str, progress: Callable[[int, int], None] | None) -> Pushed:
    manifest = index.manifest
    there = {entry.path: entry.size for entry in files.listing_if_any(target)}
    before = _manifest_at(target) if MANIFEST in there else None
    if before is None and any(not path.startswith(_SEGMENTS) for path in there):
        hint = "choose an address of its own for the index, below the bucket"
        raise BadRequest(f"{files.display(target)} holds other things than an index", hint=hint)
    missing = [file for file in manifest.files if there.get(file.path) != file.size]
    total, sent = sum(file.size for file in missing), 0
    for file in missing:
        files.write(files.child(target, file.path), index.content(file))
        sent += file.size
        if progress:
            progress(sent, total)
    index.check()  # what is published was whole while it was sent
    files.write(files.child(target, MANIFEST), manifest.dump().encode())
    named = {file.path for each in (manifest, before) if each for file in each.files} | {MANIFEST}
    old = [path for path in there if before is not None and path.startswith(_SEGMENTS) and path not in named]
    for path in old:
        files.remove(files.child(target, path))
    kept = len(manifest.files) - len(missing)
    return Pushed(files.display(target), manifest.generation, len(missing), total, kept, len(old))


def _manifest_at(target: str) -> Manifest | None:
    """The manifest that was there before, if it can be read; what is there and is none of ours is refused."""
    place = files.child(target, MANIFEST)
    with files.open_stream(place) as stream:
        content = stream.read()
    try:
        return Manifest.parse(files.display(place), content.decode("utf-8", "replace"))
    except LakescopeError:
        return None
