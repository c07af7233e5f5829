"""The types of answers: a sequence of small typed records that prints, tabulates and travels, and a table's profile.

Nearly every question is answered by a :class:`Results`. A record is a frozen dataclass; its fields are the columns of
``to_arrow()``, the keys of ``to_dicts()`` and the names on the command line.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from lakescope.errors import NotFound
from lakescope.show.text import aligned, cell_text, visible

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Record = TypeVar("Record")

#: Types of values that cannot change.
_FIXED = frozenset((str, int, float, bool, type(None)))


@dataclass(frozen=True, slots=True)
class ShownRecords:
    """How an answer is printed."""

    #: Records shown by ``repr``; the rest is counted. Not measured: what fits a screen.
    most: int = 30
    #: Numbers below it are told by their magnitude alone: nobody wants to know more than how small they are. Not
    #: measured.
    tiny: float = 1e-3


SHOWN_RECORDS = ShownRecords()


class Find(NamedTuple):
    """A column that was found to correlate: its table, the key that it is joined by, and its name."""

    table: str
    key: str
    column: str


class Results(Sequence[Record], Generic[Record]):
    """An answer: records of one kind, in order.

    ``shown`` are the fields a person wants to see first; ``notes`` say what the records cannot; ``info`` tells how the
    answer was found.
    """

    def __init__(
        self,
        kind: type[Record],
        records: Sequence[Record],
        *,
        shown: Sequence[str] = (),
        notes: Sequence[str] = (),
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.notes = tuple(notes)
        self.info = dict(info or {})
        self.shown = tuple(shown) or tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
        self._records = tuple(records)
        if not hasattr(kind, "_repr_html_"):  # one record in a notebook looks like several
            kind._repr_html_ = _record_html  # type: ignore[attr-defined]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Results[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Results[Record]:
        if isinstance(index, slice):
            return Results(self.kind, self._records[index], shown=self.shown, notes=self.notes, info=self.info)
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Results) and (self.kind, self._records) == (other.kind, other._records)

    __hash__ = None  # type: ignore[assignment]

    def with_note(self, note: str) -> Results[Record]:
        """This answer with one more note."""
        return Results(self.kind, self._records, shown=self.shown, notes=(*self.notes, note), info=self.info)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The records as plain dictionaries."""
        return [_as_dict(record) for record in self._records]

    def to_arrow(self) -> pa.Table:
        """The records as an Arrow table; the same columns whether there are records or not."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.to_dicts(), schema=arrow_schema(self.kind))

    def to_pandas(self) -> pd.DataFrame:
        """The records as a pandas frame."""
        return self.to_arrow().to_pandas()

    def _cells(self) -> list[list[str]]:
        return [
            [cell_text(getattr(record, name)) for name in self.shown] for record in self._records[: SHOWN_RECORDS.most]
        ]

    def __repr__(self) -> str:
        if not self._records:
            return visible("\n".join(["nothing found", *self.notes]))
        more = len(self) - SHOWN_RECORDS.most
        lines = [*aligned(list(self.shown), self._cells()), *([f"({more:,} more)"] if more > 0 else []), *self.notes]
        return visible("\n".join(lines))

    def _repr_html_(self) -> str:
        from lakescope.show.notebook import results_html

        more = len(self) - SHOWN_RECORDS.most
        notes = [*([f"{more:,} more"] if more > 0 else []), *self.notes]
        first = self._records[0] if self._records else None
        values = [getattr(first, name) for name in self.shown] if first is not None else []
        numbers = [place for place, value in enumerate(values) if isinstance(value, int | float)]
        rows = [[_face(getattr(record, name)) for name in self.shown] for record in self._records[: SHOWN_RECORDS.most]]
        return results_html(self.shown, rows, notes, numbers)


@dataclass(frozen=True, slots=True)
class TableProfile:
    """One table: its record, its columns, its problems. ``.to_dict()`` is the whole of it as plain data."""

    table: dict[str, Any]
    columns: list[dict[str, Any]]
    problems: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """Name of the table in the lake."""
        return str(self.table["table"])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.table["rows"])

    def column(self, name: str) -> dict[str, Any]:
        """The profile of one column by name."""
        for column in self.columns:
            if column["name"] == name:
                return column
        raise NotFound.among("column", name, [column["name"] for column in self.columns])

    def of(self, column: str) -> TableProfile:
        """The profile with one column alone."""
        return replace(self, columns=[self.column(column)])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain Python data (JSON-ready)."""
        problems = [{key: problem[key] for key in ("severity", "code", "detail", "count")} for problem in self.problems]
        return {**self.table, "columns": self.columns, "problems": problems}

    def __repr__(self) -> str:
        from lakescope.show.profile_text import profile_text

        return profile_text(self.to_dict())

    def _repr_html_(self) -> str:
        from lakescope.show.notebook import profile_html

        return profile_html(self.to_dict())


def _face(value: Any, width: int = 80) -> str:
    """A value in a notebook: chances of many zeros by their magnitude alone."""
    return (
        f"{value:.0e}" if isinstance(value, float) and 0 < abs(value) < SHOWN_RECORDS.tiny else cell_text(value, width)
    )


def _record_html(record: Any) -> str:
    from lakescope.show.notebook import record_html

    return record_html(
        type(record).__name__, [(each.name, _face(getattr(record, each.name), 300)) for each in fields(record)]
    )


def maker(kind: type[Record]) -> Callable[..., Record]:
    """A function that makes frozen records from their fields in order, in a fourth of the time: answers have many.

    A frozen record sets each field by a call. One that is not, with the same fields, is filled and then becomes frozen.
    """
    open_kind = make_dataclass(kind.__name__, [field.name for field in fields(kind)], slots=True)  # type: ignore[arg-type]

    def make(*values: Any) -> Record:
        made: Any = open_kind(*values)
        made.__class__ = kind
        record: Record = made
        return record

    return make


def _as_dict(record: Any) -> dict[str, Any]:
    """A record as a dictionary, like ``asdict``, which copies every value; values that cannot change need no copy."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    if all(type(value) in _FIXED or (type(value) is tuple and _are_fixed(value)) for value in values.values()):
        return values
    return asdict(record)


def _are_fixed(values: tuple[Any, ...]) -> bool:
    return all(type(value) in _FIXED for value in values)


def arrow_schema(kind: type[Any]) -> pa.Schema:
    """The Arrow schema of a kind of record, from the types of its fields."""
    import pyarrow as pa

    hints = get_type_hints(kind)
    return pa.schema([(field.name, _arrow_type(hints[field.name])) for field in fields(kind)])


def _arrow_type(hint: Any) -> pa.DataType:
    import pyarrow as pa

    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is Literal:
        return pa.string()
    if get_origin(hint) in (tuple, list):
        return pa.list_(_arrow_type(get_args(hint)[0]))
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[hint]
