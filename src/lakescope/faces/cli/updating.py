"""What ``lakescope update``, ``add``, ``remove``, ``compact``, ``push`` and ``watch`` print."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from lakescope.faces.cli.output import Format, print_record, say, write
from lakescope.faces.cli.progress import ProgressLine, duration

if TYPE_CHECKING:
    from lakescope.build.progress import Listener
    from lakescope.build.update import Update
    from lakescope.lake import Lake

_NAMED = 5


def updated(run: Callable[[Listener | None], Update], form: Format, *, quiet: bool) -> None:
    """Bring an index up to date, with progress, and say what was done."""
    line = None if quiet else ProgressLine()
    try:
        done = run(line)
    finally:
        if line:
            line.close()
    tell(done, form)


def tell(done: Update, form: Format) -> None:
    """Say what an update did."""
    if form is not Format.table:
        print_record(asdict(done), form)
        return
    for what, tables in (("added", done.added), ("changed", done.changed), ("removed", done.removed)):
        if tables:
            more = f", and {len(tables) - _NAMED:,} more" if len(tables) > _NAMED else ""
            write(f"{len(tables):,} {what}: {', '.join(tables[:_NAMED])}{more}")
    if done.nothing:
        write("nothing has changed")
    else:
        write(f"generation {done.generation} in {duration(done.seconds)}; {done.segments} segments")
    if done.advice:
        say(f"note: {done.advice}")


def push(lake: Lake, target: str, form: Format, *, quiet: bool) -> None:
    """Copy an index to object storage, with progress, and say what was sent."""

    def told(done: int, total: int) -> None:
        say(f"sent {done:,} of {total:,} bytes")

    sent = lake.push(target, progress=None if quiet else told)
    if form is not Format.table:
        print_record(asdict(sent), form)
        return
    write(f"{sent.target}: generation {sent.generation}, {sent.files:,} files sent ({sent.bytes:,} bytes)")
    write(f"{sent.kept:,} were there already, {sent.removed:,} of older generations were removed")


def watch(lake: Lake, every: float, form: Format, master: str | None, *, once: bool = False) -> None:
    """Update an index again and again, until somebody stops it; what has not changed costs a look at its folder."""
    while True:
        done = lake.update(master=master)
        if not done.nothing:
            tell(done, form)
            if done.advice and done.segments > 1:
                lake.compact(master=master)
                write("compacted")
        if once:
            return
        time.sleep(every)
