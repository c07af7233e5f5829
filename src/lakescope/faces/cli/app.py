"""Commands: thin faces over ``Lake`` that parse, call and print."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from lakescope._version import __version__
from lakescope.errors import LakescopeError
from lakescope.faces.cli.asking import DOING, Commands
from lakescope.faces.cli.compiling import tell_of_compiling
from lakescope.faces.cli.opening import open_lake
from lakescope.faces.cli.output import Format, ReportFormat, print_record, say, write
from lakescope.show.text import aligned, cell_text

app = typer.Typer(
    name="lakescope",
    help="Look into a data lake: index it once on Spark, then ask it questions in milliseconds.",
    epilog="Example: lakescope index data/ --out lake.idx && lakescope tables lake.idx",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=Commands,
)

_IndexArgument = Annotated[str, typer.Argument(metavar="INDEX", help="Directory that `lakescope index` wrote.")]
_FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print the answer.")]
_MasterOption = Annotated[
    str | None, typer.Option("--master", help="Spark master (spark://host:7077) or Connect server (sc://host).")
]
_QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]

_STAGE_FIELDS = ["stage", "wall", "cpu", "workers", "rows", "bytes"]


def _version(wanted: bool) -> None:
    if wanted:
        write(f"lakescope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
    log_file: Annotated[
        str | None,
        typer.Option("--log-file", envvar="LAKESCOPE_LOG", help="Log what is done, as JSON lines; -: to stderr."),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Say where the time went, stage by stage, on standard error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    _state.update(debug=debug, profile=profile, command=context.invoked_subcommand)
    if log_file:
        from lakescope import logs

        logs.write_to(log_file)


_state: dict[str, Any] = {"debug": False, "profile": False, "command": None}


@DOING.command(
    "index",
    epilog="Examples: lakescope index data/ --out lake.idx"
    " | lakescope index 'data/**/*.csv' s3://bucket/more --out lake.idx"
    " | lakescope index postgresql://reader@host/shop --out shop.idx"
    " | lakescope index /mnt/lake --out /mnt/lake.idx --master spark://host:7077",
)
def index_command(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Directories, files, globs, URIs or spark:db.table.")
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", help="Directory of the index; an index already there is replaced.")
    ],
    master: Annotated[
        str | None,
        typer.Option(help="Spark master (spark://host:7077) or Connect server (sc://host). Default: local[*]."),
    ] = None,
    joins: Annotated[bool, typer.Option("--joins/--no-joins", help="Also for joins, or only profiles.")] = True,
    share: Annotated[
        bool,
        typer.Option("--share", help="Let others read the index, as far as the umask does."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    form: _FormatOption = Format.table,
) -> None:
    """Scan tables once on Spark and write the index."""
    import lakescope
    from lakescope.faces.cli.progress import ProgressLine

    line = None if quiet else ProgressLine()
    if line:
        say("starting Spark ...")
    try:
        lakescope.index(paths, out, master=master, joins=joins, share=share, progress=line)
    finally:
        if line:
            line.close()
    _print_summary(out, form)


@DOING.command(epilog="Examples: lakescope update lake.idx | lakescope update lake.idx --retry")
def update(
    index: _IndexArgument,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what could not be read, changed or not.")] = False,
    master: _MasterOption = None,
    quiet: _QuietOption = False,
    form: _FormatOption = Format.table,
) -> None:
    """Bring the index up to date: scan what was added or changed, forget what was removed."""
    from lakescope.faces.cli import updating

    lake = open_lake(index)
    updating.updated(lambda progress: lake.update(retry=retry, master=master, progress=progress), form, quiet=quiet)


@DOING.command(epilog="Example: lakescope add lake.idx more/ s3://bucket/new")
def add(
    index: _IndexArgument,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Directories, files, globs or URIs.")],
    master: _MasterOption = None,
    quiet: _QuietOption = False,
    form: _FormatOption = Format.table,
) -> None:
    """Index more tables beside those that are there; later updates look at them, too."""
    from lakescope.faces.cli import updating

    lake = open_lake(index)
    updating.updated(lambda progress: lake.add(*paths, master=master, progress=progress), form, quiet=quiet)


@DOING.command(epilog="Example: lakescope remove lake.idx sales/2021.csv")
def remove(
    index: _IndexArgument,
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="Names of tables of the lake.")],
    form: _FormatOption = Format.table,
) -> None:
    """Leave tables out of the index from now on; their files are not touched."""
    from lakescope.faces.cli import updating

    lake = open_lake(index)
    updating.updated(lambda _: lake.remove(*tables), form, quiet=True)


@DOING.command(epilog="Examples: lakescope compact lake.idx | lakescope compact lake.idx --keep-history 50")
def compact(
    index: _IndexArgument,
    keep_history: Annotated[int, typer.Option(min=0, help="Earlier versions of a table to keep the profiles of.")] = 10,
    master: _MasterOption = None,
    form: _FormatOption = Format.table,
) -> None:
    """Make one segment of what updates left: questions are faster, what is gone frees its room."""
    lake = open_lake(index)
    lake.compact(keep_history=keep_history, master=master)
    if form is Format.table:
        write(f"{lake.path}: one segment, generation {lake.info()['generation']}")
    else:
        print_record(lake.info(), form)


@DOING.command(epilog="Example: lakescope push lake.idx s3://bucket/lake.idx")
def push(
    index: _IndexArgument,
    target: Annotated[str, typer.Argument(metavar="URI", help="Where to: s3://bucket/lake.idx, gs://..., az://...")],
    quiet: _QuietOption = False,
    form: _FormatOption = Format.table,
) -> None:
    """Copy the index to object storage, from where it can be opened; what is there already is not sent again."""
    from lakescope.faces.cli import updating

    updating.push(open_lake(index), target, form, quiet=quiet)


@DOING.command(epilog="Example: lakescope watch lake.idx --every 60")
def watch(
    index: _IndexArgument,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 30.0,
    master: _MasterOption = None,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    form: _FormatOption = Format.table,
) -> None:
    """Keep the index up to date until Ctrl-C: look for changes now and then, compact when it is worth it."""
    from lakescope.faces.cli import updating

    updating.watch(open_lake(index), every, form, master, once=once)


def _print_summary(path: str, form: Format) -> None:
    lake = open_lake(path)
    info = lake.info()
    if form is not Format.table:
        print_record(info, form)
        return
    from lakescope.show.text import size_text

    write(
        f"{info['tables']:,} tables, {info['columns']:,} columns, {info['rows']:,} rows "
        f"from {size_text(info['bytes'])} "
        f"in {info['seconds']:.1f} s; index {size_text(info['index_bytes'])} at {path}"
    )
    if not (info["errors"] or info["warnings"]):
        write("no problems")
        return
    write(f"{info['errors']:,} errors, {info['warnings']:,} warnings, {info['notes']:,} notes:")
    tables: dict[tuple[str, str], set[str]] = {}
    for problem in lake.problems(sort="severity").to_pylist():
        tables.setdefault((problem["severity"], problem["code"]), set()).add(problem["table"])
    severities = ("error", "warning", "info")
    for (severity, code), names in sorted(tables.items(), key=lambda item: (severities.index(item[0][0]), item[0][1])):
        write(f"  {severity}: {code} in {len(names):,} {'table' if len(names) == 1 else 'tables'}")
    write(f"see them all: lakescope problems {path}")


@DOING.command(epilog="Examples: lakescope verify lake.idx | lakescope verify lake.idx --deep")
def verify(
    index: _IndexArgument,
    deep: Annotated[bool, typer.Option("--deep", help="Also follow every reference between its files.")] = False,
    form: _FormatOption = Format.table,
) -> None:
    """Read every byte of the index and check it against its checksums."""
    lake = open_lake(index)
    if deep:
        from lakescope.faces.cli import upkeep

        upkeep.print_findings(lake, form)
        return
    lake.verify()
    if form is Format.table:
        write(f"{lake.path}: every file is whole")
    else:
        info = lake.info()
        record = {"path": lake.path, "generation": info["generation"], "bytes": info["index_bytes"], "whole": True}
        print_record(record, form)


@DOING.command(epilog="Examples: lakescope repair lake.idx --dry-run | lakescope repair lake.idx")
def repair(
    index: _IndexArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    form: _FormatOption = Format.table,
) -> None:
    """Make a damaged index answer again: restore its manifest, move damaged segments aside, sweep up."""
    from lakescope.faces.cli import upkeep

    upkeep.print_repairs(index, form, dry_run=dry_run)


@DOING.command(
    epilog="Examples: lakescope report lake.idx --out site/ | lakescope report lake.idx --out wiki/ --format md"
)
def report(
    index: _IndexArgument,
    out: Annotated[str, typer.Option("--out", "-o", help="Folder to write; a former report there is replaced.")],
    form: Annotated[ReportFormat, typer.Option("--format", "-f", help="Pages as HTML, Markdown or JSON.")] = (
        ReportFormat.html
    ),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Write the lake as a static site: a page of the lake, one of each table; no server, no network."""
    from lakescope.faces.cli.reporting import print_report

    print_report(open_lake(index), out, form, quiet=quiet)


@DOING.command(epilog="Examples: lakescope mcp lake.idx | lakescope mcp lake.idx --allow-files data/")
def mcp(
    index: _IndexArgument,
    allow_files: Annotated[
        str | None,
        typer.Option("--allow-files", metavar="DIR", help="Files below this folder may be asked about."),
    ] = None,
) -> None:
    """Answer language-model agents: the questions as tools of the Model Context Protocol, over standard input."""
    from lakescope.faces.cli.agents import serve_agents

    serve_agents(open_lake(index), allow_files)


@DOING.command(
    epilog="Examples: lakescope serve lake.idx | lakescope serve lake.idx --port 0 --open"
    " | lakescope serve lake.idx --host 0.0.0.0 --token-file secret.txt"
)
def serve(
    index: _IndexArgument,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at (0: any that is free).")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen at; other machines must know a token.")] = "127.0.0.1",
    token_file: Annotated[
        str | None,
        typer.Option(help="File with the secret that must be known. Default: LAKESCOPE_TOKEN, else one is made up."),
    ] = None,
    token: Annotated[str | None, typer.Option(hidden=True)] = None,
    behind_proxy: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of a proxy in front, whose X-Forwarded-For says who asks."),
    ] = None,
    max_upload: Annotated[str, typer.Option(help="Largest file that may be sent, e.g. 50MB.")] = "50MB",
    browser: Annotated[bool, typer.Option("--open/--no-browser", help="Open it in the browser.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, max=256, help="Processes that search the lake together. Default: this one.")
    ] = None,
) -> None:
    """Serve the lake as a web app and a REST interface."""
    from lakescope.faces.cli import serving

    options = serving.Options(host, port, token, token_file, behind_proxy, max_upload, browser)
    serving.serve(open_lake(index, processes), options)


@DOING.command(epilog="Example: lakescope demo --scale 10")
def demo(
    folder: Annotated[str, typer.Argument(help="Where to put the demo lake and its index.")] = "lakescope-demo",
    scale: Annotated[float, typer.Option(min=0.1, help="Multiply the rows of the larger tables.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Another seed, another lake.")] = 42,
    master: Annotated[str | None, typer.Option(help="Spark master. Default: local[*].")] = None,
) -> None:
    """Make a demo lake, index it on Spark and show what was found."""
    from lakescope.faces.cli.tour import tour

    tour(folder, scale=scale, seed=seed, master=master)


def run() -> None:
    """Run the app; an error is one message on standard error.

    Exit code 2 means a bad request, 1 a failure, 130 that Ctrl-C was pressed, 141 that nobody read on.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character shows a question mark instead.
            stream.reconfigure(errors="replace")
    tell_of_compiling()
    with _observed():
        _run()


@contextlib.contextmanager
def _observed() -> Iterator[None]:
    """Measure the whole of a command; log how it ended, and say where its time went if that is asked for."""
    from lakescope.logs import log
    from lakescope.stages import COMMAND, Stage

    began, code = time.monotonic(), 1
    try:
        yield
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        raise
    finally:
        wall = time.monotonic() - began
        log("command", command=_state["command"], exit=code, seconds=wall)
        if _state["profile"]:
            COMMAND.add([Stage("all", round(wall, 4), round(time.process_time(), 4))])
            rows = [[cell_text(record[field]) for field in _STAGE_FIELDS] for record in COMMAND.records()]
            say("\n".join(aligned(_STAGE_FIELDS, rows)))


def _run() -> None:
    try:
        ended = app(standalone_mode=False)
        if isinstance(ended, int) and ended:
            sys.exit(ended)
    except LakescopeError as error:
        _fail(error, str(error), error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        say("interrupted; an index that was there before is untouched")
        sys.exit(130)
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
    except Exception as error:
        _handle(error)


def _handle(error: Exception) -> None:
    show = getattr(error, "show", None)
    if show is not None and not _state["debug"]:
        # A usage error of the command line library: it says by itself what is wrong and how to get help.
        show()
        sys.exit(getattr(error, "exit_code", 2))
    _fail(error, f"unexpected {type(error).__name__}: {error}\n  hint: run with --debug and report it", 1)


def _fail(error: Exception, message: str, code: int) -> None:
    from lakescope.logs import log

    log("failed", level=logging.ERROR, error=error)
    from lakescope.sources.io.redact import scrub

    told = "".join(traceback.format_exception(error)) if _state["debug"] else f"error: {message}"
    say(scrub(told))
    sys.exit(code)
