"""Options that do nothing for the question asked are refused: whoever gave one expects it to do something."""

from __future__ import annotations

from collections.abc import Collection

import typer

from lakescope.errors import BadRequest


def refuse_idle(context: typer.Context, used: Collection[str], hint: str | None = None) -> None:
    """Refuse options that were given, be it as they are anyway, and are not used."""
    idle = [
        option.opts[0]
        for option in context.command.params
        if option.param_type_name == "option" and option.name not in used and _is_given(context, option.name)
    ]
    if idle:
        told = f"lakescope {context.info_name} --help tells what each option is for"
        raise BadRequest(f"{' and '.join(idle)} does nothing here", hint=hint or told)


def _is_given(context: typer.Context, name: str | None) -> bool:
    source = context.get_parameter_source(name or "")
    return source is not None and source.name == "COMMANDLINE"
