"""A plan to join two tables whose keys are written differently: what to do, what it joins, and the doing of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lakescope.engines.transforms.evaluate import BETWEEN, derived
from lakescope.engines.transforms.fuzzy import Fuzzy, fuzzy_targets
from lakescope.engines.transforms.keys import Key, key_of
from lakescope.engines.transforms.program import Expression, Piece, Program
from lakescope.engines.transforms.texts import TextTable, read
from lakescope.engines.transforms.union import Joined, joined, targets_of
from lakescope.errors import BadRequest, NotFound
from lakescope.untrusted import parsed

Direction = Literal["left->right", "right->left"]

_VERSION = 1
#: Unmatched rows and pairs that are shown.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ExamplePair:
    """A pair of rows that programs were learnt from: the source row, the key it should become, what they share."""

    row: Mapping[str, str]
    key: str
    shared: str


@dataclass(frozen=True)
class Plan:
    """How two tables join: the direction, the columns used, the programs in order, and what they cover.

    Rows of the source (the left table if the direction is ``left->right``) are rewritten by the first of the programs
    that leads to a key of the target. ``coverage`` is the share of target rows that are joined, ``source_coverage``
    that of source rows. ``single`` says that a key belongs to one row; ``fuzzy`` what joins rows that are left, if
    anything. An empty plan (``bool(plan)`` is false) found nothing to believe in: ``reason`` says why.
    """

    direction: Direction | None
    programs: tuple[Program, ...] = ()
    single: bool = True
    coverage: float = 0.0
    source_coverage: float = 0.0
    fuzzy: Fuzzy | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    evidence: tuple[ExamplePair, ...] = ()
    info: dict[str, Any] = field(default_factory=dict)
    left_names: tuple[str, ...] = ()
    right_names: tuple[str, ...] = ()
    left: Any = field(default=None, repr=False, compare=False)
    right: Any = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.direction is not None

    @property
    def program(self) -> Program | None:
        """The first program; None if nothing was found."""
        return self.programs[0] if self.programs else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the source that programs use."""
        return tuple(dict.fromkeys(name for program in self.programs for name in program.columns))

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns of the target that they lead to."""
        return tuple(dict.fromkeys(piece.column for program in self.programs for piece in program.keys))

    def right_names_free(self) -> list[tuple[str, str]]:
        """Names of the right table's columns, and what they are called in the joined one."""
        return list(zip(self.right_names, free_names(self.left_names, self.right_names), strict=True))

    # --- doing it ----------------------------------------------------------------------------------------------------

    @cached_property
    def _texts(self) -> tuple[TextTable, TextTable]:
        if self.left is None or self.right is None:
            raise BadRequest("the plan was loaded without its tables", hint="call plan.apply(left, right) with them")
        return _texts_of(self.left), _texts_of(self.right)

    @cached_property
    def _joined(self) -> Joined:
        left, right = self._texts
        source, target = (left, right) if self.direction == "left->right" else (right, left)
        return join(self, source, target)

    def of(self, left: Any, right: Any, joined: Joined | None = None) -> Plan:
        """This plan for its tables in another form, as paths instead of frames; what was read and joined is kept."""
        other = replace(self, left=left, right=right)
        other.__dict__["_texts"] = self._texts
        joined = joined or self.__dict__.get("_joined")
        if joined is not None:
            other.__dict__["_joined"] = joined
        return other

    def pairs(self) -> pa.Table:
        """The rows that join, by their numbers from 0: ``left_row``, ``right_row``."""
        if not self:
            return pa.table({"left_row": pa.array([], pa.int64()), "right_row": pa.array([], pa.int64())})
        source = np.flatnonzero(self._joined.targets >= 0)
        target = self._joined.targets[source]
        left, right = (source, target) if self.direction == "left->right" else (target, source)
        order = np.lexsort((right, left))
        return pa.table({"left_row": left[order].astype(np.int64), "right_row": right[order].astype(np.int64)})

    def table(self) -> pa.Table:
        """The joined table: columns of the left one, then of the right one (``_right`` added to names taken)."""
        pairs = self.pairs()
        left, right = rows_of(self.left, self._texts[0]), rows_of(self.right, self._texts[1])
        return beside(left.take(pairs["left_row"]), right.take(pairs["right_row"]))

    def apply(self, left: Any, right: Any = None) -> Plan:
        """This plan for other tables with the same columns; the right one stays if only a left one is given."""
        if right is None and self.right is None:
            raise BadRequest("the plan was loaded without its tables", hint="call plan.apply(left, right)")
        other = replace(self, left=rereadable(left), right=self.right if right is None else rereadable(right))
        if not self:
            return other
        missing = [name for name in self.columns if name not in other._source.names]
        if missing:
            raise NotFound.among("column", missing[0], other._source.names)
        found = other._joined
        coverage = found.keys / max(1, other._target.rows), found.pairs / max(1, other._source.rows)
        info = {"rows": found.rows(len(self.programs))}
        other = replace(other, notes=tuple(found.notes()), info=info)
        return replace(other, coverage=coverage[0], source_coverage=coverage[1])

    @property
    def _source(self) -> TextTable:
        return self._texts[0 if self.direction == "left->right" else 1]

    @property
    def _target(self) -> TextTable:
        return self._texts[1 if self.direction == "left->right" else 0]

    def nearly(self) -> dict[str, str]:
        """What joins by distance, as texts: what programs make of a row, and the key it is nearly equal to.

        Texts of several rows that fare differently are left out.
        """
        open_rows = np.flatnonzero(self._joined.programs < 0)
        rows = self._source.at(open_rows)
        made = zip(*(derived(program.outputs, rows).to_pylist() for program in self.programs), strict=True)
        fates: dict[str, set[int]] = {}
        for ways, target in zip(made, self._joined.targets[open_rows].tolist(), strict=True):
            text = next((text for text in ways if text), None)
            if text is not None:
                fates.setdefault(text, set()).add(target)
        sure = {text: next(iter(targets)) for text, targets in fates.items() if len(targets) == 1}
        found = {text: target for text, target in sure.items() if target >= 0}
        keys = [Expression((piece,)) for piece in self.programs[0].keys]
        texts = derived(keys, self._target.at(np.array([*found.values()], np.int64))).to_pylist()
        return dict(zip(found, texts, strict=True))

    def unmatched(self, side: Literal["left", "right"], limit: int = _SHOWN) -> pa.Table:
        """Rows of one side that do not join, in order."""
        if side not in ("left", "right"):
            raise BadRequest(f"no side {side!r}", hint="use left or right")
        number = 0 if side == "left" else 1
        matched = self.pairs()[f"{side}_row"].to_numpy()
        texts = self._texts[number]
        rows = np.setdiff1d(np.arange(texts.rows), matched)[:limit]
        return rows_of((self.left, self.right)[number], texts).take(pa.array(rows))

    # --- telling and keeping it --------------------------------------------------------------------------------------

    @property
    def as_they_are(self) -> bool:
        """Whether programs rewrite nothing: cells are keys as they are written."""
        return all(program.identity and not any(key.steps for key in program.keys) for program in self.programs)

    def heading(self) -> str:
        """What is done to which table, in one line."""
        forward = self.direction == "left->right"
        if self.as_they_are:
            left, right = (", ".join(names) for names in ((self.columns, self.keys)[:: 1 if forward else -1]))
            kind = "one to one" if self.single else "many to one" if forward else "one to many"
            return f"the tables join as they are, on {left} of the left and {right} of the right one ({kind})"
        kind = "one to one" if self.single else "many to one"
        return f"rewrite the {'left' if forward else 'right'} table so that it meets {', '.join(self.keys)} ({kind})"

    def words(self) -> str:
        """The plan in plain words."""
        if not self:
            return f"no transformation found: {self.reason}"
        source, target = ("left", "right") if self.direction == "left->right" else ("right", "left")
        lines = [self.heading()]
        if len(self.programs) > 1 or not self.as_they_are:
            for number, program in enumerate(self.programs):
                lines.append(f"  {'else ' if number else ''}{program.words()}")
        if self.fuzzy is not None:
            lines.append(f"  else {self.fuzzy.words()}")
        lines.append(f"joins {self.coverage:.1%} of the {target} rows, {self.source_coverage:.1%} of the {source} rows")
        return "\n".join([*lines, *self.notes])

    def __str__(self) -> str:
        return self.words()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from lakescope.show.notebook import plan_html

        return plan_html(
            self.to_dict(), self.heading() if self else "", None if self.fuzzy is None else self.fuzzy.words()
        )

    def to_sql(self, dialect: str = "duckdb") -> str:
        """The join as SQL (``duckdb`` or ``sql``), without functions of our own."""
        from lakescope.transforms.code import join_code

        return join_code(self, dialect)

    def to_spark(self) -> str:
        """The join as PySpark: column expressions only, no Python function."""
        from lakescope.transforms.code import join_code

        return join_code(self, "spark")

    def code(self, dialect: str) -> str:
        """The join as code: ``python``, ``spark``, ``sql``, ``duckdb`` or ``polars``."""
        from lakescope.transforms.code import join_code

        return join_code(self, dialect)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "version": _VERSION,
            "direction": self.direction,
            "columns": list(self.columns),
            "keys": list(self.keys),
            "single": self.single,
            "coverage": self.coverage,
            "source_coverage": self.source_coverage,
            "programs": [{**program.to_dict(), "words": program.words()} for program in self.programs],
            "fuzzy": None if self.fuzzy is None else self.fuzzy.to_dict(),
            "reason": self.reason,
            "notes": list(self.notes),
            "left_names": list(self.left_names),
            "right_names": list(self.right_names),
            "evidence": [
                {"row": dict(each.row), "key": each.key, "shared": each.shared, "borne_out": self._bears_out(each)}
                for each in self.evidence
            ],
        }

    def _bears_out(self, evidence: ExamplePair) -> bool:
        """Whether a program makes of a row the key that it was shown with: others share a text with it by chance."""
        return any(BETWEEN.join(program.apply(evidence.row) or ()) == evidence.key for program in self.programs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON, without the tables."""
        Path(path).write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n", "utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """A plan that :meth:`save` wrote; give it tables with :meth:`apply`."""
        try:
            data = parsed(Path(path).read_text("utf-8"))
        except OSError as error:
            raise BadRequest(f"cannot read {path}: {error.strerror}", hint="give the path of a saved plan") from error
        except ValueError as error:
            raise BadRequest(f"{path} is no saved plan", hint="give a file that plan.save() wrote") from error
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            raise BadRequest(f"{path} is no plan of version {_VERSION}", hint="save it again with this version")
        try:
            return cls._from_dict(data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadRequest(
                f"{path} is no saved plan: {error!r}", hint="give a file that plan.save() wrote"
            ) from error

    @classmethod
    def _from_dict(cls, data: Mapping[str, Any]) -> Plan:
        return cls(
            direction=data["direction"],
            programs=tuple(Program.from_dict(each) for each in data["programs"]),
            single=data["single"],
            coverage=data["coverage"],
            source_coverage=data["source_coverage"],
            fuzzy=None if data["fuzzy"] is None else Fuzzy.from_dict(data["fuzzy"]),
            reason=data["reason"],
            notes=tuple(data["notes"]),
            left_names=tuple(data["left_names"]),
            right_names=tuple(data["right_names"]),
            evidence=tuple(ExamplePair(each["row"], each["key"], each["shared"]) for each in data["evidence"]),
        )


def join(plan: Plan, source: TextTable, target: TextTable) -> Joined:
    """What a plan joins of two tables."""
    keys: dict[tuple[Piece, ...], Key] = {
        pieces: key_of(target, pieces) for pieces in dict.fromkeys(program.keys for program in plan.programs)
    }
    found = joined([targets_of(program, source, keys) for program in plan.programs], plan.single)
    found = replace(found, repeated=sum(key.repeated for key in keys.values()))
    if plan.fuzzy is None:
        return found
    first = plan.programs[0]
    texts = [derived(program.outputs, source).to_pylist() for program in plan.programs]
    more = fuzzy_targets(plan.fuzzy, texts, keys[first.keys], target, found, plan.single)
    return replace(found, targets=np.where(found.targets >= 0, found.targets, more))


def rereadable(query: Any) -> Any:
    """A table that may be read more than once."""
    is_path = isinstance(query, str) or hasattr(query, "__fspath__")
    return query if is_path else frame_of(query)


def frame_of(query: Any) -> pa.Table:
    """A frame as an Arrow table."""
    from lakescope.sources.frames import as_batches

    if isinstance(query, pa.Table):
        return query
    if type(query).__module__.startswith("pyspark.sql"):
        return query.toArrow()
    return pa.Table.from_batches(list(as_batches(query)))


def _texts_of(query: Any) -> TextTable:
    return query if isinstance(query, TextTable) else read(query)


def rows_of(query: Any, texts: TextTable) -> pa.Table:
    """A table with the types it came with; cells of files as they are written."""
    if isinstance(query, pa.Table):
        return query
    return pa.table({name: column.cast(pa.string()) for name, column in texts.columns.items()})


def beside(left: pa.Table, right: pa.Table) -> pa.Table:
    """Two tables of as many rows side by side; names that are taken get ``_right``."""
    for name, column in zip(free_names(left.column_names, right.column_names), right.columns, strict=True):
        left = left.append_column(name, column)
    return left


def free_names(taken: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names, changed where they are taken."""
    rereadable, free = set(taken), []
    for name in names:
        while name in rereadable:
            name += "_right"
        rereadable.add(name)
        free.append(name)
    return free
