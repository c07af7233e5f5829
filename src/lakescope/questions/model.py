"""What a question is: its options, declared once, from which every face follows.

A question is a frozen dataclass below :class:`Request`. An annotation of a field says all about an option: its type,
its help, its bounds, what it means, and where a face has it otherwise, with the reason. Faces read nothing but
:func:`options_of`. A request checks itself when it is made, so one that exists can be answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from enum import Enum
from functools import cache
from numbers import Real
from operator import index
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from lakescope.errors import BadRequest
from lakescope.results import Find, Results
from lakescope.watch import NOBODY as NOBODY
from lakescope.watch import Watch as Watch

if TYPE_CHECKING:
    from lakescope.lake import Lake

Face: TypeAlias = Literal["python", "cli", "rest", "web", "agents", "batch"]
FACES: Final[tuple[Face, ...]] = get_args(Face)
#: Where a server answers: from the catalog, which takes hardly anything; at once beside other quick questions; or in
#: the line of those that take long.
Lane: TypeAlias = Literal["catalog", "quick", "long"]
#: What an answer is: :class:`Results` of records; rows of an Arrow table; one mapping, or a thing with ``to_dict()``;
#: a text, or several; or a join of two tables, with its rows.
Gives: TypeAlias = Literal["records", "rows", "record", "text", "join"]
Answer = TypeVar("Answer")
_Kind = TypeVar("_Kind", bound="type[Request[Any]]")


class Unset(Enum):
    """The mark of what was not said, where None says something."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


class Meaning(Enum):
    """What a value stands for, where its type does not tell: faces ask for it and complete it in their own way."""

    TABLE = "a table: a name in the lake, a path or a frame"
    LAKE_TABLE = "a table of the lake"
    COLUMN = "a column of the query"
    COLUMNS = "columns of the query"
    SIDES = "a column of both tables, or one of each"
    FINDS = "columns that were found to correlate"
    SECONDS = "seconds; on the command line also 30s, 2m or 1h"
    SIZE = "a number of bytes"


Table: TypeAlias = Annotated[Any, Meaning.TABLE]
LakeTable: TypeAlias = Annotated[str, Meaning.LAKE_TABLE]
Column: TypeAlias = Annotated[str, Meaning.COLUMN]
Columns: TypeAlias = Annotated[tuple[str, ...], Meaning.COLUMNS]
Sides: TypeAlias = Annotated[tuple[str, ...], Meaning.SIDES]
Finds: TypeAlias = Annotated[tuple[Find, ...], Meaning.FINDS]
Seconds: TypeAlias = Annotated[float, Meaning.SECONDS]
#: What a route of REST is asked by: GET answers, POST keeps the table that is made as a file of the visitor's, too.
Verb: TypeAlias = Literal["GET", "POST"]
Size: TypeAlias = Annotated[float, Meaning.SIZE]


# --- what an annotation may hold --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a number: ``least`` and ``most`` belong to it, ``above`` does not. The hint says what is a good one."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    hint: str = ""

    def holds(self, value: float) -> bool:
        """Whether a number lies within."""
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and not math.isnan(value)
        )

    def __str__(self) -> str:
        low = f"above {self.above:g}" if self.above is not None else ""
        least = f"at least {self.least:g}" if self.least is not None else low
        most = f"at most {self.most:g}" if self.most is not None else ""
        return " and ".join(part for part in (least, most) if part)


class On:
    """What some faces have otherwise: names of options on the command line, help, or another default, range or value.

    ``fixed`` is a value that the face does not let one choose. What changes an answer needs a reason, ``why``.
    """

    __slots__ = ("default", "faces", "fixed", "help", "names", "range", "why")

    def __init__(
        self,
        *faces: Face,
        names: Sequence[str] = (),
        help: str = "",
        default: Any = UNSET,
        range: Range | None = None,
        fixed: Any = UNSET,
        why: str = "",
    ) -> None:
        if not faces:
            raise TypeError("On() names the faces that it is about")
        if (default is not UNSET or range is not None or fixed is not UNSET) and not why:
            raise TypeError(f"On{faces} changes answers: say why")
        self.faces, self.names, self.help, self.why = faces, tuple(names), help, why
        self.default, self.range, self.fixed = default, range, fixed


class NotOn:
    """Faces that leave an option out, and the reason."""

    __slots__ = ("faces", "why")

    def __init__(self, *faces: Face, why: str) -> None:
        self.faces, self.why = faces, why


# --- options ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a question, as one face has it."""

    name: str
    type: type
    nullable: bool
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    range: Range | None = None
    meaning: Meaning | None = None
    #: Names on the command line; in capitals it is an argument by its place.
    names: tuple[str, ...] = ()
    fixed: Any = UNSET
    absent: bool = False
    #: Why this face has it otherwise.
    why: str = ""

    @property
    def required(self) -> bool:
        """Whether there is no question without it."""
        return self.default is UNSET

    @property
    def called(self) -> str:
        """What whoever asks calls it: of a command the option as it is written."""
        return next((name for name in self.names if name.startswith("--")), self.name)

    @property
    def offered(self) -> bool:
        """Whether this face lets one choose."""
        return not self.absent and self.fixed is UNSET

    def checked(self, value: Any) -> Any:
        """The value as the question has it, or a refusal that says what would do."""
        if value is None and self.nullable:
            return None
        if self.meaning is Meaning.TABLE:
            return value
        if self.meaning is Meaning.FINDS:
            return self._finds(value)
        if self.type is tuple:
            return self._several(value)
        if self.type is bool:
            value = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
            return self._of_type(value, bool, "true or false")
        if self.type is str:
            return self._chosen(self._of_type(value, str, "a text"))
        return self._number(value)

    def _of_type(self, value: Any, kind: Any, words: str) -> Any:
        if not isinstance(value, kind):
            raise BadRequest(f"{self.called} must be {words}, not {value!r}", hint=self._good())
        return value

    def _several(self, value: Any) -> tuple[str, ...]:
        items = (value,) if isinstance(value, str) else value
        if not isinstance(items, Sequence) or not all(isinstance(each, str) for each in items):
            raise BadRequest(f"{self.called} must be one text or several, not {value!r}", hint=self._good())
        return tuple(map(self._chosen, items))

    def _finds(self, value: Any) -> tuple[Find, ...]:
        """Finds, from what has their fields: an answer, an object of JSON, or a list."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise BadRequest(f"{self.name} must be finds, not {value!r}", hint=self._good())
        return tuple(map(self._find, value))

    def _find(self, value: Any) -> Find:
        if isinstance(value, Mapping):
            parts: list[Any] = [value.get(name) for name in Find._fields]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            parts = list(value)
        else:
            parts = [getattr(value, name, None) for name in Find._fields]
        if len(parts) != len(Find._fields) or not all(isinstance(part, str) for part in parts):
            raise BadRequest(f"{self.name}: {value!r} is no find", hint="name its table, key and column")
        return Find(*parts)

    def _chosen(self, value: str) -> str:
        if self.choices and value not in self.choices:
            close = get_close_matches(value, self.choices, n=1)
            meant = f"did you mean {close[0]}? " if close else ""
            raise BadRequest(f"{self.called} cannot be {value!r}", hint=meant + (self._good() or ""))
        return value

    def _number(self, value: Any) -> Any:
        words = "a whole number" if self.type is int else "a number"
        try:
            # Whole numbers of numpy are some, too; truth values and texts are not.
            value = index(_no_truth(value)) if self.type is int else _real(_no_truth(value))
        except TypeError:
            raise BadRequest(f"{self.called} must be {words}, not {value!r}", hint=self._good()) from None
        if self.range is not None and not self.range.holds(value):
            raise BadRequest(f"{self.called} must be {self.range}, not {value:g}", hint=self._good())
        return value

    def _good(self) -> str | None:
        if self.choices:
            return f"use {' or '.join((', '.join(self.choices[:-1]), self.choices[-1]))}" if self.choices[1:] else None
        return (self.range.hint if self.range is not None else "") or self.help or None


def _real(value: Any) -> float:
    """A number, as whatever it is; of numpy as Python's."""
    if isinstance(value, int):
        return value
    if not isinstance(value, Real):
        raise TypeError(value)
    return float(value)


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError(value)
    return value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Declared:
    """What an annotation says, before a face is chosen."""

    name: str
    type: type
    nullable: bool
    default: Any
    help: str
    choices: tuple[str, ...]
    range: Range | None
    meaning: Meaning | None
    otherwise: tuple[On | NotOn, ...]

    def on(self, face: Face) -> Option:
        """The option as a face has it."""
        values: dict[str, Any] = {
            **{"name": self.name, "type": self.type, "nullable": self.nullable, "default": self.default},
            **{"help": self.help, "choices": self.choices, "range": self.range, "meaning": self.meaning},
        }
        for each in self.otherwise:
            if face not in each.faces:
                continue
            if isinstance(each, NotOn):
                values |= {"absent": True, "why": each.why}
                continue
            said = {"names": each.names, "help": each.help, "range": each.range, "why": each.why}
            values |= {name: value for name, value in said.items() if value}
            if each.default not in (UNSET, None) and face != "cli":
                values["nullable"] = False  # no value would lift the bounds that the face has
            chosen = {"default": each.default, "fixed": each.fixed}
            values |= {name: value for name, value in chosen.items() if value is not UNSET}
        return Option(**values)


def options_of(kind: type[Request[Any]], face: Face) -> Mapping[str, Option]:
    """The options of a question as a face has them, by name, in the order of their declaration."""
    return _options_of(cast(Any, kind), face)


@cache
def _options_of(kind: Any, face: Face) -> dict[str, Option]:
    return {each.name: each.on(face) for each in _declared(kind)}


@cache
def _declared(kind: Any) -> tuple[_Declared, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_declaration(each, hints[each.name]) for each in fields(kind))


def _declaration(field: Field[Any], hint: Any) -> _Declared:
    said = [*_extras(hint)]
    helps = [each for each in said if isinstance(each, str)]
    if len(helps) != 1:
        raise TypeError(f"{field.name} needs one text that says what it is for, and has {len(helps)}")
    kind, nullable = _bare(hint)
    single = get_args(kind)[0] if get_origin(kind) is tuple else kind
    choices: tuple[str, ...] = get_args(single) if get_origin(single) is Literal else ()
    return _Declared(
        field.name,
        tuple if get_origin(kind) is tuple else str if choices else kind,
        nullable,
        UNSET if field.default is MISSING else field.default,
        helps[0],
        choices,
        next((each for each in said if isinstance(each, Range)), None),
        next((each for each in said if isinstance(each, Meaning)), None),
        tuple(each for each in said if isinstance(each, On | NotOn)),
    )


def _extras(hint: Any) -> list[Any]:
    """Everything that a type is annotated with, on the outside and within a union."""
    if get_origin(hint) is Annotated:
        inner, *said = get_args(hint)
        return [*_extras(inner), *said]
    if get_origin(hint) in (Union, UnionType):
        return [each for part in get_args(hint) for each in _extras(part)]
    return []


def _bare(hint: Any) -> tuple[Any, bool]:
    """A type without what it is annotated with, and whether None is one of its values."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not NoneType]
        if len(parts) != 1:
            raise TypeError(f"{hint} has no one form for all faces")
        return _bare(parts[0])[0], True
    return hint, False


# --- questions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Question:
    """What is to say about a question besides its options.

    ``doing`` is what whoever waits is told. ``gives`` says what the answer is, ``record`` is the kind of its records
    if it has some, ``records`` the word for them. ``paged``: REST and agents hand out the answer in pages.
    ``shown`` are the fields of rows that a person wants to see first, ``brief`` those for who has room for few,
    ``private`` those that say where things lie: only who runs Python or a command on this machine is told.
    ``examples`` are of the command line, ``example`` is a record as REST's description shows it.
    ``column`` is the option that takes the column of ``TABLE.COLUMN``, which a command understands as both.
    One that ``reads`` opens tables: a server leaves it to a worker. Of one that is not ``indexed`` any table is asked,
    without a lake. ``method`` is what Python calls it, ``path`` what REST does, ``tool`` what agents do, if otherwise;
    ``verbs`` are those of its route. ``page`` is its address in the web app, and ``form`` where a form is sent to that
    has a table made, if there are such.
    ``absent`` says which faces do not ask it, and why.
    """

    name: str
    lane: Lane
    group: str
    records: str
    doing: str
    record: type | None = None
    gives: Gives = "records"
    shown: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    paged: bool = False
    reads: bool = False
    indexed: bool = True
    column: str = ""
    method: str = ""
    path: str = ""
    page: str = ""
    form: str = ""
    verbs: tuple[Verb, ...] = ("GET",)
    tool: str = ""
    examples: tuple[str, ...] = ()
    example: Mapping[str, Any] | None = None
    absent: tuple[NotOn, ...] = ()

    @property
    def makes(self) -> bool:
        """Whether a table is made, which a server keeps as a file of the visitor's."""
        return "POST" in self.verbs

    def is_on(self, face: Face) -> bool:
        """Whether a face asks it."""
        if face == "web" and not (self.page or self.form):
            return False
        return not any(face in each.faces for each in self.absent)

    def pages_on(self, face: Face) -> bool:
        """Whether a face hands out the answer in pages: of one record, agents alone get its parts piece by piece."""
        return self.paged and (self.gives != "record" or face == "agents")

    def public(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record without where things lie."""
        return {name: value for name, value in record.items() if name not in self.private}


def question(name: str, **about: Any) -> Callable[[_Kind], _Kind]:
    """Declare a class to be a question; see :class:`Question` for what can be said about it."""

    def declare(kind: _Kind) -> _Kind:
        kind.about = Question(name, **about)
        return kind

    return declare


class Request(Generic[Answer]):
    """A question with its options, checked: frozen dataclasses below it declare what can be asked."""

    __slots__ = ()
    about: ClassVar[Question]

    def __post_init__(self) -> None:
        for name, option in options_of(type(self), "python").items():
            object.__setattr__(self, name, option.checked(getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Refuse what types and bounds of single options cannot."""

    @property
    def lane(self) -> Lane:
        """Where a server answers it: it may depend on the options."""
        return self.about.lane

    def answer(self, lake: Lake, watch: Watch) -> Answer:
        """The answer of a lake."""
        raise NotImplementedError

    def ask(self, lake: Lake | None = None, watch: Watch = NOBODY) -> Answer:
        """Ask a lake; whoever watches is told what is done, and the answer says what was fetched for it."""
        watch.tell(self.about.doing)
        if lake is None:
            return self.answer(cast(Any, lake), watch)
        with lake._view() as seen:
            before = seen.fetched
            found = self.answer(seen, watch)
            after = seen.fetched
        if before is not None and after is not None and isinstance(found, Results):
            spent = after.since(before)
            found.info |= {"requests": spent.requests, "fetched_bytes": spent.bytes}
        return found

    @classmethod
    def of(cls, values: Mapping[str, Any], face: Face = "python") -> Self:
        """The request that plain values make: those of a job, a form, a command or a call.

        What a face has fixed comes in; an empty field of a form is one that was left out. The bounds are those of the
        face, the rest is checked as ever.
        """
        options = options_of(cls, face)
        if unknown := [name for name in values if name not in options or options[name].absent]:
            known = ", ".join(name for name, option in options.items() if option.offered)
            raise BadRequest(f"no option {unknown[0]!r} here", hint=f"there are {known}")
        made: dict[str, Any] = {}
        for name, option in options.items():
            if option.fixed is not UNSET:
                made[name] = option.fixed
            elif name in values and not (values[name] == "" and not option.required):
                made[name] = option.checked(values[name])
            elif not option.required and not option.absent:
                made[name] = option.default
        return cls(**made)

    def parameters(self) -> dict[str, Any]:
        """The options that are not as they are by default, as plain data: of a job, a link, a line of the log."""
        found: dict[str, Any] = {}
        for name, option in options_of(type(self), "python").items():
            value = getattr(self, name)
            if option.required or value != option.default:
                found[name] = list(value) if isinstance(value, tuple) else value
        return found


# --- what answers of several questions begin with ---------------------------------------------------------------------


def located(lake: Lake | None, query: Any) -> Any:
    """What is read of a table: of one of the lake where it lies."""
    return query if lake is None else lake._place(query)


def progress_of(watch: Watch, doing: str) -> Callable[[int, int], None]:
    """Tells a watch how many steps of how many are done."""
    return lambda done, total: watch.tell(doing, done / max(1, total))
