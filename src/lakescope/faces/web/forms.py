"""Questions of the web app: what makes one from the fields of a form, its address, and its fields, from its options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlencode

from fastapi import Form, Query
from pydantic import Field

from lakescope.errors import NotFound
from lakescope.faces.rest import api
from lakescope.faces.rest.asking import annotated
from lakescope.questions.model import Meaning, Option, Request, options_of
from lakescope.questions.signing import parameter, signed
from lakescope.untrusted import parsed

#: How pages about one table of the lake name it: by its name alone.
_NAME = "name"
#: What is asked before anything else, where pages have fields of their own for it.
_FIRST = frozenset(("query", "left", "right", "table", "key", "target", "agg", "finds"))
Question = TypeVar("Question", bound=Request[Any])
FieldKind = Literal["choice", "flag", "switch", "number", "text", "texts"]


def _is_of_table(kind: type[Request[Any]], page: str = "") -> bool:
    """Whether the page of a question is about one table of the lake, which its address names alone."""
    return (page or kind.about.page).startswith("/table/")


def _subject(kind: type[Request[Any]]) -> Option:
    """The option by which a question is told its table."""
    meanings = Meaning.TABLE, Meaning.LAKE_TABLE
    return next(option for option in options_of(kind, "web").values() if option.meaning in meanings)


def _offered(kind: type[Request[Any]]) -> dict[str, Option]:
    return {name: option for name, option in options_of(kind, "web").items() if option.offered}


# --- requests ---------------------------------------------------------------------------------------------------------


def given_by(kind: type[Request[Any]]) -> Callable[..., dict[str, Any]]:
    """What takes the fields of a question that were filled in, of which none is required."""

    def take(**given: Any) -> dict[str, Any]:
        return filled(given)

    return signed(take, kind.about.name, "", [_parameter(each, Query) for each in _offered(kind).values()], dict)


def asked_by(
    kind: type[Request[Any]], page: str = "", values_there: Mapping[str, Any] | None = None
) -> Callable[..., Request[Any]]:
    """What makes the question of a page from the parameters of its address: all that the web app offers.

    ``page`` is the address if it is another one than that of the question, which has other values there.
    """
    options = _offered(kind)
    subject = _subject(kind) if _is_of_table(kind, page) else None

    def make(**given: Any) -> Request[Any]:
        values = {**(values_there or {}), **filled(given)}
        if subject is not None:
            name = values.pop(_NAME, "")
            values[subject.name] = f"table:{name}" if subject.meaning is Meaning.TABLE else name
        return kind.of(values, "web")

    parameters = [_parameter(each, Query) for each in options.values() if each is not subject]
    if subject is not None:
        parameters.append(parameter(_NAME, Annotated[str, Query(max_length=api.MOST_TEXT)], ""))
    return signed(make, kind.about.name, "", parameters, kind)


def sent_by(kind: type[Request[Any]]) -> Callable[..., dict[str, Any]]:
    """What takes the fields of a form that is sent to have a table made, of which none is required."""

    def take(**given: Any) -> dict[str, Any]:
        values = filled(given)
        if "finds" in values:
            values["finds"] = [_find(each) for each in values["finds"]]
        return values

    return signed(take, kind.about.name, "", [_parameter(each, Form) for each in _offered(kind).values()], dict)


def searched(kind: type[Question], values: Mapping[str, Any]) -> Question:
    """The question that the texts of an address make."""
    options = _offered(kind)
    return kind.of({name: _read(options[name], value) for name, value in filled(values).items()}, "web")


def _read(option: Option, value: Any) -> Any:
    """A text as what an option is; a number that is none is refused by ``ValueError``."""
    if option.type is bool:
        return value == "true"
    return option.type(value) if option.type in (int, float) else value


def _find(text: str) -> Any:
    try:
        return parsed(text)
    except ValueError as error:
        raise NotFound("no such find", hint="go back and choose anew") from error


def _parameter(option: Option, place: Callable[..., Any]) -> Parameter:
    """An option as a field of a form: an empty one is one that was left out."""
    if option.type is tuple:
        several = Annotated[list[api.Text] | None, place(max_length=api.MOST_TEXTS)]
        return parameter(option.name, several, None)
    if option.type is str or option.meaning is Meaning.TABLE:
        return parameter(option.name, Annotated[str, place(max_length=api.MOST_TEXT)], "")
    # A number that was not filled in comes as an empty text, which has no bounds.
    filled_in: Any = annotated(option, Field)
    return parameter(option.name, Annotated[Literal[""] | filled_in | None, place()], None)


def filled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that were filled in: an empty one is one that was left out."""
    full = {
        name: [each for each in value if each != ""] if isinstance(value, list) else value
        for name, value in given.items()
    }
    return {name: value for name, value in full.items() if value not in (None, "", [])}


# --- addresses --------------------------------------------------------------------------------------------------------


def chosen(asked: Request[Any]) -> dict[str, Any]:
    """Options of a question that are not as the web app has them anyway, as fields of a form hold them."""
    return {
        name: _plain(getattr(asked, name))
        for name, option in _offered(type(asked)).items()
        if getattr(asked, name) is not None and getattr(asked, name) != option.default
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else value


def page_address(asked: Request[Any]) -> str:
    """The address of the page that asks a question."""
    return address(type(asked).about.page, _named(asked, chosen(asked)))


def address(path: str, values: Mapping[str, Any]) -> str:
    """A path with its parameters."""
    text = urlencode(values, doseq=True)
    return f"{path}?{text}" if text else path


def _named(asked: Request[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Values as an address of a page has them, which may name a table of the lake alone."""
    kind = type(asked)
    if not _is_of_table(kind):
        return values
    name = str(values.pop(_subject(kind).name, ""))
    return {_NAME: name.removeprefix("table:"), **values}


# --- fields -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form: what it is called, what it is for, and what is in it."""

    name: str
    label: str
    help: str
    kind: FieldKind
    value: Any
    choices: tuple[str, ...] = ()
    default: str = ""
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class OptionForm:
    """More options of a question: where they are sent to, with what goes along unseen."""

    action: str
    hidden: tuple[tuple[str, Any], ...]
    fields: tuple[FormField, ...]
    is_changed: bool


def option_form(asked: Request[Any], beside: Mapping[str, Any] | None = None) -> OptionForm:
    """The options of a question that its page has no fields of its own for; ``beside`` goes along with them."""
    kind = type(asked)
    # Paths may begin at any column; where joins are asked for on a column, the page has chosen it.
    first = _FIRST if _is_of_table(kind) else _FIRST | {"on"}
    options = {name: option for name, option in _offered(kind).items() if name not in first}
    fields = tuple(_field(option, getattr(asked, name)) for name, option in options.items())
    values = chosen(asked)
    unseen = {name: value for name, value in values.items() if name not in options}
    hidden = (*pairs(_named(asked, unseen)), *pairs(beside or {}))
    return OptionForm(kind.about.page, hidden, fields, any(name in options for name in values))


def pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values as fields that nobody sees; one that has several as several."""
    for name, value in values.items():
        yield from ((name, each) for each in (value if isinstance(value, list) else [value]))


def _field(option: Option, value: Any) -> FormField:
    within = option.range
    least = None if within is None else within.least if within.least is not None else within.above
    label = option.name.replace("_", " ")
    default = "" if option.default is None or option.required else str(_plain(option.default))
    if option.type is tuple:
        value = (*(value or ()), "")  # one more, to be filled in
    return FormField(
        *(option.name, label, option.help, _kind(option), _plain(value) if value is not None else ""),
        *(option.choices, default, least, None if within is None else within.most),
    )


def _kind(option: Option) -> FieldKind:
    if option.choices:
        return "choice"
    if option.type is bool:
        return "switch" if option.default else "flag"
    if option.type is tuple:
        return "texts"
    return "number" if option.type in (int, float) else "text"
