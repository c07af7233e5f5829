"""What writers for data frames share: the order of a program that reads, joins, aggregates and adds columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from lakescope.code.writer import AddedColumn, CodeKey, CodeTable, Grouped, TableJoin, Writer, python_program


class FrameWriter(Writer):
    """Writes programs of Python over data frames; keys come to one form by functions that are printed if needed."""

    library: ClassVar[str]
    #: Functions and tables of characters that code uses, by how their use begins.
    definitions: ClassVar[Mapping[str, str]]

    @abstractmethod
    def text(self, key: CodeKey, frame: str) -> str:
        """A column of a frame as trimmed text."""

    @abstractmethod
    def column(self, frame: str, name: str) -> str:
        """A column of a frame."""

    @abstractmethod
    def left_join(self, left: str, right: str, keys: Sequence[tuple[str, str]], suffix: str = "") -> str:
        """All rows of a frame with those of another; columns of the other one get a suffix if their name is taken."""

    @abstractmethod
    def grouped(self, each: Grouped, on: Sequence[str], name: str) -> str:
        """A frame aggregated by its key, whose columns get the names ``on``; numbers are called ``name``."""

    @abstractmethod
    def dropped(self, frame: str, names: Sequence[str]) -> str:
        """A frame without some columns."""

    @abstractmethod
    def computed(self, on: Sequence[str], coefficient: str) -> list[str]:
        """Lines that join ``mine`` and ``found`` by ``on`` and compute a coefficient."""

    def key(self, key: CodeKey, frame: str) -> str:
        """A column of a frame in the form in which it meets its partner; nothing where it is no key."""
        form, text = key.form, self.text(key, frame)
        forms = ((form.number, "number"), (form.moment, "moment"), (form.boolean, "truth"))
        function = next((name for needed, name in forms if needed), "")
        text = f"{function}({text})" if function else text
        return f"real({text})" if form.empty else text

    def program(self, lines: Sequence[str], tables: Sequence[CodeTable], comments: Sequence[str] = ()) -> str:
        """A whole program, after the lines that read its tables."""
        reading = [f"{table.name} = {table.reader.code}" for table in tables]
        return python_program([*reading, *lines], tables, comments, [self.library], self.definitions)

    def program_of_plan(self, program: str, tables: Sequence[CodeTable]) -> str:
        """A whole program that joins the tables of a plan."""
        comments = [table.reader.note for table in tables if table.reader.note]
        return python_program([program], tables, comments, [self.library], self.definitions)

    def joins(self, tables: Sequence[CodeTable], joins: Sequence[TableJoin], comments: Sequence[str]) -> str:
        lines: list[str] = []
        right = tables[-1].name
        # The last join comes first: columns that are keys then still have their names.
        for n, join in reversed(list(enumerate(joins))):
            left = join.left[0].table.name
            keys = [
                (self.key(one, left), self.key(other, right)) for one, other in zip(join.left, join.right, strict=True)
            ]
            lines.append(f"joined = {self.left_join(left, right, keys, f'_{n + 1}' if len(joins) > 1 else '')}")
            right = "joined"
        return self.program(lines, tables, comments)

    def correlation(self, mine: Grouped, found: Grouped, coefficient: str, comments: Sequence[str]) -> str:
        on, tables = [f"k{i}" for i in range(len(mine.keys))], [mine.table, found.table]
        lines = [f"{each.table.name} = {self.grouped(each, on, each.table.name)}" for each in (mine, found)]
        return self.program([*lines, *self.computed(on, coefficient)], tables, comments)

    def additions(self, mine: CodeTable, parts: Sequence[AddedColumn], comments: Sequence[str]) -> str:
        lines: list[str] = []
        extra: list[str] = []
        joined = mine.name
        for join, grouped, name in parts:
            table = grouped.table.name
            on = [f"k{i} of {table}" for i in range(len(join.left))]
            keys = [
                (self.key(key, mine.name), self.column(table, each)) for key, each in zip(join.left, on, strict=True)
            ]
            lines.append(f"{table} = {self.grouped(grouped, on, name)}")
            lines.append(f"joined = {self.left_join(joined, table, keys)}")
            joined, extra = "joined", [*extra, *on]
        lines.append(f"joined = {self.dropped('joined', extra)}")
        return self.program(lines, [mine, *(grouped.table for _, grouped, _ in parts)], comments)
