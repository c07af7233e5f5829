"""Commands that follow from the declarations of questions: made when they are looked up, since few are.

A command asks what its question declares, and adds how the answer is printed, which
:mod:`lakescope.faces.cli.printings` declares in the same way.
"""

from __future__ import annotations

import functools
import re
from inspect import Parameter, cleandoc
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
import typer.main

from lakescope import questions
from lakescope.errors import BadRequest
from lakescope.faces.cli.columns import of_column, with_column
from lakescope.faces.cli.opening import is_index, open_lake
from lakescope.faces.cli.output import Format
from lakescope.faces.cli.printings import gone_of, printing_of
from lakescope.faces.cli.sizes import bytes_of
from lakescope.questions.model import Meaning, Option, Request, options_of
from lakescope.questions.signing import parameter, signed

if TYPE_CHECKING:
    from lakescope.faces.cli.printing import Printing

_INDEX = parameter(
    "index", Annotated[str, typer.Argument(metavar="INDEX", help="Directory that `lakescope index` wrote.")]
)
_FORMAT = parameter(
    "printed_as", Annotated[Format, typer.Option("--format", "-f", help="How to print the answer.")], Format.table
)


#: Commands that ask no question but do something: index, update, serve ...
DOING = typer.Typer()


class _Lines(typer.core.TyperGroup):
    """Commands that are made when they are looked up; a list of them needs no more than a line about each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, each with a line about it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.line(name)) for name in self.list_commands(ctx)])

    def line(self, name: str) -> str:
        """What is said about a command in a list."""
        raise NotImplementedError


class Commands(_Lines):
    """The commands of Lakescope."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*_doing(), *(name.split()[0] for name in questions.COMMANDS)]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _doer(cmd_name) if cmd_name in _doing() else found(cmd_name)

    def line(self, name: str) -> str:
        if name in questions.COMMANDS:
            return questions.summary(questions.COMMANDS[name])
        if name in questions.GROUPS:
            return questions.GROUPS[name]
        return cleandoc(_doing()[name].callback.__doc__ or "").partition("\n\n")[0]


def _doing() -> dict[str, Any]:
    """What is known about the commands that do something, by their names."""
    return {each.name or each.callback.__name__: each for each in DOING.registered_commands if each.callback}


@functools.cache
def _doer(name: str) -> Any:
    """The command that does something."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.registered_commands.append(_doing()[name])
    return typer.main.get_command(alone)


class Family(_Lines):
    """A command with others below it: its own question is asked, if it has one, unless one of them is named."""

    @classmethod
    def of(cls, name: str) -> Family:
        """The family of commands whose names begin with a word."""
        first = next(each for each in questions.COMMANDS if each.startswith(f"{name} "))
        return cls(
            name=name,
            context_settings={"ignore_unknown_options": True},
            help=questions.GROUPS.get(name),
            epilog=f"Example: {_examples(first)[0]}",
            add_help_option=name in questions.GROUPS,
            no_args_is_help=name in questions.GROUPS,
            rich_markup_mode=None,
        )

    @property
    def own(self) -> Any:
        """The command that is meant where none of the others is named."""
        return command(str(self.name)) if self.name in questions.COMMANDS else None

    def list_commands(self, ctx: Any) -> list[str]:
        return [each.split()[1] for each in questions.COMMANDS if each.startswith(f"{self.name} ")]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command(f"{self.name} {cmd_name}") if cmd_name in self.list_commands(ctx) else None

    def line(self, name: str) -> str:
        return questions.summary(questions.COMMANDS[f"{self.name} {name}"])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        if args and args[0] in self.list_commands(ctx):
            return super().resolve_command(ctx, args)
        _refuse_former(str(self.name), args)
        if self.own is None:
            below = ", ".join(f"{self.name} {each}" for each in self.list_commands(ctx))
            raise BadRequest(f"{self.name} has no command {args[0]!r}", hint=f"there are {below}")
        return None, self.own, args

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.own is not None:  # what is missing is an argument of the command itself
            self.own.make_context(ctx.info_name, [], parent=ctx.parent)
        return super().parse_args(ctx, args)


@functools.cache
def found(name: str) -> Any:
    """The command, or the family of commands, of a name; None if no question is asked by it."""
    if any(each.startswith(f"{name} ") for each in questions.COMMANDS):
        return Family.of(name)
    return command(name) if name in questions.COMMANDS else None


@functools.cache
def command(name: str) -> Any:
    """The command that asks a question: its index, the options of the question, and those of its printing."""
    kind, printing = questions.declared(questions.COMMANDS[name]), printing_of(name)
    asked_for, added = _offered(kind), _offered(printing)
    options = {**asked_for, **added}

    def run(**given: Any) -> None:
        index, form = given.pop("index", None), given.pop("printed_as", Format.table)
        _refuse_gone(printing, given)
        values = {name: _parsed(option, given[name]) for name, option in options.items()}
        if index is None:
            values = with_column(kind, values, ())
        shown = printing(**{name: added[name].checked(values[name]) for name in added})
        shown.check()
        asked = kind.of(shown.asked({name: values[name] for name in asked_for}), "cli")
        tables = [str(values[name]) for name, option in asked_for.items() if option.meaning is Meaning.TABLE]
        if index is None:
            _refuse_index(name.split()[0], tables)
        else:
            _refuse_order(name, index, tables)
        lake = None if index is None else open_lake(index)
        if lake is not None:
            asked = of_column(lake, asked)
        shown.show(lake, asked, form)

    parameters = [*([_INDEX] if kind.about.indexed else []), *map(_parameter, sorted(options.values(), key=_is_option))]
    parameters += [*([_FORMAT] if printing.formatted else []), *_gone(printing)]
    signed(run, name, _help(kind), parameters)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    examples = kind.about.examples
    word = "Example" if len(examples) == 1 else "Examples"
    also = [f"lakescope {each}" for each in questions.COMMANDS if each.startswith(f"{name} ")]
    epilog = f"{word}: {' | '.join(examples)}" + (f". Also: {', '.join(also)}" if also else "")
    alone.command(name, epilog=epilog)(run)
    return typer.main.get_command(alone)


def _offered(kind: type[Any]) -> dict[str, Option]:
    return {name: option for name, option in options_of(kind, "cli").items() if option.offered}


def _examples(name: str) -> tuple[str, ...]:
    return questions.declared(questions.COMMANDS[name]).about.examples


def _help(kind: type[Request[Any]]) -> str:
    """What a command answers: the first paragraph of the declaration."""
    return cleandoc(kind.__doc__ or "").partition("\n\n")[0]


def _is_option(option: Option) -> bool:
    return not _is_argument(option)


def _is_argument(option: Option) -> bool:
    return bool(option.names) and option.names[0].isupper()


def _parameter(option: Option) -> Parameter:
    """An option as the library of the command line understands it."""
    texts = option.type is tuple or option.meaning in (Meaning.TABLE, Meaning.SIZE)
    kind: Any = str if texts else option.type
    default = Parameter.empty if option.required else option.default
    if option.meaning is Meaning.SECONDS:
        kind, default = str, default if default is None else f"{default:g}s"
    if isinstance(default, tuple):
        default = ",".join(default) or None
    if default is None:
        kind = kind | None
    if _is_argument(option):
        return parameter(
            option.name, Annotated[kind, typer.Argument(metavar=option.names[0], help=option.help)], default
        )
    names = option.names or flags(option)
    shown = f"[{'|'.join(option.choices)}]" if option.choices and option.type is str else None
    return parameter(option.name, Annotated[kind, typer.Option(*names, metavar=shown, help=option.help)], default)


def flags(option: Option) -> tuple[str, ...]:
    """What an option is called on the command line, unless that is declared."""
    name = option.name.replace("_", "-")
    # What is so anyway can only be left out.
    return (f"--{name}/--no-{name}",) if option.type is bool and option.default is True else (f"--{name}",)


def _parsed(option: Option, value: Any) -> Any:
    """A value as the question wants it: several by commas; where None has no word of its own, 0 says it."""
    if option.meaning is Meaning.SECONDS and isinstance(value, str):
        value = _seconds(value)
    if option.meaning is Meaning.SIDES and isinstance(value, str):
        left, equals, right = value.partition("=")
        return (left.strip(), right.strip()) if equals else (value,)
    if option.type is tuple and isinstance(value, str):
        return tuple(part.strip() for part in value.split(","))
    if option.type is tuple and value is None and not option.nullable:
        return ()
    if option.meaning is Meaning.SIZE and value is not None:
        return bytes_of(value, option.names[0] if option.names else flags(option)[0])
    says_none = option.default is not None or option.meaning is Meaning.SECONDS
    return None if option.nullable and says_none and value == 0 else value


def _gone(printing: type[Printing]) -> list[Parameter]:
    """Options that the command had: they are taken, not shown, to be answered with what takes their place."""
    return [
        parameter(each.parameter, Annotated[each.kind, typer.Option(each.name, hidden=True)], None)
        for each in printing.gone
    ]


def _refuse_gone(printing: type[Printing], given: dict[str, Any]) -> None:
    for each in printing.gone:
        if given.pop(each.parameter):
            raise BadRequest(f"{each.name} is now {each.instead}", hint="see --help")


def _refuse_former(name: str, args: list[str]) -> None:
    """Refuse options that a command had before it had others below it, with what takes their place."""
    options = [each.partition("=")[0] for each in args]
    for each in gone_of(name):
        if each.name in options:
            raise BadRequest(f"{each.name} is now {each.instead}", hint=f"see lakescope {name} --help")


def _refuse_index(family: str, tables: list[str]) -> None:
    """Refuse an index where a table is asked about, with a command beside that asks one."""
    below = [name for name in questions.COMMANDS if name.startswith(f"{family} ")]
    beside = [name for name in below if questions.declared(questions.COMMANDS[name]).about.indexed]
    for path in filter(is_index, tables):
        others = [each for each in tables if each != path]
        also = f", or ask: {' '.join(['lakescope', beside[0], path, *others])}" if beside else ""
        raise BadRequest(f"{path} is an index, not a table", hint=f"name a table{also}")


def _refuse_order(name: str, index: str, tables: list[str]) -> None:
    """Refuse an index that is named after the table that it is asked about, as some commands had it once."""
    for path in filter(is_index, tables):
        if not is_index(index):
            raise BadRequest(f"the index comes first: {path}", hint=f"lakescope {name} {path} {index} ...")


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(text: str) -> float:
    """``30s``, ``2m`` or plain seconds."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smh]?)", text.strip())
    if found is None:
        raise BadRequest(f"{text!r} is no time", hint="write 30s, 2m or 1h")
    return float(found[1]) * _UNITS[found[2]]
