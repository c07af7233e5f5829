"""The `headers` command: parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from lakescope.errors import BadRequest
from lakescope.faces.cli.output import Format, print_record, print_results, say, write
from lakescope.lake import Lake

SHOWN = ("all", "columns", "schemata")
#: What each question goes by.
USED = {
    "--check": {"check", "index", "form"},
    "--evaluate": {"evaluate", "index", "split", "seed", "k", "m", "form"},
    "--from": {
        *("index", "mode", "k", "m", "known", "keep", "threshold", "method", "segmentation", "confirmation"),
        *("schemata", "write", "show", "form"),
    },
    "": {"form"},
}


def parse_known(text: str | None) -> dict[int | str, str]:
    """``2=country,name=city``: headers that are known, by position or name."""
    found: dict[int | str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        key, equals, header = part.partition("=")
        if not equals or not header.strip() or not key.strip():
            raise BadRequest(f"cannot read {part.strip()!r}", hint="--known 2=country,5=year")
        key = key.strip()
        found[int(key) if key.isdecimal() else key] = header.strip()
    return found


def print_opinion(table: str, form: Format) -> None:
    """Print whether a file has a header, where it is, and where the data starts."""
    from lakescope.engines.headers.detect import opinion_of

    opinion = opinion_of(table)
    if opinion is None:
        raise BadRequest(
            f"{table} is no text table: its format names its columns", hint="--from INDEX suggests headers"
        )
    print_record({"table": table, **asdict(opinion)}, form)


def print_headers(
    lake: Lake, table: str, options: dict[str, Any], *, write_to: str | None, show: str, form: Format
) -> None:
    """Print the candidates of every column and the best schemata; or write the table under the best one."""
    if show not in SHOWN:
        raise BadRequest(f"cannot show {show!r}", hint=f"use {', '.join(SHOWN)}")
    if options.get("method", "ours") == "ours":
        with _Counted("learning from table") as told:
            lake.learn_headers(told)
    found = lake.suggest_headers(table, **options)
    if write_to is not None:
        names = lake.name_columns(table, write_to, found[0].headers if len(found) else None)
        say(f"{write_to}: written with the headers {', '.join(names)}")
        return
    empty = "no header of the lake fits"
    if show == "columns":
        print_results(found.by_column(), form, empty=empty)
    elif show == "schemata" or form is not Format.table:
        print_results(found, form, empty=empty)
    else:
        print_results(found.by_column(), form, empty=empty)
        write("")
        print_results(found.without_notes(), form, empty="no schema")


def print_doubts(lake: Lake, form: Format) -> None:
    """Print columns of the lake whose headers are in doubt."""
    with _Counted("learning from table") as told:
        lake.learn_headers(told)
    with _Counted("checking table") as told:
        found = lake.check_headers(told)
    print_results(found, form, empty="every header means something and fits its values")


def print_evaluation(lake: Lake, split: float, seed: int, k: int, m: int, form: Format) -> None:
    """Print how well headers are rediscovered, and how wrong ones relate to the true ones."""
    with _Counted("learning from table") as told:
        found = lake.evaluate_headers(split, seed=seed, k=k, m=m, progress=told)
    print_results(found, form, empty="")
    if form is Format.table:
        from lakescope.results import Results

        shown = ("method", "exact", "spacing", "word_form", "shorter_form", "granularity", "synonym", "incorrect")
        write("\nOf the headers suggested")
        print_results(Results(found.kind, list(found), shown=shown), form, empty="")


class _Counted:
    """A living line that counts, on a terminal."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._living = sys.stderr.isatty()
        self._used = False

    def __enter__(self) -> Callable[[int, int], None]:
        return self._tell

    def _tell(self, done: int, total: int) -> None:
        if self._living and (done % 10 == 0 or done + 1 == total):
            self._used = True
            sys.stderr.write(f"\r{self._what} {done + 1:,} of {total:,} ")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._used:
            sys.stderr.write("\n")
