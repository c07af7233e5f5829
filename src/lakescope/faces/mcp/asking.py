"""Tools that follow from the declarations of questions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, cleandoc
from typing import Annotated, Any, Literal

from pydantic import Field

from lakescope.faces.mcp.bounds import MOST, Answer
from lakescope.faces.mcp.subjects import Subject
from lakescope.questions.model import Meaning, Option, Range, Request, options_of
from lakescope.questions.signing import parameter, signed

#: What a table is to an agent.
SUBJECT_HELP = "What is asked about: an object with exactly one of table, csv and file."
#: Records of an answer unless more or fewer are asked for.
_PAGE = 50
_PAGES = (
    parameter("limit", Annotated[int, Field(ge=1, le=MOST, description="How many to tell at most.")], _PAGE),
    parameter("offset", Annotated[int, Field(ge=0, description="How many to skip.")], 0),
)
#: Asks a question with values as an agent gave them.
Ask = Callable[..., Answer]


def tool_of(kind: type[Request[Any]], ask: Ask) -> Callable[..., dict[str, Any]]:
    """The tool that asks a question."""
    about = kind.about
    paged = about.pages_on("agents")

    def tool(**given: Any) -> dict[str, Any]:
        page = {name: given.pop(name) for name in ("limit", "offset") if name in given and paged}
        return ask(kind, given, **page)

    options = [option for option in options_of(kind, "agents").values() if option.offered]
    parameters = [*map(_parameter, options), *(_PAGES if paged else ())]
    return signed(tool, about.tool or about.name, cleandoc(kind.__doc__ or ""), parameters, dict[str, Any])


def _parameter(option: Option) -> Parameter:
    """An option as the model of a tool's arguments has it."""
    kind = _kind(option)
    within = option.range or Range()
    help = SUBJECT_HELP if option.meaning is Meaning.TABLE else option.help
    said = Field(description=help, ge=within.least, le=within.most, gt=within.above)
    default = list(option.default) if isinstance(option.default, tuple) else option.default
    return parameter(
        option.name,
        Annotated[kind | None if option.nullable else kind, said],
        Parameter.empty if option.required else default,
    )


def _kind(option: Option) -> Any:
    if option.meaning is Meaning.TABLE:
        return Subject
    single: Any = Literal[option.choices] if option.choices else str
    if option.type is tuple:
        return single | Annotated[list[single], Field(min_length=1)]
    if option.choices:
        return single
    return option.type
