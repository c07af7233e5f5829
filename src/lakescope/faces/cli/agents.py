"""The `mcp` command: parse, call, serve."""

from __future__ import annotations

from pathlib import Path

import typer

from lakescope.errors import BadRequest, LakescopeError
from lakescope.faces.cli.output import say
from lakescope.lake import Lake


def serve_agents(lake: Lake, allowed: str | None) -> None:
    """Answer agents on standard input and output until they go away."""
    folder = None if allowed is None else Path(allowed)
    if folder is not None and not folder.is_dir():
        raise BadRequest(f"{allowed} is not a folder", hint="name the folder whose files may be asked about")
    try:
        from lakescope.faces.mcp.server import server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "pydantic"):
            raise
        hint = "install it: pip install 'lakescope[mcp]'"
        raise LakescopeError("the Model Context Protocol SDK (mcp 2 or newer) is missing", hint=hint) from error
    made = server(lake, folder)
    if typer.get_text_stream("stdin").isatty():
        say("waiting for an agent on standard input; see docs/agents.md for how to register this")
    made.run("stdio")
